"""JSON that every reader takes and no terminal stumbles over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from jobgen.model.lazy_re import lazy_pattern

# Half a surrogate pair is no text: strict readers refuse it even as an escape, so it is spelt out.
_HALVES = lazy_pattern("[\ud800-\udfff]")
# Controls, marks that turn the direction of writing, line separators, and what YAML does not count as text.
_UNSEEN = lazy_pattern("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]")


def dumps(document: Any, indent: int | None = 2) -> str:
    """The document as text, without a newline at its end."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    if text.isascii():
        return text.replace("\x7f", r"\u007f")
    return _UNSEEN.sub(_spelt, _HALVES.sub(_spelt_escaped, text))


def spelt(words: str) -> str:
    """The words as a reader will see them: half a surrogate pair is spelt out."""
    return words if words.isascii() else _HALVES.sub(_spelt, words)


def listing(items: Iterable[Any], indent: str = "  ") -> str:
    """A list with one item on each line: quick to write, and easy to compare."""
    lines = [f"{indent}{dumps(item, indent=None)}" for item in items]
    return "[\n" + ",\n".join(lines) + f"\n{indent[2:]}]" if lines else "[]"


def _spelt(match: re.Match[str]) -> str:
    return rf"\u{ord(match[0]):04x}"


def _spelt_escaped(match: re.Match[str]) -> str:
    return rf"\{_spelt(match)}"
