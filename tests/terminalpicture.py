"""A screen of a terminal as SVG: rows of texts with their styles, and windows over them."""

from __future__ import annotations

from html import escape
from unicodedata import east_asian_width

_WIDTH, _HEIGHT, _MARGIN = 7.8, 18, 14
_COLORS = {
    "": "#1f2328",
    "Identifier": "#0d5f66",
    "Statement": "#0d5f66",
    "Special": "#6b7280",
    "String": "#7a4b00",
    "Number": "#7a3e9d",
    "Comment": "#5f6b76",
    "NonText": "#c0c4c8",
    "DiagnosticError": "#b3261e",
    "DiagnosticWarn": "#8a5a00",
    "DiagnosticInfo": "#2456a6",
    "LspCodeLens": "#5f6b76",
}


def draw_screen(screen: dict, title: str) -> str:
    """Return a picture of a screen without its empty rows and its last two, the status and the command."""
    rows = [runs for runs in screen["rows"][:-2] if runs != [["~".ljust(_columns(screen)), "NonText"]]]
    floats = screen["floats"]
    count = max([len(rows), *(each["row"] + len(each["lines"]) + 2 for each in floats)])
    width = _columns(screen) * _WIDTH + 2 * _MARGIN
    height = count * _HEIGHT + 2 * _MARGIN
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    font = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>',
        f"<title>{escape(title)}</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="#fff" stroke="#d0d7de"/>',
        *(part for number, runs in enumerate(rows) for part in _draw_row(number, runs)),
        *(part for each in floats for part in _draw_float(each)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _columns(screen: dict) -> int:
    return sum(_count_cells(text) for text, _ in screen["rows"][-1])


def _count_cells(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _draw_row(number: int, runs: list[list[str]]) -> list[str]:
    parts, column = [], 0
    for text, style in runs:
        parts += _draw_text(number, column, text, style)
        column += _count_cells(text)
    return parts


def _draw_text(row: float, column: int, text: str, style: str) -> list[str]:
    start = len(text) - len(text.lstrip())
    shown = text.strip()
    if not shown:
        return []
    group, _, over = style.partition(" ")
    color = _COLORS.get(group, _COLORS[""])
    line = ' text-decoration="underline"' if "Underline" in style else ""
    line += f' text-decoration-color="{_COLORS["DiagnosticError"]}"' if over else ""
    x, y = _MARGIN + (column + start) * _WIDTH, _MARGIN + row * _HEIGHT + 13
    length = _count_cells(shown) * _WIDTH
    place = f'x="{x:g}" y="{y:g}" textLength="{length:g}" lengthAdjust="spacingAndGlyphs"'
    return [f'<text {place} fill="{color}"{line} xml:space="preserve">{escape(shown)}</text>']


def _draw_float(window: dict) -> list[str]:
    """Draw a window half a row below its place, so that its border covers no text."""
    row = window["row"] + 0.5
    x, y = _MARGIN + (window["column"] - 1) * _WIDTH, _MARGIN + row * _HEIGHT - 6
    width, height = (window["width"] + 2) * _WIDTH, len(window["lines"]) * _HEIGHT + 10
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="#f6f8fa" stroke="#8c959d"/>'
    texts = [
        _draw_text(row + number, window["column"], text[: window["width"]], "")
        for number, text in enumerate(window["lines"])
    ]
    return [box, *(part for text in texts for part in text)]
