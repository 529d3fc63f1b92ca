"""A difference for a comment on a pull request: a summary on top, the rest folded, and never too long to be posted."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.diff.changes import ChangeSet
from jobgen.diff.grouping import Line, Story, places, stories
from jobgen.diff.impact import Impact
from jobgen.diff.operator_behavior import MEANING
from jobgen.diff.summary import Row, headline, rows, sizes, warning
from jobgen.report.markdown import inline

LONGEST = 65_000
"""GitHub takes 65,536 characters in a comment; GitLab takes more."""
_TOTALS = 60
_TOTALS_LENGTH = 15_000
_NAMES = 50
_MORE = 400
"""Room that is kept for the lines around names that are left out."""
_NAME = 70
_FOR_NAMES = 30_000
"""Room that is kept for names, each about so long, where not everything can be told."""


def render(difference: ChangeSet) -> str:
    """The whole comment: as many stories as fit, then names, then a number."""
    top = "".join(_top(difference))
    room = LONGEST - len(top) - _MORE
    told, rest = _told(difference, room - min(_FOR_NAMES, _NAME * len(difference.happened)))
    return f"{top}{told}{''.join(_named(rest, room - len(told)))}"


def _told(difference: ChangeSet, room: int) -> tuple[str, list[Impact]]:
    """The stories for which there is room, and what they leave untold."""
    blocks: list[str] = []
    known: set[int] = set()
    for story in stories(difference):
        block = "".join(_story(story))
        room -= len(block)
        if room < 0:
            break
        blocks.append(block)
        known |= {id(one) for one in story.members}
    return "".join(blocks), [one for one in difference.happened if id(one) not in known]


def _named(rest: list[Impact], room: int) -> Iterator[str]:
    """The names of what there was no room to tell; whoever wants to know more asks for all of it."""
    if not rest:
        return
    yield f"<details><summary>{len(rest)} more, by name; <code>jobgen diff --format json</code> tells all</summary>\n\n"
    for place, one in enumerate(rest):
        env = f" in {one.made.env}" if one.made.env else ""
        line = f"- {one.happening} {inline(str(one.made.identity) + env)}: {one.outcome.effect.value}\n"
        room -= len(line)
        if room < 0:
            yield f"- … and {len(rest) - place} more\n"
            break
        yield line
    yield "\n</details>\n"


def _top(difference: ChangeSet) -> Iterator[str]:
    yield f"### jobgen diff: {headline(difference)}\n\n"
    yield f"{inline(difference.old.name)} → {inline(difference.new.name)}\n\n"
    if warning(difference):
        yield f"> **{inline(warning(difference))}**\n\n"
    if difference.happened:
        yield "| effect | objects | |\n|---|---:|---|\n"
        yield from (
            f"| {effect.value} | {count} | {MEANING[effect]} |\n" for effect, count in difference.effects().items()
        )
        yield "\n"
    yield from _table(list(rows(difference)))


def _table(found: list[Row]) -> Iterator[str]:
    if not found:
        return
    yield "| environment | | GPUs | CPU | memory |\n|---|---|---:|---:|---:|\n"
    room = _TOTALS_LENGTH
    shown = 0
    for row in found[:_TOTALS]:
        line = f"| {' | '.join(inline(cell) for cell in row)} |\n"
        room -= len(line)
        if room < 0:
            break
        shown += 1
        yield line
    if shown < len(found):
        yield f"| … | {len(found) - shown} more | | | |\n"
    yield "\n"


def _story(story: Story) -> Iterator[str]:
    first, named = story.first, places(story)
    others = f" and {len(named) - 1} more" if len(named) > 1 else ""
    yield f"<details><summary><b>{first.happening}</b> {inline(named[0])}{others}: "
    yield f"<b>{first.outcome.effect.value}</b></summary>\n\n"
    yield f"{'; '.join(filter(None, (inline(first.outcome.why), inline(sizes(*story.sizes)))))}\n\n"
    if len(named) > 1:
        yield f"Alike: {', '.join(map(inline, named[1 : _NAMES + 1]))}{' …' if len(named) > _NAMES + 1 else ''}\n\n"
    if story.lines:
        yield "| field | was | is | effect | line |\n|---|---|---|---|---|\n"
        yield from map(_field, story.lines)
        if story.hidden:
            yield f"| … | | | | {story.hidden} more fields |\n"
        yield "\n"
    yield "</details>\n\n"


def _field(line: Line) -> str:
    alike = f" (also {', '.join(line.alike)})" if line.alike else ""
    where = line.cause or (f"was {line.was}" if line.was else "")
    cells = (line.field + alike, line.old, line.new, line.outcome.effect.value, where)
    return f"| {' | '.join(inline(cell) for cell in cells)} |\n"
