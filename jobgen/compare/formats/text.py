"""The text format, for terminals: the changes, most severe first, then the totals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from jobgen.compare.changes import ChangeSet
from jobgen.compare.grouping import (
    FieldRow,
    ImpactGroup,
    format_headline,
    format_resources,
    format_warning,
    group_impacts,
    list_members,
    list_totals,
)
from jobgen.model.features import find_part
from jobgen.reports.escape import visible

_MAX_GROUPS = 100
_MAX_NAMES = 10


def render(changes: ChangeSet) -> str:
    """Write the first groups of changes, and count the others."""
    groups = list(islice(group_impacts(changes), _MAX_GROUPS))
    lines = [line for group in groups for line in _render_group(group)]
    left = len(changes.impacts) - sum(len(group.members) for group in groups)
    if left:
        lines += [f"… and {left} more; `--format json` shows all of them", ""]
    lines += _render_totals(changes)
    if changes.queues:
        lines += find_part("diff.queues.text")(changes.queues)
    lines.append(f"{changes.old.name} → {changes.new.name}: {format_headline(changes)}")
    effects = ", ".join(f"{count} {effect.value}" for effect, count in changes.count_effects().items())
    lines += filter(None, (effects, format_warning(changes)))
    return "".join(f"{visible(line)}\n" for line in lines)


def _render_group(group: ImpactGroup) -> Iterator[str]:
    first, members = group.first, list_members(group)
    yield f"{first.action} {members[0]}: {first.outcome.effect.value}"
    if len(members) > 1:
        more = f" … {len(members)} in total" if len(members) > _MAX_NAMES + 1 else ""
        yield f"    also affected: {', '.join(members[1 : _MAX_NAMES + 1])}{more}"
    yield f"    {'; '.join(filter(None, (first.outcome.reason, format_resources(*group.totals))))}"
    for row in group.rows:
        yield from _render_field(row)
    if group.hidden:
        yield f"    … and {group.hidden} more fields"
    yield ""


def _render_field(row: FieldRow) -> Iterator[str]:
    also = f" (also {', '.join(row.other_roles)})" if row.other_roles else ""
    values = {"added": f"+ {row.new}", "removed": f"- {row.old}", "changed": f"{row.old} → {row.new}"}[row.op]
    yield f"    {row.field}{also}: {values}"
    where = row.cause or (f"was {row.was}" if row.was else "")
    moved = f", was {row.was}" if row.cause and row.was and row.was != row.cause else ""
    yield f"        {row.outcome.effect.value}; {where}{moved}".rstrip("; ")


def _render_totals(changes: ChangeSet) -> Iterator[str]:
    totals = list(list_totals(changes))
    if not totals:
        return
    rows = [("", "GPUs", "CPU", "memory"), *((f"{row.env} {row.by}".strip(), *row[2:]) for row in totals)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
