"""Objects after a program has filled in their variables: each value keeps the line where its variable is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jobgen.model.data import (
    Location,
    Node,
    TracedKey,
    TracedList,
    TracedScalar,
    location_of,
    untraced,
    with_tree,
)
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.envsubst import Lookup, Substituted
from jobgen.repo.files import VARIABLE_LAYER, BuiltObject
from jobgen.yamlio.read import read

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
    """Whether a variable that is not among them is empty; otherwise its value is not known."""

    def find(self, name: str) -> str | None:
        """Return the value of a variable; None if it is not known."""
        found = self.known.get(name)
        return found.value if found else "" if self.is_complete else None


class Filled(NamedTuple):
    """An object whose variables are filled in."""

    object: BuiltObject
    faults: tuple[tuple[Location, str], ...]
    """Expressions that the program cannot read, and where they are."""


def fill_in(built: BuiltObject, values: Values, substitute: Callable[[str, Lookup], Substituted]) -> Filled:
    """Fill in the variables of an object, in its keys and in its values."""
    filler = _Filler(values, substitute, built.location)
    traced = filler.fill(built.traced)
    if not filler.is_changed:
        return Filled(built, tuple(filler.faults))
    return Filled(built._replace(data=untraced(traced), traced=traced), tuple(filler.faults))


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
    def __init__(self, values: Values, substitute: Callable[[str, Lookup], Substituted], location: Location) -> None:
        self.values = values
        self.substitute = substitute
        self.location = location
        self.is_changed = False
        self.faults: list[tuple[Location, str]] = []

    def fill(self, node: Any) -> Any:
        """Return a node with its variables filled in."""
        if isinstance(node, dict):
            return {self.fill_key(key): self.fill(value) for key, value in node.items()} if node else node
        if isinstance(node, list):
            items = [self.fill(item) for item in node]
            if type(node) is not TracedList:
                return items
            made = TracedList(items, node.location, node.layer, node.overridden)
            made.item_locations = node.item_locations
            return made
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
        # Programs replace text before it is read as YAML.
        return made if _QUOTED.match(text) else with_tree(made, _read_value(filled.text))

    def replace(self, text: str, node: Node) -> Substituted | None:
        """Return a text with its variables filled in; None if nothing is to be replaced."""
        filled = self.substitute(text, self.values.find)
        if filled.fault:
            self.faults.append((location_of(node) or self.location, filled.fault))
        if filled.text == text:
            return None
        self.is_changed = True
        return filled


def _read_value(text: str) -> Any:
    """Return a text as YAML reads it; the text itself if it is no YAML."""
    documents = read(f"value: {text}\n".encode("utf-8", "surrogatepass"), "").documents if "\n" not in text else ()
    return documents[0].data["value"] if len(documents) == 1 and documents[0].data.keys() == {"value"} else text
