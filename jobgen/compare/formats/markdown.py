"""The Markdown format, for comments on pull requests: a summary, then collapsed details, within GitHub's limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.compare.changes import ChangeSet, NotCompared
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
from jobgen.compare.impact import Impact
from jobgen.model.features import find_part
from jobgen.model.finding import Finding, Severity
from jobgen.reports.escape import markdown_text

MAX_LENGTH = 65_000
"""GitHub accepts 65,536 characters in a comment; GitLab accepts more."""
_MAX_NAMES = 50
_LIST_OVERHEAD = 400
"""Characters reserved for the lines around the list of names."""
_NAME_LENGTH = 70
_NAMES_LENGTH = 30_000
"""Characters reserved for the list of names, at about `_NAME_LENGTH` each, if not all groups fit."""


def render(changes: ChangeSet) -> str:
    """Write as many groups as fit; list the other objects by name, and count the rest."""
    text = "".join(_render_summary(changes))
    space = MAX_LENGTH - len(text) - _LIST_OVERHEAD
    reserved = min(_NAMES_LENGTH, _NAME_LENGTH * len(changes.impacts))
    shown: set[int] = set()
    for group in group_impacts(changes):
        block = "".join(_render_group(group))
        if len(block) > space - reserved:
            break
        space -= len(block)
        text += block
        shown |= {id(one) for one in group.members}
    return text + "".join(_render_names([one for one in changes.impacts if id(one) not in shown], space))


def _render_names(rest: list[Impact], space: int) -> Iterator[str]:
    """The names of the objects whose group does not fit."""
    if not rest:
        return
    yield f"<details><summary>{len(rest)} more, by name; <code>jobgen diff --format json</code> shows all</summary>\n\n"
    for index, one in enumerate(rest):
        env = f" in {one.current.env}" if one.current.env else ""
        line = f"- {one.action} {markdown_text(str(one.current.identity) + env)}: {name_effects(one)}\n"
        space -= len(line)
        if space < 0:
            yield f"- … and {len(rest) - index} more\n"
            break
        yield line
    yield "\n</details>\n"


def _render_summary(changes: ChangeSet) -> Iterator[str]:
    yield f"### jobgen diff: {format_headline(changes)}\n\n"
    yield f"{markdown_text(changes.old.name)} → {markdown_text(changes.new.name)}\n\n"
    if format_warning(changes):
        yield f"> **{markdown_text(format_warning(changes))}**\n\n"
    yield from _render_not_compared(changes.not_compared)
    yield from _render_tree(changes.tree)
    yield from _render_governance(changes.governance)
    if changes.impacts:
        yield "| effect | objects | |\n|---|---:|---|\n"
        yield from (f"| {name} | {count} | {meaning} |\n" for name, count, meaning in count_names(changes.impacts))
        yield "\n"
    yield from _render_totals(list(list_totals(changes)))
    if changes.queues:
        yield from find_part("diff.queues.markdown")(changes.queues, 15_000, changes.name_environments)


def _render_not_compared(left_out: Sequence[NotCompared]) -> Iterator[str]:
    """List what cannot be rendered, each with its first error."""
    if not left_out:
        return
    is_error = any(error.severity is Severity.ERROR for each in left_out for error in each.left_out.errors)
    yield f"**Not compared**{', because of errors' if is_error else ''}:\n\n"
    for each in left_out[:_MAX_NAMES]:
        yield f"- {markdown_text(f'{each.side}: {each.left_out.explain()}')}\n"
    if len(left_out) > _MAX_NAMES:
        yield f"- … and {len(left_out) - _MAX_NAMES} more\n"
    yield "\n"


def _render_tree(findings: Sequence[Finding]) -> Iterator[str]:
    """List what of the rendered tree is not what the sources render."""
    if not findings:
        return
    yield "**The rendered tree is not what the sources render**:\n\n"
    for finding in findings[:_MAX_NAMES]:
        yield f"- {markdown_text(f'{finding.location.file}: {finding.message}')}\n"
    if len(findings) > _MAX_NAMES:
        yield f"- … and {len(findings) - _MAX_NAMES} more\n"
    yield "\n"


def _render_governance(changes: Sequence[Governed]) -> Iterator[str]:
    """List what changes about the rules, the weaker first."""
    if not changes:
        return
    yield "#### Governance\n\n"
    for each in changes[:_MAX_NAMES]:
        mark = "⚠️ " if each.is_weaker else ""
        yield f"- {mark}{markdown_text(f'{each.describe()} ({each.location})')}\n"
    if len(changes) > _MAX_NAMES:
        yield f"- … and {len(changes) - _MAX_NAMES} more\n"
    yield "\n"


def _render_totals(totals: list[tuple[str, ...]]) -> Iterator[str]:
    if not totals:
        return
    yield "| environment | | GPUs | CPU | memory |\n|---|---|---:|---:|---:|\n"
    space = 15_000
    shown = 0
    for row in totals[:60]:
        line = f"| {' | '.join(markdown_text(cell) for cell in row)} |\n"
        space -= len(line)
        if space < 0:
            break
        shown += 1
        yield line
    if shown < len(totals):
        yield f"| … | {len(totals) - shown} more | | | |\n"
    yield "\n"


def _render_group(group: ImpactGroup) -> Iterator[str]:
    first, members = group.first, group.names
    others = f" and {len(members) - 1} more" if len(members) > 1 else ""
    yield f"<details><summary><b>{first.action}</b> {markdown_text(members[0])}{others}: "
    yield f"<b>{name_effects(first)}</b></summary>\n\n"
    yield f"{markdown_text(describe_group(group))}\n\n"
    if len(members) > 1:
        more = " …" if len(members) > _MAX_NAMES + 1 else ""
        yield f"Also affected: {', '.join(map(markdown_text, members[1 : _MAX_NAMES + 1]))}{more}\n\n"
    if group.rows:
        yield "| field | old | new | effect | line |\n|---|---|---|---|---|\n"
        for row in group.rows:
            also = f" (also {', '.join(row.other_roles)})" if row.other_roles else ""
            where = row.cause or (f"was {row.was}" if row.was else "")
            cells = (row.field + also, row.old, row.new, name_outcome(row.outcome), where)
            yield f"| {' | '.join(map(markdown_text, cells))} |\n"
        if group.hidden:
            yield f"| … | | | | {group.hidden} more fields |\n"
        yield "\n"
    yield "</details>\n\n"
