"""How text that is wrong in one of jobgen's own formats is written right, as far as that is clear."""

from __future__ import annotations

import re

from jobgen.k8s.secrets import find_secrets_in_text
from jobgen.model.lazy_re import lazy_pattern

_MAX_NAME = 253
_MAX_WORDS = 10
_PLAIN_TEXT = lazy_pattern(r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_/][A-Za-z0-9_@./-]{0,62}")
"""Text that YAML reads as it is written, without quotes."""
_QUOTED_TEXT = lazy_pattern(r"[^\x00-\x1f\"\\`]{0,63}")
_WIDE_BRACKETS = {"［": "[", "｛": "{"}


def advise_shape(name: str, text: str, expected: str) -> str:
    """Return how text is written as the list or the mapping that was meant; empty if that is not clear."""
    if text[:1] in _WIDE_BRACKETS:
        return f"; `{text[0]}` is not the `{_WIDE_BRACKETS[text[0]]}` of YAML"
    if name in ("command", "args") and expected == "a list":
        return _list_words(text)
    key, sign, rest = text.partition("=")
    if name == "env" and expected == "a mapping" and sign and _PLAIN_TEXT.fullmatch(key):
        written = rest if _PLAIN_TEXT.fullmatch(rest) else f'"{rest}"'
        return f"; write `env` as a mapping: `{{{key}: {written}}}`" if _QUOTED_TEXT.fullmatch(rest) else ""
    return ""


def write_as_list(text: str) -> str:
    """Return text as the only item of a list; empty if it needs quotes."""
    return f": `[{text}]`" if _PLAIN_TEXT.fullmatch(text) else ""


def _list_words(command: str) -> str:
    """Return a command as a list, if it needs no shell and is short."""
    words = command.split()
    is_plain = 0 < len(words) <= _MAX_WORDS and not re.search(r"""["'\\$|&;<>()`*?#~=%!\[\]{},]""", command)
    listed = ", ".join(f'"{word}"' for word in words)
    return f": `[{listed}]`" if is_plain else ""


def write_as_name(text: str) -> str:
    """The name that was probably meant: `resnet-50` for `ResNet_50`; none for a secret, which it would show."""
    if find_secrets_in_text(text):
        return ""
    meant = re.sub(r"[^a-z0-9.]+", "-", text[:_MAX_NAME].lower()).strip("-.")
    # What is left of a name in another script says nothing.
    return meant if 2 * len(meant) >= min(len(text), _MAX_NAME) else ""
