"""Puts what table.py has measured into docs/performance.md, and draws docs/growth.svg.

    python benchmarks/page.py bench.json

The words of the page are written by hand; only what stands between its two comments is ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from plot import Line, drawing

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured:", "<!-- end -->"
HEADINGS = ("what", "measured", "against", "ratio", "wanted", "")
BLUE, ORANGE = "#1d63d1", "#c2520a"
# Whose seconds a line shows, where they are found, and how it is drawn.
LINES = (
    ("jobgen render", ("render",), "seconds", BLUE, False),
    ("kubectl kustomize", ("render", "race"), "peer_seconds", BLUE, True),
    ("jobgen lint", ("lint",), "seconds", ORANGE, False),
    ("kubeconform", ("lint",), "peer_seconds", ORANGE, True),
)


def measured(record: dict[str, Any]) -> Iterator[str]:
    """When and where it was, and the rows as they were printed."""
    machine = "{cpu}, {cores} cores, {system}, Python {python}".format(**record["machine"])
    yield f"On {record['date']}: {machine}; the whole run took {record['seconds']:.0f} s.\n"
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for row in record["rows"]:
        yield f"| {' | '.join(row['cells'])} |"


def filled(page: str, record: dict[str, Any]) -> str:
    """The page with other numbers."""
    before, _, rest = page.partition(BEGIN)
    comment, _, old = rest.partition("\n")
    return "\n".join([f"{before}{BEGIN}{comment}\n", *measured(record), "", END]) + old.partition(END)[2]


def growth(rows: list[dict[str, Any]]) -> str:
    """The drawing of all that was measured at several sizes."""
    lines = (Line(name, colour, dashed, points(rows, series, number)) for name, series, number, colour, dashed in LINES)
    return drawing("Seconds by size of the repository, cold", [line for line in lines if line.points])


def points(rows: list[dict[str, Any]], series: tuple[str, ...], number: str) -> list[tuple[int, float]]:
    """What was measured of one line."""
    return sorted((row["count"], row[number]) for row in rows if row.get("series") in series and number in row)


def main() -> None:
    record = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    page = DOCS / "performance.md"
    page.write_text(filled(page.read_text("utf-8"), record), "utf-8")
    (DOCS / "growth.svg").write_text(growth(record["rows"]), "utf-8")


if __name__ == "__main__":
    main()
