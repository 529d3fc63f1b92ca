"""The fast reader: simple block YAML, line by line.

It gives up on anything that it is not certain of (anchors, tags, folded lines, ambiguous keys), and the exact reader
takes over. A property test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_DEPTH, MAX_NODES
from jobgen.yamlio.read.scalars import normalize_number, resolve

# Matches only the shape of a line; the text after a key is parsed separately, and memoized.
_LINE = lazy_pattern(r"( *)(- +)?(?:([A-Za-z_][A-Za-z0-9_./!-]{0,200}):(?: +([^\n]*))?|([^\n]*))\Z")
_REST = lazy_pattern(
    r"""(\[[^\n#]{0,1000}\]|\{[^\n#]{0,1000}\})\ *(?:\ \#.*)?\Z
    |("[^"\\]*"|'[^']*')\ *(?:\ \#.*)?\Z
    |((?:[A-Za-z0-9_./~^+=$();\\]|[-<](?=[^\s<]))(?:[^:\#\ ]|:(?=[^\ ])|(?<=[^\ ])\#|\ ++(?=[^\ \#]))*+)
    \ *(?:\ \#.*)?\Z""",
    re.VERBOSE,
)
_FLOW = lazy_pattern(
    r"""\ *(?:
    ("[^"\\]*"|'[^']*')
    |([A-Za-z0-9_./+=$^~();\\-](?:[^,\[\]{}:\#&*|>'"%@`?\ ]|\ (?=[^\ ,\[\]{}:\#])|:(?=[^\ ,\[\]{}]))*)
    |([\[\]{},]|(?<!\ ):(?=\ ))
    )""",
    re.VERBOSE,
)
# Most flow collections are a few words without nesting, which one match recognizes.
_ITEM = (
    r"""(?:(?:[A-Za-z0-9_./+=$^~]|-(?=[A-Za-z0-9_./-]))[A-Za-z0-9_./+=$^~-]*(?::[A-Za-z0-9_./+=$^~-]+)*|"[\w ./=-]*")"""
)
_FLAT_LIST = lazy_pattern(rf"\[ *{_ITEM}(?: *, *{_ITEM})* *\]\Z", re.ASCII)
_FLAT_MAPPING = lazy_pattern(
    rf"\{{ *[A-Za-z_][A-Za-z0-9_./!-]*: +{_ITEM}(?: *, *[A-Za-z_][A-Za-z0-9_./!-]*: +{_ITEM})* *\}}\Z", re.ASCII
)
_AMBIGUOUS_KEYS = frozenset(
    "y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF null Null NULL".split()
)


class _Line(NamedTuple):
    """A parsed line: column, column after a dash (-1 without one), key, value, and whether the value follows."""

    column: int
    inner: int
    key: str
    value: Any
    is_open: bool


_values: dict[str, Any] = {}
_MAX_MEMOIZED = 50_000
# Long lines rarely repeat, and would take much memory.
_MAX_MEMOIZED_LENGTH = 500
_MAX_FLOW_TOKENS = 400
# Block and flow collections share one limit of depth; a flow collection is at most as deep as it has brackets.
_FLOW_DEPTH = 50
_BLOCK_DEPTH = MAX_DEPTH - _FLOW_DEPTH

# A line has a key and a value; the exact reader counts the nodes of longer documents.
_MAX_LINES = MAX_NODES // 2


class _UncertainError(Exception):
    """The text may be valid, but only the exact reader can tell."""


class _Lines(dict[str, _Line]):
    """Parsed lines by their text: manifests repeat many lines."""

    def __missing__(self, text: str) -> _Line:
        line = _parse(text)
        if len(text) <= _MAX_MEMOIZED_LENGTH:
            if len(self) > _MAX_MEMOIZED:
                self.clear()
            self[text] = line
        return line


_parse_line = _Lines().__getitem__


def _parse(text: str) -> _Line:
    match = _LINE.match(text)
    if match is None:
        raise _UncertainError
    indent, dash, key, rest, item = match.groups("")
    column = len(indent)
    inner = column + len(dash) if dash else -1
    if key in _AMBIGUOUS_KEYS or (not key and not dash and item and item[0] != "#"):
        raise _UncertainError
    is_open = bool(key) and (not rest or rest[0] == "#")
    value = None if is_open or not (key or dash) else _parse_value(rest if key else item)
    return _Line(column, inner, key, value, is_open)


# The line above a block scalar: before `|` it is a line like any other.
_BLOCK_HEADER = lazy_pattern(r"((?: *- )? *(?:[A-Za-z_][A-Za-z0-9_./!-]{0,200}: +)?)\|(-?)\Z")


def read_lines(text: str) -> tuple[bool, Any]:
    """Read a document if it is simple enough; return whether it is, and its data."""
    if not text.replace("\n", " ").isprintable() or text.count("\n") > _MAX_LINES:
        return False, None
    try:
        return True, _build(_parse_lines(text.split("\n")))
    except _UncertainError:
        return False, None


def _parse_lines(lines: list[str]) -> Iterable[_Line]:
    """Parse lines; a block scalar (`|` or `|-`) becomes the value of the line above it."""
    headers = [at for at, line in enumerate(lines) if line.endswith(("|", "|-"))]
    if not headers:
        return map(_parse_line, lines)
    parsed: list[_Line] = []
    done = 0
    for at in headers:
        header = _BLOCK_HEADER.match(lines[at])
        if header is None or at < done:
            # A line inside a block scalar may end in `|`, too.
            continue
        parsed += map(_parse_line, lines[done:at])
        line = _parse_line(f'{header[1]}""')
        done = _end_of_block(lines, at + 1, line.inner if line.key and line.inner >= 0 else line.column)
        parsed.append(line._replace(value=_join_block(lines[at + 1 : done]) + ("" if header[2] else "\n")))
    parsed += map(_parse_line, lines[done:])
    return parsed


def _end_of_block(lines: list[str], start: int, parent: int) -> int:
    """The line after a block scalar, which ends at the first line that is indented less than its first."""
    first = next((at for at in range(start, len(lines)) if lines[at]), len(lines))
    indent = _indent(lines[first]) if first < len(lines) else ""
    if len(indent) <= parent:
        raise _UncertainError
    for at in range(first, len(lines)):
        line = lines[at]
        if line.isspace() and len(line) > len(indent):
            raise _UncertainError
        if not line.startswith(indent) and line.strip(" "):
            return at
    return len(lines)


def _join_block(lines: list[str]) -> str:
    indent = len(_indent(next(filter(None, lines))))
    return "\n".join(line[indent:] for line in lines).rstrip("\n")


def _indent(line: str) -> str:
    if line.isspace():
        raise _UncertainError
    return line[: len(line) - len(line.lstrip(" "))]


def _build(lines: Iterable[_Line]) -> Any:
    """Build the document of parsed lines."""
    root: Any = None
    # The open collections with their columns; `waiting` is the key whose value the next line may open.
    columns: list[int] = [-1]
    open_nodes: list[Any] = [None]
    waiting: tuple[Any, str, int] | None = None
    for column, inner, key, value, is_open in lines:
        if inner >= 0:
            node = _select_list(column, columns, open_nodes, waiting)
            waiting = None
            if not key:
                node.append(value)
                continue
            indent = inner
            mapping: dict[str, Any] = {}
            node.append(mapping)
            columns.append(indent)
            open_nodes.append(mapping)
        elif not key:
            continue
        else:
            indent = column
            if columns[-1] != column or type(open_nodes[-1]) is list:
                root = _select_mapping(column, columns, open_nodes, waiting, root)
            mapping = open_nodes[-1]
        if key in mapping:
            raise _UncertainError
        mapping[key] = value
        waiting = (mapping, key, indent) if is_open else None
    return root


def _select_list(column: int, columns: list[int], open_nodes: list[Any], waiting: Any) -> list[Any]:
    """The list that a dash at this column belongs to; a new one if a key is waiting for it."""
    while columns[-1] > column:
        columns.pop()
        open_nodes.pop()
    top: Any = open_nodes[-1]
    if type(top) is list and columns[-1] == column:
        return top
    if waiting is None or waiting[0] is not top or len(columns) > _BLOCK_DEPTH:
        raise _UncertainError
    fresh: list[Any] = []
    top[waiting[1]] = fresh
    columns.append(column)
    open_nodes.append(fresh)
    return fresh


def _select_mapping(column: int, columns: list[int], open_nodes: list[Any], waiting: Any, root: Any) -> Any:
    """Make the mapping that a key at this column belongs to the innermost open one; return the root."""
    while columns[-1] > column or (columns[-1] == column and type(open_nodes[-1]) is list):
        columns.pop()
        open_nodes.pop()
    top = open_nodes[-1]
    if columns[-1] == column:
        return root
    fresh: dict[str, Any] = {}
    if root is None:
        root = fresh
    elif waiting is not None and waiting[0] is top and column > waiting[2]:
        top[waiting[1]] = fresh
    else:
        raise _UncertainError
    if len(columns) > _BLOCK_DEPTH:
        raise _UncertainError
    columns.append(column)
    open_nodes.append(fresh)
    return root


def _parse_value(rest: str) -> Any:
    """Parse the text after a key or a dash, with its comment."""
    if rest in _values:
        return _values[rest]
    match = _REST.match(rest)
    if match is None:
        raise _UncertainError
    flow, quoted, word = match.groups()
    # Documents are not changed after reading, so equal texts may share one value.
    value = _parse_flow(flow) if flow else quoted[1:-1] if quoted else normalize_number(resolve(word))
    if isinstance(value, float):
        # Floats are rare and may be infinite: the exact reader decides.
        raise _UncertainError
    if len(rest) <= _MAX_MEMOIZED_LENGTH:
        if len(_values) > _MAX_MEMOIZED:
            _values.clear()
        _values[rest] = value
    return value


def _parse_flow(text: str) -> Any:
    """Parse a `[…]` or `{…}` on one line."""
    if text.count("[") + text.count("{") > _FLOW_DEPTH:
        raise _UncertainError
    if _FLAT_LIST.match(text):
        return [_parse_value(item.strip(" ")) for item in text[1:-1].split(",")]
    if _FLAT_MAPPING.match(text):
        return _parse_flat_mapping(text)
    tokens: list[tuple[str, str, str]] = []
    at = 0
    while at < len(text):
        match = _FLOW.match(text, at)
        if match is None:
            raise _UncertainError
        tokens.append((match[1] or "", match[2] or "", match[3] or ""))
        at = match.end()
    value, rest = _parse_flow_node(tokens, 0)
    if rest != len(tokens):
        raise _UncertainError
    return value


def _parse_flat_mapping(text: str) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for pair in text[1:-1].split(","):
        key, _, value = pair.strip(" ").partition(": ")
        if key in items or key in _AMBIGUOUS_KEYS:
            raise _UncertainError
        items[key] = _parse_value(value.strip(" "))
    return items


def _parse_flow_node(tokens: list[tuple[str, str, str]], at: int) -> tuple[Any, int]:
    if at >= len(tokens) or len(tokens) > _MAX_FLOW_TOKENS:
        raise _UncertainError
    quoted, word, bracket = tokens[at]
    if quoted or word:
        if word.endswith(":") or (word[:1] == "-" and len(word) == 1):
            raise _UncertainError
        return _parse_value(quoted or word.rstrip(" ")), at + 1
    if bracket == "[":
        return _parse_flow_list(tokens, at + 1)
    if bracket == "{":
        return _parse_flow_mapping(tokens, at + 1)
    raise _UncertainError


def _parse_flow_list(tokens: list[tuple[str, str, str]], at: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    if at < len(tokens) and tokens[at][2] == "]":
        return items, at + 1
    while True:
        value, at = _parse_flow_node(tokens, at)
        items.append(value)
        at = _skip_comma(tokens, at, "]")
        if at < 0:
            return items, -at


def _parse_flow_mapping(tokens: list[tuple[str, str, str]], at: int) -> tuple[dict[str, Any], int]:
    items: dict[str, Any] = {}
    if at < len(tokens) and tokens[at][2] == "}":
        return items, at + 1
    while True:
        quoted, word, _ = tokens[at] if at < len(tokens) else ("", "", "")
        if not quoted and (word in _AMBIGUOUS_KEYS or not (word[:1].isalpha() or word[:1] == "_")):
            raise _UncertainError
        key = quoted[1:-1] if quoted else word
        if key in items:
            raise _UncertainError
        if at + 1 >= len(tokens) or tokens[at + 1][2] != ":":
            raise _UncertainError
        items[key], at = _parse_flow_node(tokens, at + 2)
        at = _skip_comma(tokens, at, "}")
        if at < 0:
            return items, -at


def _skip_comma(tokens: list[tuple[str, str, str]], at: int, end: str) -> int:
    """The position after a comma; after the end of the collection, the negated position."""
    bracket = tokens[at][2] if at < len(tokens) else ""
    if bracket == end:
        return -(at + 1)
    if bracket != ",":
        raise _UncertainError
    return at + 1
