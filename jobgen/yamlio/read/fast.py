"""The fast reader: block YAML of the plain sort, line by line, or nothing at all.

It gives up on anything it is not certain of, and then the exact reader is asked. A property test holds the two against
each other.
"""

from __future__ import annotations

from jobgen.model.data import Data
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.read.lines import NotSureError, Row, build, row_of

# The line above a script: what stands before its mark is a line like any other.
_HEADER = lazy_pattern(r"((?: *- )? *(?:[A-Za-z_][A-Za-z0-9_./!-]{0,200}: +)?)\|(-?)\Z")
_OF_A_TEXT = Row(0, -1, "", None, False)
_NOTHING: frozenset[int] = frozenset()


def read_lines(text: str) -> tuple[bool, Data]:
    """Whether the document is of the plain sort, and if so its data."""
    if not text.replace("\n", " ").isprintable():
        return False, None
    try:
        return True, build(rows_of(text.split("\n"))[0])
    except NotSureError:
        return False, None


def rows_of(lines: list[str]) -> tuple[list[Row], frozenset[int]]:
    """What the lines are, and which of them belong to texts of several lines (`|` and `|-`)."""
    ends = [at for at, line in enumerate(lines) if line.endswith(("|", "|-"))]
    if not ends:
        return list(map(row_of, lines)), _NOTHING
    rows: list[Row] = []
    of_texts: set[int] = set()
    for at in ends:
        header = _HEADER.match(lines[at])
        if header is None or at < len(rows):
            # A line of a text may end like this, too.
            continue
        rows += map(row_of, lines[len(rows) : at])
        row = row_of(f'{header[1]}""')
        after = _end_of_text(lines, at + 1, row.inner if row.key and row.inner >= 0 else row.column)
        rows.append(row._replace(value=_text(lines[at + 1 : after]) + ("" if header[2] else "\n")))
        rows += [_OF_A_TEXT] * (after - at - 1)
        of_texts.update(range(at, after))
    rows += map(row_of, lines[len(rows) :])
    return rows, frozenset(of_texts)


def _end_of_text(lines: list[str], start: int, parent: int) -> int:
    """The line behind a text; it ends with the first line that is indented less than its first."""
    first = next((at for at in range(start, len(lines)) if lines[at]), len(lines))
    indent = _indent(lines[first]) if first < len(lines) else ""
    if len(indent) <= parent:
        raise NotSureError
    for at in range(first, len(lines)):
        line = lines[at]
        if line.isspace() and len(line) > len(indent):
            raise NotSureError
        if not line.startswith(indent) and line.strip(" "):
            return at
    return len(lines)


def _text(lines: list[str]) -> str:
    indent = len(_indent(next(filter(None, lines))))
    return "\n".join(line[indent:] for line in lines).rstrip("\n")


def _indent(line: str) -> str:
    if line.isspace():
        raise NotSureError
    return line[: len(line) - len(line.lstrip(" "))]
