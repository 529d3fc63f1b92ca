"""The variables of Flux: `${name}`, `${name:-default}`, `${name/old/new}` and the other forms of its envsubst.

An expression with a variable whose value is not known stays as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import translate

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

Lookup = Callable[[str], str | None]
"""Returns the value of a variable; empty if it is not set, None if that is not known."""

_NAME = lazy_pattern(r"\w+")
_OPERATOR = lazy_pattern(r":[-=?+]|=|##?|%%?|,,?|\^\^?|/[/#%]?|:")
_LENGTH = lazy_pattern(r"\$\{#(\w+)\}")
_NUMBER = lazy_pattern(r"[+-]?[0-9]+\Z")
_MAX_DEPTH = 20
_MAX_LENGTH = 1_000_000
_MAX_TRIMMED = 2_000
"""Limits for hostile texts: how deep expressions are nested, how long a result is, and a text that is trimmed."""


class Substituted(NamedTuple):
    """A text with values instead of variables."""

    text: str
    names: tuple[str, ...] = ()
    """The variables that were replaced."""
    fault: str = ""
    """The expression that Flux cannot read, so that it applies nothing of the object."""


def substitute(text: str, lookup: Lookup) -> Substituted:
    """Replace the variables of a text."""
    reader = _Reader(text, lookup)
    try:
        made = reader.read_text()
    except _UnreadableError as error:
        return Substituted(text, fault=error.args[0])
    return Substituted(made, tuple(dict.fromkeys(reader.names)))


class _UnreadableError(Exception):
    """An expression cannot be read."""


class _Reader:
    def __init__(self, text: str, lookup: Lookup) -> None:
        self.text = text
        self.lookup = lookup
        self.at = 0
        self.names: list[str] = []

    def read_text(self) -> str:
        """Return the whole text; `$$` is a dollar sign."""
        parts: list[str] = []
        length = 0
        while self.at < len(self.text):
            start = self.text.find("$", self.at)
            end = len(self.text) if start < 0 else start
            parts.append(self.text[self.at : end])
            self.at = end
            if self.text.startswith("${", end):
                parts.append(self.read_expression(0))
            elif self.text.startswith("$", end):
                # The second of two dollar signs begins no expression.
                parts.append("$")
                self.at += 2 if self.text.startswith("$$", end) else 1
            length += len(parts[-1])
            if length > _MAX_LENGTH:
                raise _UnreadableError(self.text[end : end + 40])
        return "".join(parts)

    def read_expression(self, depth: int) -> str:
        """Return the value of the expression that begins here, or its text if the value is not known."""
        start = self.at
        matched = _LENGTH.match(self.text, start)
        if matched:
            self.at = matched.end()
            value = self.find(matched[1])
            return matched[0] if value is None else str(len(value.encode()))
        name = _NAME.match(self.text, start + 2)
        if name is None or depth > _MAX_DEPTH:
            raise self.refuse(start)
        self.at = name.end()
        operator = _OPERATOR.match(self.text, self.at)
        arguments: list[str] = []
        is_known = True
        if operator:
            self.at = operator.end()
            arguments, is_known = self.read_arguments(operator[0], start, depth)
        if not self.text.startswith("}", self.at):
            raise self.refuse(start)
        self.at += 1
        value = self.find(name[0]) if is_known else None
        return (
            self.text[start : self.at] if value is None else _apply(operator[0] if operator else "", value, arguments)
        )

    def read_arguments(self, operator: str, start: int, depth: int) -> tuple[list[str], bool]:
        """Return the arguments of an operator, and whether all their variables are known."""
        if operator[0] in ",^":
            return [], True
        separator = "/" if operator[0] == "/" else ":" if operator == ":" else ""
        arguments: list[list[str]] = [[]]
        is_known = True
        while not self.text.startswith("}", self.at):
            if self.at >= len(self.text):
                raise self.refuse(start)
            if self.text.startswith("${", self.at):
                begin = self.at
                made = self.read_expression(depth + 1)
                is_known = is_known and made != self.text[begin : self.at]
                arguments[-1].append(made)
            elif self.text[self.at] == separator and len(arguments) == 1:
                arguments.append([])
                self.at += 1
            else:
                is_escape = operator[0] == "/" and self.text[self.at : self.at + 2] in ("\\/", "\\\\")
                arguments[-1].append(self.text[self.at + is_escape])
                self.at += 1 + is_escape
        joined = ["".join(parts) for parts in arguments]
        if operator[0] != "/" and operator[1:] not in ("-", "=", "?", "+") and operator != "=" and not joined[0]:
            raise self.refuse(start)
        # Flux would look for the second slash in the rest of the object.
        return joined, is_known and (operator[0] != "/" or len(joined) > 1)

    def find(self, name: str) -> str | None:
        value = self.lookup(name)
        self.names += [name] if value is not None else []
        return value

    def refuse(self, start: int) -> _UnreadableError:
        end = self.text.find("}", start)
        return _UnreadableError(self.text[start : end + 1 if 0 <= end < start + 60 else start + 20].split("\n")[0])


def _apply(operator: str, value: str, arguments: list[str]) -> str:
    """Apply an operator as Flux does: without one, and for all that begin with a default, an empty value counts."""
    if operator in ("", "=") or operator[1:] in ("-", "=", "?", "+"):
        return value or "".join(arguments)
    if operator[0] in ",^":
        change = str.lower if operator[0] == "," else str.upper
        return change(value) if len(operator) > 1 else change(value[:1]) + value[1:]
    if operator == ":":
        return _slice(value, arguments)
    if operator[0] == "/":
        return _replace(operator, value, arguments[0], arguments[1])
    return _trim(operator, value, arguments[0])


_MAX_DIGITS = 18


def _slice(value: str, arguments: list[str]) -> str:
    if not all(map(_NUMBER.match, arguments)) or any(len(each) > _MAX_DIGITS for each in arguments):
        return value
    position = int(arguments[0])
    position = max(len(value) + position, 0) if position < 0 else position
    return value[position : max(position + int(arguments[1]), position)] if len(arguments) > 1 else value[position:]


def _replace(operator: str, value: str, old: str, new: str) -> str:
    if operator == "/#":
        return new + value[len(old) :] if value.startswith(old) else value
    if operator == "/%":
        return value.removesuffix(old) + new if value.endswith(old) else value
    if len(value) * max(len(new), 1) > _MAX_LENGTH:
        return value
    return value.replace(old, new) if operator == "//" else value.replace(old, new, 1)


def _trim(operator: str, value: str, pattern: str) -> str:
    """Remove what a pattern matches at the start (`#`) or the end (`%`); twice the sign is the longest match."""
    import re

    if len(value) > _MAX_TRIMMED or pattern.count("*") > _MAX_DEPTH or len(pattern) > _MAX_TRIMMED:
        return value
    matches = re.compile(translate(pattern)).match
    counts = range(1, len(value) + 1) if len(operator) == 1 else range(len(value), 0, -1)
    for count in counts:
        if operator[0] == "#" and matches(value[:count]):
            return value[count:]
        if operator[0] == "%" and matches(value[-count:]):
            return value[:-count]
    return value
