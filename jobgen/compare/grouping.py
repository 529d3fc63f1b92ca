"""Group objects with identical changes, so that text and Markdown show each change once, with its cause."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from functools import reduce

from jobgen.compare.changes import ChangeSet
from jobgen.compare.effects import MEASURES, describe, format_delta
from jobgen.compare.impact import Action, FieldImpact, Impact
from jobgen.compare.operator_behavior import Outcome
from jobgen.compare.snapshot import Cause, find_causes
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.data import Node
from jobgen.model.finding import pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted

_MAX_FIELDS = 12
"""Fields of one object that are shown; the others are counted."""
_MAX_WIDTH = 60
_MAX_LINES = 4
"""Lines of a value that are named: each environment may have its own."""


class FieldRow(NamedTuple):
    """A changed field of a group: its values, its outcome, and the lines that wrote the new and the old value.

    These are the lines of the first object of the group, in each of its environments.

    `other_roles` are the roles in which the same field changed in the same way.
    """

    field: str
    other_roles: tuple[str, ...]
    op: str
    old: str
    new: str
    outcome: Outcome
    cause: str
    was: str


class ImpactGroup(NamedTuple):
    """Objects with identical changes; `hidden` counts the fields that are not shown."""

    members: tuple[Impact, ...]
    names: tuple[str, ...]
    """The objects, each with its environments; and with its file, if no field has one."""
    rows: tuple[FieldRow, ...]
    hidden: int

    @property
    def first(self) -> Impact:
        """The member that is shown."""
        return self.members[0]

    @property
    def totals(self) -> tuple[ResourceTotals, ResourceTotals]:
        """The resources that all members request, before and after."""
        before = reduce(add_totals, (one.before for one in self.members))
        return before, reduce(add_totals, (one.after for one in self.members))


class FieldGroup(NamedTuple):
    """Objects of a kind with equal changes, in any environments; each of `fields` is one change in several roles."""

    members: tuple[Impact, ...]
    fields: tuple[tuple[FieldImpact, ...], ...]
    hidden: int


def group_fields(changes: ChangeSet, limit: int) -> Iterator[FieldGroup]:
    """Yield the groups without causes, each with as many changed fields as the limit allows."""
    groups: dict[Hashable, list[Impact]] = {}
    for one in changes.impacts:
        key = (one.action, one.outcome, one.stops, one.current.identity.kind, _describe_fields(one))
        groups.setdefault(key, []).append(one)
    for members in groups.values():
        roles = _group_roles(members[0].fields)
        yield FieldGroup(tuple(members), tuple(roles[:limit]), len(roles[limit:]))


def group_impacts(changes: ChangeSet) -> Iterator[ImpactGroup]:
    """Yield the groups one by one; causes are looked up per group, because most formats show only a few."""
    for titles in _group_titles(changes):
        first, *_ = found = next(iter(titles.values()))
        roles = _group_roles(first.fields)
        paths = [fields[0].change.path for fields in roles[:_MAX_FIELDS]]
        new_causes = [find_causes(changes.new, one.new, paths, one.old) for one in found if one.new and paths]
        old_causes = [find_causes(changes.old, one.old, paths, one.new) for one in found if one.old and paths]
        rows = tuple(
            make_row(fields)._replace(cause=_join_locations(new_causes, path), was=_join_locations(old_causes, path))
            for fields, path in zip(roles, paths, strict=False)
        )
        names = tuple(_name_object(changes, title, ones) for title, ones in titles.items())
        yield ImpactGroup(tuple(one for ones in titles.values() for one in ones), names, rows, len(roles) - len(rows))


_Titles = dict[str, list[Impact]]
"""Objects by title. Those of several environments have one title, also if each has a namespace of its own."""


def _group_titles(changes: ChangeSet) -> list[_Titles]:
    """Group identical changes in the same environments, so that each environment with a change is in a headline."""
    places: dict[Hashable, dict[str, set[str]]] = {}
    for one in changes.impacts:
        found = places.setdefault(_title(changes, one, bare=True), {})
        found.setdefault(one.current.env, set()).add(_title(changes, one))
    same: dict[Hashable, _Titles] = {}
    for one in changes.impacts:
        bare = _title(changes, one, bare=True)
        # Two objects of one environment that differ only in the namespace keep it.
        is_one = all(len(titles) == 1 for titles in places[bare].values())
        shared = set[str]().union(*places[bare].values())
        title = bare if is_one and len(shared) > 1 else _title(changes, one)
        key = (one.action, one.outcome, one.stops, _describe_fields(one))
        same.setdefault(key, {}).setdefault(title, []).append(one)
    groups: dict[Hashable, _Titles] = {}
    for change, titles in same.items():
        for title, ones in titles.items():
            name = title if len(ones) > 1 else _title(changes, ones[0])
            groups.setdefault((change, *(one.current.env for one in ones)), {})[name] = ones
    order = {id(one): position for position, one in enumerate(changes.impacts)}
    return sorted(groups.values(), key=lambda titles: order[id(next(iter(titles.values()))[0])])


def _describe_fields(one: Impact) -> Hashable:
    """The changed fields of an object with their values, to compare with those of others."""
    return tuple(
        (field.change.path, _format_value(field.change.old), _format_value(field.change.new)) for field in one.fields
    )


def _group_roles(fields: tuple[FieldImpact, ...]) -> list[tuple[FieldImpact, ...]]:
    """Group fields that changed in the same way in several roles: their paths differ only in the third step."""
    groups: dict[Hashable, list[FieldImpact]] = {}
    for field in fields:
        path, _, old, new = field.change
        key = (path[:2], path[3:] if len(path) > 3 else path, _format_value(old), _format_value(new))
        groups.setdefault(key, []).append(field)
    return [tuple(group) for group in groups.values()]


def make_row(fields: tuple[FieldImpact, ...]) -> FieldRow:
    """Describe a change of one field in one or several roles, without its causes."""
    (path, op, old, new), outcome = fields[0]
    others = tuple(format_dotted(other.change.path[2:3]) for other in fields[1:])
    one, other = _format_value(old), _format_value(new)
    if max(len(one), len(other)) > _MAX_WIDTH:
        # Of long values, the part that differs is shown with some context.
        shared = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), 0)
        start = max(shared - 12, 0)
        one, other = _shorten(one, start), _shorten(other, start)
    return FieldRow(format_dotted(path), others, op, one, other, outcome, "", "")


def _join_locations(several: Sequence[dict[FieldPath, Cause]], path: FieldPath) -> str:
    found = [causes[path].location for causes in several if path in causes]
    lines = list(dict.fromkeys(f"{location.file}:{location.line}" for location in found))
    more = f" and {len(lines) - _MAX_LINES} more" if len(lines) > _MAX_LINES else ""
    return ", ".join(lines[:_MAX_LINES]) + more


def _shorten(text: str, start: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= _MAX_WIDTH else f"{shown[: _MAX_WIDTH - 1]}…"


def _format_value(value: Node) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _name_object(changes: ChangeSet, title: str, ones: Sequence[Impact]) -> str:
    envs = changes.name_environments(one.current.env for one in ones)
    location = ones[0].current.location
    file = "" if ones[0].fields else f" ({location.file}:{location.line})"
    return f"{title}{f' in {envs}' if envs else ''}{file}"


def _title(changes: ChangeSet, one: Impact, *, bare: bool = False) -> str:
    """The identity of an object, without its namespace if `bare`; if it replaces another object, both identities.

    That of a chart says which release it is of.
    """
    found = [one.old, one.new] if one.is_replaced else [one.current]
    names = (made.identity._replace(namespace="") if bare else made.identity for made in found if made)
    source = changes.describe_source(one)
    return f"{' → '.join(map(str, names))}{f' of {source}' if source else ''}"


ACTIONS: tuple[Action, ...] = ("added", "removed", "changed")


def format_headline(changes: ChangeSet) -> str:
    """How many objects are added, removed, changed and unchanged."""
    counts = [f"{changes.count(action)} {action}" for action in ACTIONS]
    return f"{', '.join(counts)}, {changes.unchanged} unchanged"


def format_warning(changes: ChangeSet) -> str:
    """How many jobs are stopped; empty if none is."""
    jobs, gpus = changes.count_stopped()
    if not jobs:
        return ""
    held = f" that {'holds' if jobs == 1 else 'hold'} {pluralize(gpus, 'GPU')}" if gpus else ""
    return f"this stops {pluralize(jobs, 'job')}{held}"


def list_totals(changes: ChangeSet) -> Iterator[tuple[str, ...]]:
    """The totals that change: environments, whose they are (a namespace, team or queue), GPUs, CPU and memory.

    Equal totals of several environments are one. A namespace with all resources of its environment is not listed.
    """
    whole = {total.env: (total.before, total.after) for total in changes.totals if total.by == "environment"}
    found: dict[tuple[str, ...], list[str]] = {}
    for total in changes.totals:
        is_whole = total.by == "namespace" and (total.before, total.after) == whole.get(total.env)
        if total.before.amounts != total.after.amounts and not is_whole:
            name = total.by if total.by == "environment" else f"{total.by} {total.name}"
            shown = zip(MEASURES, total.before.amounts, total.after.amounts, strict=True)
            amounts = (format_delta(old, new, format_amount) for (_, format_amount), old, new in shown)
            found.setdefault((name, *amounts), []).append(total.env)
    for (name, *shown_amounts), envs in found.items():
        yield changes.name_environments(envs), f"{name} (each)" if len(envs) > 1 else name, *shown_amounts


def describe_group(group: ImpactGroup) -> str:
    """Return the effects of a group, or why it has its effect; the amounts are those of all objects together."""
    return describe(group.first, *group.totals, in_all=len(group.members) > 1)
