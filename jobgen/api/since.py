"""`jobgen lint --since`: the findings that a change adds, and findings about the change itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from jobgen.api.errors import JobgenError, UsageError
from jobgen.api.lint_files import LintFiles, LintRequest, LintRun, resolve_files, select_findings, split_paths
from jobgen.api.lint_run import lint_with_memory, run_lint
from jobgen.api.pair_findings import Side, find_new
from jobgen.check.builtin_rules import UNREAD_RULES
from jobgen.diff.change_rules import ChangedFiles, check_change
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.memory import RunMemory, digest_entry
from jobgen.pipeline.parallel import run_beside
from jobgen.pipeline.result_cache import digest_files
from jobgen.repo import git, layout
from jobgen.repo.commit import CommitPath, open_commit
from jobgen.repo.files import is_manifest_name
from jobgen.repo.root import find_root
from jobgen.report.suppress import apply_suppressions

_MAX_SEARCHED = 20_000
"""The number of files up to which a commit is searched for the old paths of moved manifests."""


def findings_since(request: LintRequest, revision: str, now: LintRun, memory: RunMemory | None = None) -> LintRun:
    """Return the lint with only the findings that were not there at a revision, and those about the change.

    `memory` has the results of files in the lint: those of files that are the same at the revision are used again.

    Raises:
        UsageError: Standard input is linted, or there is no such revision.

    """
    if request.stdin is not None:
        raise UsageError("standard input has no revisions; remove `-` or `--since`")
    try:
        return _compare(request, revision, now, memory)
    except git.GitError as error:
        raise UsageError(str(error)) from error


def findings_gone_since(request: LintRequest, revision: str, now: Sequence[Finding]) -> list[Finding]:
    """Return the findings of a revision that are not among those of now.

    Raises:
        UsageError: There is no such revision.

    """
    try:
        commit = git.resolve_commit(request.directory, revision)
        today = request.today or git.read_commit_date(request.directory)
        with open_commit(request.directory, commit) as old:
            root = find_root(old.resolve()) or old
            then = _request_commit(request, old, today)
            before = _lint_old(then) if then.envs or not request.envs else None
            return find_new(Side(before.findings if before else [], (root, old)), Side(now, (request.directory,)))
    except git.GitError as error:
        raise UsageError(str(error)) from error


def _request_commit(request: LintRequest, old: CommitPath, today: str) -> LintRequest:
    """Return the request for the same files and environments at a commit, as far as it has them."""
    root = find_root(old.resolve()) or old
    envs = [env for env in request.envs if (root / "overlays" / env).is_dir()]
    return request._replace(committed=old, paths=_list_old_paths(request, old), envs=envs, today=today)


def _compare(request: LintRequest, revision: str, now: LintRun, memory: RunMemory | None) -> LintRun:
    commit = git.resolve_commit(request.directory, revision)
    today = request.today or git.read_commit_date(request.directory)
    with open_commit(request.directory, commit) as old:
        root = find_root(old.resolve()) or old
        then = _request_commit(request, old, today)
        days = request.today or git.read_commit_date(request.directory, commit), today
        check = partial(check_change, old, request.directory, request.envs, days, memory=memory)
        before, found = _lint_and_check(request, then, now, memory, check)
        changes = select_findings(found, request)
        # Where nothing can be linted at the revision, all findings are new. That a named path is not read is never old.
        known = before.findings if before else []
        known = [each for each in known if each.rule not in UNREAD_RULES or each.location.file not in then.paths]
        new = find_new(Side(now.findings, (now.root, request.directory)), Side(known, (root, old)))
    kept, suppressed, _ = apply_suppressions(changes, now.comments, now.mandatory, now.today or today)
    findings = [*new, *kept]
    return now._replace(
        findings=sorted(findings, key=lambda found: (found.location, found.rule, found.message, found.env)),
        suppressed=[*now.suppressed, *suppressed],
    )


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
    memory: RunMemory | None,
    check: Callable[[ChangedFiles | None], list[Finding]],
) -> tuple[LintRun | None, list[Finding]]:
    """Lint the old side, and find the problems of the change, in another process if both take long."""
    if request.envs and not then.envs:
        return None, check(None)
    contents = _list_contents(memory, now)
    try:
        files = resolve_files(then)
    except JobgenError:
        return None, check(None)
    likely = _predict_changed(contents, files)
    if likely is None:
        before = _lint_old(then, memory, files)
        return before, check(_find_changed(contents, _list_contents(memory, before)))
    with run_beside(lambda: check(likely), len(files.jobs)) as wait:
        before = _lint_old(then, memory, files)
        changed = _find_changed(contents, _list_contents(memory, before))
        return before, wait() if changed == likely else check(changed)


class _Contents(NamedTuple):
    """The digests of the files of a revision, and the files that are compared in any case."""

    digests: Mapping[str, bytes]
    dated: frozenset[str]
    devices: frozenset[str]


def _list_contents(memory: RunMemory | None, linted: LintRun | None) -> _Contents | None:
    """Return what the last lint read, if all of it can be rendered."""
    digests = memory.list_contents() if memory and linted and linted.rendered else None
    return _Contents(digests, memory.list_dated(), memory.list_devices()) if memory and digests is not None else None


def _predict_changed(now: _Contents | None, before: LintFiles) -> ChangedFiles | None:
    """Return the files that may be rendered differently, if the old side can be rendered and has the same layers."""
    if now is None or before.root is None or before.standalone is not None:
        return None
    if digest_files(layout.read_inputs(before.root)) != now.digests[""]:
        return None
    digests = {entry.path: digest_entry(entry) for entry in before.jobs if entry.finding is None}
    return _find_changed(now, _Contents({"": now.digests[""], **digests}, frozenset(), frozenset()))


def _find_changed(now: _Contents | None, before: _Contents | None) -> ChangedFiles | None:
    """Return the files that may be rendered differently at two revisions; None if one cannot be rendered."""
    if now is None or before is None:
        return None
    devices = now.devices | before.devices
    paths = frozenset((now.digests.keys() | before.digests.keys()) - {""})
    if now.digests[""] != before.digests[""]:
        return ChangedFiles(paths, devices, has_same_layers=False)
    changed = frozenset(path for path in paths if now.digests.get(path) != before.digests.get(path))
    return ChangedFiles(changed | now.dated | before.dated | devices, devices, has_same_layers=True)


def _lint_old(request: LintRequest, memory: RunMemory | None = None, files: LintFiles | None = None) -> LintRun | None:
    try:
        return lint_with_memory(request, memory, files) if memory else run_lint(request, files)
    except JobgenError:
        return None
