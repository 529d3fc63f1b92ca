"""`jobgen diff`: what a merge does, by job."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from jobgen.cli.commands import ExitCode, Result, error_result, pluralize
from jobgen.diff import formats
from jobgen.diff.changes import compare_snapshots
from jobgen.diff.snapshot import Snapshot, is_repository, snapshot_repository, snapshot_tree
from jobgen.model.finding import Severity
from jobgen.model.suggest import did_you_mean
from jobgen.repo import git, layout
from jobgen.report.summary import format_findings

WORK_TREE = "work tree"
# Where changes usually go, in the order in which they are tried.
_DEFAULTS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


Render = Callable[[Path, str, Sequence[str], str], Snapshot]
"""Makes a side of a folder: the folder, what to call it, the environments, the day."""


def diff_revisions(
    directory: Path, revisions: str, envs: Sequence[str], *, format_: str, exit_code: bool, today: str = ""
) -> Result:
    """Compare two commits, or a commit with the work tree, which is only read; without a repository, manifests."""
    root = layout.find_root(directory.resolve())
    folder, render = (root, snapshot_repository) if root else (directory, snapshot_tree)
    with ExitStack() as stack:
        try:
            base, head = _named(folder, revisions)
            old = _commit_side(folder, base, render, (envs, today), stack)
            new = (
                _commit_side(folder, head, render, (envs, today), stack)
                if head
                else render(folder, WORK_TREE, envs, today)
            )
        except git.GitError as fault:
            return error_result(ExitCode.USAGE, str(fault))
        return _told(old, new, envs, format_, exit_code=exit_code)


def diff_folders(
    directory: Path, folders: tuple[str, str], envs: Sequence[str], *, format_: str, exit_code: bool, today: str = ""
) -> Result:
    """Compare two folders, each a jobs repository, a rendered tree or any folder of manifests."""
    for folder in folders:
        if not (directory / folder).is_dir():
            return error_result(ExitCode.USAGE, f"there is no folder `{folder}`")
    old, new = (_folder_side(directory / folder, folder, envs, today) for folder in folders)
    return _told(old, new, envs, format_, exit_code=exit_code)


def _folder_side(folder: Path, name: str, envs: Sequence[str], today: str) -> Snapshot:
    return (snapshot_repository if is_repository(folder) else snapshot_tree)(folder, name, envs, today)


def _named(root: Path, revisions: str) -> tuple[tuple[str, str], tuple[str, str] | None]:
    """The two commits that are meant, each with its name; none on the right is the work tree."""
    for dots in ("...", ".."):
        left, found, right = revisions.partition(dots)
        if found:
            base, head = (_commit(root, name or "HEAD") for name in (left, right))
            if dots == "...":
                base = (base[0], git.find_merge_base(root, base[1], head[1]))
            return base, head
    return (_commit(root, revisions) if revisions else _usual_base(root)), None


def _commit(root: Path, name: str) -> tuple[str, str]:
    return name, git.resolve_commit(root, name)


def _usual_base(root: Path) -> tuple[str, str]:
    """Where this branch left the one that changes go to; where that cannot be known, the last commit."""
    head = _commit(root, "HEAD")
    for name in _DEFAULTS:
        try:
            other = git.resolve_commit(root, name)
        except git.GitError:
            continue
        return name, git.find_merge_base(root, other, head[1])
    if git.is_shallow(root):
        # Here the last commit may be all that there is, and compared with it nothing would ever change.
        raise git.GitError("this shallow clone does not have the default branch; fetch it, or name the base")
    return head


def _commit_side(
    folder: Path, commit: tuple[str, str], render: Render, asked: tuple[Sequence[str], str], stack: ExitStack
) -> Snapshot:
    """A commit as it was on its own day, unless another one is asked for."""
    (name, found), (envs, today) = commit, asked
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jobgen-")))
    git.extract_files(folder, found, copy)
    shown = name if found.startswith(name) else f"{name} ({found[:10]})"
    return render(copy, shown, envs, today or git.read_commit_date(folder, found))


def _told(old: Snapshot, new: Snapshot, envs: Sequence[str], format_: str, *, exit_code: bool) -> Result:
    known = {*old.project.overlays, *old.environments, *new.project.overlays, *new.environments}
    for env in envs:
        if env not in known:
            names = sorted(filter(None, known))
            hint = f"{did_you_mean(env, names)} (known: {', '.join(names) or 'none'})"
            return error_result(ExitCode.USAGE, f"there is no environment `{env}` on either side{hint}")
    for side in (old, new):
        if side.failed:
            return _broken(side)
    told = compare_snapshots(old, new)
    if not told.impacts and not told.unchanged:
        return error_result(ExitCode.NOTHING_TO_DO, f"there is no job to compare in {old.name} or {new.name}")
    code = ExitCode.ERRORS if exit_code and told.impacts else ExitCode.OK
    return Result(code, formats.render(format_, told))


def _broken(side: Snapshot) -> Result:
    wrong = [finding for finding in side.findings if finding.severity is Severity.ERROR]
    message = f"{side.name} cannot be rendered, so nothing was compared: {pluralize(len(wrong), 'error')}"
    return error_result(ExitCode.ERRORS, message, format_findings(wrong))
