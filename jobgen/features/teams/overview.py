"""Collect what each team owns, may use and uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.check.checker import Checker
from jobgen.check.team_limits import list_lines, measure_use
from jobgen.k8s.kueue import creates_wrapped_objects
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import sum_gpus
from jobgen.model.data import untraced
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.spec.teams import Budget, Team, TeamScope

_MEASURED = Budget(gpus=0, jobs=0, replicas=0)
"""What is counted also for a team without such a limit."""


class BudgetLine(NamedTuple):
    """What a team uses of one limit of its budget."""

    name: str
    """`gpus`, `jobs`, `replicas`, or a resource with the labels that nodes are selected by."""
    used: int
    limit: int | None
    """None if there is no limit."""

    @property
    def is_exceeded(self) -> bool:
        """Whether the team uses more than its limit."""
        return self.limit is not None and self.used > self.limit


class TeamEnvironment(NamedTuple):
    """A team in one environment."""

    environment: str
    allowed: Mapping[str, tuple[str, ...]]
    """What it may use, as patterns, by the name of the list in its file."""
    budget: tuple[BudgetLine, ...]


class TeamOverview(NamedTuple):
    """A team, and what it has in each environment."""

    name: str
    """Empty for the files that no team owns."""
    file: str
    folders: tuple[str, ...]
    owners: tuple[str, ...]
    contacts: Mapping[str, str]
    environments: tuple[TeamEnvironment, ...]


def list_overviews(
    teams: Sequence[Team], checkers: Sequence[EnvironmentChecker], made: Iterable[Rendered]
) -> Iterator[TeamOverview]:
    """Yield the overview of each team, and one of the files that no team owns if they have jobs."""
    objects: dict[tuple[str, str], list[Rendered]] = {}
    for each in made:
        objects.setdefault((each.env, _find_team(checkers[0].runner, each)), []).append(each)
    for team in teams:
        yield TeamOverview(
            team.name,
            team.file,
            team.folders,
            team.owners,
            untraced(team.spec.get("contacts", {})),
            tuple(
                _describe(
                    checker,
                    checker.runner.expander.environment.teams.find_scope(team, checker.runner.name),
                    objects.get((checker.runner.name, team.name), ()),
                )
                for checker in checkers
            ),
        )
    rest = tuple(_describe(checker, TeamScope(""), objects.get((checker.runner.name, ""), ())) for checker in checkers)
    if any(line.used for each in rest for line in each.budget):
        yield TeamOverview("", "", (), (), {}, rest)


def _find_team(runner: EnvironmentRunner, made: Rendered) -> str:
    return runner.expander.find_team(made.location.file)


def _describe(checker: EnvironmentChecker, scope: TeamScope, made: Iterable[Rendered]) -> TeamEnvironment:
    limits = {line.name: line.limit for line in list_lines(scope.budget)}
    measured = _MEASURED._replace(devices=scope.budget.devices)
    uses: dict[str, list[tuple[int, tuple[object, ...]]]] = {line.name: [] for line in list_lines(measured)}
    for each in made:
        for obj in _list_objects(checker.checker, each):
            for name, _, amount, shared in measure_use(obj, measured):
                uses[name].append((amount, shared))
    lines = (BudgetLine(name, sum_gpus(found), limits.get(name)) for name, found in uses.items())
    return TeamEnvironment(checker.runner.name, scope.allowed, tuple(lines))


def _list_objects(checker: Checker, made: Rendered) -> Iterator[Manifest]:
    """Yield an object, and the objects inside an AppWrapper, as the rules see them."""
    manifest = checker.manifest(made.object)
    yield manifest
    if is_app_wrapper(made.object) and creates_wrapped_objects(manifest):
        yield from (checker.manifest(inner) for _, inner in list_wrapped_objects(made.object))


_BEGIN = "# begin of the lines that `jobgen codeowners` writes from teams/"
_END = "# end of the lines that `jobgen codeowners` writes"


def write_owners(text: str, teams: Sequence[Team], prefix: str) -> str:
    """Return the text of CODEOWNERS with the lines of the teams; other lines stay as they are.

    `prefix` is the path from the top of the Git repository to the jobs repository.
    """
    block = "\n".join((_BEGIN, *_list_lines(teams, prefix), _END)) + "\n"
    before, found, rest = text.partition(f"{_BEGIN}\n")
    if not found:
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{block}"
    _, end, after = rest.partition(_END)
    # Without its end, nothing says where the block stops, so the lines after it are kept.
    return before + block + (after.removeprefix("\n") if end else rest)


def _list_lines(teams: Sequence[Team], prefix: str) -> Iterator[str]:
    """Yield a line for each folder; those of parts of a folder come later, because the last line that matches wins."""
    # A line without owners would say that changes need no review, also where an earlier line names owners.
    rows = [(folder, team.owners) for team in teams for folder in team.folders if team.owners]
    for folder, owners in sorted(rows):
        path = "/".join(filter(None, (prefix, folder)))
        yield " ".join((f"/{_escape(path)}/", *owners))


def _escape(path: str) -> str:
    return "".join(f"\\{letter}" if letter in " #\\" else letter for letter in path)
