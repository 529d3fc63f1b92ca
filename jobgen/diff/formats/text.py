"""A difference for terminals: what happens, the worst first, and the totals below."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from jobgen.diff.changes import ChangeSet
from jobgen.diff.grouping import Line, Story, places, stories
from jobgen.diff.summary import headline, rows, sizes, warning
from jobgen.report.text import visible

_STORIES = 100
_NAMES = 10


def render(difference: ChangeSet) -> str:
    """Everything that people can read; a number stands for the rest."""
    told = list(islice(stories(difference), _STORIES))
    lines = [line for story in told for line in _story(story)]
    left = len(difference.happened) - sum(len(story.members) for story in told)
    if left:
        lines += [f"… and {left} more; `--format json` has all of them", ""]
    lines += _table(difference)
    lines.append(f"{difference.old.name} → {difference.new.name}: {headline(difference)}")
    effects = ", ".join(f"{count} {effect.value}" for effect, count in difference.effects().items())
    lines += filter(None, (effects, warning(difference)))
    return "".join(f"{visible(line)}\n" for line in lines)


def _story(story: Story) -> Iterator[str]:
    first, named = story.first, places(story)
    yield f"{first.happening} {named[0]}: {first.outcome.effect.value}"
    if len(named) > 1:
        more = f" … {len(named)} in all" if len(named) > _NAMES + 1 else ""
        yield f"    alike: {', '.join(named[1 : _NAMES + 1])}{more}"
    yield f"    {'; '.join(filter(None, (first.outcome.why, sizes(*story.sizes))))}"
    for line in story.lines:
        yield from _field(line)
    if story.hidden:
        yield f"    … and {story.hidden} more fields"
    yield ""


def _field(line: Line) -> Iterator[str]:
    alike = f" (also {', '.join(line.alike)})" if line.alike else ""
    values = {"added": f"+ {line.new}", "removed": f"- {line.old}", "changed": f"{line.old} → {line.new}"}[line.op]
    yield f"    {line.field}{alike}: {values}"
    where = line.cause or (f"was {line.was}" if line.was else "")
    moved = f", was {line.was}" if line.cause and line.was and line.was != line.cause else ""
    yield f"        {line.outcome.effect.value}; {where}{moved}".rstrip("; ")


def _table(difference: ChangeSet) -> Iterator[str]:
    found = list(rows(difference))
    if not found:
        return
    cells = [("", "GPUs", "CPU", "memory"), *((f"{row.env} {row.by}".strip(), *row[2:]) for row in found)]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
