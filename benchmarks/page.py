"""Write the results of table.py into benchmarks/README.md, and draw benchmarks/growth.svg.

    python benchmarks/page.py bench.json

Only the text between the two comments of the page is generated; the rest is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from plot import Line, draw_plot

HERE = Path(__file__).parent
BEGIN, END = "<!-- measured:", "<!-- end -->"
HEADINGS = ("measurement", "result", "compared with", "ratio", "target", "")
BLUE, ORANGE = "#1d63d1", "#c2520a"
# The name of a line, the series and the field that hold its values, its color, and whether it is dashed.
LINES = (
    ("jobgen render", ("render",), "seconds", BLUE, False),
    ("kubectl kustomize", ("render", "race"), "peer_seconds", BLUE, True),
    ("jobgen lint", ("lint",), "seconds", ORANGE, False),
    ("kubeconform", ("lint",), "peer_seconds", ORANGE, True),
)


def format_results(record: dict[str, Any]) -> Iterator[str]:
    """Yield the date, the machine and the table."""
    machine = "{cpu}, {cores} cores, {system}, Python {python}".format(**record["machine"])
    yield f"Measured on {record['date']}: {machine}. The whole run took {record['seconds']:.0f} s.\n"
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for row in record["rows"]:
        yield f"| {' | '.join(row['cells'])} |"


def replace_results(page: str, record: dict[str, Any]) -> str:
    """Return the page with new results."""
    before, _, rest = page.partition(BEGIN)
    comment, _, old = rest.partition("\n")
    return "\n".join([f"{before}{BEGIN}{comment}\n", *format_results(record), "", END]) + old.partition(END)[2]


def draw_growth(rows: list[dict[str, Any]]) -> str:
    """Return an SVG of everything that was measured at several sizes."""
    lines = (
        Line(name, color, dashed, find_points(rows, series, field)) for name, series, field, color, dashed in LINES
    )
    return draw_plot("Seconds by size of the repository, cold", [line for line in lines if line.points])


def find_points(rows: list[dict[str, Any]], series: tuple[str, ...], field: str) -> list[tuple[int, float]]:
    """Return the points of one line: number of files, seconds."""
    return sorted((row["count"], row[field]) for row in rows if row.get("series") in series and field in row)


def main() -> None:
    record = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    page = HERE / "README.md"
    page.write_text(replace_results(page.read_text("utf-8"), record), "utf-8")
    (HERE / "growth.svg").write_text(draw_growth(record["rows"]), "utf-8")


if __name__ == "__main__":
    main()
