"""The text format, for terminals: the changes, most severe first, then the totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from jobgen.compare.changes import ChangeSet
from jobgen.compare.effects import count_names, name_effects, name_outcome
from jobgen.compare.governance import Change as Governed
from jobgen.compare.grouping import (
    ImpactGroup,
    describe_group,
    format_headline,
    format_warning,
    group_impacts,
    list_totals,
)
from jobgen.model.features import find_part
from jobgen.reports.escape import visible

_MAX_NAMES = 10


def render(changes: ChangeSet) -> str:
    """Write the first groups of changes, and count the others."""
    groups = list(islice(group_impacts(changes), 100))
    lines = [line for group in groups for line in _render_group(group)]
    left = len(changes.impacts) - sum(len(group.members) for group in groups)
    if left:
        lines += [f"… and {left} more; `--format json` shows all of them", ""]
    totals = [(f"{env} {by}".strip(), *amounts) for env, by, *amounts in list_totals(changes)]
    if totals:
        rows = [("", "GPUs", "CPU", "memory"), *totals]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        cells = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
        lines += [*("  ".join(row).rstrip() for row in cells), ""]
    if changes.queues:
        lines += find_part("diff.queues.text")(changes.queues, changes.name_environments)
    lines += [f"{each.location}: {each.message}" for each in changes.tree]
    lines += [""] if changes.tree else []
    lines += list_governance(changes.governance)
    lines += [""] if changes.governance else []
    lines.append(f"{changes.old.name} → {changes.new.name}: {format_headline(changes)}")
    effects = ", ".join(f"{count} {name}" for name, count, _ in count_names(changes.impacts))
    lines += filter(None, (effects, format_warning(changes)))
    for each in changes.not_compared:
        lines.append(each.describe())
    return "".join(f"{visible(line)}\n" for line in lines)


def list_governance(changes: Sequence[Governed]) -> list[str]:
    """Return the lines of what changes about the rules, the weaker first."""
    lines = (visible(f"    {each.location}: {each.describe()}") for each in changes)
    return ["Governance", *lines] if changes else []


def _render_group(group: ImpactGroup) -> Iterator[str]:
    first, members = group.first, group.names
    yield f"{first.action} {members[0]}: {name_effects(first)}"
    if len(members) > 1:
        more = f" … {len(members)} in total" if len(members) > _MAX_NAMES + 1 else ""
        yield f"    also affected: {', '.join(members[1 : _MAX_NAMES + 1])}{more}"
    yield f"    {describe_group(group)}"
    for row in group.rows:
        also = f" (also {', '.join(row.other_roles)})" if row.other_roles else ""
        values = {"added": f"+ {row.new}", "removed": f"- {row.old}", "changed": f"{row.old} → {row.new}"}[row.op]
        yield f"    {row.field}{also}: {values}"
        where = row.cause or (f"was {row.was}" if row.was else "")
        moved = f", was {row.was}" if row.cause and row.was and row.was != row.cause else ""
        yield f"        {name_outcome(row.outcome)}; {where}{moved}".rstrip("; ")
    if group.hidden:
        yield f"    … and {group.hidden} more fields"
    yield ""
