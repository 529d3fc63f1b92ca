"""What the webhook of AppWrapper rejects; the checker checks the objects inside on their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.k8s.object_paths import find_wrapped_pods, follow_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.suggest import find_key

OPERATOR = "appwrapper"

_MAX_POD_SETS = 8
_API_VERSION, _KIND = "workload.codeflare.dev/v1beta2", "AppWrapper"


class _Component(NamedTuple):
    """A component of an AppWrapper: the object that it wraps, and what it declares about its pods."""

    data: Mapping[str, Node]
    object: Mapping[str, Node]
    declared: list[Mapping[str, Node]]

    @property
    def identity(self) -> tuple[str, str]:
        """The API version and the kind of the wrapped object."""
        return as_text(self.object.get("apiVersion")), as_text(self.object.get("kind"))


def _list_components(manifest: Manifest) -> list[_Component]:
    return [
        _Component(item, as_mapping(item.get("template")), list(iter_mappings(item.get("podSets"))))
        for item in iter_mappings(manifest.spec.get("components"))
    ]


def _check_components(manifest: Manifest) -> Violations:
    for component in _list_components(manifest):
        if component.identity == (_API_VERSION, _KIND):
            yield Violation(component.object["kind"], "an AppWrapper cannot contain an AppWrapper; list its components")
        metadata = as_mapping(component.object.get("metadata"))
        namespace = as_text(metadata.get("namespace"))
        if namespace and manifest.namespace and namespace != manifest.namespace:
            message = f"the namespace `{namespace}` differs from that of the AppWrapper, `{manifest.namespace}`"
            yield Violation(metadata["namespace"], f"{message}; remove it")


def _check_pod_sets(manifest: Manifest) -> Violations:
    """Check the declared pod sets: that their paths lead to pod templates, and that they match the wrapped object."""
    for component in _list_components(manifest):
        seen: set[str] = set()
        invalid = False
        for pod_set in component.declared:
            path = as_text(pod_set.get("path"))
            node = pod_set.get("path") or pod_set
            if path in seen:
                yield Violation(node, f"`{path}` is the path of an earlier pod set; remove one of them")
                invalid = True
            elif not isinstance(as_mapping(follow_path(component.object, path)).get("spec"), dict):
                message = f"`{path}` leads to no pod template; write a path such as `template.spec.template`"
                yield Violation(node, message)
                invalid = True
            seen.add(path)
        if component.declared and not invalid:
            yield from _compare_pod_sets(component)


def _compare_pod_sets(component: _Component) -> Violations:
    inferred = list(find_wrapped_pods(component.object))
    declared = {as_text(pod_set.get("path")): pod_set for pod_set in component.declared}
    kind, node = component.identity[1], find_key(component.data, "podSets")
    if inferred and len(inferred) != len(declared):
        message = f"`podSets` has {len(declared)} items, but the {kind} has {len(inferred)} pod templates"
        yield Violation(node, f"{message}; remove `podSets`, or list all")
        return
    for path, replicas, _ in inferred:
        if path not in declared:
            yield Violation(node, f"`podSets` does not list `{path}` of the {kind}; add it, or remove `podSets`")
            continue
        found = as_integer(declared[path].get("replicas"))
        if (1 if found is None else found) != replicas:
            message = f"`replicas` of `{path}` is `{1 if found is None else found}`, but the {kind} has {replicas} pods"
            yield Violation(declared[path].get("replicas") or declared[path], f"{message}; use the same number")


def _check_count(manifest: Manifest) -> Violations:
    components = _list_components(manifest)
    if not components:
        # The schema requires them.
        return
    count = sum(max(len(item.declared), len(list(find_wrapped_pods(item.object)))) for item in components)
    node = find_key(manifest.spec, "components")
    if not count:
        message = "no component has pods that AppWrapper finds; declare them with `podSets` and a `path`"
        yield Violation(node, message)
    elif count > _MAX_POD_SETS:
        yield Violation(node, f"the components have {count} pod templates; use at most {_MAX_POD_SETS}")


CHECKS: Checks = {
    "AppWrapper": (
        Check(REJECTED, _check_components),
        Check(REJECTED, _check_pod_sets),
        Check(REJECTED, _check_count),
    ),
}
