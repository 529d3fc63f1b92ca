"""Markdown for editors that show its source: links without their targets, and tables with aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobgen.model.lazy_re import lazy_pattern

_LINK = lazy_pattern(r"\[((?:\\.|[^\]\\])*)\]\(file:[^)\s]*\)")
_CELL_END = lazy_pattern(r"(?<!\\)\|")
_FENCE = "```"


def simplify(markdown: str) -> str:
    """Return Markdown that is easy to read as it is written. Blocks of code stay as they are."""
    lines: list[str] = []
    rows: list[list[str]] = []
    is_code = False
    for line in markdown.split("\n"):
        is_fence = line.startswith(_FENCE)
        if not is_code and not is_fence and line.startswith("| ") and line.endswith(" |"):
            rows.append([cell.strip() for cell in _CELL_END.split(_drop_targets(line))[1:-1]])
            continue
        lines += _align(rows)
        rows = []
        lines.append(line if is_code or is_fence else _drop_targets(line))
        is_code ^= is_fence
    return "\n".join([*lines, *_align(rows)])


def _drop_targets(line: str) -> str:
    return _LINK.sub(r"\1", line)


def _align(rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield the rows of a table with columns of one width each; the last one needs none."""
    table = list(rows)
    count = max(map(len, table), default=0)
    widths = [max(len(row[number]) for row in table if number < len(row)) for number in range(count - 1)]
    for row in table:
        fill = "-" if row and set("".join(row)) == {"-"} else " "
        cells = [cell.ljust(widths[number], fill) if number < len(widths) else cell for number, cell in enumerate(row)]
        yield f"| {' | '.join(cells)} |"
