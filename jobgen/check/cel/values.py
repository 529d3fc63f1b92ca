"""Values that CEL has and data has not, such as quantities: bytes that begin with the name of what they are."""

from __future__ import annotations

from typing import NamedTuple

NO_OVERLOAD = "no such overload"
OFFLINE = "cannot be evaluated offline"
# Begins no text, and is not the zero byte at which the library would stop reading.
_MARK = b"\xff"


def tagged(tag: str, text: str) -> bytes:
    """A value of a type of Kubernetes."""
    return _MARK + f"{tag} {text}".encode()


def untagged(value: object, tag: str) -> str:
    """The text of a value that must be of a type."""
    if tag_of(value) != tag:
        raise TypeError(NO_OVERLOAD)
    assert isinstance(value, (bytes, bytearray)), "it has a tag"
    return value[len(tag) + 2 :].decode()


def tag_of(value: object) -> str:
    """The name of a value's type, if it is one of Kubernetes'."""
    if isinstance(value, (bytes, bytearray)) and value[:1] == _MARK:
        return bytes(value[1:]).partition(b" ")[0].decode("latin-1")
    return ""


def strings(*values: object) -> tuple[str, ...]:
    """Arguments that must be strings."""
    found = tuple(value for value in values if type(value) is str)
    if len(found) != len(values):
        raise TypeError(NO_OVERLOAD)
    return found


class Fault(NamedTuple):
    """Why the API server would refuse the text of an expression, and where in it."""

    message: str
    line: int = 1
    column: int = 1


class Failed(NamedTuple):
    """Why an expression has no value for some data."""

    message: str


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset in a text, counted from 1."""
    before = text[: max(offset, 0)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
