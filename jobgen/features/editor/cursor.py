"""What is at a position of a document: the path of keys and items to it, and the key or value there.

`find_cursor(text, line, column)` is all that others need. It uses the exact reader where the text is YAML; on lines
that are empty or half typed, `read_half_typed` finds the path by the indentation.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

from jobgen.model.data import Location, TracedKey, TracedList, TracedMapping, TracedScalar
from jobgen.model.lazy_re import lazy_pattern, possessive_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.yamlio.read import Source, read
from jobgen.yamlio.read.scalars import resolve

# Read a document that is half typed, and so not YAML yet: keys by their indentation, items of lists, flow style.

_END_OF_PLAIN = lazy_pattern(r"[,\[\]{}\n]|:(?=[\s,\[\]{}]|\Z)|\s#")
_SPACE = possessive_pattern(r"(?:\s++|(?<=\s)#[^\n]*+)*+")
# Possessive, because a pattern that can go back takes more than 100 bytes of memory for each character.
_SINGLE = possessive_pattern(r"'(?:[^']++|'')*+'(?!')")
_DOUBLE = possessive_pattern(r'"(?:[^"\\]++|\\.)*+"')
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE = lazy_pattern(r"\\(.)")
_WORD = lazy_pattern(r"[A-Za-z\ue000][\w./-]*\Z")
_PROPERTIES = lazy_pattern(r"(?:[&!][^\s,\[\]{}]*[ \t]+)+")
_COLON = lazy_pattern(r":(?=\s|\Z)|\s#", re.ASCII)
_COMMENT = lazy_pattern(r"(?:\A|\s)#")
MAX_NESTING = 200
Locate = Callable[[int, int], Location]
"""Gives the location of a part of the text."""


def read_quoted(text: str, at: int, end: int) -> tuple[str, int]:
    """Return the text in quotes at a position, and where it ends; without a second quote, at the end of the line."""
    match = (_SINGLE if text[at] == "'" else _DOUBLE).match(text, at, end)
    if match is None:
        stop = text.find("\n", at, end)
        stop = stop if stop >= 0 else end
        return text[at + 1 : stop].rstrip(), at + len(text[at:stop].rstrip())
    content = match[0][1:-1]
    if text[at] == "'":
        return content.replace("''", "'"), match.end()
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), content), match.end()


class _Bracket:
    """A mapping or list in flow style, its newest key, and whether the colon after it has been read."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.key: str | None = None
        self.is_after_colon = False

    def add(self, value: Any, place: Location) -> None:
        """Put a value into it; one without a key is left out."""
        if isinstance(self.node, TracedList):
            self.node.append(value)
            self.node.item_locations.append(place)
        elif self.key is not None and self.is_after_colon:
            self.node[self.key] = value


def read_flow(text: str, at: int, end: int, locate: Locate) -> tuple[Any, int]:
    """Read the mapping or list that begins at a position; return it, and where it ends."""
    root: Any = None
    stack: list[_Bracket] = []
    while at < end:
        char = text[at]
        if char in "{[":
            location = locate(at, at + 1)
            node: Any = TracedMapping(location) if char == "{" else TracedList([], location)
            if not stack:
                root = node
            elif len(stack) < MAX_NESTING:
                # What is nested more deeply is read, but left out: no format of Kubernetes needs it.
                stack[-1].add(node, locate(at, at))
            stack.append(_Bracket(node))
        elif char in "}]":
            stack.pop()
        elif char == ":":
            stack[-1].is_after_colon = True
        elif char == ",":
            stack[-1].key, stack[-1].is_after_colon = None, False
        at = at + 1 if char in "{}[],:" else _read_flow_scalar(text, at, end, locate, stack[-1])
        if not stack:
            break
        space = _SPACE.match(text, at, end)
        at = space.end() if space else at
    return root, at


def _read_flow_scalar(text: str, at: int, end: int, locate: Locate, within: _Bracket) -> int:
    """Read a key or a value; return where it ends."""
    if text[at] in "\"'":
        value, stop = read_quoted(text, at, end)
        resolved: Any = value
    else:
        match = _END_OF_PLAIN.search(text, at + 1, end)
        value = text[at : match.start() if match else end].rstrip()
        resolved, stop = resolve(value), at + max(len(value), 1)
    if isinstance(within.node, dict) and not within.is_after_colon:
        key = TracedKey.at(value, locate(at, stop))
        within.node.pop(key, None)
        within.node[key] = TracedScalar(None, locate(stop, stop))
        within.key = key
    else:
        within.add(TracedScalar(resolved, locate(at, stop)), locate(at, at))
    return stop


class _Open(NamedTuple):
    """A mapping or list that lines may continue, the column at which it begins, and its newest key or index."""

    column: int
    node: Any
    last: Any

    def set(self, value: Any) -> None:
        self.node[self.last] = value

    @property
    def value(self) -> Any:
        return self.node[self.last]


def read_half_typed(text: str, file: str = "", first_line: int = 1) -> Any:
    """Read one document; an empty mapping if nothing can be recognized."""
    reader = _Reader(text, file, first_line)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        tree, _ = read_flow(text, text.index(start), len(text), reader.locate)
    else:
        tree = reader.read()
    return tree if isinstance(tree, (dict, list)) else {}


class _Reader:
    def __init__(self, text: str, file: str, first_line: int) -> None:
        self._text = text
        self._file = file
        self._first_line = first_line
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._root: dict[str, Any] = {"": None}
        self._open = [_Open(-1, self._root, "")]
        self._skip_to = 0
        """The offset up to which the text has been read, as part of a value of several lines."""

    def locate(self, start: int, end: int) -> Location:
        """Return the location of a part of the text."""
        return Location(self._file, *self._place(start), *self._place(end))

    def _place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at) - 1
        return line + self._first_line, at - self._starts[line] + 1

    def read(self) -> Any:
        """Read all lines."""
        for number, line in enumerate(self._lines):
            if self._starts[number] >= self._skip_to:
                self._read_line(number, line.rstrip())
        return self._root[""]

    def _read_line(self, number: int, line: str) -> None:
        start, at = self._starts[number], len(line) - len(line.lstrip())
        if not line or line[at] == "#" or line.startswith(("---", "%")):
            return
        while line.startswith("-", at) and line[at + 1 : at + 2] in ("", " ", "\t") and len(self._open) < MAX_NESTING:
            self._open_item(at, start + at)
            after = line[at + 1 :]
            at = len(line) - len(after.lstrip())
            empty = self.locate(start + at, start + at)
            self._open[-1].node.item_locations.append(empty)
            self._open[-1].set(TracedScalar(None, empty))
        if at < len(line):
            self._read_content(number, line, at)

    def _read_content(self, number: int, line: str, at: int) -> None:
        """Read a key and its value, or a value, or a word that may become a key."""
        start, top = self._starts[number], self._open[-1]
        continues = top.column < at and type(top.value) is TracedScalar and not _is_empty(top.value)
        found = _find_key(line, at)
        if found is not None:
            key, end, after = found
            self._open_key(at, TracedKey.at(key, self.locate(start + at, start + end)))
            self._read_value(number, line, after)
        elif _WORD.match(line, at) and not continues:
            if type(top.node) is TracedList and at > top.column:
                top.set(TracedScalar(line[at:], self.locate(start + at, start + len(line))))
            else:
                self._open_key(at, TracedKey.at(line[at:], self.locate(start + at, start + len(line))))
                self._open[-1].set(TracedScalar(None, self.locate(start + len(line), start + len(line))))
        elif top.column < at and _is_empty(top.value):
            self._read_value(number, line, at)

    def _read_value(self, number: int, line: str, at: int) -> None:
        start, top = self._starts[number], self._open[-1]
        at += len(line[at:]) - len(line[at:].lstrip())
        properties = _PROPERTIES.match(line, at)
        begin, at = at, properties.end() if properties else at
        first = line[at : at + 1]
        if not first or first == "#":
            top.set(TracedScalar(None, self.locate(start + begin, start + begin)))
        elif first in "{[":
            node, self._skip_to = read_flow(self._text, start + at, self._find_end(number, top.column), self.locate)
            top.set(node)
        elif first in "|>":
            self._skip_to = self._find_end(number, top.column)
            text = self._text[start + at : self._skip_to].rstrip("\n")
            top.set(TracedScalar(text.partition("\n")[2], self.locate(start + begin, start + at + len(text))))
        elif first in "\"'":
            value, end = read_quoted(self._text, start + at, self._find_end(number, top.column))
            self._skip_to = end if "\n" in self._text[start + at : end] else 0
            top.set(TracedScalar(value, self.locate(start + begin, end)))
        else:
            comment = _COMMENT.search(line, at)
            value = line[at : comment.start() if comment else len(line)].rstrip()
            top.set(TracedScalar(resolve(value), self.locate(start + begin, start + at + len(value))))

    def _find_end(self, number: int, column: int) -> int:
        """Return the offset of the first line after a line that is not below a column, and closes no bracket."""
        for following in range(number + 1, len(self._lines)):
            line = self._lines[following]
            content = line.lstrip()
            if content and len(line) - len(content) <= column and content[0] not in "}]":
                return self._starts[following]
        return len(self._text)

    def _open_key(self, column: int, key: TracedKey) -> None:
        """Add a key to the mapping at its column, or to a new one."""
        while self._open[-1].column > column or (
            self._open[-1].column == column and type(self._open[-1].node) is TracedList
        ):
            self._open.pop()
        top = self._open[-1]
        if top.column == column:
            self._open[-1] = top._replace(last=key)
        else:
            # A mapping that was read before at another column is continued: the indentation is half typed too.
            node: dict[str, Any] = top.value if isinstance(top.value, dict) else {}
            top.set(node)
            self._open.append(_Open(column, node, key))
        self._open[-1].node.pop(key, None)
        self._open[-1].set(TracedScalar(None, key.location))

    def _open_item(self, column: int, at: int) -> None:
        """Add an item to the list at its column, or to a new one."""
        while self._open[-1].column > column:
            self._open.pop()
        top = self._open[-1]
        if type(top.node) is not TracedList or top.column != column:
            node = top.value if type(top.value) is TracedList else TracedList([], self.locate(at, at + 1))
            top.set(node)
            self._open.append(_Open(column, node, -1))
        node = self._open[-1].node
        node.append(None)
        self._open[-1] = self._open[-1]._replace(last=len(node) - 1)


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) is TracedScalar and value.value is None)


def _find_key(line: str, at: int) -> tuple[str, int, int] | None:
    """Return the key that begins at a position, its end, and the position after its colon; None if there is none."""
    properties = _PROPERTIES.match(line, at)
    at = properties.end() if properties else at
    first = line[at : at + 1]
    if first in ('"', "'"):
        key, end = read_quoted(line, at, len(line))
        after = len(line) - len(line[end:].lstrip())
        is_key = line.startswith(":", after) and line[after + 1 : after + 2] in ("", " ", "\t")
        return (key, end, after + 1) if is_key else None
    if first in "{[#|>@`%":
        return None
    colon = _COLON.search(line, at)
    if colon is None or colon[0] != ":":
        return None
    key = line[at : colon.start()].rstrip()
    return key, at + len(key), colon.end()


Path = tuple[str | int, ...]

_PLACEHOLDER = "\ue000"
"""A character of private use, put at the position to find what would be typed there."""
_COMMENT_TEXT = lazy_pattern(r"(?:\A|(?<=\s))#.*")
_ALIAS = lazy_pattern(r"\*[^\s,\[\]{}]+\Z")
_KEY_WORD = lazy_pattern(r"[A-Za-z][\w.-]*\Z")


class Part(Enum):
    """What a position is on."""

    KEY = "key"
    VALUE = "value"
    COMMENT = "comment"


class Cursor(NamedTuple):
    """A position in a document, and what is there."""

    document: int
    """The index of the document among those of its file that can be read, as `Job.position` counts."""
    path: Path
    """Keys and indexes to the key or value. It ends with the key, also with one that is half typed or not begun: the
    line `  im` below `spec:` has the path `("spec", "im")`, an empty line there `("spec", "")`. Empty for a comment."""
    part: Part
    text: str
    """The key, the value, the alias as it is written, or the comment; empty if there is nothing at the position yet."""
    prefix: str
    """The part of `text` before the position, as it is written (with its quote)."""
    location: Location
    """The range of the key, value or comment; empty if there is nothing yet. Columns count characters from 1."""
    tree: Any
    """The data of the document with locations; of a document that is half typed, what can be recognized."""
    is_complete: bool
    """True if the document can be read; false if it is half typed."""


class _Token(NamedTuple):
    """A key, or a value that is not a mapping or list."""

    path: Path
    part: Part
    text: str
    location: Location


def find_cursor(text: str, line: int, column: int, file: str = "") -> Cursor:
    """Find what is at a position; lines and columns count from 1, columns count characters.

    A position at the end of a key or value belongs to it. Any position has a result, also one outside of the text.
    """
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    line = min(max(line, 1), len(lines))
    column = min(max(column, 1), len(lines[line - 1]) + 1)
    source = read_text(text, file)
    first, end = _find_region(source, lines, line)
    starts = [document.location.line for document in source.documents]
    document = sum(start < first for start in starts)
    is_complete = any(first <= start < end for start in starts)
    tree = source.documents[document].data if is_complete else _read_region(lines, first, end, file)
    token, comment = _find_token(tree, line, column), _COMMENT_TEXT.search(lines[line - 1])
    if token is None and comment is not None and comment.start() < column:
        place = Location(file, line, comment.start() + 1, line, len(lines[line - 1]) + 1)
        token = _Token((), Part.COMMENT, comment[0], place)
    token = token or _find_place(lines, first, line, column, file)
    prefix = lines[line - 1][token.location.column - 1 : column - 1] if token.location.line == line else ""
    return Cursor(document, token.path, token.part, token.text, prefix, token.location, tree, is_complete)


@lru_cache(maxsize=8)
def read_text(text: str, file: str) -> Source:
    """Read a text with locations; those that were read last are kept."""
    return read(text.encode("utf-8", "surrogatepass"), file, traced=True)


def read_trees(text: str, file: str = "") -> Iterator[Any]:
    """Yield the data of all documents with locations; of those that are half typed, what can be recognized."""
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    source = read_text(text, file)
    line = 1
    while line <= len(lines):
        first, end = _find_region(source, lines, line)
        found = [each.data for each in source.documents if first <= each.location.line < end]
        yield from found or [_read_region(lines, first, end, file)]
        line = end


def walk(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield all keys, each with the path to its value, and all values that are not mappings or lists."""
    pending: list[tuple[Path, Any]] = [(path, tree)]
    while pending:
        path, node = pending.pop()
        if isinstance(node, dict):
            for key in reversed(node):
                pending.append(((*path, str(key)), node[key]))
                if isinstance(key, TracedKey):
                    pending.append(((*path, str(key)), key))
        elif isinstance(node, list):
            pending += [((*path, index), node[index]) for index in range(len(node) - 1, -1, -1)]
        else:
            yield path, node


def get_path(tree: Any, path: Sequence[Step]) -> Any:
    """Return the node at a path; None if there is none."""
    for step in path:
        if isinstance(tree, dict) and isinstance(step, str):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


def _find_region(source: Source, lines: list[str], line: int) -> tuple[int, int]:
    """Return the first line of the document at a line, and that after it. JSON begins without a separator."""
    starts = {number for number, text in enumerate(lines, 1) if text.startswith("---")}
    if lines[0].lstrip()[:1] == "{":
        starts.update(document.location.line for document in source.documents[1:])
    start = max((number for number in starts if number <= line), default=1)
    return start, min((number for number in starts if number > line), default=len(lines) + 1)


def _read_region(lines: list[str], first: int, end: int, file: str) -> Any:
    return read_half_typed("\n".join(lines[first - 1 : end - 1]), file, first)


def _find_token(tree: Any, line: int, column: int) -> _Token | None:
    """Find the key or value at a position: one that contains it rather than one that ends there."""
    best: _Token | None = None
    key_line = 0
    for path, node in walk(tree):
        if isinstance(node, TracedKey):
            part, text, key_line = Part.KEY, str(node), node.location.line
        elif isinstance(node, TracedScalar):
            written = str(node.value).lower() if isinstance(node.value, bool) else str(node.value)
            part, text = Part.VALUE, node.written or ("" if node.value is None else written)
        else:
            continue
        at = node.location
        if not (at.line, at.column) <= (line, column) <= (at.end_line, at.end_column):
            continue
        is_below_key = part is Part.VALUE and key_line < at.line and bool(path) and isinstance(path[-1], str)
        if is_below_key and _KEY_WORD.match(text):
            # A word on the line after a key is probably a key without its colon, rather than the value.
            token = _Token((*path, text), Part.KEY, text, at)
        else:
            token = _Token(path, part, text, at)
        if (line, column) < (at.end_line, at.end_column):
            return token
        best = best or token
    return best if best is None or best.location.line == line else None


def _find_place(lines: list[str], first: int, line: int, column: int, file: str) -> _Token:
    """Find what would be typed at a position where there is nothing: put a character there, and find it again."""
    text = lines[line - 1]
    written = text[: column - 1] + _PLACEHOLDER + text[column - 1 :]
    # What follows the position does not change the path to it.
    edited = [*lines[: line - 1], written]
    place = Location(file, line, column, line, column)
    for path, node in walk(_read_region(edited, first, line + 1, file)):
        content = node.value if isinstance(node, TracedScalar) else node
        if isinstance(content, str) and _PLACEHOLDER in content:
            part = Part.KEY if isinstance(node, TracedKey) else Part.VALUE
            steps = tuple(step.replace(_PLACEHOLDER, "") if isinstance(step, str) else step for step in path)
            rest = content.replace(_PLACEHOLDER, "")
            if part is Part.VALUE and _ALIAS.match(rest):
                # The exact reader has the nodes of an alias where its anchor is.
                return _Token(steps, part, rest, node.location._replace(end_column=node.location.end_column - 1))
            return _Token(steps, part, "", place)
    return _Token((), Part.VALUE, "", place)
