"""Find Services that select none of the pods that they come with, in one file or one build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.k8s.nodes import as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_key

Labels = Mapping[str, str]
RULE = "service-selects-nothing"
# Labels that controllers add to pods.
_ADDED_LABELS = frozenset(
    """apps.kubernetes.io/pod-index batch.kubernetes.io/controller-uid batch.kubernetes.io/job-completion-index
    batch.kubernetes.io/job-name controller-revision-hash controller-uid job-name pod-template-generation
    pod-template-hash statefulset.kubernetes.io/pod-name""".split()
)
# What a template or a script fills in before the objects are applied.
_UNFILLED = ("$", "{{", "<")


class _Workload(NamedTuple):
    """An object that creates pods, or a pod."""

    name: str
    """Its kind and name, as messages show them."""
    namespace: str
    labels: Labels


def find_idle_services(objects: Sequence[Mapping[str, Node]]) -> Iterator[tuple[int, Problem]]:
    """Report each Service, by its number, that selects no pod of the objects although it is evidently meant to.

    The objects are those of one file or one build. Custom resources among them may create pods with any labels.
    """
    services = [number for number, obj in enumerate(objects) if _names_kind(obj) == ("", "Service")]
    if not services or any(_names_kind(obj)[0] not in BUILTIN_GROUPS for obj in objects):
        return
    workloads = [workload for obj in objects for workload in _list_workloads(obj)]
    for number in services:
        selector = _read_labels(get_path(objects[number], "spec", "selector"))
        # A namespace that is not set is that of the command.
        namespace = as_text(get_path(objects[number], "metadata", "namespace"))
        near = [each for each in workloads if not namespace or each.namespace in ("", namespace)]
        is_unclear = any(name in _ADDED_LABELS for name in selector) or _is_unfilled(selector, near)
        if not selector or is_unclear or any(selector.items() <= each.labels.items() for each in near):
            continue
        meant = _find_meant(selector, near, is_only=len(services) == 1)
        if meant:
            yield number, _report(objects[number], selector, meant)


def _names_kind(obj: Mapping[str, Node]) -> tuple[str, str]:
    return as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind"))


def _list_workloads(obj: Mapping[str, Node]) -> Iterator[_Workload]:
    group, kind = _names_kind(obj)
    name = f"{kind} {as_text(get_path(obj, 'metadata', 'name'))}"
    for path in list_template_paths(group, kind):
        for template in find_nodes(obj, path):
            labels = _read_labels(get_path(template, "metadata", "labels"))
            yield _Workload(name, as_text(get_path(obj, "metadata", "namespace")), labels)


def _read_labels(node: Node) -> dict[str, str]:
    return {str(name): str(value_of(value)) for name, value in as_mapping(node).items()}


def _is_unfilled(selector: Labels, workloads: Sequence[_Workload]) -> bool:
    """Return True if labels have placeholders, so that they may be equal later."""
    every = (selector, *(each.labels for each in workloads))
    texts = [text for labels in every for pair in labels.items() for text in pair]
    return any(mark in text for text in texts for mark in _UNFILLED)


def _find_meant(selector: Labels, workloads: Sequence[_Workload], *, is_only: bool) -> _Workload | None:
    """The workload that a Service is evidently for: that with most of its labels, or the only one beside it."""
    best = max(workloads, key=lambda each: len(selector.items() & each.labels.items()), default=None)
    if best is None:
        return None
    is_single = is_only and len(workloads) == 1 and not selector.keys().isdisjoint(best.labels)
    return best if selector.items() & best.labels.items() or is_single else None


def _report(service: Mapping[str, Node], selector: Labels, workload: _Workload) -> Problem:
    spec = as_mapping(service.get("spec"))
    labels = workload.labels
    wrong = [f"`{name}: {value}`" for name, value in selector.items() if labels.get(name) != value]
    found = [f"`{name}: {labels[name]}`" for name in selector if labels.get(name, selector[name]) != selector[name]]
    has = f"has {' and '.join(found)}" if found else "does not have it" if len(wrong) == 1 else "does not have them"
    message = f"no pod of these objects has {' and '.join(wrong)}: the template of `{workload.name}` {has}"
    message += "; use the same labels in both"
    return Problem(RULE, message, find_key(spec, "selector"), category="fleet", severity=Severity.WARNING)
