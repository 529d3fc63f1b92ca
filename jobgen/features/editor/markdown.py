"""Write Markdown for an editor. Text of users is escaped, so that it cannot add links, images or HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jobgen.features.editor.values import to_real_file
from jobgen.model.data import Location, Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.reports.escape import visible

_MAX_SHOWN = 80
_SPECIAL = lazy_pattern(r"([\\`*_{}\[\]()#+!|<>~])")
_BACKTICKS = lazy_pattern(r"`+")


def escape(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", visible(text))


def code(text: str) -> str:
    """Return text as code, on one line, also in a table; long text is cut off."""
    shown = visible(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    if "\\|" in shown:
        # Two backslashes before a vertical line would end the cell, and the rest would not be code.
        return escape(shown)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    # A vertical line ends a cell even in code.
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|") if shown else "``` ```"


def escape_text(text: str) -> str:
    """Return a sentence of jobgen or of a policy: what is in backticks becomes code, everything else is escaped."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    return "".join(code(piece) if number % 2 else escape(piece) for number, piece in enumerate(pieces))


def value_code(value: Plain) -> str:
    """Return a value as code: text as it is, unless YAML would read it as something else."""
    if isinstance(value, str) and value and not re.fullmatch(r"[\d.]+|true|false|null|yes|no|on|off", value.lower()):
        return code(value)
    return code(json.dumps(value, ensure_ascii=False))


def link(root: Path, location: Location, text: str = "") -> str:
    """Return a link to a location in a workspace."""
    real = to_real_file(location)
    shown = escape(text or f"{location.file}:{location.line}")
    return f"[{shown}]({(root / real.file).as_uri()}#L{location.line})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def block(language: str, text: str) -> str:
    """Return lines of code."""
    fence = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


_LINK = lazy_pattern(r"\[((?:\\.|[^\]\\])*)\]\(file:[^)\s]*\)")
_CELL_END = lazy_pattern(r"(?<!\\)\|")


def simplify(markdown: str) -> str:
    """Return Markdown that is easy to read as it is written. Blocks of code stay as they are."""
    lines: list[str] = []
    rows: list[list[str]] = []
    is_code = False
    for line in markdown.split("\n"):
        is_fence = line.startswith("```")
        text = line if is_code or is_fence else _LINK.sub(r"\1", line)
        if not is_code and not is_fence and line.startswith("| ") and line.endswith(" |"):
            rows.append([cell.strip() for cell in _CELL_END.split(text)[1:-1]])
            continue
        lines += [*_align(rows), text]
        rows = []
        is_code ^= is_fence
    return "\n".join([*lines, *_align(rows)])


def _align(rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield the rows of a table with columns of one width each; the last one needs none."""
    table = list(rows)
    count = max(map(len, table), default=0)
    widths = [max(len(row[number]) for row in table if number < len(row)) for number in range(count - 1)]
    for row in table:
        fill = "-" if row and set("".join(row)) == {"-"} else " "
        cells = [cell.ljust(widths[number], fill) if number < len(widths) else cell for number, cell in enumerate(row)]
        yield f"| {' | '.join(cells)} |"
