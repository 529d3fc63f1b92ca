"""What the webhook of Volcano rejects: Queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations, check_bounds, not_one_of
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import to_milli

OPERATOR = "volcano"

_HIERARCHY, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
# Resources of nodes and pods that are not counted in whole numbers.
_DIVISIBLE = ("cpu", "memory", "ephemeral-storage", "storage")


def _list_resources(manifest: Manifest) -> dict[str, Mapping[str, Node]]:
    return {
        "capability": as_mapping(manifest.spec.get("capability")),
        "deserved": as_mapping(manifest.spec.get("deserved")),
        "guarantee": as_mapping(get_path(manifest.spec, "guarantee", "resource")),
    }


def _check_quantities(manifest: Manifest) -> Violations:
    for field, resources in _list_resources(manifest).items():
        for name, node in resources.items():
            milli = to_milli(node)
            if milli is None:
                # The schema reports what is no quantity.
                continue
            if milli < 0:
                yield Violation(node, f"`{name}` of `{field}` must not be negative, got `{value_of(node)}`")
            elif milli % 1000 and not _is_divisible(name):
                yield Violation(node, f"`{name}` of `{field}` must be a whole number, got `{value_of(node)}`")


def _is_divisible(name: str) -> bool:
    return name in _DIVISIBLE or name.startswith("hugepages-") or "kubernetes.io/" in name


def _check_amounts(manifest: Manifest) -> Violations:
    """Check that a queue deserves what it is guaranteed, and no more than it can have."""
    capability, deserved, guarantee = _list_resources(manifest).values()
    for name, node in guarantee.items():
        if name not in deserved:
            message = f"`guarantee` has `{name}`, but `deserved` does not; set it to `{value_of(node)}` or more"
            yield Violation(node, message)
        else:
            yield from _compare(name, node, "guarantee", deserved[name], "deserved")
    for name, node in deserved.items():
        if name in capability:
            yield from _compare(name, node, "deserved", capability[name], "capability")


def _compare(name: str, low: Node, low_field: str, high: Node, high_field: str) -> Iterator[Violation]:
    less, more = to_milli(low), to_milli(high)
    if less is not None and more is not None and less > more:
        message = f"`{name}` of `{low_field}` is `{value_of(low)}`, but that of `{high_field}` is `{value_of(high)}`"
        yield Violation(low, f"{message}; use at most that")


def _check_parent(manifest: Manifest) -> Violations:
    parent = as_text(manifest.spec.get("parent"))
    if parent and parent != "root" and parent == manifest.name:
        yield Violation(manifest.spec["parent"], f"queue `{parent}` cannot be its own parent; use another queue")


def _check_state(manifest: Manifest) -> Violations:
    yield from not_one_of("state", get_path(manifest.object, "status", "state"), ["Open", "Closed"])


def _check_hierarchy(manifest: Manifest) -> Violations:
    path, weights = (as_text(manifest.annotations.get(name)) for name in (_HIERARCHY, _WEIGHTS))
    if not path and not weights:
        return
    node = manifest.annotations.get(_WEIGHTS) or manifest.annotations.get(_HIERARCHY)
    if len(path.split("/")) != len(weights.split("/")):
        message = (
            f"annotation `{_HIERARCHY}` is `{path}`, and `{_WEIGHTS}` is `{weights}`; write a weight for each step"
        )
        yield Violation(node, message)
        return
    for weight in weights.split("/"):
        if not _is_positive(weight):
            message = f"`{weight}` in annotation `{_WEIGHTS}` is not a positive number; write one"
            yield Violation(node, message)


def _is_positive(text: str) -> bool:
    try:
        return text == text.strip() and float(text) > 0
    except ValueError:
        return False


CHECKS: Checks = {
    "Queue": (
        Check(REJECTED, _check_state),
        Check(REJECTED, _check_hierarchy),
        Check(REJECTED, check_bounds({"spec.weight": (1, None)}), until="1.12"),
        Check(REJECTED, _check_quantities, since="1.14"),
        Check(REJECTED, _check_parent, since="1.14"),
        Check(REJECTED, _check_amounts, since="1.15"),
    ),
}
