"""`jobgen diff --format html`: the page of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobgen.api.errors import JobgenError
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import run_lint
from jobgen.api.page_head import describe_repository, make_changed_table, make_title
from jobgen.api.pair_findings import Side, find_new
from jobgen.diff.changes import ChangeSet
from jobgen.diff.snapshot import Snapshot
from jobgen.model.finding import Finding
from jobgen.repo.commit import CommitPath
from jobgen.report.duplicates import merge_duplicates
from jobgen.site.encode import encode
from jobgen.site.page import assemble_page
from jobgen.site.pull_request import PullRequest, describe_changes, list_tables


def render_page(changes: ChangeSet, directory: Path, environments: Sequence[str], repo_url: str | None = None) -> str:
    """Return the page of a comparison, with the findings that are new and fixed."""
    old, new = (_lint_side(side, directory, environments) for side in (changes.old, changes.new))
    request = PullRequest(changes, find_new(new, old), find_new(old, new))
    base, head = _find_revision(changes.old), describe_repository(directory, repo_url)
    new_root = changes.new.project.root
    if new_root != directory:
        # The new side is not the work tree: links lead to its commit, and a folder of another place has none.
        head["revision"] = _find_revision(changes.new)
    changed = make_changed_table(directory, head["revision"] if new_root == directory else "")
    revisions = {"baseRevision": base, "headRevision": _find_revision(changes.new)}
    data = encode("changes", {**head, **revisions, **describe_changes(changes)}, [*list_tables(request), changed])
    return assemble_page(f"{changes.old.name} → {changes.new.name}, {make_title(head, changed)}", data)


def _find_revision(side: Snapshot) -> str:
    root = side.project.root
    return root.commit.name if isinstance(root, CommitPath) else ""


def _lint_side(side: Snapshot, directory: Path, environments: Sequence[str]) -> Side:
    """Lint one side; without findings if there is nothing to lint."""
    root = side.project.root
    committed = root if isinstance(root, CommitPath) else None
    envs = [env for env in environments if env in side.project.overlays]
    request = LintRequest(
        root if isinstance(root, Path) else directory, (), envs, today=side.project.today, committed=committed
    )
    findings: list[Finding] = []
    if not side.is_tree:
        try:
            linted = run_lint(request)
        except JobgenError:
            return Side([], (root,))
        findings = merge_duplicates(linted.findings, linted.mandatory)
    return Side(findings, (root,))
