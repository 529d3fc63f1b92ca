"""What the webhook of AppWrapper rejects; the checker checks the objects inside on their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.check.admission.fields import enumerate_mappings, iter_mappings
from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations
from jobgen.check.rules import Violation
from jobgen.k8s.kinds import needs_name
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.k8s.object_paths import find_wrapped_pods, follow_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, find_at

OPERATOR = "appwrapper"


class _Component(NamedTuple):
    """A component of an AppWrapper: the object that it wraps, and what it declares about its pods."""

    object: Mapping[str, Node]
    declared: Sequence[tuple[int, Mapping[str, Node]]]
    data: Mapping[str, Node]


def _check_components(manifest: Manifest) -> Violations:
    components = [
        _Component(as_mapping(item.get("template")), enumerate_mappings(item.get("podSets")), item)
        for item in iter_mappings(manifest.spec.get("components"))
    ]
    for component in components:
        identity = as_text(component.object.get("apiVersion")), as_text(component.object.get("kind"))
        if identity == ("workload.codeflare.dev/v1beta2", "AppWrapper"):
            yield Violation(
                At(component.object, "kind"), "an AppWrapper cannot contain an AppWrapper; list its components"
            )
        metadata = as_mapping(component.object.get("metadata"))
        if (
            all(identity)
            and needs_name(*identity)
            and not any(as_text(metadata.get(key)) for key in ("name", "generateName"))
        ):
            place = find_at(component.object, "metadata", is_key=True) or At(component.object, "kind")
            yield Violation(place, f"the {identity[1]} has no `metadata.name`; set it")
        namespace = as_text(metadata.get("namespace"))
        if namespace and manifest.namespace and namespace != manifest.namespace:
            message = f"the namespace `{namespace}` differs from the AppWrapper's, `{manifest.namespace}`"
            yield Violation(At(metadata, "namespace"), f"{message}; remove it")
        yield from _check_pod_sets(component)
    count = sum(max(len(item.declared), len(list(find_wrapped_pods(item.object)))) for item in components)
    key = find_at(manifest.spec, "components", is_key=True)
    # The schema requires components.
    if components and not count:
        yield Violation(key, "no component has pods that AppWrapper finds; declare them with `podSets` and a `path`")
    elif count > 8:
        yield Violation(key, f"the components have {count} pod templates; use at most 8")


def _check_pod_sets(component: _Component) -> Violations:
    """Check the declared pod sets: that their paths lead to pod templates, and that they match the wrapped object."""
    seen: set[str] = set()
    invalid = False
    for index, pod_set in component.declared:
        path = as_text(pod_set.get("path"))
        place = find_at(pod_set, "path") or At(component.data["podSets"], index)
        if path in seen:
            yield Violation(place, f"two pod sets have the path `{path}`; remove one of them")
            invalid = True
        elif not isinstance(as_mapping(follow_path(component.object, path)).get("spec"), dict):
            yield Violation(place, f"`{path}` leads to no pod template; write a path such as `template.spec.template`")
            invalid = True
        seen.add(path)
    if component.declared and not invalid:
        yield from _compare_pod_sets(component)


def _compare_pod_sets(component: _Component) -> Violations:
    inferred = list(find_wrapped_pods(component.object))
    declared = {as_text(pod_set.get("path")): pod_set for _, pod_set in component.declared}
    kind, key = as_text(component.object.get("kind")), At(component.data, "podSets", is_key=True)
    if inferred and len(inferred) != len(declared):
        message = f"`podSets` has {len(declared)} items, but the {kind} has {len(inferred)} pod templates"
        yield Violation(key, f"{message}; remove `podSets`, or list all")
        return
    for path, replicas, _ in inferred:
        if path not in declared:
            yield Violation(key, f"`podSets` does not list `{path}` of the {kind}; add it, or remove `podSets`")
            continue
        given = as_integer(declared[path].get("replicas"))
        found = 1 if given is None else given
        if found != replicas:
            message = f"`replicas` of `{path}` is `{found}`, but the {kind} has {replicas} pods"
            place: Place = find_at(declared[path], "replicas") or declared[path]
            yield Violation(place, f"{message}; use the same number")


CHECKS: Checks = {"AppWrapper": (Check(REJECTED, _check_components),)}
