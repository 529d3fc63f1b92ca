"""What the declared version of Kueue ignores, and decides differently than jobgen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from jobgen.features.kueue.cluster_objects import (
    NEWEST,
    OLDEST,
    ClusterObjects,
    Version,
    adapt_cohorts,
    list_gate_notes,
    list_unknown_annotations,
)
from jobgen.features.kueue.objects import ClusterQueue, parse_cluster_queue, parse_cohort
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
        yield f"Kueue {shown} is newer than the versions that jobgen knows; jobgen decides like {show_version(NEWEST)}"
    if version < OLDEST:
        yield f"Kueue {shown} is older than the versions that jobgen knows; jobgen decides like {show_version(OLDEST)}"
    yield from list_gate_notes(version, configuration.switched)
    written = list(map(parse_cluster_queue, cluster.list_objects("ClusterQueue")))
    read = cluster.list_queues()
    ignored = [*_list_ignored(cluster, written, read), *configuration.ignored]
    if ignored:
        yield f"Kueue {shown} ignores {', '.join(ignored)}"
    preferences = [
        (one.fungibility.preference, other.fungibility.preference) for one, other in zip(written, read, strict=True)
    ]
    if any(one and other and one != other for one, other in preferences):
        yield f"Kueue {shown} swaps the values of `flavorFungibility.preference`"
    has_parents = any(each.parent for each in cluster.list_cohorts())
    topics = {
        PARENTS: has_parents,
        FAIR: configuration.rules.is_fair,
        FAIR_PARENTS: configuration.rules.is_fair and has_parents,
        FLAVORS: any(len(group.flavors) > 1 for each in written for group in each.groups),
        TOPOLOGY: configuration.gates["TopologyAwareScheduling"]
        and any(each.topology for each in cluster.list_flavors()),
    }
    differences = [each.text for each in DIFFERENCES if version[:2] < each.until and topics[each.topic]]
    if differences:
        yield f"jobgen does not simulate what Kueue {shown} decides differently: {'; '.join(differences)}"


def _list_ignored(
    cluster: ClusterObjects, written: Sequence[ClusterQueue], read: Sequence[ClusterQueue]
) -> Iterator[str]:
    """Yield the fields and annotations that stand in the objects, and that the version does not read."""
    version, gates = cluster.configuration.version, cluster.configuration.gates
    if not gates["LendingLimit"] and any(each.lending_limit is not None for q in written for each in q.quotas.values()):
        yield "`lendingLimit`"
    if any(
        one.fungibility.preference and not other.fungibility.preference
        for one, other in zip(written, read, strict=True)
    ):
        yield "`flavorFungibility.preference`"
    cohorts = list(map(parse_cohort, cluster.list_objects("Cohort")))
    if not gates["HierarchicalCohorts"] and cohorts:
        yield "Cohort objects"
    elif cohorts != adapt_cohorts(cohorts, version, gates):
        yield "`fairSharing` of cohorts"
    if any(each.topology for each in cluster.list_flavors()):
        if gates["TopologyAwareScheduling"]:
            yield from (f"`{name}`" for name in sorted(list_unknown_annotations(version)))
        else:
            yield "topologies (feature gate `TopologyAwareScheduling`)"


def show_version(version: Version) -> str:
    """Return a version as text."""
    return ".".join(map(str, version))
