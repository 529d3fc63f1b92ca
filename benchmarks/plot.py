"""Growth as a drawing: both axes are logarithmic, so linear time rises one step of the grid for each to the right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 74, 712, 82, 400
COUNTS = (1, 100_000)
SECONDS = (0.01, 100)
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"
# It has its own background, so that it can be read on a light page and on a dark one.
PAPER, INK, PALE, GRID, FRAME = "#fcfcfa", "#22272e", "#6b7280", "#e6e6e1", "#d4d4ce"


class Line(NamedTuple):
    """A line: who, and the seconds for each number of jobs."""

    name: str
    colour: str
    dashed: bool
    points: Sequence[tuple[int, float]]


def drawing(title: str, lines: Sequence[Line]) -> str:
    """An SVG of all lines, with a legend above them."""
    body = [
        f"<rect x='0.5' y='0.5' width='{WIDTH - 1}' height='{HEIGHT - 1}' rx='8' fill='{PAPER}' stroke='{FRAME}'/>",
        text(LEFT, 34, title, size=16, weight=600),
        *axes(),
        *(part for line in lines for part in drawn(line)),
        *(part for place, line in enumerate(lines) for part in named(place, line)),
    ]
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'"
    return "\n".join([f"{head} role='img' {FONT}>", f"<title>{escape(title)}</title>", *body, "</svg>"]) + "\n"


def axes() -> Iterator[str]:
    """A grid of powers of ten with their names."""
    for power in range(6):
        x = across(10**power)
        yield f"<path d='M{x:.1f} {TOP}V{BOTTOM}' stroke='{GRID}'/>"
        yield text(x, BOTTOM + 20, f"{10**power:,}", colour=PALE, anchor="middle")
    for power, name in zip(range(-2, 3), ("10 ms", "100 ms", "1 s", "10 s", "100 s"), strict=True):
        y = down(10.0**power)
        yield f"<path d='M{LEFT} {y:.1f}H{RIGHT}' stroke='{GRID}'/>"
        yield text(LEFT - 10, y + 4, name, colour=PALE, anchor="end")
    yield text((LEFT + RIGHT) / 2, BOTTOM + 44, "jobs, or manifests", colour=PALE, anchor="middle")


def drawn(line: Line) -> Iterator[str]:
    """The line and its points."""
    places = [(across(count), down(seconds)) for count, seconds in line.points]
    yield stroke(line, "L".join(f"{x:.1f} {y:.1f}" for x, y in places))
    for x, y in places:
        yield f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{line.colour}' stroke='{PAPER}' stroke-width='1.5'/>"


def named(place: int, line: Line) -> Iterator[str]:
    """Its entry in the legend."""
    x = LEFT + place * (RIGHT - LEFT) / 4
    yield stroke(line, f"{x:.1f} 58h24")
    yield text(x + 32, 62, line.name)


def stroke(line: Line, way: str) -> str:
    """A way in the manner of a line."""
    dashes = " stroke-dasharray='6 4'" if line.dashed else ""
    return f"<path d='M{way}' fill='none' stroke='{line.colour}' stroke-width='2.5' stroke-linejoin='round'{dashes}/>"


def text(
    x: float, y: float, words: str, *, colour: str = INK, anchor: str = "start", size: int = 13, weight: int = 400
) -> str:
    """Words at a place."""
    style = f"font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' fill='{colour}'"
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(words)}</text>"


def across(count: float) -> float:
    """Where a number of jobs is."""
    return LEFT + (RIGHT - LEFT) * share(count, COUNTS)


def down(seconds: float) -> float:
    """Where a time is."""
    return BOTTOM - (BOTTOM - TOP) * share(seconds, SECONDS)


def share(value: float, ends: tuple[float, float]) -> float:
    """How far along a logarithmic axis a value is, from 0 to 1."""
    least, most = map(math.log10, ends)
    return min(1, max(0, (math.log10(value) - least) / (most - least)))
