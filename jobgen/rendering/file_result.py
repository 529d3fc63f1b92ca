"""What a run finds out about one file: its objects, its findings, and the facts that are compared across files."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    from jobgen.engine.store import Row
    from jobgen.model.budget import Excess
    from jobgen.model.finding import Finding
    from jobgen.rendering.environment import OverlayUse, Rendered
    from jobgen.reports.suppress import Suppression


class NotedExcess(NamedTuple):
    """The steps on an object that count for the run, and the finding that says so if all together are too many.

    The message of the finding is known at the end of the run.
    """

    excess: Excess
    finding: Finding


class FileResult(NamedTuple):
    """The rendered objects and the findings of a file: of the file by itself, of one environment, or of all."""

    made: list[Rendered]
    findings: list[Finding]
    names: set[str]
    used: OverlayUse
    rows: list[tuple[str, Any]]
    """Facts of rules about several jobs, each with the name of its rule."""
    comments: list[Suppression]
    unchecked: list[str]
    """The names of jobs that were not checked, or not by every check."""
    unrendered: list[str | None]
    """The names of jobs whose errors prevent that they are rendered; None for a document that cannot be read as one."""
    skipped: list[tuple[str, str]]
    """What the file was taken for, and why, if it was not read."""
    dependent: list[str]
    """The names of jobs whose results depend on the devices or the kinds that other files define."""
    jobs: list[tuple[str, int, int]]
    """The name, position and item of each job of the file."""
    objects: list[Any]
    """The data of what is made, if a run leaves it beside what it keeps of each object."""
    lines: dict[int, str]
    """The lines of the file that findings point at, without secrets, by number: what is printed below a finding."""
    excesses: list[NotedExcess]
    """The steps beyond what is free. A result that is not whole holds for this run alone."""


FileParts = tuple[FileResult, ...]
"""The results of a file: of the file by itself, then of each environment."""


class Answer(NamedTuple):
    """The results of a file, and the rows of the store that have them: what they read stands for them."""

    parts: FileParts
    rows: tuple[Row, ...]


def new_result() -> FileResult:
    """Return a result with nothing in it."""
    from jobgen.rendering.environment import new_overlay_use

    return FileResult([], [], set(), new_overlay_use(), [], [], [], [], [], [], [], [], {}, [])


def are_same(one: FileParts, other: FileParts) -> bool:
    """Return True if results are the same objects."""
    return len(one) == len(other) and all(map(is_, one, other))


def join_parts(parts: FileParts) -> FileResult:
    """Return the results of a file by itself and of environments as one."""
    from jobgen.rendering.environment import OverlayUse

    own = parts[0]
    used = [part.used for part in parts]
    # The order of the output is job by job, then environment by environment. Items count up, members of a sweep down.
    made = [made for part in parts for made in part.made]
    made.sort(key=lambda each: (each.position, abs(each.item)))
    rendered = {(each.position, each.item) for each in made}
    # These belong to no environment, or have errors in all.
    left_out = [name for name, *place in own.jobs if tuple(place) not in rendered]
    return own._replace(
        made=made,
        findings=[finding for part in parts for finding in part.findings],
        used=OverlayUse(
            {patch for use in used for patch in use.patches},
            {marker: where for use in reversed(used) for marker, where in use.hits.items()},
            [miss for use in used for miss in use.misses],
            [miss for use in used for miss in use.own_misses],
            [day for use in used for day in use.days],
        ),
        rows=[row for part in parts for row in part.rows],
        unchecked=[*(name for part in parts for name in part.unchecked), *left_out],
        unrendered=[name for part in parts for name in part.unrendered],
        dependent=[name for part in parts for name in part.dependent],
        objects=[],
        lines={number: line for part in parts for number, line in part.lines.items()},
        excesses=[excess for part in parts for excess in part.excesses],
    )
