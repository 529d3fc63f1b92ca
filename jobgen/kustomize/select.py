"""Select the objects that a patch or a replacement is for: by type, name, namespace, labels and annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.resource import Id, Resource
from jobgen.model.budget import Work, charge
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.re2 import BadPatternError, match_whole

_MAX_PATTERN = 1000
_MAX_SELECTOR = 2_000
_MATCH_STEPS = 80
"""The steps of a pattern that RE2 compiles."""


class PatternError(ValueError):
    """A pattern or a path that is invalid, or that is not supported; the text says which."""


def matches(text: str, pattern: str) -> bool:
    """Return True if a pattern matches a whole text; raise PatternError if it cannot be used."""
    return text in _match(pattern, frozenset((text,)))


def select_texts(pattern: str, texts: Iterable[str]) -> frozenset[str]:
    """Return those of some texts that a pattern matches as a whole; raise PatternError if it cannot be used."""
    return _match(pattern, frozenset(texts))


@lru_cache(maxsize=4096)
def _match(pattern: str, texts: frozenset[str]) -> frozenset[str]:
    """Return those of some texts that a pattern matches."""
    if len(pattern) > _MAX_PATTERN:
        raise PatternError(f"a pattern has more than {_MAX_PATTERN} characters")
    charge(Work.BUILD, _MATCH_STEPS + len(texts))
    try:
        return match_whole(pattern, texts)
    except BadPatternError as fault:
        raise PatternError(f"`{pattern}` is not a pattern: {fault}") from None


_WHOLE_NUMBER = lazy_pattern(r"-?[0-9]{1,18}\Z")
_REQUIREMENT = lazy_pattern(
    r"\s*(?:(?P<not>!\s*)?(?P<alone>[\w./-]+)\s*(?=,|\Z)|(?P<key>[\w./-]+)\s*"
    r"(?:(?P<sign>==|=|!=|>|<)\s*(?P<value>[\w.-]*)|(?P<word>in|notin)\s*\((?P<values>[\w.,\s-]*)\)))\s*(?:,|\Z)"
)


def select(resources: Iterable[Resource], selector: Mapping[str, Node]) -> list[Resource]:
    """Return the objects that the `target` of a patch selects, also by a name or namespace that they had."""
    wanted = {name: text_of(node) for name, node in selector.items()}
    ids = [(each, (each.original_id, each.id)) for each in resources]
    charge(Work.BUILD, 10 * len(ids))
    # Each pattern is compiled once for all objects.
    fitting: dict[str, frozenset[str]] = {}
    for name in ("group", "version", "kind", "name", "namespace"):
        pattern = wanted.get(name, "")
        if pattern:
            texts = frozenset(getattr(one, name) for _, both in ids for one in both)
            fitting[name] = _match(pattern, texts) | (texts & {pattern})

    def fits(name: str, text: str) -> bool:
        return name not in fitting or text in fitting[name]

    return [
        each
        for each, (original, now) in ids
        if all(fits(name, getattr(now, name)) for name in ("group", "version", "kind"))
        and (fits("name", original.name) or fits("name", now.name))
        and (fits("namespace", original.namespace) or fits("namespace", now.namespace))
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
    return _is_match([found], texts, "group", "version", "kind", "name", "namespace")


def _is_match(ids: Iterable[Id], wanted: Mapping[str, str], *names: str) -> bool:
    """Return True if one of some identities matches the patterns for all these parts."""
    for found in ids:
        pairs = ((getattr(found, name), wanted.get(name, "")) for name in names)
        if all(not pattern or text == pattern or matches(text, pattern) for text, pattern in pairs):
            return True
    return False


def matches_labels(labels: Mapping[str, Any], selector: str) -> bool:
    """Return True if labels match a selector such as `app=web,tier in (a, b)`; raise PatternError if it is invalid."""
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
    sign, wanted = parts["sign"] or "=", parts["value"] or ""
    if sign in ("<", ">"):
        if not all(_WHOLE_NUMBER.match(each) for each in (value or "", wanted)):
            return False
        return int(value or 0) > int(wanted) if sign == ">" else int(value or 0) < int(wanted)
    return (value == wanted) != (sign == "!=")
