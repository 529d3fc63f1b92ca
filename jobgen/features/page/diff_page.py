"""`jobgen diff --format html`: the page of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jobgen.api.errors import JobgenError
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.api.since import Side, find_new
from jobgen.compare.changes import ChangeSet
from jobgen.compare.snapshot import Snapshot
from jobgen.features.page.page import Table, assemble_page, describe_repository, encode, make_title
from jobgen.features.page.pull_request import describe_changes, list_failure_tables, list_tables
from jobgen.model.finding import Finding
from jobgen.repo import git, layout
from jobgen.repo.changed_files import find_uncommitted
from jobgen.repo.commit import CommitPath
from jobgen.reports.duplicates import merge_duplicates


def render_page(changes: ChangeSet, directory: Path, environments: Sequence[str], repo_url: str | None = None) -> str:
    """Return the page of a comparison, with the findings that are new and fixed."""
    sides = changes.old, changes.new
    found: Sequence[Finding] = ()
    fixed: Sequence[Finding] = ()
    notes: list[str] = []
    base = changes.old.project.root
    try:
        before = _lint_side(changes.old, directory, environments)
        # A change is judged by the settings of its base.
        with layout.judged_by(changes.new.project.root, base if isinstance(base, CommitPath) else None):
            after = _lint_side(changes.new, directory, environments)
        old, new = Side(before, (changes.old.folder,)), Side(after, (changes.new.folder,))
        found, fixed = find_new(new, old), find_new(old, new)
    except JobgenError as error:
        notes.append(f"The findings of the two sides are not compared: {error}")
    notes += (f"Governance: {each.describe()} ({each.location})" for each in changes.governance)
    tables = list_tables(changes, found, fixed, notes)
    return _assemble(sides, directory, repo_url, describe_changes(changes), tables)


def render_failure(old: Snapshot, new: Snapshot, directory: Path, repo_url: str | None = None) -> str:
    """Return the page of a comparison that is not possible, with the errors of each side that cannot be rendered."""
    return _assemble((old, new), directory, repo_url, {"failed": 1}, list_failure_tables(old.errors, new.errors))


def _assemble(
    sides: tuple[Snapshot, Snapshot],
    directory: Path,
    repo_url: str | None,
    facts: dict[str, str | int],
    tables: list[Table],
) -> str:
    new = sides[1].folder
    repository, changed = describe_repository(directory, repo_url, shows_work_tree=new == directory)
    if new != directory:
        # The new side is not the work tree, but a commit or a folder.
        repository["revision"] = new.commit.name if isinstance(new, CommitPath) else ""
    head: dict[str, str | int] = {**repository}
    columns = [(table, at) for table in tables for at, name in enumerate(table.columns) if name.endswith(":files")]
    files = sorted({str(row[at]) for table, at in columns for row in table.rows} - {""})
    unlinked: list[tuple[int, str]] = []
    for is_old, side in ((1, sides[0]), (0, sides[1])):
        name, folder = "base" if is_old else "head", side.folder
        revision = prefix = ""
        if isinstance(folder, CommitPath):
            revision, prefix = folder.commit.name, folder.path
        else:
            # The files of a work tree are in its last commit, if it has them; outside of Git there is none.
            with suppress(git.GitError):
                revision, prefix = git.resolve_commit(folder, "HEAD"), git.find_prefix(folder)
        head |= {name: side.name, f"{name}Revision": revision, f"{name}Prefix": prefix}
        if repository["link"] and revision:
            unlinked += ((is_old, file) for file in find_uncommitted(folder, revision, files))
    tables = [*tables, changed, Table("unlinked", ("old", "file:files"), unlinked)]
    title = f"{sides[0].name} → {sides[1].name}, {make_title(repository, changed)}"
    return assemble_page(title, encode("changes", {**head, **facts}, tables))


def _lint_side(side: Snapshot, directory: Path, environments: Sequence[str]) -> list[Finding]:
    envs = [] if side.is_tree else [env for env in environments if env in side.project.overlays]
    if environments and not envs and not side.is_tree:
        return []
    paths = (".",) if side.is_tree else ()
    request = LintRequest(directory, paths, envs, today=side.project.today)
    if isinstance(side.folder, CommitPath):
        request = request._replace(committed=side.folder)
    else:
        request = request._replace(directory=side.folder)
    linted = find_findings(request)
    findings = merge_duplicates(linted.findings, linted.mandatory)
    if side.is_tree and environments:
        return [each for each in findings if each.location.file.partition("/")[0] in environments]
    return findings
