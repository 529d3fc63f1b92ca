"""Draw what a terminal shows, as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

COLUMN, ROW, MARGIN, BAR = 8.4, 20, 18, 34
BACKGROUND, INK, FAINT = "#1d2125", "#e4e6e8", "#8d959d"
COLORS = {"31": "#ff8a80", "32": "#8fd694", "33": "#f5c86b", "34": "#82b1ff", "35": "#d7a6f5", "36": "#6fc3ca"}
_CODE = re.compile(r"\x1b\[([\d;]*)m")
_OTHER = re.compile(r"\x1b(?:\[[\d;?]*[A-Za-ln-z]|\][^\x1b\x07]*(?:\x1b\\|\x07))")
_STYLE = (
    f"text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: {INK}; "
    "white-space: pre; }"
)


def draw_terminal(command: str, screen: str, title: str, columns: int) -> str:
    """Return a picture of a command and its output."""
    prompt = f'<tspan fill="{COLORS["32"]}">$</tspan> <tspan font-weight="bold">{escape(command)}</tspan>'
    lines = [prompt, *_format_lines(_OTHER.sub("", screen), columns)]
    width, height = round(columns * COLUMN + 2 * MARGIN), BAR + len(lines) * ROW + MARGIN
    dots = "".join(f'<circle cx="{MARGIN + number * 18}" cy="17" r="5" fill="#3c434a"/>' for number in range(3))
    texts = "".join(
        f'<text x="{MARGIN}" y="{BAR + 14 + number * ROW}" xml:space="preserve">{line}</text>\n'
        for number, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>\n{dots}\n{texts}</svg>\n'
    )


def _format_lines(screen: str, columns: int) -> list[str]:
    """Return each line as SVG, wrapped between words."""
    return [part for line in screen.rstrip("\n").split("\n") for part in _wrap_line(line, columns)]


def _wrap_line(line: str, columns: int) -> Iterator[str]:
    codes: list[str] = []
    shown, used = "", 0
    for number, piece in enumerate(_CODE.split(line)):
        if number % 2:
            codes = [] if piece in {"", "0"} else [*codes, *piece.split(";")]
            continue
        part = ""
        for word in re.findall(r"\s+|\S+", piece):
            if used and used + len(word) > columns:
                yield shown + _format_part(part, codes)
                shown, part, used = "", "", 0
            part += word
            used += len(word)
        shown += _format_part(part, codes)
    yield shown


def _format_part(text: str, codes: list[str]) -> str:
    if not text:
        return ""
    color = next((COLORS[code] for code in codes if code in COLORS), FAINT if "2" in codes else "")
    attributes = (f' fill="{color}"' if color else "") + (' font-weight="bold"' if "1" in codes else "")
    return f"<tspan{attributes}>{escape(text)}</tspan>" if attributes else escape(text)
