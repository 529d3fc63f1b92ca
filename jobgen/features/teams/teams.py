"""Say who owns what, and what is used of each budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from jobgen.api.errors import UsageError, check_format, check_names
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.check.scaling import Scalable, find_scaling, name_target, scale_amounts
from jobgen.check.team_limits import list_lines, measure_use
from jobgen.k8s.kueue import creates_wrapped_objects
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import sum_gpus
from jobgen.model.data import Plain, untraced, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import suggest_or
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.policies import mutate_rendered
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.render_task import render_jobs
from jobgen.repo.lock import TREE
from jobgen.repo.root import BASELINE, LAYER_FOLDERS, SETTINGS, folder_exists
from jobgen.reports.escape import dump_json, markdown_text, visible
from jobgen.spec.teams import Budget, Team, TeamScope, count_units

# Collect what each team owns, may use and uses.

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
        """Return True if the team uses more than its limit."""
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
        objects.setdefault((each.env, checkers[0].runner.expander.find_team(each.location.file)), []).append(each)
    for team in teams:
        environments: list[TeamEnvironment] = []
        for checker in checkers:
            name = checker.runner.name
            scope = checker.runner.expander.environment.teams.find_scope(team, name)
            environments.append(_describe(checker, scope, objects.get((name, team.name), ())))
        contacts = untraced(team.spec.get("contacts", {}))
        yield TeamOverview(team.name, team.file, team.folders, team.owners, contacts, tuple(environments))
    rest = tuple(_describe(checker, TeamScope(""), objects.get((checker.runner.name, ""), ())) for checker in checkers)
    if any(line.used for each in rest for line in each.budget):
        yield TeamOverview("", "", (), (), {}, rest)


def _describe(checker: EnvironmentChecker, scope: TeamScope, made: Iterable[Rendered]) -> TeamEnvironment:
    limits = {line.name: line.limit for line in list_lines(scope.budget)}
    measured = _MEASURED._replace(devices=scope.budget.devices)
    uses: dict[str, list[tuple[Scalable, tuple[tuple[object, ...], ...]]]] = {
        line.name: [] for line in list_lines(measured)
    }
    every: list[Manifest] = []
    for each in made:
        # An object, and the objects inside an AppWrapper, as the rules see them.
        manifests = [checker.checker.manifest(each.object)]
        if is_app_wrapper(each.object) and creates_wrapped_objects(manifests[0]):
            manifests += (checker.checker.manifest(inner) for _, inner in list_wrapped_objects(each.object))
        every += manifests
    for manifest in every:
        for use in measure_use(manifest, measured):
            scalable = Scalable(name_target(manifest), use.amount, use.base, use.each)
            uses[use.name].append((scalable, use.shared))
    scalings = [scaling for manifest in every for scaling in find_scaling(manifest)]
    lines: list[BudgetLine] = []
    for name, found in uses.items():
        amounts = scale_amounts([scalable for scalable, _ in found], scalings)
        used = sum_gpus((amount, shared) for amount, (_, shared) in zip(amounts, found, strict=True))
        lines.append(BudgetLine(name, used, limits.get(name)))
    return TeamEnvironment(checker.runner.name, scope.allowed, tuple(lines))


_BEGIN = "# begin of the lines that `jobgen codeowners` writes from teams/"
_END = "# end of the lines that `jobgen codeowners` writes"


DECIDING_FILES = (SETTINGS, *(f"{folder}/" for folder in LAYER_FOLDERS), BASELINE)
"""What decides about all jobs."""


def list_deciding(project: ProjectConfig) -> tuple[str, ...]:
    """Return the files and folders that decide about all jobs, or that a GitOps engine applies as they are."""
    root = project.root
    declared = str(value_of(project.settings.get("rendered", ""))).rstrip("/")
    folders = [declared or (TREE if folder_exists(root, TREE) else "")]
    folders += ["gitops"] if folder_exists(root, "gitops") else []
    names = project.overlays or ("",)
    states = {project.environment(name, []).cluster.state.strip("/") for name in names}
    return (*DECIDING_FILES, *(f"{folder}/" for folder in (*folders, *sorted(states)) if folder))


def write_owners(
    text: str,
    teams: Sequence[Team],
    prefix: str,
    owners: Sequence[str] = (),
    deciding: Sequence[str] = DECIDING_FILES,
) -> str:
    """Return the text of CODEOWNERS with the lines of the teams; other lines stay as they are.

    `prefix` is the path from the top of the Git repository to the jobs repository. `owners` review the files that
    decide about all jobs, and CODEOWNERS itself, wherever Git hosts look for it.
    """
    # A line without owners would say that changes need no review, also where an earlier line names owners.
    # The last line that matches wins, so parts of a folder come after it.
    lines: list[str] = []
    of_teams = sorted((folder, team.owners) for team in teams for folder in team.folders if team.owners)
    owned = [(f"{folder}/", several) for folder, several in of_teams]
    for name, several in (*owned, *((name, owners) for name in deciding if owners)):
        path = "/".join(filter(None, (prefix, name)))
        escaped = "".join(f"\\{letter}" if letter in " #\\" else letter for letter in path)
        lines.append(" ".join((f"/{escaped}", *several)))
    lines += [" ".join(("CODEOWNERS", *owners))] if owners else []
    block = "\n".join((_BEGIN, *lines, _END)) + "\n"
    before, found, rest = text.partition(f"{_BEGIN}\n")
    if not found:
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{block}"
    _, end, after = rest.partition(_END)
    # Without its end, nothing says where the block stops, so the lines after it are kept.
    return before + block + (after.removeprefix("\n") if end else rest)


_HEAD = "| team | folders | owners | environment | used | namespaces | queues |\n|---|---|---|---|---|---|---|\n"


def render_text(teams: Sequence[TeamOverview]) -> str:
    """Write the teams, and what is used of each budget."""
    return "\n".join("\n".join(_list_lines(team)) + "\n" for team in teams)


def _list_lines(team: TeamOverview) -> Iterator[str]:
    if not team.name:
        yield "files that no team owns"
    else:
        contacts = (f"{name} {text}" for name, text in team.contacts.items())
        yield visible("  ".join((team.name, ", ".join(team.folders), " ".join(team.owners), *contacts)).rstrip())
    for each in team.environments:
        allowed = (f"{name} {' '.join(patterns) or 'none'}" for name, patterns in each.allowed.items())
        parts = "; ".join((", ".join(map(describe_line, each.budget)), *allowed))
        yield "  " + visible(f"{each.environment or 'all'}: {parts}")


def describe_line(line: BudgetLine) -> str:
    """Return what is used of one limit."""
    count = line.used if line.limit is None else line.limit
    counted = count_units(count, line.name)
    if line.limit is None:
        return counted
    return f"{line.used} of {counted}" + (" (exceeded)" if line.is_exceeded else "")


def render_markdown(teams: Sequence[TeamOverview]) -> str:
    """Write a row for each team and environment."""
    rows = (
        (
            team.name or "none",
            ", ".join(team.folders),
            " ".join(team.owners),
            each.environment,
            ", ".join(map(describe_line, each.budget)),
            *(" ".join(each.allowed.get(name, ())) for name in ("namespaces", "queues")),
        )
        for team in teams
        for each in team.environments
    )
    return _HEAD + "".join(f"| {' | '.join(map(markdown_text, row))} |\n" for row in rows)


def render_json(teams: Sequence[TeamOverview]) -> str:
    """Write all teams."""
    document: dict[str, Plain] = {"version": 1, "teams": [_team_to_plain(team) for team in teams]}
    return dump_json(document) + "\n"


def _team_to_plain(team: TeamOverview) -> dict[str, Plain]:
    return {
        "name": team.name,
        "file": team.file,
        "folders": list(team.folders),
        "owners": list(team.owners),
        "contacts": dict(team.contacts),
        "environments": [
            {
                "environment": each.environment,
                "allowed": {name: list(patterns) for name, patterns in each.allowed.items()},
                "budget": [{"name": line.name, "used": line.used, "limit": line.limit} for line in each.budget],
            }
            for each in team.environments
        ],
    }


FORMATS: dict[str, Callable[[Sequence[TeamOverview]], str]] = {
    "json": render_json,
    "markdown": render_markdown,
    "text": render_text,
}


class TeamsResult(NamedTuple):
    """The teams of a repository."""

    teams: tuple[TeamOverview, ...]
    """The teams, and last the files that no team owns, if they have jobs; empty if there are errors."""
    text: str
    """The teams in the requested format."""
    findings: tuple[Finding, ...]
    """The errors that prevent rendering."""

    @property
    def failed(self) -> bool:
        """Return True if errors prevented rendering."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def teams(
    project: ProjectPath,
    names: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    format: str = "text",  # noqa: A002 -- the name of the option
) -> TeamsResult:
    """Say who owns what, and what is used of each budget.

    Args:
        project: A project, or a path in one.
        names: Names of teams as shell patterns; by default all teams.
        environments: Names of environments; by default those of the project.
        format: The format of `TeamsResult.text`: `text`, `markdown` or `json`.

    Raises:
        UsageError: `jobgen.yaml` has errors, an argument is wrong, or there is no such team.
        TypeError: `names` or `environments` is not a list of strings.

    """
    check_names("names", names)
    check_names("environments", environments)
    check_format(format, list(FORMATS))
    opened = open_project(project)
    config = opened.config
    selected = select_environments(config, environments)
    chosen = [team for team in config.teams.all if not names or any(fnmatchcase(team.name, name) for name in names)]
    known = [team.name for team in config.teams.all]
    if not known and not opened.findings:
        raise UsageError("there are no teams; write `teams/<name>.yaml`, or `teams` in jobgen.yaml")
    for name in names:
        if known and not any(fnmatchcase(team, name) for team in known):
            hint = suggest_or(name, known, f"choose one of {', '.join(known)}")
            raise UsageError(f"there is no team `{name}`{hint}")
    result = render_jobs(config, selected)
    if result.failed:
        return TeamsResult((), "", tuple(result.findings))
    checkers = [EnvironmentChecker(EnvironmentRunner(config, name)) for name in result.layers.environments]
    found = [
        each
        for each in list_overviews(chosen, checkers, mutate_rendered(config, result.objects))
        if each.name or not names
    ]
    return TeamsResult(tuple(found), FORMATS[format](found), tuple(result.findings))
