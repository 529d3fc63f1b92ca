"""Pictures of pages: made small, and compared loosely, because fonts differ between machines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

MAX_BYTES = 150_000
COLUMNS, ROWS = 16, 10


def shrink(picture: bytes) -> list[int]:
    """Return the brightness of each part of a picture, from 0 to 255."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    small = image.open(io.BytesIO(picture)).convert("L").resize((COLUMNS, ROWS), image.Resampling.BOX)
    return list(small.tobytes())


def compress(picture: bytes) -> bytes:
    """Return a smaller file with the same colors: fewer would lose the accents of a page."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    written = io.BytesIO()
    image.open(io.BytesIO(picture)).convert("RGB").save(written, "PNG", optimize=True)
    return written.getvalue()


def list_colors(picture: bytes) -> set[tuple[int, int, int]]:
    """Return all colors of a picture."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    loaded = image.open(io.BytesIO(picture)).convert("RGB")
    return {color for _, color in loaded.getcolors(loaded.width * loaded.height)}


def compare_picture(path: Path, found: bytes, *, accept: bool, scratch: Path) -> str:
    """Return what is old in the file of a picture, or write the file. The layout and the colors of each part count."""
    (scratch / "found.png").write_bytes(found)
    if accept:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(compress(found))
    distances = [abs(old - new) for old, new in zip(shrink(path.read_bytes()), shrink(found), strict=True)]
    if sum(distances) / len(distances) >= 8:
        return f"{path} is old; see {scratch}, and run with --accept"
    return f"a part of {path} is old; see {scratch}, and run with --accept" if max(distances) >= 80 else ""
