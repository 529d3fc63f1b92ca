"""The queues of an environment as rules see them: what can never be admitted, and which line of a file says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.cluster.state import Name, Others, name_object, replace_exported
from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import Job
from jobgen.features.kueue.cluster_objects import DECIDING_KINDS, ClusterObjects, group_objects, parse_configuration
from jobgen.features.kueue.job_workloads import PRIORITY_LABEL, JobReader, remove_placements
from jobgen.features.kueue.object_problems import list_problems
from jobgen.features.kueue.obstacles import Obstacle
from jobgen.features.kueue.pod_sets import list_pod_sets
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, get_parent, list_cycles
from jobgen.features.kueue.requests import Transformation
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.k8s.kueue import DOMAIN, QUEUE_LABEL
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.model.data import Plain, untraced
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.model.place import At, Place, Places, find_at
from jobgen.model.quantity import to_milli
from jobgen.model.suggest import did_you_mean
from jobgen.spec.overlay import Cluster

if TYPE_CHECKING:
    from jobgen.features.kueue.multikueue import RemoteQueues


class QueueState:
    """The queues of a cluster, from exported objects and those of the repository, which replace them.

    `objects` are all that decide about admission, with locations as far as they are known.
    """

    def __init__(
        self,
        cluster: Cluster,
        exported: Iterable[Mapping[str, Plain]],
        own: Iterable[Mapping[str, Plain]],
        workers: Others = MappingProxyType({}),
    ) -> None:
        """`workers` are the worker clusters of MultiKueue."""
        several = ([obj for obj in each if name_object(obj)[0] in DECIDING_KINDS] for each in (exported, own))
        self.cluster = cluster
        self.objects: dict[Name, Mapping[str, Plain]] = {name_object(obj): obj for obj in replace_exported(*several)}
        self._exported = frozenset(map(id, exported))
        self._workers = workers

    @property
    def is_declared(self) -> bool:
        """Return True if the cluster declares what Kueue manages: its version, or its frameworks."""
        return bool(self.cluster.find_version("kueue")) or "frameworks" in self.cluster.kueue

    @cached_property
    def known(self) -> ClusterObjects:
        """The objects without locations, by kind."""
        cluster = self.cluster
        configuration = parse_configuration(cluster.kueue, cluster.find_version("kueue"), cluster.feature_gates)
        return group_objects(self.objects.values(), configuration)

    @cached_property
    def context(self) -> AdmissionContext:
        """The queues before any workload."""
        return AdmissionContext(self.known)

    @cached_property
    def _remote(self) -> RemoteQueues:
        # Imported late: few clusters have workers.
        from jobgen.features.kueue.multikueue import build_dispatcher, build_worker

        workers = {name: build_worker(each, found, ()) for name, (each, found) in self._workers.items()}
        return build_dispatcher(self.cluster.kueue["multiKueue"], workers).open(self.context)

    @cached_property
    def _reader(self) -> JobReader:
        return JobReader(self.known, self.cluster)

    @cached_property
    def cycles(self) -> list[tuple[str, ...]]:
        """The cycles of cohorts."""
        return list_cycles({each.name: each.parent for each in self.known.list_cohorts()})

    @cached_property
    def cohorts(self) -> Counter[str]:
        """How many ClusterQueues and Cohorts name a cohort as the one above them."""
        objects = (obj for kind in ("ClusterQueue", "Cohort") for obj in self.list_objects(kind))
        return Counter(filter(None, (as_text(get_parent(obj)) for obj in objects)))

    @cached_property
    def used_queues(self) -> frozenset[str]:
        """The ClusterQueues that LocalQueues refer to."""
        return frozenset(as_text(spec.get("clusterQueue")) for spec in self.context.local_queues.values())

    @cached_property
    def misspelled_queues(self) -> dict[str, str]:
        """The names of ClusterQueues that LocalQueues refer to and that do not exist, with the one that is meant."""
        # Imported late: most names are right.
        from jobgen.model.meant import find_meant

        known = [name for kind, _, name in self.objects if kind == "ClusterQueue"]
        idle = [name for name in known if name not in self.used_queues]
        found: dict[str, str] = {}
        for name in self.used_queues.difference(known):
            # `research` for `research-cq`, which nothing else uses.
            longer = [each for each in idle if f"-{name}-" in f"-{each}-" or f"-{each}-" in f"-{name}-"]
            if meant := find_meant(name, known) or (longer[0] if len(longer) == 1 else ""):
                found[name] = meant
        return found

    @cached_property
    def refused(self) -> frozenset[Name]:
        """The queues of the repository that the API server refuses, which other rules report."""
        own = ((name, obj) for name, obj in self.objects.items() if not self.is_exported(obj))
        return frozenset(name for name, obj in own if name[0] in _QUEUE_KINDS and _is_refused(name[0], obj))

    def find_refused(self, obj: Mapping[str, Plain]) -> bool:
        """Return True if the queue of a job is refused, or the queue that this refers to."""
        metadata = as_mapping(obj.get("metadata"))
        queue = as_text(as_mapping(metadata.get("labels")).get(QUEUE_LABEL))
        name = "LocalQueue", as_text(metadata.get("namespace")), queue
        used = as_text(get_path(self.objects.get(name, {}), "spec", "clusterQueue"))
        return not self.refused.isdisjoint((name, ("ClusterQueue", "", used)))

    @cached_property
    def quotas(self) -> Snapshot:
        """The quota of queues and cohorts."""
        return Snapshot(self.context.queues.values(), self.known.list_cohorts(), self.context.flavors.values())

    @cached_property
    def node_labels(self) -> list[Mapping[str, str]]:
        """The labels of all known nodes, each combination once."""
        found = (as_mapping(as_mapping(node.get("metadata")).get("labels")) for node in self.known.list_nodes())
        several = {tuple(sorted((str(key), str(value)) for key, value in each.items())) for each in found}
        return [dict(each) for each in sorted(several)]

    @cached_property
    def largest_nodes(self) -> Mapping[str, int]:
        """The most of each resource that a known node has, in thousandths."""
        most: dict[str, int] = {}
        for node in self.known.list_nodes():
            status = as_mapping(node.get("status"))
            for name, amount in as_mapping(status.get("allocatable") or status.get("capacity")).items():
                most[str(name)] = max(most.get(str(name), 0), to_milli(amount) or 0)
        return most

    def list_exported(self) -> list[Mapping[str, Plain]]:
        """Return the queues, cohorts and flavors that are not objects of the repository."""
        checked = ("ClusterQueue", "Cohort", "ResourceFlavor")
        return [obj for name, obj in self.objects.items() if name[0] in checked and self.is_exported(obj)]

    def is_exported(self, obj: Mapping[str, Plain]) -> bool:
        """Return True if an object is one of the exported state."""
        return id(obj) in self._exported

    def list_objects(self, kind: str) -> list[Mapping[str, Plain]]:
        """Return the objects of a kind."""
        return [obj for name, obj in self.objects.items() if name[0] == kind]

    def find_obstacle(self, obj: Mapping[str, Any]) -> Obstacle | None:
        """Return why Kueue never admits a job; None if it can, or if that is not known. `obj` has no locations."""
        if not self.context.queues:
            return None
        jobs = [job for job in self._reader.read(obj) if job.obstacle or self._knows_queue(job, obj)]
        return next((found for job in jobs if (found := self._find_job_obstacle(job))), None)

    def find_cluster_queue(self, obj: Mapping[str, Any]) -> Mapping[str, Plain]:
        """Return the ClusterQueue of a job; empty if it is not known."""
        spec = next(
            (self.context.local_queues.get((job.namespace, job.queue), {}) for job in self._reader.read(obj)), {}
        )
        return self.objects.get(("ClusterQueue", "", as_text(spec.get("clusterQueue"))), {})

    def _find_job_obstacle(self, job: Job) -> Obstacle | None:
        """Find what keeps the workloads of a job from admission; those of a job have the same shape."""
        if job.obstacle is not None:
            # Other rules report requests outside of a LimitRange.
            is_unmanaged = job.obstacle.code == "unmanaged" and job.queue and (self.cluster.kueue or self.is_declared)
            return (
                job.obstacle
                if is_unmanaged or job.obstacle.code in ("cluster", "queue", "priority", "version")
                else None
            )
        kept = remove_placements(job) if self.context.ignores_topology else job
        obstacle = self.context.find_obstacle(kept.workloads[0])
        return self._remote.find_obstacle(kept) if obstacle is None and self._workers else obstacle

    def _knows_queue(self, job: Job, obj: Mapping[str, Any]) -> bool:
        """Return True if files can tell if the queue of a job exists.

        They cannot without any LocalQueue, nor without the namespace of the job if some namespace has such a queue.
        """
        known = self.context.local_queues
        if (job.namespace, job.queue) in known:
            return True
        has_namespace = bool(as_text(as_mapping(obj.get("metadata")).get("namespace")))
        return bool(known) and (has_namespace or all(name != job.queue for _, name in known))


_QUEUE_KINDS = ("ClusterQueue", "LocalQueue")


def _is_refused(kind: str, obj: Mapping[str, Plain]) -> bool:
    named = get_path(obj, "spec", "clusterQueue")
    if kind == "LocalQueue" and not (isinstance(named, str) and named):
        return True
    return next(list_problems(kind, obj), "") != ""


def find_unreachable(obj: Mapping[str, Plain], queues: QueueState) -> Iterator[tuple[At, str]]:
    """Find the quota of a ClusterQueue or Cohort that no workload can use: the node to change, and why."""
    name = as_text(as_mapping(obj.get("metadata")).get("name"))
    # Those of the repository are checked as Kueue's webhook does.
    negative = list(_find_negative(obj)) if queues.is_exported(obj) else []
    yield from negative
    if negative:
        return
    if as_text(obj.get("kind")) != "Cohort":
        missing = list(_find_missing_flavors(obj, queues))
        yield from missing
        queue = queues.quotas.nodes.get(name)
        if queue is not None and not missing:
            yield from _find_unused(obj, queue, queues)
        return
    cohort = queues.quotas.cohorts.get(name)
    # In a cycle nothing is admitted at all, which another rule reports.
    if cohort is None or not queues.context.queues or name in queues.quotas.cyclic:
        return
    listed = {pair for queue in cohort.root.list_queues() for pair in queue.quotas}
    unlisted = {pair for pair, quota in cohort.quotas.items() if quota.nominal and pair not in listed}
    for pair, place in iter_quotas(obj):
        if pair in unlisted:
            unlisted.remove(pair)
            message = f"no ClusterQueue below or beside the cohort lists `{pair.resource}` in flavor `{pair.flavor}`"
            yield place, f"{message}, so the quota is never used; list it in a queue, or remove it here"


def _find_negative(obj: Mapping[str, Plain]) -> Iterator[tuple[At, str]]:
    """Find amounts that no cluster has: the state was written by hand."""
    for pair, place in iter_quotas(obj):
        if (to_milli(place.node) or 0) < 0:
            what = f"`nominalQuota` of `{pair.resource}` in flavor `{pair.flavor}` is `{place.node}`"
            yield place, f"{what}, which Kueue refuses; write `0` or more"


def _find_missing_flavors(obj: Mapping[str, Plain], queues: QueueState) -> Iterator[tuple[At, str]]:
    """Find flavors that do not exist, if some are known: Kueue keeps the queue inactive."""
    known = [key[2] for key in queues.objects if key[0] == "ResourceFlavor"]
    for flavor in _iter_flavors(obj) if known else ():
        name = as_text(flavor.get("name"))
        if name and name not in known:
            message = f"there is no ResourceFlavor `{name}`, so the queue is inactive and admits nothing"
            yield At(flavor, "name"), message + (did_you_mean(name, known) or "; add the flavor")


def _find_unused(obj: Mapping[str, Plain], queue: QuotaNode, queues: QueueState) -> Iterator[tuple[At, str]]:
    """Find quota of a queue that gets no workloads, as far as no other queue can borrow it."""
    used = queues.used_queues
    if any(kind == "LocalQueue" for kind, *_ in queues.refused):
        # What it was to refer to is not known.
        return
    if not used or queue.name in used or queue.name in queues.misspelled_queues.values():
        return
    others = [each for each in queue.root.list_queues() if each.name in used]

    def is_lent(pair: FlavorResource) -> bool:
        return queue.find_quota(pair).lending_limit != 0 and any(
            pair in other.quotas and other.find_quota(pair).borrowing_limit != 0 for other in others
        )

    quotas = iter_quotas(obj)
    kept = [(pair, place) for pair, place in quotas if queue.find_quota(pair).nominal and not is_lent(pair)]
    if kept:
        shown = ", ".join(f"`{pair.resource}` in `{pair.flavor}`" for pair, _ in kept[:3])
        more = f" and {len(kept) - 3} more" if len(kept) > 3 else ""
        unused = f"no LocalQueue refers to ClusterQueue `{queue.name}`, and no other queue can borrow its quota of"
        yield kept[0][1], f"{unused} {shown}{more}; add a LocalQueue, or lend it to a queue that is used"


def _iter_flavors(obj: Mapping[str, Plain]) -> Iterator[Mapping[str, Plain]]:
    for group in iter_mappings(as_mapping(obj.get("spec")).get("resourceGroups")):
        yield from iter_mappings(group.get("flavors"))


def iter_quotas(obj: Mapping[str, Plain]) -> Iterator[tuple[FlavorResource, At]]:
    """Yield the quotas of an object, each with the place of its amount."""
    for flavor in _iter_flavors(obj):
        for each in iter_mappings(flavor.get("resources")):
            name, resource = as_text(flavor.get("name")), as_text(each.get("name"))
            yield FlavorResource(name, resource), At(each, "nominalQuota")


Related = tuple[tuple[Place, str], ...]
"""Other places, and what each of them is."""


def find_obstacle_place(
    obj: Mapping[str, Plain], obstacle: Obstacle, transformations: Sequence[Transformation]
) -> tuple[Place, tuple[tuple[At, str], ...]]:
    """Find where a job is to be changed first, and related places."""
    # Roles may share a template. Kueue may not use one as it is written; then there is no path.
    copied = untraced(obj)
    templates = [each["template"] for each in list_pod_sets(copied) or () if each["name"] == obstacle.pod_set]
    found_template = Places(copied).find(templates[0]) if templates else None
    path = found_template.steps if found_template is not None else ()
    template = as_mapping(_follow(obj, path)) if path else {}
    # The queue label; the name of the job if it gets its queue by default.
    metadata = as_mapping(obj.get("metadata"))
    is_labeled = as_text(get_path(metadata, "labels", QUEUE_LABEL))
    label: Place = find_at(metadata, "labels", QUEUE_LABEL) if is_labeled else None
    label = label or find_at(metadata, "name") or find_at(metadata, "generateName")
    if obstacle.code in ("quota", "resource"):
        return _find_request(template or obj, obj, path, obstacle, transformations) or (label, ())
    spec = as_mapping(template.get("spec"))
    found: Place = None
    if obstacle.code == "priority":
        # In the order in which Kueue looks for a class.
        fields = ("priorityClass", "priorityClassName")
        classes = (each for field in fields for each in _list_values(obj.get("spec"), field))
        return find_at(obj, "metadata", "labels", PRIORITY_LABEL) or next(classes, None) or label, ()
    if obstacle.code == "selector":
        affinity = as_mapping(as_mapping(spec.get("affinity")).get("nodeAffinity"))
        selector = as_mapping(spec.get("nodeSelector"))
        found = next((At(selector, key) for key in selector), affinity or None)
    elif obstacle.code == "taint" and as_list(spec.get("tolerations")):
        found = At(spec, "tolerations", is_key=True)
    elif obstacle.code == "topology":
        annotations = as_mapping(as_mapping(template.get("metadata")).get("annotations"))
        found = next((At(annotations, key) for key in annotations if key.startswith(f"{DOMAIN}podset-")), None)
    return label if found is None else found, ()


def _list_values(tree: Plain, field: str) -> Iterator[At]:
    """Yield the places of a field wherever it is, unless they are empty."""
    children = tree if isinstance(tree, list) else ()
    if isinstance(tree, dict):
        if tree.get(field):
            yield At(tree, field)
        children = list(tree.values())
    for child in children:
        yield from _list_values(child, field)


def _follow(tree: Any, path: Sequence[Step]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _find_request(
    template: Mapping[str, Plain],
    obj: Mapping[str, Plain],
    path: Sequence[Step],
    obstacle: Obstacle,
    transformations: Sequence[Transformation],
) -> tuple[At, tuple[tuple[At, str], ...]] | None:
    """Find the largest request of a resource, or of those that Kueue charges as this one."""
    count = _find_count(obj, path)
    if obstacle.resource == "pods":
        return None if count is None else (count, ())
    sources = [each.source for each in transformations if obstacle.resource in each.outputs]
    for resource in (obstacle.resource, *sources):
        found = list(_list_requests(template, resource))
        if found:
            _, place = max(found, key=lambda pair: pair[0])
            return place, () if count is None else ((count, f"the number of pods of `{obstacle.pod_set}`"),)
    return None


def _list_requests(tree: Any, resource: str) -> Iterator[tuple[int, At]]:
    """Yield the requests of a resource below a node, with their places; a limit counts where there is no request."""
    if isinstance(tree, list):
        for child in tree:
            yield from _list_requests(child, resource)
    if not isinstance(tree, dict):
        return
    place = find_at(tree, "requests", resource) or find_at(tree, "limits", resource)
    if place is not None:
        yield to_milli(place.node) or 0, place
    # Of equal requests, that of a main container comes first.
    for key in sorted(tree, key=lambda key: key == "initContainers"):
        yield from _list_requests(tree[key], resource)


def _find_count(obj: Mapping[str, Plain], path: Sequence[Step]) -> At | None:
    """Return the place of the number of pods of a template: in the nearest mapping around it that has one."""
    for end in range(len(path) - 1, 0, -1):
        around = _follow(obj, path[:end])
        for name in ("replicas", "parallelism", "size", "numNodes") if isinstance(around, dict) else ():
            if type(around.get(name)) is int:
                return At(around, name)
    # A TrainJob, whose templates are those of its runtime.
    return find_at(obj, "spec", "trainer", "numNodes")


class QueueFault(NamedTuple):
    """A fault of a queue that keeps all its jobs from admission, or of the namespace that an overlay sets."""

    message: str
    change: str
    at: Place
    """The line that is wrong; None if it is that of the job."""
    related: Related = ()
    is_certain: bool = True
    """False if what applies the files may correct it."""
    is_of_namespace: bool = False
    """True if it is that of the namespace where another file than that of the job sets it."""


def find_queue_fault(obj: Mapping[str, Plain], queues: QueueState) -> QueueFault | None:
    """Find the fault because of which the queue of a job admits nothing, if the line that is wrong is not the job's."""
    metadata = as_mapping(obj.get("metadata"))
    name = as_text(as_mapping(metadata.get("labels")).get(QUEUE_LABEL))
    namespace = as_text(metadata.get("namespace"))
    queue = queues.objects.get(("LocalQueue", namespace, name))
    if queue is None:
        return _find_misplaced(name, metadata, queues) if name and namespace else None
    place = find_at(queue, "spec", "clusterQueue")
    named = place.node if place is not None else None
    if meant := queues.misspelled_queues.get(as_text(named)):
        message = f"there is no ClusterQueue `{as_text(named)}`, so LocalQueue `{name}` admits nothing"
        return QueueFault(message, f"did you mean `{meant}`?", place)
    used = queues.objects.get(("ClusterQueue", "", as_text(named)), {})
    if used and "namespaceSelector" not in as_mapping(used.get("spec")):
        message = f"ClusterQueue `{as_text(named)}` has no `namespaceSelector`, so it selects no namespace"
        return QueueFault(
            message, "set `namespaceSelector: {}` to select every namespace", At(used, "spec", is_key=True)
        )
    flavor, message = next(_find_missing_flavors(used, queues), (None, ""))
    if flavor is None:
        return None
    reason, _, change = message.partition("; ")
    return QueueFault(f"{reason.partition(', ')[0]}, so its queue admits nothing", change, flavor)


def _find_misplaced(name: str, metadata: Mapping[str, Plain], queues: QueueState) -> QueueFault | None:
    """Find the LocalQueue that a job of another namespace names: either namespace may be wrong."""
    # Imported late: most queues are in the namespace of their jobs.
    from jobgen.model.meant import find_meant

    namespace = as_text(metadata["namespace"])
    places = sorted(place for kind, place, each in queues.objects if kind == "LocalQueue" and each == name)
    if not places:
        return None
    node = find_at(queues.objects["LocalQueue", places[0], name], "metadata", "namespace")
    if not places[0]:
        node = find_at(queues.objects["LocalQueue", "", name], "metadata", "name")
        message = f"LocalQueue `{name}` has no namespace, and its jobs are in namespace `{namespace}`"
        return QueueFault(message, f"write `namespace: {namespace}` in its `metadata`", node, is_certain=False)
    if find_meant(places[0], [namespace]) and ("Namespace", "", places[0]) not in queues.objects:
        message = f"LocalQueue `{name}` is in namespace `{places[0]}`, and its jobs in namespace `{namespace}`"
        return QueueFault(message, "one of them is misspelled, so correct it", node)
    shown = " and ".join(f"`{place}`" for place in places[:2])
    message = f"LocalQueue `{name}` is in namespace {shown}, so jobs in namespace `{namespace}` cannot use it"
    change = f"add the LocalQueue to namespace `{namespace}`, or use a namespace that has it"
    return QueueFault(message, change, None, ((node, f"LocalQueue `{name}`"),), is_of_namespace=True)


def find_cause(obstacle: Obstacle, queue: Mapping[str, Plain], queues: QueueState) -> Related:
    """Return what of the queue or flavor stands in the way, for a related location."""
    name = as_text(get_path(queue, "metadata", "name"))
    if obstacle.code == "quota":
        quotas = dict(iter_quotas(queue))
        place = quotas.get(FlavorResource(obstacle.flavor, obstacle.resource))
        return ((place, f"quota of ClusterQueue `{name}`"),)
    if obstacle.code == "resource":
        return tuple(
            (group.get("coveredResources"), f"resources of ClusterQueue `{name}`")
            for group in iter_mappings(get_path(queue, "spec", "resourceGroups"))
        )[:1]
    field = {"selector": "nodeLabels", "taint": "nodeTaints", "topology": "topologyName"}.get(obstacle.code)
    flavor = queues.objects.get(("ResourceFlavor", "", obstacle.flavor), {})
    return ((find_at(flavor, "spec", field), f"flavor `{obstacle.flavor}`"),) if field else ()
