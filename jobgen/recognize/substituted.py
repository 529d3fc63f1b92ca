"""Objects after a program has filled in their variables: each value keeps the line where its variable is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from typing import Any

from jobgen.model.budget import Work, charge
from jobgen.model.data import Location, Node, TracedKey, TracedList, TracedScalar, location_of, untraced, with_tree
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import VARIABLE_LAYER, BuiltObject
from jobgen.yamlio.read import read

_NAME = lazy_pattern(r"\w+")
_OPERATOR = lazy_pattern(r":[-=?+]|=|##?|%%?|,,?|\^\^?|/[/#%]?|:")
_LENGTH = lazy_pattern(r"\$\{#(\w+)\}")
_NUMBER = lazy_pattern(r"[+-]?[0-9]+\Z")
_MAX_DEPTH = 20
_MAX_LENGTH = 1_000_000
_MAX_TRIMMED = 2_000
"""Limits for hostile texts: how deep expressions are nested, how long a result is, and a text that is trimmed."""
_READ_OF_STEP, _MATCHED_OF_STEP = 64, 2048
"""So many characters are read, and compared with a pattern, in a step of the budget."""


class Substituted(NamedTuple):
    """A text with values instead of variables."""

    text: str
    names: tuple[str, ...] = ()
    fault: str = ""
    """The expression that Flux cannot read, so that it applies nothing of the object."""


def substitute(text: str, lookup: Callable[[str], str | None]) -> Substituted:
    """Replace the variables of a text; `lookup` returns "" for one that is not set, None if that is not known."""
    reader = _Reader(text, lookup)
    try:
        made = reader.read_text()
    except _UnreadableError as error:
        return Substituted(text, fault=error.args[0])
    charge(Work.BUILD, 1 + (len(text) + len(made)) // _READ_OF_STEP, len(made))
    return Substituted(made, tuple(dict.fromkeys(reader.names)))


class _UnreadableError(Exception):
    """An expression cannot be read."""


class _Reader:
    def __init__(self, text: str, lookup: Callable[[str], str | None]) -> None:
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
        if not all(map(_NUMBER.match, arguments)) or any(len(each) > 18 for each in arguments):
            return value
        first, *length = map(int, arguments)
        first = max(len(value) + first, 0) if first < 0 else first
        return value[first : max(first + length[0], first)] if length else value[first:]
    if operator[0] == "/":
        return _replace(operator, value, arguments[0], arguments[1])
    return _trim(operator, value, arguments[0])


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
    charge(Work.BUILD, len(value) * (1 + len(value) * (1 + pattern.count("*")) // _MATCHED_OF_STEP))
    matches = re.compile(translate(pattern)).match
    counts = range(1, len(value) + 1) if len(operator) == 1 else range(len(value), 0, -1)
    for count in counts:
        if operator[0] == "#" and matches(value[:count]):
            return value[count:]
        if operator[0] == "%" and matches(value[-count:]):
            return value[:-count]
    return value


# Texts that YAML needs quotes for, or that are written as a block: a value in them stays text.
_QUOTED = lazy_pattern(r"[\s#,\[\]{}&*!|>'\"%@`]|[-?:](?:\s|\Z)|.*(?:\n|:\s|\s#|[\s:]\Z)")


class Variable(NamedTuple):
    """The value of a variable, and where it is set."""

    value: str
    location: Location


class Values(NamedTuple):
    """The values of variables that are in the repository."""

    known: Mapping[str, Variable]
    is_complete: bool
    """True if a variable that is not among them is empty; otherwise its value is not known."""

    def find(self, name: str) -> str | None:
        """Return the value of a variable; None if it is not known."""
        found = self.known.get(name)
        return found.value if found else "" if self.is_complete else None


def fill_in(built: BuiltObject, values: Values) -> tuple[BuiltObject, list[tuple[Location, str]]]:
    """Fill in the variables of an object; return also the expressions that Flux cannot read, and where they are."""
    filler = _Filler(values, built.location)
    traced = filler.fill(built.traced)
    made = built._replace(data=untraced(traced), located=traced) if filler.is_changed else built
    return made, filler.faults


def fill_leaf(
    node: Node, text: str, names: Iterable[str], known: Mapping[str, Variable], location: Location
) -> TracedScalar:
    """Return a text in place of a leaf with variables; it knows where these are set."""
    made = TracedScalar(text, location_of(node) or location, VARIABLE_LAYER)
    made.overridden = node.overridden if type(node) is TracedScalar else None
    for name in reversed([each for each in names if each in known]):
        made.overridden = TracedScalar(name, known[name].location, VARIABLE_LAYER, made.overridden)
    return made


class _Filler:
    def __init__(self, values: Values, location: Location) -> None:
        self.values = values
        self.location = location
        self.is_changed = False
        self.faults: list[tuple[Location, str]] = []

    def fill(self, node: Any) -> Any:
        if isinstance(node, dict):
            return {self.fill_key(key): self.fill(value) for key, value in node.items()} if node else node
        if isinstance(node, list):
            items = [self.fill(item) for item in node]
            if type(node) is not TracedList:
                return items
            return TracedList(items, node.location, node.layer, node.overridden, node.item_locations)
        text = node.value if type(node) is TracedScalar else node
        return self.fill_scalar(node, text) if isinstance(text, str) and "$" in text else node

    def fill_key(self, key: str) -> str:
        filled = self.replace(key, key) if "$" in key else None
        if filled is None:
            return key
        return TracedKey.at(filled.text, key.location, VARIABLE_LAYER) if type(key) is TracedKey else filled.text

    def fill_scalar(self, node: Node, text: str) -> Node:
        filled = self.replace(text, node)
        if filled is None:
            return node
        made = fill_leaf(node, filled.text, filled.names, self.values.known, self.location)
        if _QUOTED.match(text) or "\n" in filled.text:
            return made
        # Programs replace text before it is read as YAML.
        documents = read(f"value: {filled.text}\n".encode("utf-8", "surrogatepass"), "").documents
        is_value = len(documents) == 1 and documents[0].data.keys() == {"value"}
        return with_tree(made, documents[0].data["value"] if is_value else filled.text)

    def replace(self, text: str, node: Node) -> Substituted | None:
        """Return a text with its variables filled in; None if nothing is to be replaced."""
        filled = substitute(text, self.values.find)
        if filled.fault:
            self.faults.append((location_of(node) or self.location, filled.fault))
        if filled.text == text:
            return None
        self.is_changed = True
        return filled
