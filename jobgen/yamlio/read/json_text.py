"""Read a stream of JSON values, as kubectl does for a file that begins with `{`."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from jobgen.model.data import Location, TracedKey, TracedList, TracedMapping, TracedScalar
from jobgen.model.finding import Finding, Related, Severity
from jobgen.model.lazy_re import lazy_pattern, possessive_pattern
from jobgen.model.limits import MAX_DEPTH, MAX_FINDINGS, MAX_NODES
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read.scalars import normalize_number, quote

_SPACE = lazy_pattern(r"[ \t\r\n]*")
_TOKEN = possessive_pattern(
    r"""[ \t\r\n]*(?:([\[\]{},:])
    |("[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")
    |(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
    |(true|false|null))""",
    re.VERBOSE,
)
_LITERALS = {"true": True, "false": False, "null": None}
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_ESCAPED_SURROGATE = lazy_pattern(r"\\u[dD][89a-fA-F]")
_MAX_READ_NODES = MAX_NODES // 2
"""The values of a document with faults that are read one by one."""
_INT64 = range(-(2**63), 2**63)


class JsonValue(NamedTuple):
    """One value of a stream: its data, its findings and its location."""

    data: Any
    findings: list[Finding]
    location: Location
    is_repaired: bool = False
    """True if a number that is too large was read as text."""


class NotJsonError(Exception):
    """The text is not JSON from this position on."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class _NotSimpleError(ValueError):
    """The fast decoder found something that only the exact one can read."""


class JsonStream:
    """Iterates over the values of a text; raises `NotJsonError` if the next one is invalid."""

    def __init__(self, text: str, file: str, *, traced: bool) -> None:
        self.text = text
        self.file = file
        self.traced = traced
        self.at = 0
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._may_be_large = _count_most(text, 0, len(text)) > MAX_NODES

    def __iter__(self) -> Iterator[JsonValue]:
        while (start := _skip_space(self.text, self.at)) < len(self.text):
            findings: list[Finding] = []
            # A large text with locations is read twice: its nodes are counted before each gets a location.
            found = _read_fast(self.text, start) if self._may_be_large or not self.traced else None
            if found is not None and _has_too_many_nodes(found[0], self.text, start, found[1]):
                findings.append(self._report_nodes(start))
                found = None, found[1]
            elif found is None or self.traced:
                found = self._read_exactly(start, findings, is_small=found is not None or not self._may_be_large)
            data, self.at = found
            yield JsonValue(data, findings, self.location(start, self.at), bool(findings))

    def _read_exactly(self, start: int, findings: list[Finding], *, is_small: bool) -> tuple[Any, int]:
        """Read a value token by token; one that `is_small` has no more nodes than are allowed."""
        reader = _Reader(self, start, findings, is_limited=not (is_small and self.traced))
        try:
            data = reader.value(reader.token())
        except _TooManyNodesError:
            findings.append(self._report_nodes(start))
            return None, len(self.text)
        except _TooManyFindingsError:
            return None, len(self.text)
        return data if reader.usable else None, reader.at

    def _report_nodes(self, start: int) -> Finding:
        message = f"the document has more than `{MAX_NODES}` nodes; split it into several files"
        return Finding("too-many-nodes", "yaml", Severity.ERROR, message, self.location(start, start + 1))

    def location(self, start: int, end: int) -> Location:
        """The location of a part of the text."""
        first, last = (bisect_right(self.line_starts, at) for at in (start, end))
        begins, ends = self.line_starts[first - 1], self.line_starts[last - 1]
        return Location(self.file, first, start - begins + 1, last, end - ends + 1)


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _read_fast(text: str, start: int) -> tuple[Any, int] | None:
    """Read a value with Python's decoder; return it and its end, or None if it may have findings."""
    try:
        data, end = _FAST.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    collections = text.count("[", start, end) + text.count("{", start, end)
    is_shallow = collections <= MAX_DEPTH or _count_levels(data) <= MAX_DEPTH
    return (data, end) if is_shallow and not _ESCAPED_SURROGATE.search(text, start, end) else None


def _count_levels(data: Any) -> int:
    """Count the levels of a value, up to one more than are allowed."""
    count, level = 0, [data]
    while level and count <= MAX_DEPTH:
        nested = [node for node in level if isinstance(node, (dict, list))]
        level = [each for node in nested for each in (node.values() if isinstance(node, dict) else node)]
        count += bool(nested)
    return count


def _has_too_many_nodes(data: Any, text: str, start: int, end: int) -> bool:
    """Return True if a document has too many nodes; the items of a list of objects are documents of their own."""
    if _count_most(text, start, end) <= MAX_NODES:
        return False
    is_list = isinstance(data, dict) and str(data.get("kind")).endswith("List") and isinstance(data.get("items"), list)
    return any(_count_nodes(each) > MAX_NODES for each in (data["items"] if is_list else [data]))


def _count_most(text: str, start: int, end: int) -> int:
    """Return the most nodes that a part of a text can have, by its signs."""
    return 1 + sum(times * text.count(sign, start, end) for sign, times in ((",", 1), (":", 1), ("[", 2), ("{", 2)))


def _count_nodes(data: Any) -> int:
    """Count the keys, values and collections of a value, up to one more than are allowed."""
    count, below = 0, [data]
    while below and count <= MAX_NODES:
        node = below.pop()
        count += 1
        if isinstance(node, dict):
            count += len(node)
            below += node.values()
        elif isinstance(node, list):
            below += node
    return count


class _TooManyNodesError(Exception):
    """A document with faults has more nodes than are read one by one."""


class _TooManyFindingsError(Exception):
    """A document has more faults than are reported, so the rest of it is not read."""


def _to_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _NotSimpleError
    return mapping


def _parse_int(digits: str) -> Any:
    # Longer numbers do not fit 64 bits, and Python limits the digits that it converts.
    number = int(digits) if len(digits) < 40 else None
    return number if number is not None and number in _INT64 else _parse_float(digits)


def _parse_float(digits: str) -> Any:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _NotSimpleError
    return normalize_number(number)


def _reject_constant(name: str) -> Any:
    raise _NotSimpleError(name)


_FAST = json.JSONDecoder(
    object_pairs_hook=_to_mapping, parse_constant=_reject_constant, parse_int=_parse_int, parse_float=_parse_float
)


class _Reader:
    """Reads a value token by token. Nesting recurses, up to the limit of depth."""

    def __init__(self, stream: JsonStream, start: int, findings: list[Finding], *, is_limited: bool) -> None:
        self.text = stream.text
        self.location = stream.location
        self.traced = stream.traced
        self.at = start
        self.depth = 0
        self.findings = findings
        self.usable = True
        self.is_limited = is_limited
        self.left = _MAX_READ_NODES

    def token(self) -> re.Match[str]:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise NotJsonError(_skip_space(self.text, self.at))
        self.at = match.end()
        return match

    def spend(self) -> None:
        """Count a value that is read."""
        self.left -= 1
        if self.left < 0 and (self.findings or self.is_limited):
            raise _TooManyNodesError

    def report(self, finding: Finding) -> None:
        """Add a finding; the last one only shows that there are too many."""
        self.findings.append(finding)
        if len(self.findings) > MAX_FINDINGS:
            raise _TooManyFindingsError

    def value(self, token: re.Match[str]) -> Any:
        self.spend()
        sign, string, number, literal = token.groups()
        if sign == "{":
            return self.nested(token, self.mapping)
        if sign == "[":
            return self.nested(token, self.sequence)
        if sign:
            raise NotJsonError(self.at - 1)
        if string:
            value: Any = _decode_string(string)
        else:
            value = self.number(token) if number else _LITERALS[literal]
        return TracedScalar(value, self.location(*token.span(token.lastindex or 0))) if self.traced else value

    def nested(self, token: re.Match[str], read: Callable[[], Any]) -> Any:
        self.depth += 1
        if self.depth == MAX_DEPTH + 1:
            self.error("nesting-too-deep", token.start(1), f"this is nested more than `{MAX_DEPTH}` levels deep")
        data = read() if self.depth <= MAX_DEPTH else self.skip()
        self.depth -= 1
        return data

    def mapping(self) -> Any:
        found: dict[str, Any] = {}
        start = self.at - 1
        seen: dict[str, Location] = {}
        for token in self.items("}"):
            if not token[2]:
                raise NotJsonError(_skip_space(self.text, token.start()))
            key, location = _decode_string(token[2]), self.location(token.start(2), token.end(2))
            self.expect(":")
            if key in seen:
                message = f"{quote(key)} is set twice in one mapping; Kubernetes keeps only the last one; remove one"
                related = (Related(seen[key], "first set here"),)
                self.report(Finding("duplicate-key", "yaml", Severity.ERROR, message, location, related=related))
                del found[key]
            seen[key] = location
            found[TracedKey.at(key, location) if self.traced else key] = self.value(self.token())
        return TracedMapping(self.location(start, start + 1)) if self.traced and not found else found

    def sequence(self) -> Any:
        found: list[Any] = TracedList([], self.location(self.at - 1, self.at)) if self.traced else []
        for token in self.items("]"):
            if isinstance(found, TracedList):
                found.item_locations.append(self.location(*token.span(token.lastindex or 0)))
            found.append(self.value(token))
        return found

    def items(self, end: str) -> Iterator[re.Match[str]]:
        """Yield the first token of each item of a collection, up to its end."""
        token = self.token()
        while token[1] != end:
            yield token
            if self.expect(f",{end}") == end:
                return
            token = self.token()
            if token[1] == end:
                raise NotJsonError(token.start(1))

    def expect(self, signs: str) -> str:
        token = self.token()
        if not token[1] or token[1] not in signs:
            raise NotJsonError(_skip_space(self.text, token.start()))
        return token[1]

    def skip(self) -> Any:
        """Skip a collection that is nested too deep."""
        depth = 1
        while depth:
            sign = self.token()[1]
            if sign not in (",", ":"):
                self.spend()
            depth += (sign in ("{", "[")) - (sign in ("}", "]"))
        return None

    def number(self, token: re.Match[str]) -> Any:
        try:
            return _parse_float(token[3]) if set(token[3]) & set(".eE") else _parse_int(token[3])
        except _NotSimpleError:
            message = f"{quote(token[3])} is too large for a number"
            place = self.location(token.start(3), token.end(3))
            self.report(Finding("non-finite-number", "yaml", Severity.ERROR, message, place))
            return token[3]

    def error(self, rule: str, at: int, message: str) -> None:
        self.usable = False
        self.report(Finding(rule, "yaml", Severity.ERROR, message, self.location(at, at + 1)))


def _decode_string(token: str) -> str:
    """Decode a string token; lone surrogates become U+FFFD, as in Go."""
    return _SURROGATE.sub("\ufffd", json.loads(token))
