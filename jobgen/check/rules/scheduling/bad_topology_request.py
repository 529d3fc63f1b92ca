"""Topology requests that Kueue rejects."""

from collections.abc import Iterator, Mapping

from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.kueue import DOMAIN, is_managed_by_kueue
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import count_pods
from jobgen.model.data import Node
from jobgen.model.suggest import find_key

_PREFIX = DOMAIN + "podset-"
_REQUIRED, _PREFERRED = _PREFIX + "required-topology", _PREFIX + "preferred-topology"
_UNCONSTRAINED = _PREFIX + "unconstrained-topology"
_SLICE, _SLICE_SIZE = _PREFIX + "slice-required-topology", _PREFIX + "slice-size"
_GROUP = _PREFIX + "group-name"
_BOOLEANS = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
_GROUP_SIZE = 2


@rule("manifest", ERROR)
def bad_topology_request(manifest: Manifest) -> Iterator[Violation]:
    """A topology request in a pod template that Kueue's webhook rejects, or that leaves pods gated.

    A pod template has at most one of `podset-required-topology`, `podset-preferred-topology` and
    `podset-unconstrained-topology`. Slices need both their topology and their size, and a group of pod sets has two
    members, one of them with a single pod. If the size of slices does not divide the number of pods, Kueue admits the
    job, and the pods that fill no slice stay gated; this is a warning.

    Change the annotations as the message says.
    """
    if not any(_requests_topology(pod) for pod in manifest.pods) or not is_managed_by_kueue(manifest):
        return
    requests = [
        (as_mapping(pod.metadata.get("annotations")), count // _count_workloads(manifest))
        for pod, count in count_pods(manifest)
        if _requests_topology(pod)
    ]
    for annotations, count in requests:
        yield from _check_topology(annotations)
        yield from _check_slices(annotations, count)
        yield from _check_group(annotations)
    yield from _check_groups(requests)


def _count_workloads(manifest: Manifest) -> int:
    """Return the number of workloads of an object; Kueue admits each group of a LeaderWorkerSet for itself."""
    groups = as_integer(manifest.spec.get("replicas")) if manifest.kind_name == "LeaderWorkerSet" else 1
    return max(groups or 1, 1)


def _requests_topology(pod: Pod) -> bool:
    annotations = pod.metadata.get("annotations")
    return isinstance(annotations, dict) and any(key.startswith(_PREFIX) for key in annotations)


def _check_topology(annotations: Mapping[str, Node]) -> Iterator[Violation]:
    found = [key for key in annotations if key in (_REQUIRED, _PREFERRED, _UNCONSTRAINED)]
    if len(found) > 1:
        yield Violation(found[1], f"`{found[0]}` and `{found[1]}` are mutually exclusive; remove one of them")
    for key in annotations:
        value = as_text(annotations[key])
        if key in (_REQUIRED, _PREFERRED, _SLICE) and not is_label_key(value):
            yield Violation(annotations[key], f"`{value}` is not a label of nodes; {LABEL_KEY}")
        elif key == _UNCONSTRAINED and value not in _BOOLEANS:
            yield Violation(annotations[key], f'`{key}` is `{value}`, but must be `"true"` or `"false"`')


def _check_slices(annotations: Mapping[str, Node], count: int) -> Iterator[Violation]:
    size = as_text(annotations.get(_SLICE_SIZE))
    if (_SLICE in annotations) != (_SLICE_SIZE in annotations):
        given, other = (_SLICE, _SLICE_SIZE) if _SLICE in annotations else (_SLICE_SIZE, _SLICE)
        yield Violation(find_key(annotations, given), f"`{given}` requires `{other}`; set both")
    if _SLICE_SIZE not in annotations:
        return
    if not (size.isascii() and size.isdigit() and int(size[:10])):
        yield Violation(annotations[_SLICE_SIZE], f"`{_SLICE_SIZE}` is `{size}`, but must be a number above 0")
    elif count and int(size[:10]) > count:
        message = f"`{_SLICE_SIZE}` is `{size}`, but there are {count} pods; use at most that"
        yield Violation(annotations[_SLICE_SIZE], message)
    elif rest := count % int(size[:10]):
        message = f"`{_SLICE_SIZE}` is `{size}`, which does not divide the {count} pods; Kueue admits the job, but"
        message += f" {rest} of them {'stays' if rest == 1 else 'stay'} gated; use a size that divides them"
        yield Violation(annotations[_SLICE_SIZE], message, severity=WARNING)


def _check_group(annotations: Mapping[str, Node]) -> Iterator[Violation]:
    if _GROUP not in annotations:
        return
    name, node = as_text(annotations[_GROUP]), annotations[_GROUP]
    if name.isascii() and name.isdigit():
        yield Violation(node, f"`{_GROUP}` is `{name}`, but must not be a number; use a name")
    for key in (_SLICE, _SLICE_SIZE):
        if key in annotations:
            yield Violation(node, f"`{_GROUP}` and `{key}` are mutually exclusive; remove one of them")
            return
    if _REQUIRED not in annotations and _PREFERRED not in annotations:
        yield Violation(node, f"`{_GROUP}` requires `{_REQUIRED}` or `{_PREFERRED}`; set one of them")


def _check_groups(requests: list[tuple[Mapping[str, Node], int]]) -> Iterator[Violation]:
    groups: dict[str, list[tuple[Mapping[str, Node], int]]] = {}
    for annotations, count in requests:
        if as_text(annotations.get(_GROUP)):
            groups.setdefault(as_text(annotations[_GROUP]), []).append((annotations, count))
    for name, members in groups.items():
        node = members[0][0][_GROUP]
        if len(members) != _GROUP_SIZE:
            message = f"group `{name}` has {len(members)} pod sets, but must have {_GROUP_SIZE}; change `{_GROUP}`"
            yield Violation(node, message)
        elif all(count > 1 for _, count in members):
            yield Violation(node, f"group `{name}` has no pod set with a single pod; one of the two must have one")
        else:
            wanted = [[as_text(annotations.get(key)) for key in (_REQUIRED, _PREFERRED)] for annotations, _ in members]
            if wanted[0] != wanted[1] and all(map(any, wanted)):
                yield Violation(node, f"the pod sets of group `{name}` request different topologies; use the same")
