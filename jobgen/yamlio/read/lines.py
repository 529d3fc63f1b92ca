"""Lines of YAML of the plain sort: what each is by itself, and what they make together.

Whatever is not certain (anchors, tags, folded lines, doubtful keys) is left to the exact reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from jobgen.model.data import Data
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_DEPTH
from jobgen.yamlio.read.scalars import resolve, through_json

# Only the shape of a line is matched at once; what stands behind a key is judged on its own, and remembered.
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
# Most flow collections are a few words without nesting: one match judges them whole.
_ITEM = (
    r"""(?:(?:[A-Za-z0-9_./+=$^~]|-(?=[A-Za-z0-9_./-]))[A-Za-z0-9_./+=$^~-]*(?::[A-Za-z0-9_./+=$^~-]+)*|"[\w ./=-]*")"""
)
_FLAT_LIST = lazy_pattern(rf"\[ *{_ITEM}(?: *, *{_ITEM})* *\]\Z", re.ASCII)
_FLAT_MAP = lazy_pattern(
    rf"\{{ *[A-Za-z_][A-Za-z0-9_./!-]*: +{_ITEM}(?: *, *[A-Za-z_][A-Za-z0-9_./!-]*: +{_ITEM})* *\}}\Z", re.ASCII
)
_DOUBTFUL_KEYS = frozenset(
    "y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF null Null NULL".split()
)


class Row(NamedTuple):
    """A line: its column, that of what follows a dash, its key, its value; and whether the value is still to come."""

    column: int
    inner: int
    key: str
    value: Data
    waits: bool


_known: dict[str, Any] = {}
_KNOWN_LIMIT = 50_000
# Long lines are rarely said twice, and many of them would take much room.
_LONGEST = 500
_FLOW_LIMIT = 400
# Block and flow share one bound on depth; a value in brackets is at most as deep as it has of them.
_FLOW_DEPTH = 50
_BLOCK_DEPTH = MAX_DEPTH - _FLOW_DEPTH


class NotSureError(Exception):
    """The text may be fine, but it is not for this reader."""


class _Rows(dict[str, Row]):
    """What lines are: manifests say the same ones again and again, and each need be looked at once."""

    def __missing__(self, line: str) -> Row:
        row = _row(line)
        if len(line) <= _LONGEST:
            if len(self) > _KNOWN_LIMIT:
                self.clear()
            self[line] = row
        return row


row_of = _Rows().__getitem__


def _row(line: str) -> Row:
    """What a line is."""
    match = _LINE.match(line)
    if match is None:
        raise NotSureError
    indent, dash, key, rest, item = match.groups("")
    column = len(indent)
    inner = column + len(dash) if dash else -1
    if key in _DOUBTFUL_KEYS or (not key and not dash and item and item[0] != "#"):
        raise NotSureError
    waits = bool(key) and (not rest or rest[0] == "#")
    value = None if waits or not (key or dash) else _scalar(rest if key else item)
    return Row(column, inner, key, value, waits)


def build(rows: Iterable[Row]) -> Data:
    """The document that lines make."""
    root: Data = None
    # The open containers with their columns; `waiting` is the key whose value the next line may open.
    columns: list[int] = [-1]
    open_nodes: list[Any] = [None]
    waiting: tuple[Any, str, int] | None = None
    for row in rows:
        column, inner, key, value, waits = row
        if inner >= 0:
            node = _to_list(column, columns, open_nodes, waiting)
            waiting = None
            if not key:
                node.append(value)
                continue
            column = inner
            mapping: dict[str, Any] = {}
            node.append(mapping)
            columns.append(column)
            open_nodes.append(mapping)
        elif not key:
            continue
        else:
            if columns[-1] != column or type(open_nodes[-1]) is list:
                root = _to_map(column, columns, open_nodes, waiting, root)
            mapping = open_nodes[-1]
        if key in mapping:
            raise NotSureError
        mapping[key] = value
        waiting = (mapping, key, column) if waits else None
    return root


def _to_list(column: int, columns: list[int], open_nodes: list[Any], waiting: Any) -> list[Any]:
    """The list that a dash at this column belongs to, opened if a key is waiting for it."""
    while columns[-1] > column:
        columns.pop()
        open_nodes.pop()
    top: Any = open_nodes[-1]
    if type(top) is list and columns[-1] == column:
        return top
    if waiting is None or waiting[0] is not top or len(columns) > _BLOCK_DEPTH:
        raise NotSureError
    fresh: list[Any] = []
    top[waiting[1]] = fresh
    columns.append(column)
    open_nodes.append(fresh)
    return fresh


def _to_map(column: int, columns: list[int], open_nodes: list[Any], waiting: Any, root: Data) -> Data:
    """Make the mapping that a key at this column belongs to the innermost open one."""
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
        raise NotSureError
    if len(columns) > _BLOCK_DEPTH:
        raise NotSureError
    columns.append(column)
    open_nodes.append(fresh)
    return root


def _scalar(rest: str) -> Any:
    """The value of what stands behind a key or a dash, comment and all."""
    if rest in _known:
        return _known[rest]
    match = _REST.match(rest)
    if match is None:
        raise NotSureError
    flow, quoted, word = match.groups()
    # Documents are never changed once they are read, so equal texts may share one value.
    value = _flow(flow) if flow else quoted[1:-1] if quoted else through_json(resolve(word))
    if isinstance(value, float):
        # Rare, and where infinities hide: the exact reader decides.
        raise NotSureError
    if len(rest) <= _LONGEST:
        if len(_known) > _KNOWN_LIMIT:
            _known.clear()
        _known[rest] = value
    return value


def _flow(text: str) -> Any:
    """A one-line `[…]` or `{…}`."""
    if text.count("[") + text.count("{") > _FLOW_DEPTH:
        raise NotSureError
    if _FLAT_LIST.match(text):
        return [_scalar(item.strip(" ")) for item in text[1:-1].split(",")]
    if _FLAT_MAP.match(text):
        return _flat_map(text)
    tokens: list[tuple[str, str, str]] = []
    at = 0
    while at < len(text):
        match = _FLOW.match(text, at)
        if match is None:
            raise NotSureError
        tokens.append((match[1] or "", match[2] or "", match[3] or ""))
        at = match.end()
    value, rest = _flow_node(tokens, 0)
    if rest != len(tokens):
        raise NotSureError
    return value


def _flat_map(text: str) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for pair in text[1:-1].split(","):
        key, _, value = pair.strip(" ").partition(": ")
        if key in items or key in _DOUBTFUL_KEYS:
            raise NotSureError
        items[key] = _scalar(value.strip(" "))
    return items


def _flow_node(tokens: list[tuple[str, str, str]], at: int) -> tuple[Any, int]:
    if at >= len(tokens) or len(tokens) > _FLOW_LIMIT:
        raise NotSureError
    quoted, word, location = tokens[at]
    if quoted or word:
        if word.endswith(":") or (word[:1] == "-" and len(word) == 1):
            raise NotSureError
        return _scalar(quoted or word.rstrip(" ")), at + 1
    if location == "[":
        return _flow_list(tokens, at + 1)
    if location == "{":
        return _flow_map(tokens, at + 1)
    raise NotSureError


def _flow_list(tokens: list[tuple[str, str, str]], at: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    if at < len(tokens) and tokens[at][2] == "]":
        return items, at + 1
    while True:
        value, at = _flow_node(tokens, at)
        items.append(value)
        at = _flow_next(tokens, at, "]")
        if at < 0:
            return items, -at


def _flow_map(tokens: list[tuple[str, str, str]], at: int) -> tuple[dict[str, Any], int]:
    items: dict[str, Any] = {}
    if at < len(tokens) and tokens[at][2] == "}":
        return items, at + 1
    while True:
        quoted, word, _ = tokens[at] if at < len(tokens) else ("", "", "")
        if not quoted and (word in _DOUBTFUL_KEYS or not (word[:1].isalpha() or word[:1] == "_")):
            raise NotSureError
        key = quoted[1:-1] if quoted else word
        if key in items:
            raise NotSureError
        if at + 1 >= len(tokens) or tokens[at + 1][2] != ":":
            raise NotSureError
        items[key], at = _flow_node(tokens, at + 2)
        at = _flow_next(tokens, at, "}")
        if at < 0:
            return items, -at


def _flow_next(tokens: list[tuple[str, str, str]], at: int, end: str) -> int:
    """Past a comma; or, past the end, the position with its sign turned."""
    location = tokens[at][2] if at < len(tokens) else ""
    if location == end:
        return -(at + 1)
    if location != ",":
        raise NotSureError
    return at + 1
