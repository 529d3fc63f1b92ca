"""Which lines cause which changes: the line of each changed value, for every object of a group."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.diff.causes import Cause, find_causes
from jobgen.diff.changes import ChangeSet
from jobgen.diff.grouping import FieldGroup
from jobgen.diff.impact import Impact
from jobgen.diff.snapshot import Snapshot
from jobgen.engine.workers import parallel_map
from jobgen.features.page.encode import Table
from jobgen.features.page.fleet_tables import Row
from jobgen.k8s.compare import FieldPath
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.environment import Rendered

_NO_LAYER = "jobgen"
"""The layer of values that the renderer sets."""


class CauseLine(NamedTuple):
    """A line that sets a changed value, on one of the two sides."""

    is_old: bool
    layer: str
    file: str
    line: int


class _Member(NamedTuple):
    """An object, and the changed fields whose lines are wanted; `number` and `field` count rows of the page."""

    number: int
    impact: Impact
    field: int
    paths: tuple[FieldPath, ...]


def list_causes(changes: ChangeSet, groups: Sequence[FieldGroup]) -> list[Table]:
    """List the lines, those that change most objects first, and which values of which objects they set.

    The cause of a change is the line of the new value; of a value that is gone, the line that set it. Objects of a
    group have equal changes, but each may have its own line, so each of them is traced. That is most of the work.
    """
    numbers = {id(one): number for number, one in enumerate(changes.impacts)}
    members: list[_Member] = []
    field = 0
    for group in groups:
        paths = tuple(fields[0].change.path for fields in group.fields)
        members += (_Member(numbers[id(one)], one, field, paths) for one in group.members if paths)
        field += len(paths)
    members.sort(key=lambda member: member.number)
    found = parallel_map(members, lambda share: [_trace(changes, member) for member in share])
    caused: dict[CauseLine, list[tuple[int, int]]] = {}
    was: dict[CauseLine, list[tuple[int, int]]] = {}
    for member, lines in zip(members, found, strict=True):
        for place, (new, old) in enumerate(lines):
            cause, previous = (new, old) if new else (old, None)
            if cause:
                caused.setdefault(cause, []).append((member.number, member.field + place))
            if previous:
                was.setdefault(previous, []).append((member.number, member.field + place))
    return _list_tables(caused, was)


def _list_tables(
    caused: dict[CauseLine, list[tuple[int, int]]], was: dict[CauseLine, list[tuple[int, int]]]
) -> list[Table]:
    objects = {cause: len({change for change, _ in pairs}) for cause, pairs in caused.items()}
    lines = [*sorted(objects, key=lambda cause: -objects[cause]), *(line for line in was if line not in objects)]
    rows: list[Row] = [(int(each.is_old), *each[1:], objects.get(each, 0)) for each in lines]
    tables = [Table("causes", ("old", "layer:text", "file:files", "line", "changes"), rows)]
    for name, known in (("causedBy", caused), ("wasSetBy", was)):
        pairs = [(number, *pair) for number, line in enumerate(lines) for pair in known.get(line, ())]
        tables.append(Table(name, ("cause:causes", "change:changes", "field:fields"), pairs))
    return tables


def _trace(changes: ChangeSet, member: _Member) -> list[tuple[CauseLine | None, CauseLine | None]]:
    new = _find_lines(changes.new, member.impact.new, member.paths, is_old=False)
    old = _find_lines(changes.old, member.impact.old, member.paths, is_old=True)
    return list(zip(new, old, strict=True))


def _find_lines(
    snapshot: Snapshot, rendered: Rendered | None, paths: Sequence[FieldPath], *, is_old: bool
) -> list[CauseLine | None]:
    causes = find_causes(snapshot, rendered, paths) if rendered else {}
    return [_to_line(causes[path], is_old) if path in causes else None for path in paths]


def _to_line(cause: Cause, is_old: bool) -> CauseLine:
    return CauseLine(is_old, cause.layer or _NO_LAYER, cause.location.file, cause.location.line)
