"""Locked fields of pods in objects of kinds that jobgen does not know: fields of pods beside others, and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobgen.k8s.embedded import Parameters, fill, is_embedded, list_parameters, read_embedded
from jobgen.k8s.kinds import BUILTIN_GROUPS, get_group
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.k8s.object_paths import is_app_wrapper
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.data import Node, text_of, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.spec.field_patterns import MainContainer, Pattern, find_first
from jobgen.spec.kinds import Kind

_CONTAINERS = ("container", "script", "mainContainer", "model")
"""Fields with the container of a pod that has one, as in a template of a Workflow or an InferenceService."""
_OTHERS = frozenset(
    """annotations binaryData containers data initContainers labels matchLabels metadata parameters sidecars
    stringData volumeClaimTemplates volumes""".split()
)
"""Fields below which no field is one of a pod, or only one of other containers."""
_WITHOUT_PODS = frozenset(("kueue.x-k8s.io",))
"""Groups whose kinds have fields with these names for nodes."""
_SPARK = (
    (lazy_pattern(r"spark\.kubernetes\.(?:driver\.|executor\.)?node\.selector\.(.+)"), ("spec", "nodeSelector")),
    (lazy_pattern(r"spark\.kubernetes\.(?:driver|executor)\.(?:pod\.)?label\.(.+)"), ("metadata", "labels")),
    (lazy_pattern(r"spark\.kubernetes\.(?:driver|executor)\.annotation\.(.+)"), ("metadata", "annotations")),
    (
        lazy_pattern(r"spark\.kubernetes\.authenticate\.(?:\w+\.)*()serviceAccountName\Z"),
        ("spec", "serviceAccountName"),
    ),
    (lazy_pattern(r"spark\.kubernetes\.(?:driver\.|executor\.)?scheduler\.name()\Z"), ("spec", "schedulerName")),
    (lazy_pattern(r"spark\.kubernetes\.(?:driver\.|executor\.)?container\.image()\Z"), ("image",)),
)
"""Settings of Spark, and the fields of a pod that they set; the group is the last step, if there is one."""


def find_embedded(obj: Mapping[str, Any], template: tuple[Pattern, ...], kinds: Iterable[Kind]) -> Iterator[Node]:
    """Yield what sets a field of a pod: a key, or the text that does. The patterns start at a pod template.

    Kinds whose pods are known have none elsewhere.
    """
    api_version, kind = str(value_of(obj.get("apiVersion"))), str(value_of(obj.get("kind")))
    group = get_group(api_version)
    is_known = group in BUILTIN_GROUPS or group in _WITHOUT_PODS or list_template_paths(group, kind)
    if not (is_known or is_app_wrapper(obj) or any(each.describes(api_version, kind) for each in kinds)):
        yield from _find_in_object(obj, template)


def _find_in_object(obj: Mapping[str, Any], template: tuple[Pattern, ...]) -> Iterator[Node]:
    (patterns, of_container), parameters = _list_patterns(template), list_parameters(obj)
    below: list[Node] = [value for key, value in obj.items() if key != "metadata"]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += reversed(node)
        if not isinstance(node, dict):
            continue
        known = (*patterns, *of_container) if "image" in node else patterns
        found = find_first(node, known, merged=False)
        if found is not None:
            yield found.node
        yield from _find_in_text(node, template, parameters)
        for name in as_mapping(node.get("sparkConf")):
            if any(find_first(tree, (*template, *of_container), merged=False) for tree in _read_setting(str(name))):
                yield name
        spec = as_mapping(node.get("spec"))
        # A pod template has places of its own.
        is_template = isinstance(spec.get("containers"), list)
        below += (
            value for key, value in reversed(node.items()) if key not in _OTHERS and not (is_template and key == "spec")
        )


def _list_patterns(template: tuple[Pattern, ...]) -> tuple[tuple[Pattern, ...], tuple[Pattern, ...]]:
    """Return the patterns for a mapping that has the fields of a pod, and for one that has those of a container."""
    found: list[Pattern] = []
    of_container: list[Pattern] = []
    for pattern in template:
        match pattern:
            case ("spec", "containers", MainContainer(), *rest) if rest:
                of_container.append(tuple(rest))
                found += ((field, *rest) for field in _CONTAINERS)
            case ("spec", *rest) if rest:
                found.append(tuple(rest))
            case ("metadata", *rest) if rest:
                found += (("podMetadata", *rest), ("metadata", *rest))
    return tuple(found), tuple(of_container)


def _find_in_text(node: Mapping[str, Any], template: tuple[Pattern, ...], parameters: Parameters) -> Iterator[Node]:
    for key, value in node.items():
        text = fill(text_of(value), parameters)
        if not text or not is_embedded(key, text):
            continue
        for document in read_embedded(text) or ():
            tree = {"spec": document} if key == "podSpecPatch" else document
            inside = [tree] if key == "podSpecPatch" else [*_list_templates(tree)]
            if any(find_first(each, template, merged=False) for each in inside) or (
                key != "podSpecPatch" and next(_find_in_object(tree, template), None) is not None
            ):
                yield value
                break


def _list_templates(obj: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what has the form of a pod template in an object, which may be a Pod itself."""
    below: list[Any] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, dict):
            if as_list(as_mapping(node.get("spec")).get("containers")):
                yield node
            below += node.values()
        elif isinstance(node, list):
            below += node


def _read_setting(name: str) -> Iterator[Mapping[str, Any]]:
    for pattern, path in _SPARK:
        found = pattern.match(name)
        if found:
            tree: Any = "set"
            for step in reversed((*path, found[1]) if found[1] else path):
                tree = {step: tree}
            yield tree
