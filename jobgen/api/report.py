"""Write the fleet of a repository as one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from jobgen.api.errors import NotFoundError, UsageError, check_names
from jobgen.api.lint import LintResult, lint, lint_twice
from jobgen.api.lint_files import LintRequest
from jobgen.api.page_head import describe_repository, make_title
from jobgen.api.project import Project, ProjectPath, open_project, select_environments
from jobgen.check.builtin_rules import UNREADABLE_RULES
from jobgen.check.rule_docs import all_docs
from jobgen.diff.snapshot import snapshot_repository
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.parallel import run_beside
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.repo.code_owners import CODE_OWNERS_FILES, find_code_owners, parse_code_owners
from jobgen.repo.named_paths import read_first
from jobgen.site.capacity import build_capacity
from jobgen.site.encode import encode
from jobgen.site.findings import place_findings
from jobgen.site.fleet import build_fleet
from jobgen.site.fleet_tables import FleetData, list_tables
from jobgen.site.job_pages import build_pages
from jobgen.site.page import assemble_page
from jobgen.site.prices import NO_PRICES, Prices, read_prices


class ReportResult(NamedTuple):
    """The page of a repository."""

    page: str
    """The HTML."""
    data: str
    """The JSON in the page; docs/report_data.md describes it."""
    jobs: int
    """The number of jobs, members of sweeps included; objects without pods, such as ConfigMaps, are not."""
    findings: tuple[Finding, ...]
    """Those of `lint`, sorted by location."""
    errors: tuple[Finding, ...]
    """What cannot be read or rendered, so that it is not in the page, or broken there; also unreadable policies."""
    unknown_queues: Mapping[str, str]
    """Environments whose queues cannot be read, and why."""
    incomplete: bool
    """Whether a broken schema or policy prevented checks."""

    @property
    def failed(self) -> bool:
        """Whether something is not in the page because of an error."""
        return bool(self.errors or self.unknown_queues)


def report(
    project: ProjectPath,
    *,
    environments: Sequence[str] = (),
    since: str = "",
    repo_url: str | None = None,
    prices: str = "",
) -> ReportResult:
    """Write the fleet of a repository as one HTML page.

    Args:
        project: A project, or a path in one.
        environments: Names of environments; by default those of the project.
        since: A Git revision; findings are marked as new, and those that are gone are listed.
        repo_url: Where the repository can be browsed, such as `https://github.com/example/jobs`, or a template with
            `{revision}`, `{file}` and `{line}`; by default the remote `origin` says it, and with `""` there are no
            links.
        prices: A file with prices, relative to the project.

    Raises:
        UsageError: `jobgen.yaml` has errors, or an argument is wrong.
        NotFoundError: There are no jobs.
        TypeError: `environments` is not a list of strings.

    """
    check_names("environments", environments)
    opened = open_project(project)
    head, changed = describe_repository(opened.root, repo_url)
    known_prices = _read_prices(opened, prices) if prices else NO_PRICES
    select_environments(opened.config, environments)
    data, linted = _collect_data(opened, environments, since, known_prices, head["prefix"])
    more: dict[str, str | int] = {
        "date": opened.config.day(),
        "since": since,
        "currency": known_prices.currency,
        "unchecked": int(linted.incomplete),
    }
    text = encode("fleet", {**head, **more}, [*list_tables(data), changed])
    return ReportResult(
        assemble_page(make_title(head, changed), text),
        text,
        sum(job.is_job for job in data.fleet.jobs),
        linted.findings,
        data.errors,
        dict(data.capacity.errors),
        linted.incomplete,
    )


def _collect_data(
    project: Project, environments: Sequence[str], since: str, prices: Prices, prefix: str
) -> tuple[FleetData, LintResult]:
    """Render, lint and decide: return what the page shows. The lint runs in another process meanwhile."""
    snapshot = snapshot_repository(project.root, project.root.name, environments, project.today)
    errors = dict.fromkeys(each for each in snapshot.findings if each.severity is Severity.ERROR)
    jobs = list(read_jobs(layout.find_jobs(project.root), project.config.frameworks, []))
    if not jobs and not errors:
        raise NotFoundError("there is no job under jobs/", snapshot.findings)
    lint_all = partial(_find_findings, project, environments, since)
    with run_beside(lint_all, len(snapshot.objects)) as wait_for_findings:
        fleet = build_fleet(snapshot, jobs, _read_code_owners(project.root, prefix))
        capacity = build_capacity(snapshot, fleet, prices)
        pages = build_pages(snapshot, fleet, jobs)
        linted, new, gone = wait_for_findings()
    errors |= dict.fromkeys(filter(_hides_policy, linted.findings))
    found, fixed = list(place_findings(fleet, linted.findings, new)), list(place_findings(fleet, gone))
    return FleetData(fleet, found, fixed, all_docs(project.root), capacity, pages, tuple(errors)), linted


def _hides_policy(finding: Finding) -> bool:
    """Whether a policy cannot be read, so that the findings of it are not in the page."""
    is_error = finding.severity is Severity.ERROR and finding.rule in UNREADABLE_RULES
    return is_error and finding.location.file.startswith("policies/")


def _find_findings(
    project: Project, environments: Sequence[str], since: str
) -> tuple[LintResult, frozenset[Finding] | None, tuple[Finding, ...]]:
    """Lint; with a revision, return also which findings are new since then, and which ones it had that are gone."""
    if not since:
        return lint(project, environments=environments), None, ()
    linted, new, gone = lint_twice(LintRequest(project.root, (), environments, today=project.today), since)
    return linted, frozenset(new.findings), gone


def _read_code_owners(root: Path, prefix: str) -> Callable[[str], str]:
    """Return a function that finds the owners of a file by the CODEOWNERS of the Git repository."""
    top = root.resolve()
    for _ in filter(None, prefix.split("/")):
        top = top.parent
    file = next(filter(None, (read_first((top,), path) for path in CODE_OWNERS_FILES)), None)
    rules = parse_code_owners(file.content.decode("utf-8", "replace")) if file else ()
    return cache(lambda path: find_code_owners(rules, f"{prefix}/{path}" if prefix else path))


def _read_prices(opened: Project, path: str) -> Prices:
    file = read_first((opened.root,), path)
    if file is None:
        raise UsageError(f"there is no file `{path}`; the path starts at the root of the repository")
    findings: list[Finding] = []
    prices = read_prices(file, list(opened.config.overlays), findings)
    if findings:
        raise UsageError(f"the prices in `{path}` have errors", findings)
    return prices
