"""Write the icon of the VS Code extension: the mark of the HTML page, as PNG."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "jobgen/data/page"
ICON = ROOT / "editors/vscode/media/icon.png"
SIZE = 256
_MARGIN = 28
_RADIUS = 48
_SHAPE = re.compile(r"M(\d+) (\d+)h(\d+)v(\d+)")
_FAINT = 0.45
_WHITE = (255, 255, 255)


def read_mark() -> list[tuple[int, int, int, int]]:
    """Return the rectangles of the mark, on a field of 20 by 20: left, top, width, height."""
    svg = (PAGE / "page.html").read_text().partition('class="brand-mark"')[2].partition("</svg>")[0]
    return [(int(x), int(y), int(width), int(height)) for x, y, width, height in _SHAPE.findall(svg)]


def read_accent() -> tuple[int, int, int]:
    """Return the color of the mark in the light theme."""
    digits = re.search(r"--accent: #([0-9a-f]{6});", (PAGE / "style.css").read_text())
    assert digits is not None
    return tuple(bytes.fromhex(digits[1]))  # type: ignore[return-value]


def draw() -> list[bytes]:
    """Return the rows of the picture: white rectangles on a rounded square of the accent color."""
    accent = read_accent()
    faint = tuple(round(white * _FAINT + color * (1 - _FAINT)) for white, color in zip(_WHITE, accent, strict=True))
    unit = (SIZE - 2 * _MARGIN) / 20
    shapes = []
    for number, (left, top, width, height) in enumerate(read_mark()):
        box = [round(_MARGIN + each * unit) for each in (left, top, left + width, top + height)]
        shapes.append((box, faint if number in (1, 2) else _WHITE))
    return [
        b"".join(bytes((*color_at(x, y, shapes, accent), coverage_at(x, y))) for x in range(SIZE)) for y in range(SIZE)
    ]


def color_at(
    x: int, y: int, shapes: list[tuple[list[int], tuple[int, ...]]], background: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the color of a pixel."""
    for (left, top, right, bottom), color in shapes:
        if left <= x < right and top <= y < bottom:
            return color
    return background


def coverage_at(x: int, y: int) -> int:
    """Return how much of a pixel the rounded square covers, from 0 to 255."""
    across = max(_RADIUS - x - 0.5, x + 0.5 - (SIZE - _RADIUS), 0)
    down = max(_RADIUS - y - 0.5, y + 0.5 - (SIZE - _RADIUS), 0)
    distance = (across**2 + down**2) ** 0.5
    return round(255 * min(max(_RADIUS - distance + 0.5, 0), 1))


def encode(rows: list[bytes]) -> bytes:
    """Return a PNG with transparency."""
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 6, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    parts = [(b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


if __name__ == "__main__":
    ICON.write_bytes(encode(draw()))
