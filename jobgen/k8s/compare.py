"""Compare two objects as Kubernetes does: list items by their keys, quantities by their amounts.

List keys are those of the strategic merge. The tests compare the result with deepdiff, which is 1000 times slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.model.quantity import to_milli
from jobgen.spec.merge import LIST_KEYS

ChangeType = Literal["added", "removed", "changed"]
FieldPath = tuple[Step, ...]

# Mappings whose values are quantities, and fields that are quantities.
_QUANTITY_MAPPINGS = frozenset(("limits", "requests", "minResources", "capacity", "default", "defaultRequest"))
_QUANTITY_FIELDS = frozenset(("sizeLimit", "storage", "divisor"))


class FieldChange(NamedTuple):
    """A field that differs. `old` is None if the field was added, `new` is None if it was removed."""

    path: FieldPath
    op: ChangeType
    old: Plain
    new: Plain


def narrow_change(change: FieldChange) -> FieldChange:
    """Return the change with the path of the innermost field, if the added or removed mapping has only one."""
    path, op, old, new = change
    value = new if op == "added" else old
    while op != "changed" and isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path = (*path, str(key))
    return change if path == change.path else FieldChange(path, op, value if old else None, value if new else None)


def compare_objects(old: Plain, new: Plain, path: FieldPath = ()) -> Iterator[FieldChange]:
    """Yield the differences of two trees, each at the deepest path that both sides have."""
    if old is new or _is_equal(old, new, path):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in _union_keys(old, new):
            yield from compare_objects(old.get(key), new.get(key), (*path, str(key)))
    elif old is None or new is None:
        yield FieldChange(path, "added" if old is None else "removed", old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(old, new, path)
    else:
        yield FieldChange(path, "changed", old, new)


def _is_equal(old: Plain, new: Plain, path: FieldPath) -> bool:
    if type(old) is type(new) and not isinstance(old, (dict, list)):
        if old == new:
            return True
    elif isinstance(old, (dict, list)) or isinstance(new, (dict, list)):
        return False
    is_quantity = path[-1:] and (path[-1] in _QUANTITY_FIELDS or not _QUANTITY_MAPPINGS.isdisjoint(path[-2:-1]))
    # Extended resources may be written as numbers or as strings.
    return bool(is_quantity) and to_milli(old) is not None and to_milli(old) == to_milli(new)


def _union_keys(old: dict[str, Plain], new: dict[str, Plain]) -> list[str]:
    """Return the keys of both sides: those of the new side in order, then the removed ones."""
    return [*new, *(key for key in old if key not in new)]


def _compare_lists(old: list[Plain], new: list[Plain], path: FieldPath) -> Iterator[FieldChange]:
    field = LIST_KEYS.get(str(path[-1]), ("",))[0] if path else ""
    before, after = _index_items(old, field), _index_items(new, field)
    if not field or before is None or after is None:
        # Lists without keys are compared item by item.
        pairs = enumerate(zip(old, new, strict=False))
        same = (not any(compare_objects(one, other, (*path, index))) for index, (one, other) in pairs)
        if len(old) != len(new) or not all(same):
            yield FieldChange(path, "changed", old, new)
        return
    for key in _union_keys(before, after):
        yield from compare_objects(before.get(key), after.get(key), (*path, NamedItem(field, key)))
    if [key for key in before if key in after] != [key for key in after if key in before]:
        # Order matters: variables refer to earlier ones, and the first container may be the main one.
        yield FieldChange(path, "changed", list(before), list(after))


def _index_items(items: list[Plain], field: str) -> dict[str, Plain] | None:
    """Return the items by their key; None if an item has no key or two items have the same."""
    found: dict[str, Plain] = {}
    for item in items:
        key = item.get(field) if isinstance(item, dict) else None
        if not isinstance(key, (str, int)) or str(key) in found:
            return None
        found[str(key)] = item
    return found
