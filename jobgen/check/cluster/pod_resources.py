"""The requests and limits of a pod as admission sees them: with the defaults of the server and of limit ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.check.cluster.state import ClusterState, show_name
from jobgen.k8s.kinds import Release
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import count_pods, format_amount
from jobgen.k8s.workloads import POD_SETS, find_pods
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place
from jobgen.model.quantity import to_milli

_POD_LEVEL_RESOURCES = ("cpu", "memory")


class Amount(NamedTuple):
    """An amount of a resource in thousandths, and the mapping that sets it; None if a default does."""

    milli: int
    holder: Mapping[str, Plain] | None = None


Amounts = dict[str, Amount]


class ContainerResources(NamedTuple):
    """The requests and limits of a container."""

    data: Mapping[str, Plain]
    requests: Amounts
    limits: Amounts
    is_init: bool = False
    is_sidecar: bool = False
    """True if it is an init container that runs as long as the pod."""

    @property
    def name(self) -> str:
        """The name of the container."""
        return as_text(self.data.get("name"))

    @property
    def place(self) -> Place:
        """The place of an amount that is missing."""
        return as_mapping(self.data.get("resources")) or self.data


class PodResources(NamedTuple):
    """The requests and limits of a pod, and of its containers."""

    containers: tuple[ContainerResources, ...]
    requests: Amounts
    limits: Amounts
    has_own: bool
    """True if the pod itself sets resources, so that its containers need none."""

    @property
    def is_best_effort(self) -> bool:
        """Return True if no container and not the pod has a request or limit of CPU or memory."""
        every = (self.requests, self.limits, *(each for one in self.containers for each in (one.requests, one.limits)))
        return not any(amounts[name].milli for amounts in every for name in _POD_LEVEL_RESOURCES if name in amounts)


def resolve_pod_resources(pod: Pod, limit_ranges: Iterable[Mapping[str, Plain]], release: Release) -> PodResources:
    """Return what a pod requests, with the defaults that the server and the limit ranges of its namespace set."""
    # The defaults of containers, without nodes; the first of each resource counts.
    default_limits: Amounts = {}
    default_requests: Amounts = {}
    for item in (item for one in limit_ranges for item in iter_mappings(get_path(one, "spec", "limits"))):
        if as_text(item.get("type")) == "Container":
            # The server completes a limit by the maximum, and a request by the default limit, else by the minimum.
            most = {**parse_amounts(item.get("max")), **parse_amounts(item.get("default"))}
            least = {**parse_amounts(item.get("min")), **most, **parse_amounts(item.get("defaultRequest"))}
            for merged, added in ((default_limits, most), (default_requests, least)):
                merged.update({name: Amount(amount.milli) for name, amount in added.items() if name not in merged})
    defaults = default_limits, default_requests
    containers = [_resolve(data, defaults) for data in iter_mappings(pod.spec.get("containers"))]
    init = [_resolve(data, defaults, is_init=True) for data in iter_mappings(pod.spec.get("initContainers"))]
    requests = _sum([each.requests for each in containers], [(each.requests, each.is_sidecar) for each in init])
    limits = _sum([each.limits for each in containers], [(each.limits, each.is_sidecar) for each in init])
    # The first release that reads the resources of the pod itself.
    own = as_mapping(pod.spec.get("resources")) if release >= (1, 34) else {}
    own_requests, own_limits = parse_amounts(own.get("requests")), parse_amounts(own.get("limits"))
    for name, amount in (*own_limits.items(), *own_requests.items()):
        if name in _POD_LEVEL_RESOURCES or name.startswith("hugepages-"):
            requests[name] = own_requests.get(name, amount)
            limits.update({name: own_limits[name]} if name in own_limits else {})
    return PodResources((*init, *containers), requests, limits, bool(own_requests or own_limits))


def _resolve(
    data: Mapping[str, Plain], defaults: tuple[Amounts, Amounts], *, is_init: bool = False
) -> ContainerResources:
    resources = as_mapping(data.get("resources"))
    own = parse_amounts(resources.get("limits"))
    limits, requests = {**defaults[0], **own}, {**defaults[1], **own, **parse_amounts(resources.get("requests"))}
    is_sidecar = is_init and data.get("restartPolicy") == "Always"
    return ContainerResources(data, requests, limits, is_init, is_sidecar)


def parse_amounts(node: Plain) -> Amounts:
    """The amounts of resources, without those that are no quantities."""
    holder = as_mapping(node)
    amounts = ((str(name), to_milli(value)) for name, value in holder.items())
    return {name: Amount(milli, holder) for name, milli in amounts if milli is not None}


def _sum(main: Sequence[Amounts], init: Sequence[tuple[Amounts, bool]]) -> Amounts:
    """Return what the pod needs at most at the same time: init containers run one after the other, sidecars stay."""
    total: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    most: dict[str, int] = {}
    largest: dict[str, Amount] = {}
    for amounts in (*main, *(amounts for amounts, _ in init)):
        for name, amount in amounts.items():
            if name not in largest or amount.milli > largest[name].milli:
                largest[name] = amount
    for amounts in main:
        _add(total, amounts)
    for amounts, is_sidecar in init:
        # Only these amounts change what is needed; more sidecars never need less.
        for name, amount in amounts.items():
            most[name] = max(most.get(name, 0), sidecars.get(name, 0) + amount.milli)
        if is_sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)
    names = {**total, **most}
    return {name: Amount(max(total.get(name, 0), most.get(name, 0)), largest[name].holder) for name in names}


def _add(total: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount.milli


def find_runtime(manifest: Manifest, state: ClusterState) -> Mapping[str, Plain]:
    """Return the runtime that a TrainJob refers to; empty if it is not known, or if the object is no TrainJob."""
    if manifest.kind_name != "TrainJob":
        return {}
    reference = as_mapping(manifest.spec.get("runtimeRef"))
    kind = as_text(reference.get("kind")) or "ClusterTrainingRuntime"
    namespace = manifest.namespace if kind == "TrainingRuntime" else ""
    return state.runtimes.get((kind, namespace, as_text(reference.get("name"))), {})


def count_created_pods(manifest: Manifest, state: ClusterState) -> Iterator[tuple[Pod, int]]:
    """Yield the pod templates of an object, each with its number of pods; those of a TrainJob from its runtime."""
    runtime = find_runtime(manifest, state)
    if not runtime:
        yield from count_pods(manifest)
        return
    suspended = manifest.spec.get("suspend") is True
    for found in find_pods(as_mapping(get_path(runtime, "spec", "template")), POD_SETS["jobset.x-k8s.io", "JobSet"]):
        template, count = as_mapping(found.template), found.total
        labels = get_path(found.item, "template", "metadata", "labels")
        if as_text(get_path(labels, "trainer.kubeflow.org/trainjob-ancestor-step")) == "trainer":
            own = as_integer(get_path(manifest.spec, "trainer", "numNodes"))
            shared = as_integer(get_path(runtime, "spec", "mlPolicy", "numNodes"))
            count = max(own if own is not None else 1 if shared is None else shared, 0)
            template = _set_resources(template, get_path(manifest.spec, "trainer", "resourcesPerNode"))
        yield Pod(template, manifest), 0 if suspended else count


def _set_resources(template: Mapping[str, Plain], resources: Plain) -> Mapping[str, Plain]:
    if not is_set(resources):
        return template
    spec = as_mapping(template.get("spec"))
    containers: list[Plain] = [
        {**each, "resources": resources} if as_text(each.get("name")) == "node" else each
        for each in iter_mappings(spec.get("containers"))
    ]
    return {**template, "spec": {**spec, "containers": containers}}


# What the limit ranges of a namespace refuse: containers, pods and claims outside of a minimum, maximum or ratio.


class OutOfRange(NamedTuple):
    """An amount that a limit range refuses: its place, a message, and the place in the limit range that it breaks."""

    node: Place
    message: str
    bound: At


class _Subject(NamedTuple):
    """A container, a pod or a claim: its name in messages, its amounts, and the place of one that is missing."""

    name: str
    requests: Amounts
    limits: Amounts
    place: Place


def check_pod(pod: PodResources, limit_range: Mapping[str, Plain], place: Place) -> Iterator[OutOfRange]:
    """Yield what a limit range refuses in a pod."""
    containers = [
        _Subject(f"container `{each.name}`", each.requests, each.limits, each.place) for each in pod.containers
    ]
    subjects = {"Container": containers, "Pod": [_Subject("the pod", pod.requests, pod.limits, place)]}
    owner = show_name(limit_range)
    for item in _list_items(limit_range):
        for subject in subjects.get(as_text(item.get("type")), ()):
            for name, bound in parse_amounts(item.get("min")).items():
                yield from _check_least(subject, name, bound, owner)
            for name, bound in parse_amounts(item.get("max")).items():
                yield from _check_most(subject, name, bound, owner, "limit")
            for name, bound in parse_amounts(item.get("maxLimitRequestRatio")).items():
                allowed = _find(bound, name)
                rule = f"LimitRange `{owner}` allows a limit of at most `{allowed}` times the request"
                request, limit = subject.requests.get(name), subject.limits.get(name)
                if request is None or limit is None or not request.milli or not limit.milli:
                    message = f"{subject.name} has no request or no limit for `{name}`, but {rule}"
                    yield _report_missing(subject, message, name, bound)
                elif limit.milli * 1000 > bound.milli * request.milli:
                    message = f"the limit for `{name}` of {subject.name} is too large for its request: {rule}"
                    holder = limit.holder if limit.holder is not None else request.holder
                    at = subject.place if holder is None else At(holder, name)
                    yield OutOfRange(at, f"{message}; lower the limit or request more", _place(bound, name))
    for item in _list_items(limit_range):
        if as_text(item.get("type")) == "Container":
            yield from _check_default_limits(containers, item, owner)


def check_claim(requests: Plain, place: Place, limit_range: Mapping[str, Plain]) -> Iterator[OutOfRange]:
    """Yield what a limit range refuses in the requests of a claim for storage."""
    subject = _Subject("the claim", parse_amounts(requests), {}, place)
    for item in _list_items(limit_range):
        if as_text(item.get("type")) == "PersistentVolumeClaim":
            for name, bound in parse_amounts(item.get("min")).items():
                yield from _check_least(subject, name, bound, show_name(limit_range))
            for name, bound in parse_amounts(item.get("max")).items():
                yield from _check_most(subject, name, bound, show_name(limit_range), "request")


def _list_items(limit_range: Mapping[str, Plain]) -> Iterator[Mapping[str, Plain]]:
    return iter_mappings(as_mapping(limit_range.get("spec")).get("limits"))


def _check_least(subject: _Subject, name: str, bound: Amount, owner: str) -> Iterator[OutOfRange]:
    rule = f"LimitRange `{owner}` requires at least `{_find(bound, name)}`"
    request, limit = subject.requests.get(name), subject.limits.get(name)
    if request is None:
        yield _report_missing(subject, f"{subject.name} has no request for `{name}`, but {rule}", name, bound)
    elif request.milli < bound.milli:
        yield _report(subject, "requests", name, request, rule, "request more", bound)
    elif limit is not None and limit.milli < bound.milli:
        yield _report(subject, "limits", name, limit, rule, "raise the limit", bound)


def _check_most(subject: _Subject, name: str, bound: Amount, owner: str, missing: str) -> Iterator[OutOfRange]:
    """Check a maximum. A pod or container needs a limit, a claim a request, to stay below it."""
    rule = f"LimitRange `{owner}` allows at most `{_find(bound, name)}`"
    request, limit = subject.requests.get(name), subject.limits.get(name)
    if (limit if missing == "limit" else request) is None:
        yield _report_missing(subject, f"{subject.name} has no {missing} for `{name}`, but {rule}", name, bound)
    elif limit is not None and limit.milli > bound.milli:
        yield _report(subject, "limits", name, limit, rule, "lower the limit", bound)
    elif request is not None and request.milli > bound.milli:
        yield _report(subject, "requests", name, request, rule, "request less", bound)


def _check_default_limits(
    containers: Sequence[_Subject], item: Mapping[str, Plain], owner: str
) -> Iterator[OutOfRange]:
    """Find requests above the limit that the limit range gives a container without one."""
    most, defaults = parse_amounts(item.get("max")), parse_amounts(item.get("default"))
    for subject in containers:
        for name, bound in defaults.items():
            request, limit = subject.requests.get(name), subject.limits.get(name)
            if request is None or request.holder is None or limit != Amount(bound.milli):
                continue
            if bound.milli < request.milli <= most.get(name, request).milli:
                message = f"{subject.name} requests `{_find(request, name)}` of `{name}` without a limit"
                message += f", but LimitRange `{owner}` gives it the lower limit `{_find(bound, name)}`; set a limit"
                yield OutOfRange(_place(request, name), message, _place(bound, name))


def _report(
    subject: _Subject, field: str, name: str, amount: Amount, rule: str, remedy: str, bound: Amount
) -> OutOfRange:
    message = f"`{field}.{name}` of {subject.name} is `{format_amount(name, amount.milli)}`"
    if amount.holder is None:
        return OutOfRange(subject.place, f"{message} by default, but {rule}; set it", _place(bound, name))
    return OutOfRange(_place(amount, name), f"{message}, but {rule}; {remedy}", _place(bound, name))


def _report_missing(subject: _Subject, message: str, name: str, bound: Amount) -> OutOfRange:
    return OutOfRange(subject.place, f"{message}; set it", _place(bound, name))


def _place(amount: Amount, name: str) -> At:
    return At(amount.holder, name)


def _find(amount: Amount, name: str) -> Any:
    """Return an amount as it is written."""
    return (amount.holder or {}).get(name)
