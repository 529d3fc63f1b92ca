"""The state of all queues at one moment: quota, usage and admitted workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from jobgen.features.kueue.assignment import NO_TOPOLOGIES, Topologies, find_placed_usage
from jobgen.features.kueue.objects import ClusterQueue, Cohort, Flavor
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, build_tree, find_cycles
from jobgen.features.kueue.workloads import Workload


class Snapshot:
    """Queues and cohorts as a tree of quota, and the workloads that use it."""

    def __init__(self, queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort], flavors: Iterable[Flavor]) -> None:
        self.queues = {queue.name: queue for queue in queues}
        named = {cohort.name: cohort for cohort in cohorts}
        self.flavors = {flavor.name: flavor for flavor in flavors}
        self.nodes = {
            name: QuotaNode(name, queue.quotas, is_queue=True, weight=queue.weight)
            for name, queue in self.queues.items()
        }
        tree = [
            (QuotaNode(name, cohort.quotas, is_queue=False, weight=cohort.weight), cohort.parent)
            for name, cohort in named.items()
        ]
        self.cohorts = build_tree(((self.nodes[name], queue.cohort) for name, queue in self.queues.items()), tree)
        self.cyclic = find_cycles({name: cohort.parent for name, cohort in named.items()})
        self.workloads: dict[str, dict[str, Workload]] = {name: {} for name in self.queues}
        """Workloads with reserved quota, by queue and key."""
        self.steps = 0
        """How much work was done: changes of usage, and candidates of preemption that were listed."""
        self._users: dict[str, dict[frozenset[FlavorResource], list[Workload]]] = {name: {} for name in self.queues}
        self.topologies: Topologies = NO_TOPOLOGIES
        """The topologies of flavors, with what placed pods use. Set them before workloads are added."""

    def hide_queues(self, names: Iterable[str]) -> None:
        """Hide queues that are not scheduled: they lend and use quota, but nothing of theirs is preempted."""
        for name in names:
            parent = self.nodes[name].parent
            if parent is not None and self.nodes[name] in parent.children:
                parent.children.remove(self.nodes[name])

    def list_members(self) -> dict[str, list[QuotaNode]]:
        """Return all queues below each cohort, by name; hidden ones, too, because they lend and use quota."""
        members: dict[str, list[QuotaNode]] = {name: [] for name in self.cohorts}
        for _, node in sorted(self.nodes.items()):
            for cohort in node.list_ancestors():
                members[cohort.name].append(node)
        return members

    def add_workload(self, workload: Workload) -> None:
        """Add a workload that has reserved quota."""
        if workload.cluster_queue in self.nodes:
            self.replace_workload(workload)
            self.charge_usage(workload)

    def replace_workload(self, workload: Workload) -> None:
        """Replace a workload by one that uses the same."""
        self.workloads[workload.cluster_queue][workload.key] = workload
        self._note_change(workload.cluster_queue)

    def remove_workload(self, workload: Workload) -> None:
        """Remove a workload, and what it uses."""
        if self.workloads.get(workload.cluster_queue, {}).pop(workload.key, None) is not None:
            self.free_usage(workload)
            self._note_change(workload.cluster_queue, workload.usage)

    def _note_change(self, queue: str, freed: Iterable[FlavorResource] = ()) -> None:
        self._users[queue].clear()
        node = self.nodes[queue]
        node.tree.change()
        node.changed = node.tree.version
        node.tree.freed.update(dict.fromkeys(freed, node.changed))

    def list_users(self, queue: str, pairs: frozenset[FlavorResource]) -> list[Workload]:
        """Return the workloads of a queue that use any of these, the lowest priority first."""
        found = self._users[queue].get(pairs)
        if found is None:
            found = [each for each in self.workloads[queue].values() if not pairs.isdisjoint(each.pairs)]
            found.sort(key=lambda each: each.priority)
            self._users[queue][pairs] = found
            self.steps += len(found)
        return found

    @contextmanager
    def keep_version(self, queues: Iterable[str]) -> Iterator[None]:
        """Keep the version of the trees of queues. The caller puts back all usage that it changes."""
        versions = [(tree, tree.version) for tree in {self.nodes[queue].tree for queue in queues}]
        try:
            yield
        finally:
            for tree, version in versions:
                tree.version = version

    @contextmanager
    def without(self, workloads: Sequence[Workload]) -> Iterator[None]:
        """Free what workloads use, for a while."""
        if not workloads:
            yield
            return
        with self.keep_version(each.cluster_queue for each in workloads):
            for each in workloads:
                self.free_usage(each)
            yield
            for each in workloads:
                self.charge_usage(each)

    def charge_usage(self, workload: Workload) -> None:
        """Add what a workload uses, of quota and of topologies."""
        self.add_usage(workload.cluster_queue, workload.usage)
        if self.topologies:
            self.topologies.add(find_placed_usage(workload))

    def free_usage(self, workload: Workload) -> None:
        """Remove what a workload uses, of quota and of topologies."""
        self.remove_usage(workload.cluster_queue, workload.usage)
        if self.topologies:
            self.topologies.remove(find_placed_usage(workload))

    def admit(self, workload: Workload) -> None:
        """Add a workload for good: what it uses of hosts counts for all flavors from the next cycle on."""
        self.add_workload(workload)
        if self.topologies and workload.cluster_queue in self.nodes:
            self.topologies.share(find_placed_usage(workload))

    def release(self, workload: Workload) -> None:
        """Remove a workload for good."""
        if self.topologies and workload.key in self.workloads.get(workload.cluster_queue, {}):
            self.topologies.share(find_placed_usage(workload), is_gone=True)
        self.remove_workload(workload)

    def add_usage(self, queue: str, usage: Mapping[FlavorResource, int]) -> None:
        """Add usage to a queue."""
        node = self.nodes[queue]
        node.tree.change()
        self.steps += 1
        for pair, amount in usage.items():
            node.add_usage(pair, amount)

    def remove_usage(self, queue: str, usage: Mapping[FlavorResource, int]) -> None:
        """Remove usage from a queue."""
        node = self.nodes[queue]
        node.tree.change()
        self.steps += 1
        for pair, amount in usage.items():
            node.remove_usage(pair, amount)
