"""What is at a position of a document: the path of keys and items to it, and the key or value there.

`find_cursor(text, line, column)` is all that others need. It uses the exact reader where the text is YAML; on lines
that are empty or half typed, `read_half_typed` finds the path by the indentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from jobgen.features.editor.half_typed import read_half_typed
from jobgen.model.data import Location, TracedKey, TracedScalar
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import Step
from jobgen.yamlio.read import Source, read

Path = tuple[str | int, ...]

_PLACEHOLDER = "\ue000"
"""A character of private use, put at the position to find what would be typed there."""
_COMMENT = lazy_pattern(r"(?:\A|(?<=\s))#.*")
_ALIAS = lazy_pattern(r"\*[^\s,\[\]{}]+\Z")
_WORD = lazy_pattern(r"[A-Za-z][\w.-]*\Z")


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
    """Whether the document can be read; false if it is half typed."""

    @property
    def parent(self) -> Path:
        """The path without its last step."""
        return self.path[:-1]


class _Token(NamedTuple):
    """A key, or a value that is not a mapping or list."""

    path: Path
    part: Part
    text: str
    location: Location


class _Region(NamedTuple):
    """The lines of a document, from the first up to the second."""

    start: int
    end: int


def find_cursor(text: str, line: int, column: int, file: str = "") -> Cursor:
    """Find what is at a position; lines and columns count from 1, columns count characters.

    A position at the end of a key or value belongs to it. Any position has a result, also one outside of the text.
    """
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    line = min(max(line, 1), len(lines))
    column = min(max(column, 1), len(lines[line - 1]) + 1)
    source = read_text(text, file)
    region = _find_region(source, lines, line)
    starts = [document.location.line for document in source.documents]
    document = sum(start < region.start for start in starts)
    is_complete = any(region.start <= start < region.end for start in starts)
    tree = source.documents[document].data if is_complete else _read_region(lines, region, file)
    token = _find_token(tree, line, column) or _find_comment(lines, line, column, file)
    token = token or _find_place(lines, region, line, column, file)
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
        region = _find_region(source, lines, line)
        found = [each.data for each in source.documents if region.start <= each.location.line < region.end]
        yield from found or [_read_region(lines, region, file)]
        line = region.end


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


def _find_region(source: Source, lines: list[str], line: int) -> _Region:
    """Return the lines of the document at a line. Documents of JSON begin without a separator."""
    starts = {number for number, text in enumerate(lines, 1) if text.startswith("---")}
    if lines[0].lstrip()[:1] == "{":
        starts.update(document.location.line for document in source.documents[1:])
    start = max((number for number in starts if number <= line), default=1)
    return _Region(start, min((number for number in starts if number > line), default=len(lines) + 1))


def _read_region(lines: list[str], region: _Region, file: str) -> Any:
    return read_half_typed("\n".join(lines[region.start - 1 : region.end - 1]), file, region.start)


def _find_token(tree: Any, line: int, column: int) -> _Token | None:
    """Find the key or value at a position: one that contains it rather than one that ends there."""
    best: _Token | None = None
    key_line = 0
    for path, node in walk(tree):
        if isinstance(node, TracedKey):
            part, text, key_line = Part.KEY, str(node), node.location.line
        elif isinstance(node, TracedScalar):
            part, text = Part.VALUE, _format_value(node)
        else:
            continue
        at = node.location
        if not (at.line, at.column) <= (line, column) <= (at.end_line, at.end_column):
            continue
        if part is Part.VALUE and key_line < at.line and _is_half_typed_key(path, text):
            token = _Token((*path, text), Part.KEY, text, at)
        else:
            token = _Token(path, part, text, at)
        if (line, column) < (at.end_line, at.end_column):
            return token
        best = best or token
    return best if best is None or best.location.line == line else None


def _is_half_typed_key(path: Path, text: str) -> bool:
    """Return True if a word on the line after a key is probably a key without its colon, rather than the value."""
    return bool(path) and isinstance(path[-1], str) and _WORD.match(text) is not None


def _format_value(node: TracedScalar) -> str:
    if node.value is None:
        return node.written
    return node.written or (str(node.value).lower() if isinstance(node.value, bool) else str(node.value))


def _find_comment(lines: list[str], line: int, column: int, file: str) -> _Token | None:
    match = _COMMENT.search(lines[line - 1])
    if match is None or match.start() >= column:
        return None
    place = Location(file, line, match.start() + 1, line, len(lines[line - 1]) + 1)
    return _Token((), Part.COMMENT, match[0], place)


def _find_place(lines: list[str], region: _Region, line: int, column: int, file: str) -> _Token:
    """Find what would be typed at a position where there is nothing: put a character there, and find it again."""
    text = lines[line - 1]
    written = text[: column - 1] + _PLACEHOLDER + text[column - 1 :]
    # What follows the position does not change the path to it.
    edited, region = [*lines[: line - 1], written], region._replace(end=line + 1)
    place = Location(file, line, column, line, column)
    for path, node in walk(_read_region(edited, region, file)):
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
