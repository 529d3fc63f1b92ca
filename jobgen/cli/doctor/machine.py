"""What belongs to this machine and not to the repository: the cache, and Git with its hooks."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from jobgen import cache
from jobgen.cli.doctor import NOTE, OK, PROBLEM, Check
from jobgen.cli.doctor.config_files import HOOKS, ConfigFiles, report_unread
from jobgen.cli.doctor.installation import find_program, read_version
from jobgen.engine.inputs import read_start
from jobgen.repo import git
from jobgen.report.summary import pluralize

_HOOK_BYTES = 4096
_ELSEWHERE = "export XDG_CACHE_HOME=/tmp/cache-$(id -u)"
_OBSTACLES = {
    "homeless": ("there is no home folder", _ELSEWHERE),
    "repository": ("it is inside a repository, whose files may come from others", _ELSEWHERE),
    "unwritable": ("it cannot be written", _ELSEWHERE),
    "file": ("it is not a folder", "rm {folder}"),
    "shared": ("others can write to it", "chmod -R go-rwx {folder}"),
    "foreign": ("it belongs to another user", _ELSEWHERE),
}
"""Why the cache cannot be used, and what helps."""


def check_cache(directory: Path) -> Check:
    """The place and the size of the cache, and whether it is used."""
    folder = cache.find_default_folder()
    obstacle = cache.find_obstacle(folder, directory)
    if not obstacle and folder:
        entries, size = cache.measure_entries(folder)
        facts = {"folder": str(folder), "usable": True, "entries": entries, "bytes": size}
        return Check("cache", f"{folder}, {pluralize(entries, 'result')}, {size / 1e6:.1f} MB", facts=facts)
    reason, command = _OBSTACLES[obstacle]
    place = str(folder) if folder else ""
    facts = {"folder": place, "usable": False, "entries": 0, "bytes": 0}
    found = f"{place or 'none'} is not used: {reason}"
    return Check("cache", found, NOTE, command.format(folder=shlex.quote(place)), facts)


def check_git(root: Path) -> Check:
    """The version of Git, and whether it can read revisions of the repository."""
    number = git.read_version()
    facts = {"version": number, "workTree": "", "shallow": False, "commits": False}
    if not number:
        found = "not installed; `diff` and `--since` need it, and dates of commits are unknown"
        return Check("git", found, NOTE, "apt-get install git", facts)
    if git.is_refused(root):
        found = f"{number}, which refuses the repository: another user owns it"
        return Check("git", found, PROBLEM, f"git config --global --add safe.directory {shlex.quote(str(root))}", facts)
    fault = git.find_fault(root)
    if fault:
        found = f"{number}, which cannot read the repository, so `diff` has no revisions: {fault}"
        return Check("git", found, PROBLEM, f"git -C {shlex.quote(str(root))} status", facts)
    tree = git.find_work_tree(root)
    if tree is None:
        return Check(
            "git", f"{number}; the repository is not in Git, so `diff` has no revisions", NOTE, "git init", facts
        )
    commits, shallow = git.has_commit(root), git.is_shallow(root)
    facts |= {"workTree": str(tree), "shallow": shallow, "commits": commits}
    found = f"{number}, work tree {tree}"
    if not commits:
        return Check("git", f"{found}, without a commit", NOTE, "git add . && git commit -m 'Add jobs'", facts)
    if shallow:
        return Check("git", f"{found}, a shallow clone; `diff` may lack its base", NOTE, "git fetch --unshallow", facts)
    return Check("git", found, facts=facts)


def check_hooks(root: Path, files: ConfigFiles) -> Check:
    """Whether a commit runs the hooks that the repository configures."""
    program = find_program("pre-commit")
    number = read_version(program, "--version") if program else ""
    hook = git.find_hook(root, "pre-commit")
    installed = hook is not None and os.path.isfile(hook) and os.access(hook, os.X_OK)
    configured = files.names_repository(HOOKS)
    facts = {"configured": configured, "installed": installed, "preCommit": number}
    if files.prefix and installed and HOOKS not in files.texts and _is_of_pre_commit(hook):
        found = f"pre-commit is installed, but there is no {HOOKS} in {files.top}, so every commit fails"
        return Check("hooks", found, PROBLEM, "pre-commit uninstall", facts)
    if not configured:
        if HOOKS in files.unread:
            return report_unread("hooks", HOOKS, files, facts)
        below = f" for {files.prefix}/" if files.prefix else ""
        found = (
            f"no hook of jobgen{below} in {files.show(HOOKS)}"
            if HOOKS in files.texts
            else files.describe_missing(HOOKS)
        )
        return Check("hooks", found, OK, facts=facts)
    if installed:
        return Check("hooks", f"pre-commit runs those of {files.show(HOOKS)}", facts=facts)
    if hook is None:
        return Check("hooks", f"{HOOKS}, but this is not a Git repository", NOTE, "git init", facts)
    command = "pre-commit install" if program else "pip install pre-commit && pre-commit install"
    return Check("hooks", f"{files.show(HOOKS)} is not installed as a hook", NOTE, command, facts)


def _is_of_pre_commit(hook: Path | None) -> bool:
    return hook is not None and b"pre-commit" in read_start(str(hook), _HOOK_BYTES)
