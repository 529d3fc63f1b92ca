"""Find Services that select none of the pods that they come with, in one file or one build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.k8s.nodes import as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.budget import Work, charge
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.meant import find_meant
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

Labels = Mapping[str, str]
RULE = "service-selects-nothing"
# Labels that controllers add to pods.
_ADDED_LABELS = frozenset(
    """apps.kubernetes.io/pod-index batch.kubernetes.io/controller-uid batch.kubernetes.io/job-completion-index
    batch.kubernetes.io/job-name controller-revision-hash controller-uid job-name pod-template-generation
    pod-template-hash statefulset.kubernetes.io/pod-name""".split()
)
_SELECTORS = frozenset((("", "Service"), ("policy", "PodDisruptionBudget")))
_WITHOUT_PODS = frozenset(
    (
        ("keda.sh", "ScaledObject"),
        ("keda.sh", "TriggerAuthentication"),
        ("monitoring.coreos.com", "PodMonitor"),
        ("monitoring.coreos.com", "PrometheusRule"),
        ("monitoring.coreos.com", "ServiceMonitor"),
    )
)
_GROUPS_WITHOUT_PODS = frozenset(
    "cert-manager.io external-secrets.io gateway.networking.k8s.io kueue.x-k8s.io networking.istio.io".split()
)
# What a template or a script fills in before the objects are applied.
_UNFILLED = ("$", "{{", "<")


class Workload(NamedTuple):
    """An object that creates pods, or a pod."""

    name: str
    """Its kind and name, as messages show them."""
    namespace: str
    labels: Labels
    selector: Labels
    """What it selects its own pods by, which differs from their labels only by mistake."""


def find_idle_services(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Workload]]:
    """Yield each Service or disruption budget, by its number, that selects no pod of the objects, and what it is for.

    The objects are those of one file or one build. Custom resources among them may create pods with any labels.
    """
    services = [number for number, obj in enumerate(objects) if _names_kind(obj) in _SELECTORS]
    if not services or any(map(_may_have_pods, objects)):
        return
    workloads = _Workloads([workload for obj in objects for workload in _list_workloads(obj)])
    for number in services:
        selector = _read_selector(objects[number])
        # A namespace that is not set is that of the command.
        namespace = as_text(get_path(objects[number], "metadata", "namespace"))
        is_unclear = any(name in _ADDED_LABELS for name in selector) or workloads.is_unfilled(selector, namespace)
        if not selector or is_unclear:
            continue
        shared = workloads.count_shared(selector, namespace)
        if len(selector) in shared.values() or workloads.is_selected_alike(selector, namespace):
            continue
        kinds = [_names_kind(objects[each]) for each in services]
        is_only = kinds.count(_names_kind(objects[number])) == 1
        meant = workloads.find_meant(selector, namespace, shared, is_only=is_only)
        if meant:
            yield number, meant


class _Workloads:
    """Workloads by their labels, so that a Service is compared only with those that share one with it."""

    def __init__(self, workloads: Sequence[Workload]) -> None:
        self._all = workloads
        self._by_label: dict[tuple[str, str], list[int]] = {}
        for number, workload in enumerate(workloads):
            for label in workload.labels.items():
                self._by_label.setdefault(label, []).append(number)
        self._unfilled = {each.namespace for each in workloads if _has_placeholders(each.labels)}

    def is_unfilled(self, selector: Labels, namespace: str) -> bool:
        """Return True if labels have placeholders, so that they may be equal later."""
        near = self._unfilled if not namespace else self._unfilled & {"", namespace}
        return bool(near) or _has_placeholders(selector)

    def count_shared(self, selector: Labels, namespace: str) -> Mapping[int, int]:
        """Count the labels of a selector that each workload has, by its number."""
        shared: Counter[int] = Counter()
        for label in selector.items():
            numbers = self._by_label.get(label, ())
            charge(Work.DOCUMENTS, len(numbers))
            shared.update(number for number in numbers if _is_near(self._all[number], namespace))
        return shared

    def is_selected_alike(self, selector: Labels, namespace: str) -> bool:
        """Return True if a workload has the same selector: then the labels of its pods are wrong, which is reported."""
        return any(
            each.selector.items() >= selector.items() and each.selector.items() - each.labels.items()
            for each in self._all
            if _is_near(each, namespace)
        )

    def find_meant(
        self, selector: Labels, namespace: str, shared: Mapping[int, int], *, is_only: bool
    ) -> Workload | None:
        """The workload that a Service is evidently for: that with most of its labels, or the only one beside it."""
        if shared:
            return self._all[min(shared, key=lambda number: (-shared[number], number))]
        near = [each for each in self._all if _is_near(each, namespace)] if is_only else []
        return near[0] if len(near) == 1 and not selector.keys().isdisjoint(near[0].labels) else None


def _read_selector(obj: Mapping[str, Plain]) -> dict[str, str]:
    """Return the labels that a Service or a budget selects pods by; empty if it selects them otherwise, too."""
    selector = get_path(obj, "spec", "selector")
    if as_text(obj.get("kind")) == "Service":
        return _read_labels(selector)
    found = as_mapping(selector)
    return {} if found.get("matchExpressions") else _read_labels(found.get("matchLabels"))


def _may_have_pods(obj: Mapping[str, Plain]) -> bool:
    """Return True if an object may create pods whose labels are not known."""
    group, kind = _names_kind(obj)
    return group not in BUILTIN_GROUPS and (group, kind) not in _WITHOUT_PODS and group not in _GROUPS_WITHOUT_PODS


def _is_near(workload: Workload, namespace: str) -> bool:
    return not namespace or workload.namespace in ("", namespace)


def _has_placeholders(labels: Labels) -> bool:
    return any(mark in text for pair in labels.items() for text in pair for mark in _UNFILLED)


def _names_kind(obj: Mapping[str, Plain]) -> tuple[str, str]:
    return as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind"))


def _list_workloads(obj: Mapping[str, Plain]) -> Iterator[Workload]:
    group, kind = _names_kind(obj)
    name = f"{kind} {as_text(get_path(obj, 'metadata', 'name'))}"
    for path in list_template_paths(group, kind):
        for template in find_nodes(obj, path):
            labels = _read_labels(get_path(template, "metadata", "labels"))
            own = _read_labels(get_path(obj, "spec", "selector", "matchLabels"))
            yield Workload(name, as_text(get_path(obj, "metadata", "namespace")), labels, own)


def _read_labels(node: Plain) -> dict[str, str]:
    return {str(name): str(value) for name, value in as_mapping(node).items()}


def _names_other(service: Mapping[str, Plain], value: str, label: str) -> bool:
    """Return True if a Service is named like the pods that it selects, and those at hand are other ones.

    A Service `ray-head` that selects `ray-head` is not for the pods of `ray-worker`.
    """
    name = as_text(get_path(service, "metadata", "name")).split("-")
    wanted, found = (set(text.split("-")) for text in (value, label))
    own, others = wanted - found, found - wanted
    return bool(own and others) and own.issubset(name) and not find_meant(value, [label])


def report_idle_service(service: Mapping[str, Plain], workload: Workload) -> Problem:
    """Report a Service or a budget whose selector differs from the labels of a workload."""
    spec = as_mapping(service.get("spec"))
    selector = _read_selector(service)
    labels = workload.labels
    wrong = [f"`{name}: {value}`" for name, value in selector.items() if labels.get(name) != value]
    found = [f"`{name}: {labels[name]}`" for name in selector if labels.get(name, selector[name]) != selector[name]]
    has = f"has {' and '.join(found)}" if found else "does not have it" if len(wrong) == 1 else "does not have them"
    message = Sentence(
        "no pod of these objects has {}: the template of `{}` {}", " and ".join(wrong), workload.name, has
    )
    is_elsewhere = any(_names_other(service, value, labels.get(name, "")) for name, value in selector.items())
    message += "; add the pods that it is for, or use" if is_elsewhere else "; use"
    message += " the same labels in both"
    holder = spec if as_text(service.get("kind")) == "Service" else as_mapping(spec.get("selector"))
    place = At(holder, "selector" if holder is spec else "matchLabels", is_key=True)
    return Problem(RULE, message, place, category="fleet", severity=Severity.WARNING)
