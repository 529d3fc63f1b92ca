"""Select the objects that a patch or a replacement is for: by type, name, namespace, labels and annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.patterns import PatternError, matches
from jobgen.kustomize.resource import Id, Resource
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_REQUIREMENT = lazy_pattern(
    r"\s*(?:(?P<not>!\s*)?(?P<alone>[\w./-]+)\s*(?=,|\Z)|(?P<key>[\w./-]+)\s*"
    r"(?:(?P<sign>==|=|!=|>|<)\s*(?P<value>[\w.-]*)|(?P<word>in|notin)\s*\((?P<values>[\w.,\s-]*)\)))\s*(?:,|\Z)"
)


def select(resources: Iterable[Resource], selector: Mapping[str, Node]) -> list[Resource]:
    """Return the objects that the `target` of a patch selects, also by a name or namespace that they had.

    Raises:
        PatternError: a pattern or a selector cannot be used.

    """
    wanted = {name: text_of(node) for name, node in selector.items()}
    return [
        each
        for each in resources
        if _is_type(each.id, wanted)
        and any(_is_match(found.name, wanted, "name") for found in (each.original_id, each.id))
        and any(_is_match(found.namespace, wanted, "namespace") for found in (each.original_id, each.id))
        and has_selected_metadata(each, wanted)
    ]


def has_selected_metadata(resource: Resource, wanted: Mapping[str, Node]) -> bool:
    """Return True if labels and annotations match the selectors for them."""
    fields = (("labels", "labelSelector"), ("annotations", "annotationSelector"))
    return all(
        matches_labels(as_mapping(resource.metadata.get(field)), text_of(wanted.get(name))) for field, name in fields
    )


def is_selected(found: Id, wanted: Mapping[str, Node]) -> bool:
    """Return True if an identity matches the patterns of a selector."""
    texts = {name: text_of(node) for name, node in wanted.items()}
    return (
        _is_type(found, texts)
        and _is_match(found.name, texts, "name")
        and _is_match(found.namespace, texts, "namespace")
    )


def _is_type(found: Id, wanted: Mapping[str, str]) -> bool:
    return all(_is_match(getattr(found, name), wanted, name) for name in ("group", "version", "kind"))


def _is_match(text: str, wanted: Mapping[str, str], name: str) -> bool:
    pattern = wanted.get(name)
    return not pattern or text == pattern or matches(text, pattern)


_MAX_SELECTOR = 2_000


def matches_labels(labels: Mapping[str, Any], selector: str) -> bool:
    """Return True if labels match a selector such as `app=web,tier in (a, b)`.

    Raises:
        PatternError: the selector is invalid.

    """
    if len(selector) > _MAX_SELECTOR:
        raise PatternError(f"the selector has more than {_MAX_SELECTOR} characters")
    at = 0
    result = True
    while at < len(selector.rstrip()):
        match = _REQUIREMENT.match(selector, at)
        if match is None:
            raise PatternError(f"`{selector}` is not a label selector")
        result = result and _meets(labels, match.groupdict())
        at = match.end()
    return result


def _meets(labels: Mapping[str, Any], parts: Mapping[str, str | None]) -> bool:
    key = parts["alone"] or parts["key"] or ""
    value = text_of(labels[key]) if key in labels else None
    if parts["alone"]:
        return (value is None) == bool(parts["not"])
    if parts["word"]:
        listed = [each.strip() for each in (parts["values"] or "").split(",")]
        return (value in listed) == (parts["word"] == "in")
    return _SIGNS[parts["sign"] or "="](value, parts["value"] or "")


def _is_number(text: str | None) -> bool:
    return text is not None and text.lstrip("-").isdecimal() and len(text) < 20


_SIGNS: dict[str, Callable[[str | None, str], bool]] = {
    "=": lambda value, wanted: value == wanted,
    "==": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    ">": lambda value, wanted: _is_number(value) and _is_number(wanted) and int(value or 0) > int(wanted),
    "<": lambda value, wanted: _is_number(value) and _is_number(wanted) and int(value or 0) < int(wanted),
}
