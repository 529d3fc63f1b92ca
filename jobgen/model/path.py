"""Paths into an object: dotted (`spec.a['b.c'][0]`, `containers.[name=x]`) and JSON pointers (`/spec/a`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from jobgen.model.lazy_re import lazy_pattern


class NamedItem(NamedTuple):
    """A step to the list item whose field has a value: `[name=main]`."""

    field: str
    value: str

    def __str__(self) -> str:
        return f"[{self.field}={self.value}]"


Step = str | int | NamedItem

# In brackets: a key in either sort of quotes, an index, a named item. Else a word, and a dot between two words.
_DOTTED = lazy_pattern(
    r"""\.?\[(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([0-9]+)|([^=\[\]\s"']+)=(?:"((?:[^"\\]|\\.)*)"|([^\]"]*)))\]
    |(?:\A|\.)([^.\[\]]+)""",
    re.DOTALL | re.VERBOSE,
)
_POINTER = lazy_pattern(r"/(?:\[([^=\[\]/]+)=(.*?)\](?=/|\Z)|([^/]*))", re.DOTALL)
_BARE_VALUE = lazy_pattern(r'[^\]"]*')
_SIMPLE = lazy_pattern(r"[^.\[\]\"'/]+")
_INDEX = lazy_pattern("[0-9]+")
_ESCAPE = lazy_pattern(r"\\(.)", re.DOTALL)


class InvalidPathError(ValueError):
    """A path that cannot be read; its text says why."""


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path in either spelling."""
    return parse_pointer(text) if text.startswith("/") or not text else parse_dotted(text)


def parse_dotted(text: str) -> tuple[Step, ...]:
    """`spec.roles[0].env.[name=X]` as steps."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _DOTTED.match(text, at)
        if match is None or text.startswith("."):
            raise InvalidPathError(f"`{text}` is not a path: stuck at `{text[at:]}`")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    double, single, index, field, quoted, value, word = match.groups()
    if index is not None:
        return int(index)
    if field is not None:
        return NamedItem(field, value if quoted is None else _unquoted(quoted))
    if double is not None:
        return _unquoted(double)
    if single is not None:
        return str(single)
    return int(word) if _INDEX.fullmatch(word) else str(word)


def parse_pointer(text: str) -> tuple[Step, ...]:
    """An RFC 6901 pointer, with `[name=x]` for items that have a name; a slash in brackets is no step."""
    if text and not text.startswith("/"):
        raise InvalidPathError(f"`{text}` is not a JSON pointer: it must start with `/`")
    wrong = re.search("~(?![01])", text)
    if wrong:
        raise InvalidPathError(f"`{text}` is not a JSON pointer: `{text[wrong.start() :][:2]}` must be `~0` or `~1`")
    return tuple(_pointer_step(match) for match in _POINTER.finditer(text))


def _pointer_step(match: re.Match[str]) -> Step:
    field, value, word = match.groups()
    return _unescaped(word) if field is None else NamedItem(_unescaped(field), _unescaped(value))


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def format_dotted(steps: Iterable[Step]) -> str:
    """Steps as people write them."""
    parts: list[str] = []
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif isinstance(step, NamedItem):
            bare = _BARE_VALUE.fullmatch(step.value)
            parts.append(str(step) if bare else f"[{step.field}={_quoted(step.value)}]")
        elif _SIMPLE.fullmatch(step) and not _INDEX.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{_quoted(step)}]")
    return "".join(parts)


def format_pointer(steps: Iterable[Step]) -> str:
    """Steps as an RFC 6901 pointer."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)
