"""The fast reader: simple YAML, line by line.

It gives up on anything that it is not certain of (anchors, tags, plain text on several lines, ambiguous keys), and the
exact reader takes over. A property test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.lazy_re import lazy_pattern, possessive_pattern
from jobgen.model.limits import MAX_DEPTH, MAX_NODES
from jobgen.yamlio.read.scalars import normalize_number, resolve

# Flow collections (`[…]` and `{…}`) for the fast reader, which gives up on anything that it is not certain of.

# In these escape sequences YAML agrees with JSON.
QUOTED = r"""("(?:[^"\\\n]|\\["\\nt])*+"|'(?:[^'\n]|'')*+'(?!'))"""
_TOKEN = possessive_pattern(
    rf"""[ \n]*(?:
    {QUOTED}
    |((?:[A-Za-z0-9_./+=$^~();\\]|-(?=[^\s,\[\]{{}}:\#?]))
      (?:[^,\[\]{{}}:\#?\ \n]|\ +(?=[^\ ,\[\]{{}}:\#?\n])|:(?=[^\ ,\[\]{{}}?\n])|(?<=[^\ ])\#)*+)
    |([\[\]{{}},]|(?<![ \n]):(?=[ \n]))
    |([^ \n]))""",
    re.VERBOSE,
)
AMBIGUOUS_KEYS = frozenset(
    "y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF null Null NULL".split()
)
_MAX_LENGTH = 4000
# Block and flow collections share one limit of depth; a flow collection is at most as deep as it has brackets.
FLOW_DEPTH = 50
BLOCK_DEPTH = MAX_DEPTH - FLOW_DEPTH

# Of longer keys, the exact reader knows which are valid.
_MAX_KEY = 200
_NOTHING = ("", "", "", "")
_Tokens = Iterator[tuple[str, str, str, str]]


class UncertainError(Exception):
    """The text may be valid, but only the exact reader can tell."""


def parse_flow(text: str) -> Any:
    """Parse a `[…]` or `{…}`. It may be on several lines, but each of its words is on one."""
    if text.count("[") + text.count("{") > FLOW_DEPTH or len(text) > _MAX_LENGTH:
        raise UncertainError
    tokens = iter(_TOKEN.findall(text))
    value = _parse_node(next(tokens), tokens)
    if next(tokens, None):
        raise UncertainError
    return value


def parse_quoted(text: str) -> str:
    """Parse a text that `QUOTED` matches."""
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    if "\\" not in text:
        return text[1:-1]
    import json

    return str(json.loads(text))


def parse_word(text: str) -> Any:
    """Parse a plain scalar."""
    value = resolve(text)
    if isinstance(value, float):
        # Whether a number is too large, the exact reader decides.
        if value - value != 0:
            raise UncertainError
        return normalize_number(value)
    return value


def _parse_node(token: tuple[str, str, str, str], tokens: _Tokens) -> Any:
    quoted, word, sign, _ = token
    if word:
        return parse_word(word)
    if quoted:
        return parse_quoted(quoted)
    if sign == "[":
        return _parse_list(tokens)
    if sign == "{":
        return _parse_mapping(tokens)
    raise UncertainError


def _parse_list(tokens: _Tokens) -> list[Any]:
    items: list[Any] = []
    for token in tokens:
        if token[2] == "]":
            return items
        items.append(_parse_node(token, tokens))
        if _ends(tokens, "]"):
            return items
    raise UncertainError


def _parse_mapping(tokens: _Tokens) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for quoted, word, sign, _ in tokens:
        if sign == "}":
            return items
        key = parse_quoted(quoted) if quoted else word
        if not quoted and (word in AMBIGUOUS_KEYS or not (word[:1].isalpha() or word[:1] == "_")):
            raise UncertainError
        if key in items or len(quoted or word) > _MAX_KEY or next(tokens, _NOTHING)[2] != ":":
            raise UncertainError
        items[key] = _parse_node(next(tokens, _NOTHING), tokens)
        if _ends(tokens, "}"):
            return items
    raise UncertainError


def _ends(tokens: _Tokens, end: str) -> bool:
    """Return True if the collection ends after an item; otherwise, skip its comma."""
    sign = next(tokens, _NOTHING)[2]
    if sign not in (end, ","):
        raise UncertainError
    return sign == end


# Possessive throughout: a long run of spaces is not tried again from each of them.
_START = r"(\ *+)(-\ ++)?+(?:([A-Za-z_][A-Za-z0-9_./!-]{0,200}):(?:\ ++|\Z))?+"
_LINE = possessive_pattern(
    rf"""{_START}(?:
    ((?:[A-Za-z0-9_./~^+=$();\\]|[-<](?=[^\s<]))(?:[^:\#\ ]|:(?=[^\ ])|(?<=[^\ ])\#|\ ++(?=[^\ \#]))*+)
    |{QUOTED}
    |([\[{{](?:[^\#"']|"(?:[^"\\]|\\.)*+"|'[^']*+')*+)
    )?+\ *+(?:(?:\A|(?<=\ ))\#.*)?\Z""",
    re.VERBOSE,
)
# Lines whose value is on the lines below them: a block scalar, or the rest of a flow collection.
_BLOCK_HEADER = possessive_pattern(rf"({_START})([|>])([-+]?)\Z", re.VERBOSE)
_FLOW_HEADER = possessive_pattern(rf"({_START})([\[{{][^\#]*)\Z", re.VERBOSE)
_HEADER_ENDS = ("|", "|-", ">", ">-", "|+", ">+", "[", "{", ",")
# The end of such a line. Most documents have none, and a search for breaks takes less time than a look at each line.
_HEADER_BREAK = lazy_pattern(r"\n(?:(?<=[|>\[{,]\n)|(?<=[|>][-+]\n))")
_FOLD = lazy_pattern(r"\n(\n*)")

_Line = tuple[int, int, str, Any, str | None]
"""A parsed line: its level, the level of its mapping after a dash (-1 without a dash), its key, the value of the key or
of the dash, and the key if its value follows.

A mapping at column `c` has the level `2 * c`, a list `2 * c + 1`: it may be the value of a key at the same column.
"""

_MAX_MEMOIZED = 50_000
# Long lines rarely repeat, and would take much memory.
_MAX_MEMOIZED_LENGTH = 500
# A line has a key and a value; the exact reader counts the nodes of longer documents.
_MAX_LINES = MAX_NODES // 2
_END = "\n...\n"


class _Nested:
    """A mapping or list with others in it, which is copied as a whole."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def copy(self) -> Any:
        """Return a copy in which nothing is that of another copy."""
        return _copy(self.value)


_COLLECTIONS = (dict, list)
_SHARED = frozenset((dict, list, _Nested))


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copy(child) if type(child) in _COLLECTIONS else child for key, child in value.items()}
    return [_copy(child) if type(child) in _COLLECTIONS else child for child in value]


class _Lines(dict[str, _Line | None]):
    """Parsed lines by their text: manifests repeat many lines. A line without content is None."""

    def __missing__(self, text: str) -> _Line | None:
        line = _parse(text)
        if len(text) <= _MAX_MEMOIZED_LENGTH:
            if len(self) > _MAX_MEMOIZED:
                self.clear()
            self[text] = line
        return line


_parse_line = _Lines().__getitem__


def _parse(text: str) -> _Line | None:
    match = _LINE.match(text)
    if match is None:
        raise UncertainError
    indent, dash, key, word, quoted, flow = match.groups()
    if word:
        value = parse_word(word)
    elif quoted:
        value = parse_quoted(quoted)
    elif flow:
        value = parse_flow(flow)
        if "{" in flow[1:] or "[" in flow[1:]:
            value = _Nested(value)
    else:
        if dash and not key:
            raise UncertainError
        if not key:
            return None
        return _place(len(indent), dash, key, None, key)
    if not dash and not key:
        raise UncertainError
    return _place(len(indent), dash, key, value, None)


def _place(column: int, dash: str | None, key: str | None, value: Any, opens: str | None) -> _Line:
    if key in AMBIGUOUS_KEYS:
        raise UncertainError
    if dash:
        return 2 * column + 1, 2 * (column + len(dash)), key or "", value, opens
    return 2 * column, -1, key or "", value, opens


def read_lines(text: str) -> tuple[bool, Any]:
    """Read a document if it is simple enough; return whether it is, and its data."""
    if not text.replace("\n", " ").isprintable() or text.count("\n") > _MAX_LINES:
        return False, None
    # Where the last line does not end, neither does its block scalar.
    if text and not text.endswith("\n"):
        return False, None
    content = text[: -len(_END)] if text.endswith(_END) else text[:-1]
    try:
        lines = content.split("\n")
        data = _build(filter(None, _parse_lines(lines) if _HEADER_BREAK.search(text) else map(_parse_line, lines)))
    except UncertainError:
        return False, None
    # An end without a document is an error.
    return data is not None or not text.endswith(_END), data


def _parse_lines(lines: list[str]) -> list[_Line | None]:
    """Parse lines; a value on several lines becomes that of the line above it."""
    headers = [at for at, line in enumerate(lines) if line.endswith(_HEADER_ENDS)]
    parsed: list[_Line | None] = []
    done = 0
    for at in headers:
        # A line inside a block scalar may end like a header, too.
        header = _BLOCK_HEADER.match(lines[at]) or _FLOW_HEADER.match(lines[at]) if at >= done else None
        if header is None:
            continue
        parsed += map(_parse_line, lines[done:at])
        start = _parse_line(f'{header[1]}""')
        assert start is not None
        level, inner, key, _, _ = start
        if header[5] in ("|", ">"):
            done = _end_of_block(lines, at + 1, (inner if key and inner >= 0 else level) // 2)
            value = _join_block(lines[at + 1 : done], *header.groups()[-2:])
        else:
            done = _end_of_flow(lines, at)
            value = parse_flow("\n".join([header[5], *lines[at + 1 : done]]))
        parsed.append((level, inner, key, value, None))
    parsed += map(_parse_line, lines[done:])
    return parsed


def _end_of_flow(lines: list[str], start: int) -> int:
    """The line after a flow collection, where all its brackets are closed."""
    depth = 0
    for at in range(start, len(lines)):
        line = lines[at]
        if at > start and not line.startswith((" ", "]", "}")):
            break
        depth += line.count("[") + line.count("{") - line.count("]") - line.count("}")
        if depth <= 0:
            return at + 1
    raise UncertainError


def _end_of_block(lines: list[str], start: int, parent: int) -> int:
    """The line after a block scalar, which ends at the first line that is indented less than its first."""
    first = next((at for at in range(start, len(lines)) if lines[at]), len(lines))
    indent = _indent(lines[first]) if first < len(lines) else ""
    if len(indent) <= parent:
        raise UncertainError
    for at in range(first, len(lines)):
        line = lines[at]
        if line.isspace() and len(line) > len(indent):
            raise UncertainError
        if not line.startswith(indent) and line.strip(" "):
            return at
    return len(lines)


def _join_block(lines: list[str], style: str, chomping: str) -> str:
    indent = len(_indent(next(filter(None, lines))))
    text = "\n".join(line[indent:] for line in lines)
    content = text.rstrip("\n")
    if style == ">":
        # Imported late: few texts are folded.
        from jobgen.yamlio.read.script_lines import find_joined

        # Lines that are indented more are not folded; commands that become one are a finding of the exact reader.
        if content.startswith("\n") or "\n " in content or find_joined(content.split("\n"))[0]:
            raise UncertainError
        content = _FOLD.sub(lambda breaks: breaks[1] or " ", content)
    return content + {"": "\n", "-": "", "+": "\n" * (len(text) - len(text.rstrip("\n")) + 1)}[chomping]


def _indent(line: str) -> str:
    if line.isspace():
        raise UncertainError
    return line[: len(line) - len(line.lstrip(" "))]


def _build(lines: Iterable[_Line]) -> Any:
    root: dict[str, Any] = {}
    # The innermost open collection and its level, and those around it; `waiting` is its key whose value may follow.
    node: Any = root
    current = -1
    around: list[tuple[int, Any]] = []
    waiting: str | None = ""
    for level, inner, key, value, opens in lines:
        # Equal lines are parsed once, and each has a value of its own.
        own = value.copy() if type(value) in _SHARED else value
        if level > current:
            # Levels increase, so that only those beyond the limit can be too deep.
            if waiting is None or (level >= BLOCK_DEPTH and len(around) >= BLOCK_DEPTH):
                raise UncertainError
            fresh: Any = {} if inner < 0 else []
            node[waiting] = fresh
            around.append((current, node))
            current, node = level, fresh
        elif level < current:
            while level < current:
                current, node = around.pop()
            if level != current:
                raise UncertainError
        if inner >= 0:
            if not key:
                node.append(own)
                waiting = None
                continue
            mapping: dict[str, Any] = {}
            node.append(mapping)
            around.append((current, node))
            current, node = inner, mapping
        elif key in node:
            raise UncertainError
        node[key] = own
        waiting = opens
    return root.get("")
