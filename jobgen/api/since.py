"""`jobgen lint --since`: the findings that a change adds, and findings about the change itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from jobgen.api.errors import JobgenError, UsageError
from jobgen.api.lint_answers import ask_findings
from jobgen.api.lint_files import (
    LintContents,
    LintFiles,
    LintRequest,
    LintRun,
    resolve_files,
    select_findings,
    split_paths,
)
from jobgen.api.pair_findings import Side, find_new
from jobgen.diff.change_rules import ChangedFiles, check_change
from jobgen.engine.store import Store
from jobgen.engine.workers import run_beside
from jobgen.model.builtin_rules import UNREAD_RULES
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.prepare_run import digest_layers
from jobgen.render.result_inputs import digest_entry
from jobgen.repo import git
from jobgen.repo.commit import CommitPath, open_commit
from jobgen.repo.files import is_manifest_name
from jobgen.repo.root import find_root
from jobgen.report.suppress import apply_suppressions

_MAX_SEARCHED = 20_000
"""The number of files up to which a commit is searched for the old paths of moved manifests."""


class Compared(NamedTuple):
    """A lint compared with that of a revision."""

    new: LintRun
    """The lint with only the findings that were not there at the revision, and those about the change."""
    gone: list[Finding]
    """The findings of the revision that are not there any more."""


def findings_since(
    request: LintRequest,
    revision: str,
    now: LintRun,
    store: Store,
    shown: Sequence[Finding] | None = None,
) -> Compared:
    """Compare a lint with that of a revision.

    The store has the results of files in the lint: those of files that are the same at the revision are used again.
    `shown` are the findings of the lint as they are shown, if it matters which ones are gone.

    Raises:
        UsageError: Standard input is linted, or there is no such revision.

    """
    if request.stdin is not None:
        raise UsageError("standard input has no revisions; remove `-` or `--since`")
    try:
        return _compare(request, revision, now, store, shown)
    except git.GitError as error:
        raise UsageError(str(error)) from error


def _request_commit(request: LintRequest, old: CommitPath) -> LintRequest:
    """Return the request for the same files and environments at a commit, as far as it has them."""
    root = find_root(old.resolve()) or old
    envs = [env for env in request.envs if (root / "overlays" / env).is_dir()]
    today = request.today or git.read_commit_date(request.directory)
    return request._replace(committed=old, paths=_list_old_paths(request, old), envs=envs, today=today)


def _compare(
    request: LintRequest, revision: str, now: LintRun, store: Store, shown: Sequence[Finding] | None
) -> Compared:
    commit = git.resolve_commit(request.directory, revision)
    with open_commit(request.directory, commit) as old:
        root = find_root(old.resolve()) or old
        then = _request_commit(request, old)
        days = request.today or old.commit.date, then.today
        check = partial(check_change, old, request.directory, request.envs, days, store=store)
        before, found = _lint_and_check(request, then, now, store, check)
        changes = select_findings(found, request)
        # Where nothing can be linted at the revision, all findings are new. That a named path is not read is never old.
        known = before.findings if before else []
        gone = find_new(Side(known, (root, old)), Side(shown, (request.directory,))) if shown is not None else []
        known = [each for each in known if each.rule not in UNREAD_RULES or each.location.file not in then.paths]
        new = find_new(Side(now.findings, (now.root, request.directory)), Side(known, (root, old)))
    kept, suppressed, _ = apply_suppressions(changes, now.comments, now.mandatory, now.today or then.today)
    findings = sorted([*new, *kept], key=lambda found: (found.location, found.rule, found.message, found.env))
    return Compared(now._replace(findings=findings, suppressed=[*now.suppressed, *suppressed]), gone)


def _list_old_paths(request: LintRequest, old: CommitPath) -> list[str]:
    """Return the paths to lint at a commit: also those from which files may have been moved to the given paths."""
    if not request.paths:
        return []
    root = find_root(request.directory.resolve())
    repository, standalone = split_paths(request.directory, root, request.paths)
    paths = [os.path.relpath(request.directory / path, request.directory) for path in standalone]
    paths += _list_removed_manifests(request.directory, old) if standalone else ()
    return [*paths, os.path.relpath(root, request.directory.resolve())] if root and repository else paths


def _list_removed_manifests(directory: Path, old: CommitPath) -> Iterator[str]:
    """Yield the manifests of a commit that no longer exist; none in a very large repository."""
    try:
        files = CommitPath(old.commit).walk(_MAX_SEARCHED)
    except git.GitError:
        return
    for below, entry in files:
        path = os.path.relpath(below, old.path or ".")
        if entry.is_file and is_manifest_name(below) and not os.path.lexists(directory / path):
            yield path


def _lint_and_check(
    request: LintRequest,
    then: LintRequest,
    now: LintRun,
    store: Store,
    check: Callable[[ChangedFiles | None], list[Finding]],
) -> tuple[LintRun | None, list[Finding]]:
    """Lint the old side, and find the problems of the change, in another process if both take long."""
    if request.envs and not then.envs:
        return None, check(None)
    try:
        files = resolve_files(then)
    except JobgenError:
        return None, check(None)
    likely = _predict_changed(now.contents, files)
    if likely is None:
        before = _lint_old(then, store)
        return before, check(_find_changed(now.contents, before and before.contents))
    with run_beside(lambda: check(likely), len(files.jobs)) as wait:
        before = _lint_old(then, store)
        changed = _find_changed(now.contents, before and before.contents)
        return before, wait() if changed == likely else check(changed)


def _lint_old(request: LintRequest, store: Store) -> LintRun | None:
    """Lint a commit; None if it cannot be linted."""
    try:
        return ask_findings(request, store)
    except JobgenError:
        return None


def _predict_changed(now: LintContents | None, before: LintFiles) -> ChangedFiles | None:
    """Return the files that may be rendered differently, if the old side can be rendered and has the same layers."""
    if now is None or before.root is None or before.standalone is not None:
        return None
    layers = digest_layers(before.root)
    if layers != now.digests[""]:
        return None
    digests = {entry.path: digest_entry(entry) for entry in before.jobs}
    return _find_changed(now, LintContents({"": layers, **digests}, frozenset(), frozenset()))


def _find_changed(now: LintContents | None, before: LintContents | None) -> ChangedFiles | None:
    """Return the files that may be rendered differently at two revisions; None if one cannot be rendered."""
    if now is None or before is None:
        return None
    devices = now.devices | before.devices
    paths = frozenset((now.digests.keys() | before.digests.keys()) - {""})
    if now.digests[""] != before.digests[""]:
        return ChangedFiles(paths, devices, has_same_layers=False)
    changed = frozenset(path for path in paths if now.digests.get(path) != before.digests.get(path))
    return ChangedFiles(changed | now.dated | before.dated | devices, devices, has_same_layers=True)
