"""What a run finds out about one file: its objects, its findings, and the facts that are compared across files."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
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
    jobs: list[tuple[str, int, int]]
    """The name, position and item of each job of the file."""
    objects: list[Any]
    """The data of what is made, if a run leaves it beside what it keeps of each object."""
    lines: dict[int, str]
    """The lines of the file that findings point at, without secrets, by number: what is printed below a finding."""
    excesses: list[NotedExcess]
    """The steps beyond what is free. A result that is not whole holds for this run alone."""


class SameFiles(NamedTuple):
    """Files that are rendered, and not checked: all that their results can read is the same in another lint."""

    pairs: frozenset[tuple[str, str]] = frozenset()
    """The files, each with an environment in which it is not checked."""
    rules: frozenset[tuple[str, str]] = frozenset()
    """The rules about several jobs that are applied nevertheless, to all jobs of an environment, each with its name.

    The others find the same in both.
    """
    teams: frozenset[str] | None = None
    """The teams to whose jobs rules about each team are applied; None for all teams."""

    @property
    def files(self) -> frozenset[str]:
        """The files that are not checked in an environment."""
        return frozenset(path for path, _ in self.pairs)

    def list_rules(self, env: str) -> frozenset[str]:
        """Return the rules about several jobs that are applied to all jobs of an environment."""
        return frozenset(rule for name, rule in self.rules if name == env)


def new_result() -> FileResult:
    """Return a result with nothing in it."""
    from jobgen.rendering.environment import new_overlay_use

    return FileResult([], [], set(), new_overlay_use(), [], [], [], [], [], [], [], {}, [])


def are_same(one: tuple[FileResult, ...], other: tuple[FileResult, ...]) -> bool:
    """Return True if results are the same objects."""
    return len(one) == len(other) and all(map(is_, one, other))


def join_parts(parts: tuple[FileResult, ...]) -> FileResult:
    """Return the results of a file by itself and of environments as one."""
    from jobgen.rendering.environment import OverlayUse

    own, *others = parts
    patches, hits = set(own.used.patches), dict(own.used.hits)
    misses, own_misses = [*own.used.misses], [*own.used.own_misses]
    defaults, reads = [*own.used.defaults], set(own.used.reads)
    # The order of the output is job by job, then environment by environment. Items count up, members of a sweep down.
    made, findings, rows, unchecked = [*own.made], [*own.findings], [*own.rows], [*own.unchecked]
    unrendered, excesses, lines = [*own.unrendered], [*own.excesses], {**own.lines}
    # One loop without a call for each list: most of them are empty.
    for part in others:
        used = part.used
        patches |= used.patches
        # What the first environment has matched stays.
        hits = used.hits | hits
        misses += used.misses
        own_misses += used.own_misses
        defaults += used.defaults
        reads |= used.reads
        made += part.made
        findings += part.findings
        rows += part.rows
        unchecked += part.unchecked
        unrendered += part.unrendered
        excesses += part.excesses
        lines |= part.lines
    made.sort(key=lambda each: (each.position, abs(each.item)))
    rendered = {(each.position, each.item) for each in made}
    # These belong to no environment, or have errors in all.
    unchecked += [name for name, *place in own.jobs if tuple(place) not in rendered]
    return own._replace(
        made=made,
        findings=findings,
        used=OverlayUse(patches, hits, misses, own_misses, defaults, reads),
        rows=rows,
        unchecked=unchecked,
        unrendered=unrendered,
        objects=[],
        lines=lines,
        excesses=excesses,
    )
