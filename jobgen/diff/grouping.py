"""What people read of a difference: objects to which the same happens told once, with the lines that caused it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from functools import reduce
from typing import NamedTuple

from jobgen.diff.causes import Cause, causes
from jobgen.diff.changes import ChangeSet
from jobgen.diff.impact import FieldImpact, Impact
from jobgen.diff.operator_behavior import Outcome
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.data import Data
from jobgen.model.path import dotted

_FIELDS = 12
"""Fields of one object that are shown; the others are counted."""
_WIDE = 60
_CONTEXT = 12


class Line(NamedTuple):
    """A field of a story: where, what it was and is, and who says so; `alike` are roles that changed likewise."""

    field: str
    alike: tuple[str, ...]
    op: str
    old: str
    new: str
    outcome: Outcome
    cause: str
    was: str


class Story(NamedTuple):
    """Objects to which the same happens, and what; `hidden` counts fields that are not shown."""

    members: tuple[Impact, ...]
    lines: tuple[Line, ...]
    hidden: int

    @property
    def first(self) -> Impact:
        """The one that stands for all."""
        return self.members[0]

    @property
    def sizes(self) -> tuple[ResourceTotals, ResourceTotals]:
        """What all of them asked for together, and ask for now."""
        before = reduce(add_totals, (one.before for one in self.members))
        return before, reduce(add_totals, (one.after for one in self.members))


def stories(difference: ChangeSet) -> Iterator[Story]:
    """One story after the other; lines are looked up when a story is asked for, since few of many are read."""
    for members in _alike(difference):
        folded = _folded(members[0].fields)
        shown = folded[:_FIELDS]
        yield Story(members, tuple(_lines(difference, members[0], shown)), len(folded) - len(shown))


def _alike(difference: ChangeSet) -> list[tuple[Impact, ...]]:
    groups: dict[Hashable, list[Impact]] = {}
    for one in difference.happened:
        fields = tuple((field.change.path, _text(field.change.old), _text(field.change.new)) for field in one.fields)
        groups.setdefault((one.happening, one.outcome, fields), []).append(one)
    return [tuple(group) for group in groups.values()]


def _folded(fields: tuple[FieldImpact, ...]) -> list[tuple[FieldImpact, ...]]:
    """Fields that changed alike in several roles, together: their paths differ in the third step alone."""
    groups: dict[Hashable, list[FieldImpact]] = {}
    for field in fields:
        path, _, old, new = field.change
        key = (path[:2], path[3:] if len(path) > 3 else path, _text(old), _text(new))
        groups.setdefault(key, []).append(field)
    return [tuple(group) for group in groups.values()]


def _lines(difference: ChangeSet, one: Impact, shown: list[tuple[FieldImpact, ...]]) -> Iterator[Line]:
    paths = [fields[0].change.path for fields in shown]
    now = causes(difference.new, one.new, paths) if one.new and paths else {}
    then = causes(difference.old, one.old, paths) if one.old and paths else {}
    for field, *others in shown:
        path, op, old, new = field.change
        yield Line(
            dotted(path),
            tuple(dotted(other.change.path[2:3]) for other in others),
            op,
            *_contrast(old, new),
            field.outcome,
            _place(now, path),
            _place(then, path),
        )


def _place(found: dict[FieldPath, Cause], path: FieldPath) -> str:
    """Where a value was written, or nothing."""
    return f"{found[path].location.file}:{found[path].location.line}" if path in found else ""


def _contrast(old: Data, new: Data) -> tuple[str, str]:
    """Two values as text; of long ones, what differs and a little around it."""
    one, other = _text(old), _text(new)
    if max(len(one), len(other)) <= _WIDE:
        return one, other
    shared = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), 0)
    start = max(shared - _CONTEXT, 0)
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= _WIDE else f"{shown[: _WIDE - 1]}…"


def _text(value: Data) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def places(story: Story) -> list[str]:
    """The objects of a story, each with the environments where it happens; and its file, where no field has one."""
    found: dict[str, list[Impact]] = {}
    for one in story.members:
        found.setdefault(_title(one), []).append(one)
    return [f"{title}{_environments(ones)}{_file(ones[0])}" for title, ones in found.items()]


def _title(one: Impact) -> str:
    """An object by name; of one that takes the place of another, both."""
    return f"{one.old.identity} → {one.new.identity}" if one.moved and one.old and one.new else str(one.made.identity)


def _environments(ones: list[Impact]) -> str:
    named = [one.made.env for one in ones if one.made.env]
    return f" in {', '.join(named)}" if named else ""


def _file(one: Impact) -> str:
    return "" if one.fields else f" ({one.made.location.file}:{one.made.location.line})"
