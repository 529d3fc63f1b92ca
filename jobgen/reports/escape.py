"""Escape text that users wrote for terminals, JSON, Markdown and URIs.

File names, messages and values come from the linted files. None of them may move a cursor, break a line or become
markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from jobgen.model.lazy_re import lazy_pattern

UNKNOWN_FILE = "<unknown>"
# Strict readers refuse half of a surrogate pair even as an escape, so it becomes literal text.
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
# Control characters, bidirectional marks, line separators, and characters that YAML does not allow.
_INVISIBLE = lazy_pattern("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]")
_QUOTED = lazy_pattern(r"`([^`]+)`")
# A character reference is always text, in a Markdown table and in inline HTML.
_MARKUP = lazy_pattern(r"""[^\w\s.,;'"=+/()%-]|_""", re.ASCII)


def visible(line: str) -> str:
    """Escape all unprintable characters of a line, including line breaks."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def dump_json(document: object, indent: int | None = 2) -> str:
    """Return JSON that strict readers accept and that is safe to print; no newline at the end."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    if text.isascii():
        return text.replace("\x7f", r"\u007f")
    return _INVISIBLE.sub(_escape, _SURROGATE.sub(lambda match: rf"\{_escape(match)}", text))


def dump_json_list(items: Iterable[object], indent: str = "  ") -> str:
    """Return a JSON list with one item on each line: fast to write, and easy to compare."""
    lines = [f"{indent}{dump_json(item, indent=None)}" for item in items]
    return "[\n" + ",\n".join(lines) + f"\n{indent[2:]}]" if lines else "[]"


def escape_surrogates(text: str) -> str:
    """Escape halves of surrogate pairs, as `dump_json` does."""
    return text if text.isascii() else _SURROGATE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return rf"\u{ord(match[0]):04x}"


def markdown_text(text: str) -> str:
    """Return one line of Markdown that shows the text, with its parts in backticks as code."""
    parts = _QUOTED.split(visible(text))
    return "".join(
        f"<code>{_escape_markup(part)}</code>" if index % 2 else _escape_markup(part)
        for index, part in enumerate(parts)
    )


def markdown_code(text: str) -> str:
    """Return the text as code, in which `:100:` is a line number and not an emoji."""
    return f"<code>{_escape_markup(visible(text))}</code>"


def _escape_markup(text: str) -> str:
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};" if match[0].isascii() else match[0], text)


def relative_path(file: str) -> str:
    """Return the file name without `./`; it is never empty."""
    while file.startswith("./"):
        file = file[2:].lstrip("/")
    return file or UNKNOWN_FILE


@lru_cache(4096)
def file_uri(file: str) -> str:
    """Return a URI reference: relative to the root of the repository, or absolute if the file name is."""
    name = relative_path(file)
    try:
        encoded = name.encode("utf-8", "surrogateescape")  # the bytes of the file system
    except UnicodeEncodeError:
        encoded = name.encode("utf-8", "surrogatepass")
    path = quote(encoded, safe="/")
    # Two slashes at the start would be read as a host name.
    return f"file:///{path.lstrip('/')}" if path.startswith("/") else path
