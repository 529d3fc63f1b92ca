"""Quota that no workload can use: of queues without workloads, of flavors that no queue lists, of missing flavors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.features.kueue.queue_state import QueueState
from jobgen.features.kueue.quota import FlavorResource, QuotaNode
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean

_MAX_NAMED = 3


class Unreachable(NamedTuple):
    """Quota that is of no use: the node to change, and why."""

    node: Node
    message: str


def find_unreachable(obj: Mapping[str, Node], queues: QueueState) -> Iterator[Unreachable]:
    """Find the quota of a ClusterQueue or Cohort that no workload can use."""
    name = as_text(as_mapping(obj.get("metadata")).get("name"))
    if as_text(obj.get("kind")) == "Cohort":
        cohort = queues.quotas.cohorts.get(name)
        # In a cycle nothing is admitted at all, which another rule reports.
        if cohort is not None and queues.context.queues and name not in queues.quotas.cyclic:
            yield from _find_unlisted(obj, cohort)
        return
    missing = list(_find_missing_flavors(obj, queues))
    yield from missing
    queue = queues.quotas.nodes.get(name)
    if queue is not None and not missing:
        yield from _find_unused(obj, queue, queues)


def _find_missing_flavors(obj: Mapping[str, Node], queues: QueueState) -> Iterator[Unreachable]:
    """Find flavors that do not exist, if some are known: Kueue keeps the queue inactive."""
    known = [key[2] for key in queues.objects if key[0] == "ResourceFlavor"]
    for flavor in _iter_flavors(obj) if known else ():
        name = as_text(flavor.get("name"))
        if name and name not in known:
            message = f"there is no ResourceFlavor `{name}`, so the queue is inactive and admits nothing"
            yield Unreachable(flavor["name"], message + (did_you_mean(name, known) or "; add the flavor"))


def _find_unlisted(obj: Mapping[str, Node], cohort: QuotaNode) -> Iterator[Unreachable]:
    """Find quota of a cohort for a flavor and resource that no queue of its tree lists."""
    listed = {pair for queue in cohort.root.list_queues() for pair in queue.quotas}
    unlisted = {pair for pair, quota in cohort.quotas.items() if quota.nominal and pair not in listed}
    for pair, node in iter_quotas(obj):
        if pair in unlisted:
            unlisted.remove(pair)
            message = f"no ClusterQueue below or beside the cohort lists `{pair.resource}` in flavor `{pair.flavor}`"
            yield Unreachable(node, f"{message}, so the quota is never used; list it in a queue, or remove it here")


def _find_unused(obj: Mapping[str, Node], queue: QuotaNode, queues: QueueState) -> Iterator[Unreachable]:
    """Find quota of a queue that gets no workloads, as far as no other queue can borrow it."""
    used = queues.used_queues
    if not used or queue.name in used:
        return
    others = [each for each in queue.root.list_queues() if each.name in used]
    kept = [(pair, node) for pair, node in iter_quotas(obj) if not _is_lent(queue, pair, others)]
    found = [(pair, node) for pair, node in kept if queue.find_quota(pair).nominal]
    if not found:
        return
    shown = ", ".join(f"`{pair.resource}` in `{pair.flavor}`" for pair, _ in found[:_MAX_NAMED])
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    message = f"no LocalQueue refers to ClusterQueue `{queue.name}`, and no other queue can borrow its quota of {shown}"
    yield Unreachable(found[0][1], f"{message}{more}; add a LocalQueue, or lend it to a queue that is used")


def _is_lent(queue: QuotaNode, pair: FlavorResource, others: list[QuotaNode]) -> bool:
    """Whether one of the other queues lists a flavor and resource, and may borrow it."""
    return queue.find_quota(pair).lending_limit != 0 and any(
        pair in other.quotas and other.find_quota(pair).borrowing_limit != 0 for other in others
    )


def _iter_flavors(obj: Mapping[str, Node]) -> Iterator[Mapping[str, Node]]:
    for group in iter_mappings(as_mapping(obj.get("spec")).get("resourceGroups")):
        yield from iter_mappings(group.get("flavors"))


def iter_quotas(obj: Mapping[str, Node]) -> Iterator[tuple[FlavorResource, Node]]:
    """Yield the quotas of an object, each with the node of its amount."""
    for flavor in _iter_flavors(obj):
        for each in iter_mappings(flavor.get("resources")):
            yield FlavorResource(as_text(flavor.get("name")), as_text(each.get("name"))), each.get("nominalQuota")
