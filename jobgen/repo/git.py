"""Read from Git: the date of a commit and the files of a revision. The repository is never changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

# Settings of the machine must not change the result.
_ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

# A folder in a commit can look like a repository, whose settings could name programs to run.
_SAFE_OPTIONS = ("-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false")
_SUFFIXES = (b".yaml", b".yml", b".json")
_LINK = b"120000"
_SUBMODULE = b"160000"


class GitError(Exception):
    """A Git command failed; the message is for the user."""


def find_work_tree(folder: Path) -> Path | None:
    """The work tree that contains a folder; None outside of one."""
    done = _run(folder, "rev-parse", "--show-toplevel")
    return Path(done.stdout.decode().rstrip("\n")) if done and done.returncode == 0 else None


def read_commit_date(folder: Path, commit: str = "HEAD") -> str:
    """The date of a commit as `2027-01-31`; empty if there is none."""
    done = _run(folder, "log", "-1", "--format=%cs", commit)
    return done.stdout.decode().strip() if done and done.returncode == 0 else ""


def resolve_commit(folder: Path, revision: str) -> str:
    """Resolve a revision to a commit."""
    if revision.startswith("-"):
        raise GitError(f"`{revision}` is not a revision")
    done = _run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done is None:
        raise GitError("git is not installed; it is needed to read revisions")
    if done.returncode == 0:
        return done.stdout.decode().strip()
    if find_work_tree(folder) is None:
        raise GitError("this is not a Git repository, so it has no revisions")
    if is_shallow(folder):
        raise GitError(
            f"`{revision}` is not in this shallow clone; fetch it first: `git fetch --depth=1 origin {revision}`, "
            "or `fetch-depth: 0` in CI"
        )
    raise GitError(f"there is no revision `{revision}`")


def is_shallow(folder: Path) -> bool:
    """Whether a clone is shallow."""
    done = _run(folder, "rev-parse", "--is-shallow-repository")
    return done is not None and done.stdout.strip() == b"true"


def find_merge_base(folder: Path, one: str, other: str) -> str:
    """The merge base of two revisions; the first of them if there is none."""
    done = _run(folder, "merge-base", one, other)
    return done.stdout.decode().strip() if done and done.returncode == 0 else one


def extract_files(folder: Path, commit: str, into: Path) -> None:
    """Write the files of a commit, below a folder of its repository, into another folder.

    The content is that of the commit; `git archive` would omit or change files as .gitattributes says.
    """
    top = find_work_tree(folder)
    if top is None:
        raise GitError("this is not a Git repository, so it has no revisions")
    inside = Path(os.path.relpath(os.path.realpath(folder), os.path.realpath(top))).as_posix()
    tree = commit if inside == "." else f"{commit}:{inside}"
    listed = _run(top, "ls-tree", "-r", "-z", "--end-of-options", tree)
    if listed is None or listed.returncode != 0:
        # The folder did not exist at that commit.
        return
    wanted: list[tuple[bytes, bytes, str]] = []
    for entry in filter(None, listed.stdout.split(b"\0")):
        fields, _, path = entry.partition(b"\t")
        mode, _, name = fields.split()
        if mode != _SUBMODULE and path.endswith(_SUFFIXES):
            wanted.append((mode, name, os.fsdecode(path)))
    for (mode, _, file), content in zip(wanted, _read_objects(top, [name for _, name, _ in wanted]), strict=True):
        target = into / file
        if os.path.commonpath([os.path.realpath(target.parent), os.path.realpath(into)]) != os.path.realpath(into):
            # Git does not create such trees, but others can.
            raise GitError(f"`{file}` would be outside of the repository")
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode == _LINK:
            target.symlink_to(os.fsdecode(content))
        else:
            target.write_bytes(content)


def _read_objects(top: Path, names: list[bytes]) -> Iterator[bytes]:
    """Yield the contents of objects, in order."""
    done = _run(top, "cat-file", "--batch", data=b"".join(name + b"\n" for name in names))
    if done is None or done.returncode != 0:
        raise GitError("git could not read the files of that revision; a partial clone needs `git fetch` first")
    start = 0
    for _ in names:
        end = done.stdout.index(b"\n", start)
        size = int(done.stdout[start:end].split()[2])
        yield done.stdout[end + 1 : end + 1 + size]
        start = end + 1 + size + 1


def _run(folder: Path, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes] | None:
    import subprocess

    try:
        return subprocess.run(  # noqa: S603 -- our own arguments, and a revision that was checked
            ["git", *_SAFE_OPTIONS, "-C", str(folder), *arguments],  # noqa: S607 -- the user's own git
            input=data,
            capture_output=True,
            check=False,
            env={**os.environ, **_ENVIRONMENT},
        )
    except FileNotFoundError:
        return None
