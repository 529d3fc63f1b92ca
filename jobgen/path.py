"""Paths into an object: dotted (`spec.a['b.c'][0]`, `containers.[name=x]`) and JSON pointers (`/spec/a`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Named(NamedTuple):
    """A step to the list item whose field has a value: `[name=main]`."""

    field: str
    value: str

    def __str__(self) -> str:
        return f"[{self.field}={self.value}]"


Step = str | int | Named

_DOTTED = re.compile(r"""\.?(?:\[(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\d+)|([^=\]\s]+)=([^\]]*))\]|([^.\[\]]+))""")
_NAMED = re.compile(r"\[([^=\]]+)=([^\]]*)\]\Z")
_SIMPLE = re.compile(r"[^.\[\]\"'/]+\Z")


class BadPathError(ValueError):
    """A path that cannot be read; its text says why."""


def parse(text: str) -> tuple[Step, ...]:
    """The steps of a path in either spelling."""
    return parse_pointer(text) if text.startswith("/") or not text else parse_dotted(text)


def parse_dotted(text: str) -> tuple[Step, ...]:
    """`spec.roles[0].env.[name=X]` as steps."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _DOTTED.match(text, at)
        if match is None or (at == 0 and text.startswith(".")):
            raise BadPathError(f"`{text}` is not a path: stuck at `{text[at:]}`")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    double, single, index, field, value, word = match.groups()
    if index is not None:
        return int(index)
    if field is not None:
        return Named(field, value)
    if double is not None:
        return re.sub(r"\\(.)", r"\1", double)
    if single is not None:
        return str(single)
    return int(word) if word.isdigit() else str(word)


def parse_pointer(text: str) -> tuple[Step, ...]:
    """An RFC 6901 pointer, with `[name=x]` for items that have a name."""
    if text == "":
        return ()
    if not text.startswith("/"):
        raise BadPathError(f"`{text}` is not a JSON pointer: it must start with `/`")
    return tuple(_pointer_step(part) for part in _pointer_parts(text))


def _pointer_parts(text: str) -> list[str]:
    """Split at slashes, but not at those inside brackets: `/a/[name=b/c]/d`."""
    return re.findall(r"/(\[[^\]]*=[^\]]*\](?=/|\Z)|[^/]*)", text)


def _pointer_step(part: str) -> Step:
    named = _NAMED.match(part)
    if named:
        return Named(_unescape(named[1]), _unescape(named[2]))
    return _unescape(part)


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def dotted(steps: Iterable[Step]) -> str:
    """Steps as people write them."""
    parts: list[str] = []
    for step in steps:
        if isinstance(step, str) and _SIMPLE.match(step) and not step.isdigit():
            parts.append(f".{step}" if parts else step)
        elif isinstance(step, str):
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            parts.append(f'["{escaped}"]')
        else:
            parts.append(f"[{step}]" if isinstance(step, int) else str(step))
    return "".join(parts)


def pointer(steps: Iterable[Step]) -> str:
    """Steps as an RFC 6901 pointer."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
