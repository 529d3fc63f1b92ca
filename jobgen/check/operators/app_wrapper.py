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
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, find_at
from jobgen.model.sentence import Sentence

OPERATOR = "appwrapper"


class _Component(NamedTuple):
    """A component of an AppWrapper: the object that it wraps, and what it declares about its pods."""

    object: Mapping[str, Plain]
    declared: Sequence[tuple[int, Mapping[str, Plain]]]
    data: Mapping[str, Plain]


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
            yield Violation(place, Sentence("the {} has no `metadata.name`; set it", identity[1]))
        namespace = as_text(metadata.get("namespace"))
        if namespace and manifest.namespace and namespace != manifest.namespace:
            message = Sentence("the namespace `{}` differs from the AppWrapper's, `{}`", namespace, manifest.namespace)
            yield Violation(At(metadata, "namespace"), Sentence("{}; remove it", message))
        yield from _check_pod_sets(component)
    count = sum(max(len(item.declared), len(list(find_wrapped_pods(item.object)))) for item in components)
    key = find_at(manifest.spec, "components", is_key=True)
    # The schema requires components.
    if components and not count:
        yield Violation(key, "no component has pods that AppWrapper finds; declare them with `podSets` and a `path`")
    elif count > 8:
        yield Violation(key, Sentence("the components have {} pod templates; use at most 8", count))


def _check_pod_sets(component: _Component) -> Violations:
    """Check the declared pod sets: that their paths lead to pod templates, and that they match the wrapped object."""
    seen: set[str] = set()
    invalid = False
    for index, pod_set in component.declared:
        path = as_text(pod_set.get("path"))
        place = find_at(pod_set, "path") or At(component.data["podSets"], index)
        if path in seen:
            yield Violation(place, Sentence("two pod sets have the path `{}`; remove one of them", path))
            invalid = True
        elif not isinstance(as_mapping(follow_path(component.object, path)).get("spec"), dict):
            yield Violation(
                place, Sentence("`{}` leads to no pod template; write a path such as `template.spec.template`", path)
            )
            invalid = True
        seen.add(path)
    if component.declared and not invalid:
        yield from _compare_pod_sets(component)


def _compare_pod_sets(component: _Component) -> Violations:
    inferred = list(find_wrapped_pods(component.object))
    declared = {as_text(pod_set.get("path")): pod_set for _, pod_set in component.declared}
    kind, key = as_text(component.object.get("kind")), At(component.data, "podSets", is_key=True)
    if inferred and len(inferred) != len(declared):
        message = Sentence(
            "`podSets` has {} items, but the {} has {} pod templates", len(declared), kind, len(inferred)
        )
        yield Violation(key, Sentence("{}; remove `podSets`, or list all", message))
        return
    for path, replicas, _ in inferred:
        if path not in declared:
            yield Violation(
                key, Sentence("`podSets` does not list `{}` of the {}; add it, or remove `podSets`", path, kind)
            )
            continue
        given = as_integer(declared[path].get("replicas"))
        found = 1 if given is None else given
        if found != replicas:
            message = Sentence("`replicas` of `{}` is `{}`, but the {} has {} pods", path, found, kind, replicas)
            place: Place = find_at(declared[path], "replicas") or declared[path]
            yield Violation(place, Sentence("{}; use the same number", message))


CHECKS: Checks = {"AppWrapper": (Check(REJECTED, _check_components),)}
