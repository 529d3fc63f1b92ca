"""Two objects compared as Kubernetes means them: list items by what tells them apart, quantities by their amount.

The keys of lists are those of the merge law. deepdiff finds the same in a thousand times the time; tests hold them
to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from jobgen.model.data import Data
from jobgen.model.path import Named, Step
from jobgen.model.quantity import to_milli
from jobgen.spec.merge import LIST_KEYS

Op = Literal["added", "removed", "changed"]
FieldPath = tuple[Step, ...]

# Mappings whose values are quantities, and fields that are one.
_QUANTITIES = frozenset(("limits", "requests", "minResources", "capacity", "default", "defaultRequest"))
_QUANTITY = frozenset(("sizeLimit", "storage", "divisor"))


class FieldChange(NamedTuple):
    """A field that is no longer what it was; what was not there, or is not any more, is None."""

    path: FieldPath
    op: Op
    old: Data
    new: Data


def narrow_change(change: FieldChange) -> FieldChange:
    """The same change, told of the only field in what came or went, if there is but one."""
    path, op, old, new = change
    value = new if op == "added" else old
    while op != "changed" and isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path = (*path, str(key))
    return change if path == change.path else FieldChange(path, op, value if old else None, value if new else None)


def compare_objects(old: Data, new: Data, path: FieldPath = ()) -> Iterator[FieldChange]:
    """Where two plain trees differ, each difference as far down as both sides have something to compare."""
    if old is new or _is_same(old, new, path):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in _keys(old, new):
            yield from compare_objects(old.get(key), new.get(key), (*path, str(key)))
    elif old is None or new is None:
        yield FieldChange(path, "added" if old is None else "removed", old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(old, new, path)
    else:
        yield FieldChange(path, "changed", old, new)


def _is_same(old: Data, new: Data, path: FieldPath) -> bool:
    if type(old) is type(new) and not isinstance(old, (dict, list)):
        if old == new:
            return True
    elif isinstance(old, (dict, list)) or isinstance(new, (dict, list)):
        return False
    # Extended resources may be written as numbers or as strings.
    return _is_quantity(path) and to_milli(old) is not None and to_milli(old) == to_milli(new)


def _is_quantity(path: FieldPath) -> bool:
    return (len(path) > 1 and path[-2] in _QUANTITIES) or (bool(path) and path[-1] in _QUANTITY)


def _keys(old: dict[str, Data], new: dict[str, Data]) -> list[str]:
    """The keys of both, in the order of the new side, then those that went."""
    return [*new, *(key for key in old if key not in new)]


def _lists(old: list[Data], new: list[Data], path: FieldPath) -> Iterator[FieldChange]:
    field = LIST_KEYS.get(str(path[-1]), ("",))[0] if path else ""
    before, after = _by_key(old, field), _by_key(new, field)
    if not field or before is None or after is None:
        if not _are_same(old, new, path):
            yield FieldChange(path, "changed", old, new)
        return
    for key in _keys(before, after):
        yield from compare_objects(before.get(key), after.get(key), (*path, Named(field, key)))
    if [key for key in before if key in after] != [key for key in after if key in before]:
        # The order alone: variables refer to those before them, and the first container may be the main one.
        yield FieldChange(path, "changed", list(before), list(after))


def _are_same(old: list[Data], new: list[Data], path: FieldPath) -> bool:
    """Whether lists without keys mean the same, item by item."""
    same = (not any(compare_objects(one, other, (*path, place))) for place, (one, other) in enumerate(zip(old, new)))  # noqa: B905
    return len(old) == len(new) and all(same)


def _by_key(items: list[Data], field: str) -> dict[str, Data] | None:
    """The items by their key; None if it does not tell them apart."""
    found: dict[str, Data] = {}
    for item in items:
        key = item.get(field) if isinstance(item, dict) else None
        if not isinstance(key, (str, int)) or str(key) in found:
            return None
        found[str(key)] = item
    return found
