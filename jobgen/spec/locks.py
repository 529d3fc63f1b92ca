"""Locks of overlays: fields that jobs, and layers of others, may not set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.data import Node, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, format_dotted, parse_dotted


class FieldLock(NamedTuple):
    """A field that only an overlay and its ancestors may set."""

    path: tuple[Step, ...]
    node: Node
    overlay: str
    allowed: tuple[str, ...] = ()
    """The overlays that may set it."""
    reason: str = ""
    owner: str = ""

    def describe(self) -> str:
        """Return who locked which field, and why."""
        owner = f" (owner: {self.owner})" if self.owner else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"`{format_dotted(self.path)}` is locked by overlay `{self.overlay}`{owner}{reason}"


def parse_locks(entries: Iterable[Any], overlay: str, allowed: Iterable[str]) -> Iterator[FieldLock]:
    """Return the locks of an overlay. An entry is a path, or a mapping with a path, a reason and an owner."""
    for entry in entries:
        field = name_field(entry)
        reason, owner = (_read_text(entry, key) for key in ("reason", "owner"))
        yield FieldLock(parse_dotted(value_of(field)), field, overlay, tuple(allowed), reason, owner)


def name_field(entry: Any) -> Node:
    """Return the node with the path of an entry of `locked`."""
    field: Node = entry["field"] if isinstance(entry, dict) else entry
    return field


def _read_text(entry: Any, key: str) -> str:
    """Return a text of an entry in one line, without the period at its end, because a message goes on after it."""
    text = str(value_of(entry.get(key, ""))) if isinstance(entry, dict) else ""
    return " ".join(text.split()).removesuffix(".")
