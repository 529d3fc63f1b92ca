"""Write Markdown for an editor. Text of users is escaped, so that it cannot add links, images or HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobgen.features.editor.values import to_real_file
from jobgen.model.data import Location, Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.report.escape import visible

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
