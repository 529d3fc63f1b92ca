"""Gangs and topologies: pods that start together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.check.operators.checks import is_since
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.kueue import DOMAIN, is_managed_by_kueue
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod, Role
from jobgen.k8s.resources import count_pods, format_amount
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState

_QUEUE_LABEL = "volcano.sh/queue-name"
_VOLCANO = "batch.volcano.sh"
_KINDS = (
    *("CronJob", "Job", "PodGroup", "RayCluster", "RayJob"),
    *("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"),
)


class _Task(NamedTuple):
    """Pods of one template: what each requests in thousandths, how many there are, and how many must start."""

    requests: Mapping[str, int]
    replicas: int
    least: int


class _Gang(NamedTuple):
    """What must start together, with the place of the name of its queue."""

    queue: At | None
    tasks: list[_Task]
    least: int
    """How many pods must start together."""
    resources: Mapping[str, Plain]
    """What they need together, if the object says so."""
    is_default: bool = False
    """True if the object does not say how many pods must start."""

    def find_need(self, resource: str) -> int:
        """Return the least of a resource that the gang can start with."""
        declared = to_milli(self.resources.get(resource)) or 0
        fixed = sum(task.least for task in self.tasks)
        kept = [task.least if fixed <= self.least else 0 for task in self.tasks]
        need = sum(count * task.requests.get(resource, 0) for count, task in zip(kept, self.tasks, strict=True))
        missing = self.least - sum(kept)
        rest = (
            (task.requests.get(resource, 0), task.replicas - count)
            for count, task in zip(kept, self.tasks, strict=True)
        )
        for amount, count in sorted(rest):
            need += amount * min(count, max(missing, 0))
            missing -= count
        return max(declared, need)


@rule("cluster", ERROR, kinds=_KINDS)
def gang_beyond_queue(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A gang that needs more than its queue of Volcano can ever use, so that it never starts.

    Volcano starts the pods of a gang together, when all of them fit into the `capability` of the queue and of the
    queues above it. A gang that needs more waits forever: its pods stay `Pending`, or are never created. The rule
    applies if the Queue is among the files, or in the folder `cluster.state`. The gang is `minAvailable` pods, by
    default all of them. It is a warning if the gang fits because of `minPartitions`, but not all pods together.

    Volcano also rejects jobs for a queue that is closed, or that has queues below it.

    Request less, start fewer pods, or raise `capability`.

    When to turn it off: when the capability is raised during the night by another tool, set the rule to `warning`
    for that environment, as the job has to wait for it.
    """
    gang = _find_gang(manifest, state)
    named = as_text(gang.queue.node) if gang and gang.queue else ""
    queue = state.volcano_queues.get(named or "default") if gang else None
    if gang is None or queue is None:
        return
    name = as_text(get_path(queue, "metadata", "name"))
    place = gang.queue if named else find_at(manifest.object, "spec", is_key=True)
    closed = as_text(get_path(queue, "status", "state"))
    if manifest.group == _VOLCANO and closed in ("Closed", "Closing"):
        yield Violation(
            place, Sentence("queue `{}` is closed, so Volcano rejects the job; use another queue, or open it", name)
        )
        return
    below = [key for key, each in state.volcano_queues.items() if as_text(get_path(each, "spec", "parent")) == name]
    if manifest.group == _VOLCANO and below and is_since(manifest, "volcano", "1.11"):
        message = Sentence("queue `{}` has other queues below it, so Volcano rejects the job; use one of them", name)
        yield Violation(place, Sentence("{}, such as `{}`", message, below[0]), evidence=(name,))
        return
    for owner, place_of_most in _list_capabilities(queue, state):
        resource, most = place_of_most.key, place_of_most.node
        allowed, need = to_milli(most), gang.find_need(resource)
        total = sum(task.replicas * task.requests.get(resource, 0) for task in gang.tasks)
        if allowed is None or max(need, total) <= allowed or not (need > allowed or gang.is_default):
            continue
        is_certain = need > allowed
        wanted, shown = (format_amount(resource, need if is_certain else total), most)
        what = "the gang of the job needs" if is_certain else "all pods of the job together need"
        effect = "its pods stay Pending forever" if is_certain else "some pods stay Pending while the others run"
        message = Sentence(
            "{} `{}` of `{}`, but the `capability` of queue `{}` is `{}`, so {}",
            what,
            wanted,
            resource,
            owner,
            shown,
            effect,
        )
        related = ((place_of_most, f"`capability` of queue `{owner}`"),)
        severity = None if is_certain else WARNING
        yield Violation(place, Sentence("{}; request less, or raise `capability`", message), related, severity)


def _list_capabilities(queue: Mapping[str, Plain], state: ClusterState) -> Iterator[tuple[str, At]]:
    """Yield the limits of a queue and of those above it: the name of the queue, and the place of the amount."""
    seen: set[str] = set()
    while queue and (name := as_text(get_path(queue, "metadata", "name"))) not in seen:
        seen.add(name)
        capability = as_mapping(get_path(queue, "spec", "capability"))
        yield from ((name, At(capability, resource)) for resource in capability)
        queue = state.volcano_queues.get(as_text(get_path(queue, "spec", "parent")), {})


def _find_gang(manifest: Manifest, state: ClusterState) -> _Gang | None:
    if manifest.group == "scheduling.volcano.sh":
        return _Gang(find_at(manifest.spec, "queue"), [], 0, as_mapping(manifest.spec.get("minResources")))
    if manifest.group == _VOLCANO:
        is_job = manifest.kind_name == "Job"
        return _read_job(
            manifest, manifest.spec if is_job else as_mapping(get_path(manifest.spec, "jobTemplate", "spec")), state
        )
    tasks = [_Task(_read_requests(pod, state), count, 0) for pod, count in count_pods(manifest) if count]
    if manifest.group == "ray.io":
        cluster = (
            manifest.spec if manifest.kind_name == "RayCluster" else as_mapping(manifest.spec.get("rayClusterSpec"))
        )
        # With the autoscaler, fewer pods are enough.
        scales = cluster.get("enableInTreeAutoscaling") is True
        if not as_text(manifest.labels.get(_QUEUE_LABEL)) or scales:
            return None
        return _Gang(At(manifest.labels, _QUEUE_LABEL), tasks, sum(task.replicas for task in tasks), {})
    policy = as_mapping(manifest.run_policy.get("schedulingPolicy"))
    least = as_integer(policy.get("minAvailable"))
    count = sum(task.replicas for task in tasks) if least is None else least
    if not as_text(policy.get("queue")):
        return None
    return _Gang(At(policy, "queue"), tasks, count, as_mapping(policy.get("minResources")))


def _read_job(manifest: Manifest, spec: Mapping[str, Plain], state: ClusterState) -> _Gang:
    """Read a Job of Volcano with the defaults that its webhook sets."""
    tasks: list[_Task] = []
    for task in iter_mappings(spec.get("tasks")):
        policy = as_mapping(task.get("partitionPolicy"))
        partitions = (as_integer(policy.get("minPartitions")) or 0) * (as_integer(policy.get("partitionSize")) or 0)
        count, least = max(as_integer(task.get("replicas")) or 0, 0), as_integer(task.get("minAvailable"))
        pod = Pod(as_mapping(task.get("template")), manifest)
        tasks.append(
            _Task(_read_requests(pod, state), count, min(partitions or count if least is None else least, count))
        )
    declared = as_integer(spec.get("minAvailable"))
    least = declared or sum(task.least for task in tasks)
    is_default = not declared and not any("minAvailable" in task for task in iter_mappings(spec.get("tasks")))
    return _Gang(find_at(spec, "queue"), tasks, least, {}, is_default)


def _read_requests(pod: Pod, state: ClusterState) -> dict[str, int]:
    from jobgen.check.cluster.pod_resources import resolve_pod_resources

    ranges = state.limit_ranges.get(pod.manifest.namespace, ())
    return {name: each.milli for name, each in resolve_pod_resources(pod, ranges, state.release).requests.items()}


_DEFAULT = "default-scheduler"


@rule("manifest", WARNING, kinds=("Job",))
def gang_without_volcano(manifest: Manifest) -> Iterator[Violation]:
    """A Job of Volcano whose pods `default-scheduler` starts.

    The scheduler of Kubernetes ignores the PodGroup of the job, and so its `minAvailable` and its queue: it starts the
    pods one by one, and some hold their GPUs while they wait for the others. The `schedulerName` of a pod template
    takes precedence over that of the job.

    Use `schedulerName: volcano`, or remove the field.

    When to turn it off: for a test of the pods without gang scheduling, suppress it on `schedulerName`; a Job of
    batch/v1 would be the plainer way.
    """
    if manifest.group != "batch.volcano.sh":
        return
    own = find_at(manifest.spec, "schedulerName")
    places: list[At | None] = []
    for task in as_list(manifest.spec.get("tasks")):
        written = find_at(task, "template", "spec", "schedulerName")
        places.append(written if written is not None and as_text(written.node) else own)
    # `mixed-schedulers` reports tasks with different schedulers.
    if places and all(place is not None and as_text(place.node) == _DEFAULT for place in places):
        message = Sentence(
            "`{}` ignores the PodGroup and the queue of the job, and starts its pods one by one", _DEFAULT
        )
        yield Violation(places[0], Sentence("{}; use `volcano`", message))


@rule("job", WARNING, kinds=("PyTorchJob", "MPIJob", "JAXJob", "PaddleJob", "XGBoostJob"))
def min_available_too_low(manifest: Manifest) -> Iterator[Violation]:
    """A `schedulingPolicy.minAvailable` below the number of pods, although the job needs all of them.

    The scheduler starts the job as soon as that many pods fit. They hold their GPUs and wait for the others, and two
    such jobs can wait for each other forever.

    Delete `minAvailable`, so that all pods start together.

    When to turn it off: elastic jobs that train with any number of workers above the minimum want exactly this.
    Declare `elasticPolicy`, or suppress it on `minAvailable`.
    """
    if "schedulingPolicy" not in manifest.run_policy or "elasticPolicy" in manifest.spec:
        return
    number = as_integer(get_path(manifest.run_policy, "schedulingPolicy", "minAvailable"))
    if number is None:
        return
    total = manifest.pod_count
    if 0 < number < total:
        message = Sentence(
            "{} of {} pods can start and then wait for the rest; remove `minAvailable` or set it to {}",
            number,
            total,
            total,
        )
        least = find_at(manifest.run_policy, "schedulingPolicy", "minAvailable")
        fix_steps = (FixStep("remove", least, key="minAvailable"),)
        counts = tuple(each for role in manifest.roles for each in role.compared_count)
        yield Violation(least, message, counts, fix_steps=fix_steps, safe=False)


@rule("job", WARNING)
def mixed_schedulers(manifest: Manifest) -> Iterator[Violation]:
    """Roles of one job with different schedulers.

    No scheduler sees the whole job, so none can start all of it or nothing. One half can hold its GPUs and wait for the
    other half.

    Set the same `schedulerName` in every role.

    When to turn it off: a role that needs no GPUs, such as a dashboard, can be left to the default scheduler:
    suppress the finding at that role.
    """
    first: Role | None = None
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if name is None or not as_text(name):
            continue
        if first is None:
            first = role
        elif as_text(name) != (other := as_text(first.pod.spec["schedulerName"])):
            message = Sentence(
                "scheduler `{}` differs from `{}` of another role; use one for all roles", as_text(name), other
            )
            related = ((At(first.pod.spec, "schedulerName"), "the scheduler of the other role"),)
            yield Violation(At(role.pod.spec, "schedulerName"), message, related)


_PREFIX = DOMAIN + "podset-"
_REQUIRED, _PREFERRED = _PREFIX + "required-topology", _PREFIX + "preferred-topology"
_UNCONSTRAINED = _PREFIX + "unconstrained-topology"
_SLICE, _SLICE_SIZE = _PREFIX + "slice-required-topology", _PREFIX + "slice-size"
_GROUP = _PREFIX + "group-name"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_SLICES = frozenset((_SLICE, _SLICE + "-constraints"))
_GROUP_SIZE = 2


@rule("manifest", ERROR, words=(_PREFIX,))
def bad_topology_request(manifest: Manifest) -> Iterator[Violation]:
    """A topology request in a pod template that Kueue rejects or never admits, or that leaves pods gated.

    A pod template has at most one of `podset-required-topology`, `podset-preferred-topology` and
    `podset-unconstrained-topology`. Slices need both their topology and their size, and a group of pod sets has two
    members, one of them with a single pod. If the size of slices does not divide the number of pods, Kueue admits the
    job, and the pods that fill no slice stay gated; this is a warning. So is `podset-unconstrained-topology: "false"`:
    it asks for a topology without a level, so the job is never admitted.

    Keep one of the three requests, and choose a size of slices that divides the number of pods.

    When to turn it off: for clusters in which topology-aware scheduling is turned off, remove the annotations in
    their overlay instead of leaving them without effect.
    """
    if not any(_requests_topology(pod) for pod in manifest.pods if pod.metadata) or not is_managed_by_kueue(manifest):
        return
    requests = [
        (as_mapping(pod.metadata.get("annotations")), count // _count_workloads(manifest))
        for pod, count in count_pods(manifest)
        if _requests_topology(pod)
    ]
    for asked, count in requests:
        yield from _check_topology(asked)
        yield from _check_slices(asked, count)
        yield from _check_group(asked)
    yield from _check_groups(requests)


def _count_workloads(manifest: Manifest) -> int:
    """Return the number of workloads of an object; Kueue admits each group of a LeaderWorkerSet for itself."""
    groups = as_integer(manifest.spec.get("replicas")) if manifest.kind_name == "LeaderWorkerSet" else 1
    return max(groups or 1, 1)


def _requests_topology(pod: Pod) -> bool:
    annotations = pod.metadata.get("annotations")
    return isinstance(annotations, dict) and any(key.startswith(_PREFIX) for key in annotations)


def _check_topology(annotations: Mapping[str, Plain]) -> Iterator[Violation]:
    found = [key for key in annotations if key in (_REQUIRED, _PREFERRED, _UNCONSTRAINED)]
    if len(found) > 1:
        yield Violation(
            At(annotations, found[1], is_key=True),
            Sentence("`{}` and `{}` are mutually exclusive; remove one of them", found[0], found[1]),
        )
    for key in annotations:
        value = as_text(annotations[key])
        if key in (_REQUIRED, _PREFERRED, _SLICE) and not is_label_key(value):
            yield Violation(At(annotations, key), Sentence("`{}` is not a label of nodes; {}", value, LABEL_KEY))
        elif key == _UNCONSTRAINED and value not in (*_TRUE, *_FALSE):
            yield Violation(
                At(annotations, key),
                Sentence('`{}` is `{}`, but must be `"true"`; write that, or remove it', key, value),
            )
        elif key == _UNCONSTRAINED and value in _FALSE and found == [key] and not annotations.keys() & _SLICES:
            message = Sentence(
                "`{}` is `{}`, which does not turn topology off: Kueue finds no topology level and never", key, value
            )
            yield Violation(
                At(annotations, key), Sentence("{} admits the job; remove the annotation", message), severity=WARNING
            )


def _check_slices(annotations: Mapping[str, Plain], count: int) -> Iterator[Violation]:
    size = as_text(annotations.get(_SLICE_SIZE))
    if (_SLICE in annotations) != (_SLICE_SIZE in annotations):
        given, other = (_SLICE, _SLICE_SIZE) if _SLICE in annotations else (_SLICE_SIZE, _SLICE)
        yield Violation(At(annotations, given, is_key=True), Sentence("`{}` requires `{}`; set both", given, other))
    if _SLICE_SIZE not in annotations:
        return
    if not (size.isascii() and size.isdigit() and int(size[:10])):
        yield Violation(
            At(annotations, _SLICE_SIZE), Sentence("`{}` is `{}`, but must be a number above 0", _SLICE_SIZE, size)
        )
    elif count and int(size[:10]) > count:
        message = Sentence("`{}` is `{}`, but there are {} pods; use at most that", _SLICE_SIZE, size, count)
        yield Violation(At(annotations, _SLICE_SIZE), message)
    elif rest := count % int(size[:10]):
        message = Sentence(
            "`{}` is `{}`, which does not divide the {} pods; Kueue admits the job, but", _SLICE_SIZE, size, count
        )
        message += f" {rest} of them {'stays' if rest == 1 else 'stay'} gated; use a size that divides them"
        yield Violation(At(annotations, _SLICE_SIZE), message, severity=WARNING)


def _check_group(annotations: Mapping[str, Plain]) -> Iterator[Violation]:
    if _GROUP not in annotations:
        return
    name, place = as_text(annotations[_GROUP]), At(annotations, _GROUP)
    if name.isascii() and name.isdigit():
        yield Violation(place, Sentence("`{}` is `{}`, but must not be a number; use a name", _GROUP, name))
    for key in (_SLICE, _SLICE_SIZE):
        if key in annotations:
            yield Violation(place, Sentence("`{}` and `{}` are mutually exclusive; remove one of them", _GROUP, key))
            return
    if _REQUIRED not in annotations and _PREFERRED not in annotations:
        yield Violation(place, Sentence("`{}` requires `{}` or `{}`; set one of them", _GROUP, _REQUIRED, _PREFERRED))


def _check_groups(requests: list[tuple[Mapping[str, Plain], int]]) -> Iterator[Violation]:
    groups: dict[str, list[tuple[Mapping[str, Plain], int]]] = {}
    for asked, count in requests:
        if as_text(asked.get(_GROUP)):
            groups.setdefault(as_text(asked[_GROUP]), []).append((asked, count))
    for name, members in groups.items():
        place = At(members[0][0], _GROUP)
        if len(members) != _GROUP_SIZE:
            message = Sentence(
                "group `{}` has {} pod sets, but must have {}; change `{}`", name, len(members), _GROUP_SIZE, _GROUP
            )
            yield Violation(place, message)
        elif all(count > 1 for _, count in members):
            yield Violation(
                place, Sentence("group `{}` has no pod set with a single pod; one of the two must have one", name)
            )
        else:
            wanted = [[as_text(annotations.get(key)) for key in (_REQUIRED, _PREFERRED)] for annotations, _ in members]
            if wanted[0] != wanted[1] and all(map(any, wanted)):
                yield Violation(
                    place, Sentence("the pod sets of group `{}` request different topologies; use the same", name)
                )


_TOPOLOGY = frozenset(f"{DOMAIN}podset-{how}-topology" for how in ("required", "preferred", "unconstrained"))


@rule("job", WARNING, fields=("annotations",))
def topology_on_job(manifest: Manifest) -> Iterator[Violation]:
    """A topology annotation of Kueue on the job instead of its pod templates.

    Kueue reads `kueue.x-k8s.io/podset-…-topology` from each pod template. On the job it has no effect, and the workers
    can be spread over racks.

    Move it to the `metadata.annotations` of the pod templates.

    When to turn it off: an annotation at both levels is only reported for the one without effect; delete that line,
    since no version of Kueue reads it.
    """
    if not manifest.roles or manifest.roles[0].pod.partial:
        return
    for key in manifest.annotations:
        if key in _TOPOLOGY:
            yield Violation(
                At(manifest.annotations, key, is_key=True),
                Sentence("Kueue reads `{}` only from pod templates; move it there", key),
            )
