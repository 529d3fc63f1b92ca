"""Write the fleet of a repository as one HTML page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from jobgen.api.errors import NotFoundError, UsageError, check_names
from jobgen.api.lint import LintResult, lint_request, lint_twice
from jobgen.api.lint_files import LintRequest
from jobgen.api.project import Project, ProjectPath, open_project, select_environments
from jobgen.check.rule_docs import all_docs
from jobgen.compare.snapshot import snapshot_repository
from jobgen.engine.store import Query, Store
from jobgen.features.page.capacity import NO_PRICES, Prices, build_capacity, read_prices
from jobgen.features.page.fleet import build_fleet, place_findings
from jobgen.features.page.fleet_tables import FleetData, build_pages, list_tables
from jobgen.features.page.page import assemble_page, describe_repository, encode, make_title
from jobgen.model.builtin_rules import UNREADABLE_RULES
from jobgen.model.finding import Finding, Severity
from jobgen.pipeline.encoded_results import decode_findings, encode_findings
from jobgen.rendering.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.repo.code_owners import CODE_OWNERS_FILES, find_code_owners, parse_code_owners
from jobgen.repo.named_paths import read_first
from jobgen.repo.root import open_store


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
    """True if a broken schema or policy prevented checks."""

    @property
    def failed(self) -> bool:
        """Return True if something is not in the page because of an error."""
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
    store = open_store(opened.root)
    day = opened.config.day()

    def answer() -> ReportResult:
        data, linted = _collect_data(opened, environments, since, known_prices, head["prefix"], store)
        facts = {"date": day, "since": since, "currency": known_prices.currency}
        shown: dict[str, str | int] = {**head, **facts, "unchecked": int(linted.incomplete)}
        text, jobs = encode("fleet", shown, [*list_tables(data), changed]), sum(job.is_job for job in data.fleet.jobs)
        unknown = dict(data.capacity.errors)
        return ReportResult("", text, jobs, linted.findings, data.errors, unknown, linted.incomplete)

    # Everything but files that the page depends on; what a lint since a revision reads of Git is not recorded.
    key = repr((str(opened.root), opened.today, list(environments), known_prices, head, changed.rows, day))
    found = answer() if since else store.ask(_REPORT, key, answer)
    store.save()
    return found._replace(page=assemble_page(make_title(head, changed), found.data))


def _encode_report(found: ReportResult) -> str | None:
    findings = [encode_findings(list(each)) for each in (found.findings, found.errors)]
    if None in findings:
        return None
    return json.dumps([found.data, found.jobs, *findings, list(found.unknown_queues.items()), found.incomplete])


def _decode_report(text: str) -> ReportResult:
    data, jobs, findings, errors, unknown, incomplete = json.loads(text)
    found, failed = tuple(decode_findings(findings)), tuple(decode_findings(errors))
    return ReportResult("", data, jobs, found, failed, dict(unknown), incomplete)


_REPORT: Query[ReportResult] = Query("report", _encode_report, _decode_report)
"""A report without its page, which is assembled from its data."""


def _collect_data(
    project: Project, environments: Sequence[str], since: str, prices: Prices, prefix: str, store: Store
) -> tuple[FleetData, LintResult]:
    """Lint, render and decide: return what the page shows. The lint leaves the objects that it renders in the store."""
    render = partial(snapshot_repository, project.root, project.root.name, environments, project.today, store)
    jobs = list(read_jobs(layout.find_jobs(project.root), project.config.frameworks, []))
    if not jobs and not (empty := render()).failed:
        raise NotFoundError("there is no job under jobs/", empty.findings)
    request = LintRequest(project.root, (), environments, today=project.today, leaves_objects=True)
    new: frozenset[Finding] | None = None
    gone: tuple[Finding, ...] = ()
    if since:
        linted, found_new, gone = lint_twice(request, since, store)
        new = frozenset(found_new.findings)
    else:
        linted = lint_request(request, store=store)
    snapshot = render()
    fleet = build_fleet(snapshot, jobs, _read_code_owners(project.root, prefix))
    capacity = build_capacity(snapshot, fleet, prices)
    pages = build_pages(snapshot, fleet, jobs)
    # The findings of a policy that cannot be read are not in the page.
    hiding = [each for each in linted.findings if each.rule in UNREADABLE_RULES]
    hiding = [each for each in hiding if each.location.file.startswith("policies/")]
    errors = dict.fromkeys(each for each in (*snapshot.findings, *hiding) if each.severity is Severity.ERROR)
    found, fixed = list(place_findings(fleet, linted.findings, new)), list(place_findings(fleet, gone))
    return FleetData(fleet, found, fixed, all_docs(project.root), capacity, pages, tuple(errors)), linted


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
