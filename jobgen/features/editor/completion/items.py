"""What is offered at a position."""

from __future__ import annotations

from enum import Enum, IntEnum

from jobgen.model.named_tuple import NamedTuple

MAX_ITEMS = 400
"""The items that are sent at once; of more, those that match what is typed."""


class ItemKind(Enum):
    """What an item is, for the symbol that an editor shows."""

    FIELD = "field"
    VALUE = "value"
    NAME = "name"
    RULE = "rule"
    KIND = "kind"
    FUNCTION = "function"
    VARIABLE = "variable"
    SNIPPET = "snippet"


class Rank(IntEnum):
    """The order of items: first what is required."""

    REQUIRED = 0
    COMMON = 1
    OTHER = 2
    DEPRECATED = 3


class Item(NamedTuple):
    """Something that can be written."""

    label: str
    kind: ItemKind
    insert: str = ""
    """The text to write, if it is not the label."""
    detail: str = ""
    """A few words: the type of a field, or where a name comes from."""
    documentation: str = ""
    rank: Rank = Rank.COMMON
    deprecated: str = ""
    """Why not to use it, and what to use instead; empty if there is nothing wrong with it."""
    is_snippet: bool = False
    """Whether the text has places to fill in, `${1:name}`, as in snippets of the Language Server Protocol."""
    above: str = ""
    """A line to add above the position, such as the apiVersion of a kind."""

    @property
    def text(self) -> str:
        """The text to write."""
        return self.insert or self.label


class Offer(NamedTuple):
    """An item, and the text that it puts in the place of a part of the line."""

    item: Item
    start: int
    """The column of the first character that is replaced, from 1."""
    end: int
    text: str
    typed: str
    """What an editor compares with the replaced text to filter items."""
