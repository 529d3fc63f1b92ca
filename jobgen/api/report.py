"""Write the fleet of a repository as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen import __version__
from jobgen.api.errors import check_names
from jobgen.api.lint import lint
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.diff.snapshot import Snapshot, snapshot_repository
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.repo import git, layout
from jobgen.site.encode import Texts, encode
from jobgen.site.fleet import build_fleet
from jobgen.site.fleet_tables import FleetTables
from jobgen.site.job_pages import list_manifest_lines, list_overlay_secrets, list_spec_lines
from jobgen.site.page import assemble_page


class ReportResult(NamedTuple):
    """The page of a repository."""

    page: str
    """The HTML."""
    data: str
    """The JSON in the page; docs/report_data.md describes it."""
    jobs: int
    findings: int


def report(project: ProjectPath, *, environments: Sequence[str] = (), repo_url: str = "") -> ReportResult:
    """Write the fleet of a repository as one HTML page.

    Args:
        project: A project, or a path in one.
        environments: Names of environments; by default those of the project.
        repo_url: Where the repository can be browsed, such as `https://github.com/example/jobs`.

    Raises:
        UsageError: `jobgen.yaml` has errors, or an argument is wrong.
        NotFoundError: There are no jobs.
        TypeError: `environments` is not a list of strings.

    """
    check_names("environments", environments)
    opened = open_project(project)
    selected = select_environments(opened.config, environments)
    linted = lint(opened, environments=environments)
    snapshot = snapshot_repository(opened.root, opened.root.name, selected, opened.today)
    jobs = list(read_jobs(layout.find_jobs(opened.root), opened.config.frameworks, []))
    fleet = build_fleet(snapshot, jobs)
    texts = Texts()
    tables = FleetTables(fleet, texts)
    secrets = list_overlay_secrets(snapshot)
    for number, job in enumerate(jobs):
        tables.add_spec(number, list_spec_lines(job))
    for number, cell in enumerate(fleet.cells):
        if cell.objects:
            lines = list_manifest_lines(snapshot.tracer, jobs[cell.job], cell.objects, secrets)
            tables.add_manifest(number, lines)
    head = _describe_repository(snapshot, opened.root, repo_url)
    data = encode("fleet", head, tables.list_tables(linted.findings), texts)
    title = f"{head['name']} @ {head['revision'][:10]}" if head["revision"] else str(head["name"])
    return ReportResult(assemble_page(title, data), data, len(fleet.jobs), len(linted.findings))


def _describe_repository(snapshot: Snapshot, root: Path, repo_url: str) -> dict[str, str]:
    try:
        revision = git.resolve_commit(root, "HEAD")
        prefix = git.find_prefix(root)
    except git.GitError:
        revision = prefix = ""
    return {
        "name": root.name,
        "revision": revision,
        "date": snapshot.project.day(),
        "url": repo_url.rstrip("/"),
        "prefix": prefix,
        "jobgen": __version__,
    }
