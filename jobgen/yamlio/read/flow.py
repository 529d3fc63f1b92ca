"""Flow collections (`[…]` and `{…}`) for the fast reader, which gives up on anything that it is not certain of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jobgen.model.lazy_re import possessive_pattern
from jobgen.model.limits import MAX_DEPTH
from jobgen.yamlio.read.scalars import normalize_number, resolve

# In these escape sequences YAML agrees with JSON.
QUOTED = r"""("(?:[^"\\\n]|\\["\\nt])*+"|'(?:[^'\n]|'')*+'(?!'))"""
_TOKEN = possessive_pattern(
    rf"""[ \n]*(?:
    {QUOTED}
    |((?:[A-Za-z0-9_./+=$^~();\\]|-(?=[^\s,\[\]{{}}:\#?]))
      (?:[^,\[\]{{}}:\#?\ \n]|\ +(?=[^\ ,\[\]{{}}:\#?\n])|:(?=[^\ ,\[\]{{}}?\n])|(?<=[^\ ])\#)*+)
    |([\[\]{{}},]|(?<![ \n]):(?=[ \n]))
    |([^ \n]))""",
    re.VERBOSE,
)
AMBIGUOUS_KEYS = frozenset(
    "y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF null Null NULL".split()
)
_MAX_LENGTH = 4000
# Block and flow collections share one limit of depth; a flow collection is at most as deep as it has brackets.
FLOW_DEPTH = 50
BLOCK_DEPTH = MAX_DEPTH - FLOW_DEPTH

# Of longer keys, the exact reader knows which are valid.
_MAX_KEY = 200
_NOTHING = ("", "", "", "")
_Tokens = Iterator[tuple[str, str, str, str]]


class UncertainError(Exception):
    """The text may be valid, but only the exact reader can tell."""


def parse_flow(text: str) -> Any:
    """Parse a `[…]` or `{…}`. It may be on several lines, but each of its words is on one."""
    if text.count("[") + text.count("{") > FLOW_DEPTH or len(text) > _MAX_LENGTH:
        raise UncertainError
    tokens = iter(_TOKEN.findall(text))
    value = _parse_node(next(tokens), tokens)
    if next(tokens, None):
        raise UncertainError
    return value


def parse_quoted(text: str) -> str:
    """Parse a text that `QUOTED` matches."""
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    if "\\" not in text:
        return text[1:-1]
    import json

    return str(json.loads(text))


def parse_word(text: str) -> Any:
    """Parse a plain scalar."""
    value = resolve(text)
    if isinstance(value, float):
        # Whether a number is too large, the exact reader decides.
        if value - value != 0:
            raise UncertainError
        return normalize_number(value)
    return value


def _parse_node(token: tuple[str, str, str, str], tokens: _Tokens) -> Any:
    quoted, word, sign, _ = token
    if word:
        return parse_word(word)
    if quoted:
        return parse_quoted(quoted)
    if sign == "[":
        return _parse_list(tokens)
    if sign == "{":
        return _parse_mapping(tokens)
    raise UncertainError


def _parse_list(tokens: _Tokens) -> list[Any]:
    items: list[Any] = []
    for token in tokens:
        if token[2] == "]":
            return items
        items.append(_parse_node(token, tokens))
        if _ends(tokens, "]"):
            return items
    raise UncertainError


def _parse_mapping(tokens: _Tokens) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for quoted, word, sign, _ in tokens:
        if sign == "}":
            return items
        key = parse_quoted(quoted) if quoted else word
        if not quoted and (word in AMBIGUOUS_KEYS or not (word[:1].isalpha() or word[:1] == "_")):
            raise UncertainError
        if key in items or len(quoted or word) > _MAX_KEY or next(tokens, _NOTHING)[2] != ":":
            raise UncertainError
        items[key] = _parse_node(next(tokens, _NOTHING), tokens)
        if _ends(tokens, "}"):
            return items
    raise UncertainError


def _ends(tokens: _Tokens, end: str) -> bool:
    """Return True if the collection ends after an item; otherwise, skip its comma."""
    sign = next(tokens, _NOTHING)[2]
    if sign not in (end, ","):
        raise UncertainError
    return sign == end
