"""Draw growth as an SVG with logarithmic axes: linear time rises by one grid line for each one to the right."""

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
# The background is part of the drawing, so that it can be read on light and dark pages.
PAPER, TEXT, PALE, GRID, FRAME = "#fcfcfa", "#22272e", "#6b7280", "#e6e6e1", "#d4d4ce"


class Line(NamedTuple):
    """A line of the plot: a tool, and its seconds for each number of files."""

    name: str
    color: str
    dashed: bool
    points: Sequence[tuple[int, float]]


def draw_plot(title: str, lines: Sequence[Line]) -> str:
    """Return an SVG of all lines, with a legend above them."""
    body = [
        f"<rect x='0.5' y='0.5' width='{WIDTH - 1}' height='{HEIGHT - 1}' rx='8' fill='{PAPER}' stroke='{FRAME}'/>",
        draw_text(LEFT, 34, title, size=16, weight=600),
        *draw_axes(),
        *(part for line in lines for part in draw_line(line)),
        *(part for position, line in enumerate(lines) for part in draw_legend(position, line)),
    ]
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'"
    return "\n".join([f"{head} role='img' {FONT}>", f"<title>{escape(title)}</title>", *body, "</svg>"]) + "\n"


def draw_axes() -> Iterator[str]:
    """Yield a grid of powers of ten with labels."""
    for power in range(6):
        x = x_position(10**power)
        yield f"<path d='M{x:.1f} {TOP}V{BOTTOM}' stroke='{GRID}'/>"
        yield draw_text(x, BOTTOM + 20, f"{10**power:,}", color=PALE, anchor="middle")
    for power, name in zip(range(-2, 3), ("10 ms", "100 ms", "1 s", "10 s", "100 s"), strict=True):
        y = y_position(10.0**power)
        yield f"<path d='M{LEFT} {y:.1f}H{RIGHT}' stroke='{GRID}'/>"
        yield draw_text(LEFT - 10, y + 4, name, color=PALE, anchor="end")
    yield draw_text((LEFT + RIGHT) / 2, BOTTOM + 44, "jobs or manifests", color=PALE, anchor="middle")


def draw_line(line: Line) -> Iterator[str]:
    """Yield a line and its points."""
    points = [(x_position(count), y_position(seconds)) for count, seconds in line.points]
    yield draw_path(line, "L".join(f"{x:.1f} {y:.1f}" for x, y in points))
    for x, y in points:
        yield f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{line.color}' stroke='{PAPER}' stroke-width='1.5'/>"


def draw_legend(position: int, line: Line) -> Iterator[str]:
    """Yield the entry of a line in the legend."""
    x = LEFT + position * (RIGHT - LEFT) / 4
    yield draw_path(line, f"{x:.1f} 58h24")
    yield draw_text(x + 32, 62, line.name)


def draw_path(line: Line, path: str) -> str:
    """Return a path in the style of a line."""
    dashes = " stroke-dasharray='6 4'" if line.dashed else ""
    return f"<path d='M{path}' fill='none' stroke='{line.color}' stroke-width='2.5' stroke-linejoin='round'{dashes}/>"


def draw_text(
    x: float, y: float, content: str, *, color: str = TEXT, anchor: str = "start", size: int = 13, weight: int = 400
) -> str:
    """Return text at a position."""
    style = f"font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' fill='{color}'"
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(content)}</text>"


def x_position(count: float) -> float:
    """Return the x position of a number of files."""
    return LEFT + (RIGHT - LEFT) * axis_position(count, COUNTS)


def y_position(seconds: float) -> float:
    """Return the y position of a time."""
    return BOTTOM - (BOTTOM - TOP) * axis_position(seconds, SECONDS)


def axis_position(value: float, ends: tuple[float, float]) -> float:
    """Return the position of a value on a logarithmic axis, from 0 to 1."""
    least, most = map(math.log10, ends)
    return min(1, max(0, (math.log10(value) - least) / (most - least)))
