"""Words of others in Markdown, where none of them may become markup."""

from __future__ import annotations

import re

from jobgen.model.lazy_re import lazy_pattern
from jobgen.report.text import visible

# A character reference is text and never markup, in a table and in inline HTML alike.
_MARKUP = lazy_pattern(r"""[^\w\s.,;'"=+/()%-]|_""", re.ASCII)
_QUOTED = lazy_pattern(r"`([^`]+)`")


def inline(words: str) -> str:
    """One line of Markdown that shows these words, with what they quote in backticks as code."""
    parts = _QUOTED.split(visible(words))
    return "".join(f"<code>{_literal(part)}</code>" if odd % 2 else _literal(part) for odd, part in enumerate(parts))


def code(words: str) -> str:
    """The words as code, where `:100:` stays a line and is no emoji."""
    return f"<code>{_literal(visible(words))}</code>"


def _literal(words: str) -> str:
    return _MARKUP.sub(lambda match: _reference(match[0]), words)


def _reference(char: str) -> str:
    return f"&#{ord(char)};" if char.isascii() else char
