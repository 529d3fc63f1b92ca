"""What to know about a decision for a version of Kueue: what it ignores, and what it decides in a way of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jobgen.features.kueue.cluster_objects import ClusterObjects
from jobgen.features.kueue.configuration import NEWEST
from jobgen.features.kueue.objects import Cohort, parse_cluster_queue, parse_cohort
from jobgen.features.kueue.version.gate_defaults import OLDEST, Version, list_gate_notes
from jobgen.features.kueue.version.versions import adapt_cohorts, adapt_queue, list_unknown_annotations
from jobgen.model.named_tuple import NamedTuple


class Difference(NamedTuple):
    """What versions before `until` decide differently, without a feature gate. It is not simulated."""

    topic: str
    """Which clusters it concerns."""
    until: Version
    text: str


PARENTS, FAIR, FAIR_PARENTS, FLAVORS, TOPOLOGY = "parents", "fair", "fair-parents", "flavors", "topology"

DIFFERENCES: Final = (
    Difference(PARENTS, (0, 12), "preemption where a cohort has a parent"),
    Difference(PARENTS, (0, 14), "which flavor to borrow where a cohort has a parent"),
    Difference(FAIR_PARENTS, (0, 11), "fair sharing where a cohort has a parent"),
    Difference(FAIR, (0, 14), "what fair sharing preempts, and how it rounds shares"),
    Difference(FLAVORS, (0, 13), "which flavor to preempt in"),
    Difference(FLAVORS, (0, 19), "node selectors with a label that another flavor has"),
    Difference(TOPOLOGY, (0, 11), "the choice of domains, preemption for them, and pods without an annotation"),
    Difference(TOPOLOGY, (0, 15), "pods without a required or preferred level"),
    Difference(TOPOLOGY, (0, 19), "ties between domains, and resources without quota that nodes lack"),
)
"""The differences that the release notes of Kueue state (`CHANGELOG/`). docs/kueue.md has the same table."""


def list_version_notes(cluster: ClusterObjects) -> Iterator[str]:
    """Yield what to know about decisions of the declared version for these objects."""
    configuration = cluster.configuration
    version = configuration.version
    shown = show_version(version)
    if version[:2] > NEWEST:
        yield f"Kueue {shown} is newer than what jobgen knows; it is decided as {show_version(NEWEST)}"
    if version < OLDEST:
        yield f"Kueue {shown} is older than what jobgen knows; it is decided as {show_version(OLDEST)}"
    yield from list_gate_notes(version, configuration.switched)
    ignored = [*_list_ignored(cluster), *configuration.ignored]
    if ignored:
        yield f"Kueue {shown} ignores {', '.join(ignored)}"
    if _swaps_preferences(cluster):
        yield f"Kueue {shown} takes each value of `flavorFungibility.preference` for the other"
    topics = _find_topics(cluster)
    differences = [each.text for each in DIFFERENCES if version[:2] < each.until and each.topic in topics]
    if differences:
        yield f"Kueue {shown} decides otherwise, which is not simulated: {'; '.join(differences)}"


def _list_ignored(cluster: ClusterObjects) -> Iterator[str]:
    """Yield the fields and annotations that stand in the objects, and that the version does not read."""
    version, gates = cluster.configuration.version, cluster.configuration.gates
    queues = list(map(parse_cluster_queue, cluster.list_objects("ClusterQueue")))
    if not gates["LendingLimit"] and any(each.lending_limit is not None for q in queues for each in q.quotas.values()):
        yield "`lendingLimit`"
    adapted = [adapt_queue(each, version, gates).fungibility for each in queues]
    if any(q.fungibility.preference and not each.preference for q, each in zip(queues, adapted, strict=True)):
        yield "`flavorFungibility.preference`"
    if not gates["HierarchicalCohorts"] and cluster.list_objects("Cohort"):
        yield "Cohort objects"
    elif _read_cohorts(cluster) != adapt_cohorts(_read_cohorts(cluster), version, gates):
        yield "`fairSharing` of cohorts"
    yield from _list_ignored_topology(cluster)


def _swaps_preferences(cluster: ClusterObjects) -> bool:
    """Return whether the version reads a preference of some queue as the other one."""
    written = (parse_cluster_queue(each).fungibility.preference for each in cluster.list_objects("ClusterQueue"))
    read = (each.fungibility.preference for each in cluster.list_queues())
    return any(one and other and one != other for one, other in zip(written, read, strict=True))


def _list_ignored_topology(cluster: ClusterObjects) -> Iterator[str]:
    version = cluster.configuration.version
    if not any(each.topology for each in cluster.list_flavors()):
        return
    if not cluster.configuration.gates["TopologyAwareScheduling"]:
        yield "topologies (feature gate `TopologyAwareScheduling`)"
        return
    yield from (f"`{name}`" for name in sorted(list_unknown_annotations(version)))


def _find_topics(cluster: ClusterObjects) -> frozenset[str]:
    """Return which differences can matter for these objects."""
    is_fair = cluster.configuration.rules.is_fair
    has_parents = any(each.parent for each in cluster.list_cohorts())
    queues = map(parse_cluster_queue, cluster.list_objects("ClusterQueue"))
    found = {
        PARENTS: has_parents,
        FAIR: is_fair,
        FAIR_PARENTS: is_fair and has_parents,
        FLAVORS: any(len(group.flavors) > 1 for each in queues for group in each.groups),
        TOPOLOGY: cluster.configuration.gates["TopologyAwareScheduling"]
        and any(each.topology for each in cluster.list_flavors()),
    }
    return frozenset(topic for topic, is_present in found.items() if is_present)


def _read_cohorts(cluster: ClusterObjects) -> list[Cohort]:
    return list(map(parse_cohort, cluster.list_objects("Cohort")))


def show_version(version: Version) -> str:
    """Return a version as text."""
    return ".".join(map(str, version))
