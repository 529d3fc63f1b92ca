"""Select the objects that a patch or a replacement is for: by type, name, namespace, labels and annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.resource import Id, Resource
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_Part: TypeAlias = Callable[[str, frozenset[int]], frozenset[int]]
"""A part of a pattern: the positions after it in a text, for some positions before it."""
_MAX_PATTERN = 1000
_MAX_REPEAT = 100
_MAX_INNER = 10
_MAX_LOOPS = 3
_MAX_SELECTOR = 2_000
_CLASSES: dict[str, Callable[[str], bool]] = {
    "d": lambda char: char in "0123456789",
    "w": lambda char: char.isascii() and (char.isalnum() or char == "_"),
    "s": lambda char: char in "\t\n\f\r ",
}


class PatternError(ValueError):
    """A pattern or a path that is invalid, or that is not supported; the text says which."""


def matches(text: str, pattern: str) -> bool:
    """Return True if a pattern matches a whole text; raise PatternError if it cannot be used."""
    if len(text) > 1000:
        raise PatternError("a name is too long to be matched")
    return len(text) in _compile(pattern)(text, frozenset((0,)))


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> _Part:
    if len(pattern) > _MAX_PATTERN:
        raise PatternError(f"a pattern has more than {_MAX_PATTERN} characters")
    parser = _Parser(pattern)
    part = parser.alternatives()
    if parser.at < len(pattern):
        raise PatternError(f"`{pattern}` has a `)` without `(`")
    return part


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.loops = 0
        """Repetitions in each other, in the part that was read last."""

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def alternatives(self) -> _Part:
        parts = [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else lambda text, at: frozenset().union(*(part(text, at) for part in parts))

    def sequence(self) -> _Part:
        parts: list[_Part] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated())
        return lambda text, at: _run_all(parts, text, at)

    def repeated(self) -> _Part:
        outside, self.loops = self.loops, 0
        part = self.single()
        while (least_most := self.quantifier()) is not None:
            self.take("?")  # What matches is the same if the match is lazy.
            self.loops += 1
            if self.loops > _MAX_LOOPS:
                raise PatternError(f"`{self.pattern}` has more than {_MAX_LOOPS} nested repetitions")
            if self.loops > 1 and max(least_most[0], least_most[1] or 0) > _MAX_INNER:
                raise PatternError(f"`{self.pattern}` repeats a repetition more than {_MAX_INNER} times")
            part = _repeat(part, *least_most)
        self.loops = max(outside, self.loops)
        return part

    def quantifier(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        end = self.pattern.find("}", self.at)
        least, comma, most = self.pattern[self.at + 1 : end].partition(",")
        if self.peek() != "{" or end < 0 or not least.isdecimal() or not (most.isdecimal() or not most):
            return None
        if max(int(least), int(most or 0)) > _MAX_REPEAT:
            raise PatternError(f"`{self.pattern}` repeats more than {_MAX_REPEAT} times")
        self.at = end + 1
        return int(least), (int(most) if most else None) if comma else int(least)

    def single(self) -> _Part:
        char = self.peek()
        self.at += 1
        if char == "(":
            if self.peek() == "?" and not self.take("?:"):
                raise PatternError(f"`{self.pattern}` has a group that jobgen does not support")
            part = self.alternatives()
            if not self.take(")"):
                raise PatternError(f"`{self.pattern}` has a `(` without `)`")
            return part
        if char in ("^", "$"):
            return lambda text, at: at & {0 if char == "^" else len(text)}
        if char in ("*", "+", "?"):
            raise PatternError(f"`{self.pattern}` has nothing to repeat before `{char}`")
        if char == ".":
            return _match_one(lambda found: found != "\n")
        if char == "[":
            return _match_one(self.character_class())
        return _match_one(self.escape() if char == "\\" else lambda found: found == char)

    def escape(self) -> Callable[[str], bool]:
        char = self.peek()
        self.at += 1
        if char.lower() in _CLASSES:
            inside = _CLASSES[char.lower()]
            return inside if char.islower() else lambda found: not inside(found)
        if not char or char.isalnum():
            raise PatternError(f"`{self.pattern}` has an escape that jobgen does not support")
        return lambda found: found == char

    def character_class(self) -> Callable[[str], bool]:
        tests: list[Callable[[str], bool]] = []
        negated = self.take("^")
        while not self.take("]") or not tests:
            char = "]" if self.pattern[self.at - 1] == "]" and not tests else self.peek()
            self.at += 0 if char == "]" else 1
            if not char or self.pattern.startswith("[:", self.at - 1):
                raise PatternError(f"`{self.pattern}` has a set that jobgen does not support")
            if char == "\\":
                tests.append(self.escape())
            elif self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("", "]", "\\"):
                last = self.pattern[self.at + 1]
                self.at += 2
                tests.append(_in_range(char, last))
            else:
                tests.append(_in_range(char, char))
        return lambda found: any(test(found) for test in tests) != negated


def _in_range(first: str, last: str) -> Callable[[str], bool]:
    return lambda found: first <= found <= last


def _match_one(test: Callable[[str], bool]) -> _Part:
    return lambda text, at: frozenset(each + 1 for each in at if each < len(text) and test(text[each]))


def _run_all(parts: Iterable[_Part], text: str, at: frozenset[int]) -> frozenset[int]:
    for part in parts:
        if not at:
            break
        at = part(text, at)
    return at


def _repeat(part: _Part, least: int, most: int | None) -> _Part:
    def run(text: str, at: frozenset[int]) -> frozenset[int]:
        at = _run_all([part] * least, text, at)
        reached, new = at, at
        count = least
        while new and (most is None or count < most):
            new = part(text, new) - reached
            reached |= new
            count += 1
        return reached

    return run


_WHOLE_NUMBER = lazy_pattern(r"-?[0-9]{1,18}\Z")
_REQUIREMENT = lazy_pattern(
    r"\s*(?:(?P<not>!\s*)?(?P<alone>[\w./-]+)\s*(?=,|\Z)|(?P<key>[\w./-]+)\s*"
    r"(?:(?P<sign>==|=|!=|>|<)\s*(?P<value>[\w.-]*)|(?P<word>in|notin)\s*\((?P<values>[\w.,\s-]*)\)))\s*(?:,|\Z)"
)


def select(resources: Iterable[Resource], selector: Mapping[str, Node]) -> list[Resource]:
    """Return the objects that the `target` of a patch selects, also by a name or namespace that they had."""
    wanted = {name: text_of(node) for name, node in selector.items()}
    return [
        each
        for each in resources
        if _is_match([each.id], wanted, "group", "version", "kind")
        and _is_match([each.original_id, each.id], wanted, "name")
        and _is_match([each.original_id, each.id], wanted, "namespace")
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
