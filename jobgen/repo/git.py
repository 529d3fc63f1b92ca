"""Run Git: resolve revisions, and read commits and objects. Only this module runs Git, and it changes nothing.

Only plumbing commands are used, because settings change the output of others. Hooks, helpers and the network are off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jobgen.engine.inputs import exists_itself, probe, slow_probe
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    import subprocess

_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # A partial clone does not fetch what it lacks. Versions before 2.45 do not know the first variable; the second one
    # allows only a transport that does not exist.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    # Commits are read as they were made.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
# Hooks set variables such as GIT_DIR and GIT_INDEX_FILE, which belong to their own repository. The folder decides which
# repository is read. Settings stay, because only they can declare a folder safe; they run nothing, see below.
_KEPT_VARIABLES = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")

# A folder in a commit can look like a repository, whose settings could name programs to run.
_SAFE_OPTIONS = (
    "--no-pager",
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.sshCommand=false"),
    *("-c", "credential.helper="),
    # Settings of a repository must not hide that a name has two meanings.
    *("-c", "core.warnAmbiguousRefs=true"),
)
_COMMITTER = lazy_pattern(r"committer .*> ([0-9]{1,12}) ([+-])([0-9]{2})([0-9]{2})")
_NO_REPOSITORY = "this is not a Git repository, so it has no revisions; run `git init` and commit"
_MISSING = "this clone lacks files of that revision; run `git fetch --refetch`, or clone without `--filter`"
_INFO_FIELDS = 3
_AT_ONCE = 60
"""How many objects are asked for before the answers are read: their names fit into the smallest buffer of a pipe."""


class GitError(Exception):
    """A Git command failed; the message is for the user."""


def read_version(folder: Path) -> str:
    """Return the version of the Git that reads a folder; empty if none is installed."""
    return (_ask(folder, "version") or "").removeprefix("git version ").strip()


def is_refused(folder: Path) -> bool:
    """Return True if Git refuses a repository because another user owns it."""
    done = _run(folder, "rev-parse", "--show-toplevel")
    return done is not None and done.returncode != 0 and b"safe.directory" in done.stderr


def find_fault(folder: Path) -> str:
    """Why Git cannot read the repository of a folder, in its own words; empty if it can, or there is none."""
    has_data = any(os.path.lexists(parent / ".git") for parent in (folder, *folder.parents))
    done = _run(folder, "rev-parse", "--show-toplevel")
    if not has_data or done is None or done.returncode == 0:
        return ""
    return os.fsdecode(done.stderr).strip().partition("\n")[0].removeprefix("fatal: ")


def has_commit(folder: Path) -> bool:
    """Return True if a repository has a commit."""
    return _ask(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is not None


def list_changed(folder: Path) -> bool:
    """Return True if files that Git knows have changes that are not committed."""
    return bool(_ask(folder, "diff-index", "--name-only", "HEAD", "--") or not has_commit(folder))


def commit_files(folder: Path, files: Sequence[str], message: str) -> None:
    """Commit some files, with the author and the hooks of the repository; raise a GitError if that fails."""
    for words in (("add", "--", *files), ("commit", "--quiet", "--message", message, "--", *files)):
        done = _run(folder, *words)
        if done is None or done.returncode:
            reason = done.stderr.decode("utf-8", "replace").strip() if done else "Git is not installed"
            raise GitError(f"the files are written, and not committed: {reason[:500]}")


def find_hook(folder: Path, name: str) -> Path | None:
    """The path of a hook in the settings of this user; the hook may not exist. None outside of a repository."""
    place = _ask(folder, "rev-parse", "--git-common-dir")
    if place is None:
        return None
    # The last value is that of our own options, which turn hooks off.
    values = (_ask(folder, "config", "--type=path", "--get-all", "core.hooksPath") or "").split("\n")[:-1]
    return folder / (values[-1] if values else os.path.join(place, "hooks")) / name


def find_work_tree(folder: Path) -> Path | None:
    """The work tree that contains a folder; None outside of one."""
    top = _ask(folder, "rev-parse", "--show-toplevel")
    return None if top is None else Path(top)


def find_prefix(folder: Path) -> str:
    """The path from the top of the work tree to a folder; empty at the top."""
    prefix = _read_prefix(str(folder))
    if not prefix:
        raise GitError(_NO_REPOSITORY)
    return prefix.strip("/")


@slow_probe
def _read_prefix(folder: str) -> str:
    """Return the path from the top of the work tree with a slash in front; empty outside of one."""
    prefix = _ask(Path(folder), "rev-parse", "--show-prefix")
    return "" if prefix is None else f"/{prefix}"


def find_ignored(folder: Path, paths: Sequence[str]) -> list[str]:
    """Return the paths below a folder that `.gitignore` hides, whether they are committed or not."""
    # The patterns of a user, which others do not have, do not count.
    words = ("-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin", "-z")
    done = _run(folder, *words, text="\0".join(paths))
    return os.fsdecode(done.stdout).split("\0")[:-1] if done and done.returncode == 0 else []


def read_remote(folder: Path) -> str:
    """The address of the remote as the settings have it, with any credentials; empty if there is none."""
    return _ask(folder, "config", "--get", "remote.origin.url") or ""


def read_remotes(folder: Path) -> list[str]:
    """The addresses of all remotes as the settings have them, with any credentials."""
    return [line.partition(" ")[2] for line in _read_remotes(str(folder)).split("\n") if " " in line]


@slow_probe
def _read_remotes(folder: str) -> str:
    return _ask(Path(folder), "config", "--get-regexp", r"^remote\..*\.url$") or ""


def read_day(folder: Path, commit: str = "HEAD", *, ci: bool = True) -> str:
    """Return the date by which entries expire: the latest of a commit and its parents, and in CI also of this day.

    An author chooses the date of a commit, but not that of the commit that a pull request is merged into.
    """
    own, *parents = _read_days(f"{commit}\0{folder}").split(" ")
    return max(own, *parents, _read_clock("") if ci and own else "")


@slow_probe
def _read_days(argument: str) -> str:
    """Return the dates of a commit and of its parents, with a space between two; empty if there is no commit."""
    commit, _, folder = argument.partition("\0")
    words = ("--no-walk=unsorted", "--ignore-missing", "--header", "--end-of-options", commit, f"{commit}^@")
    listed = _ask(Path(folder), "rev-list", *words) or ""
    return " ".join(map(_parse_date, listed.split("\0")[:-1]))


@probe
def _read_clock(_: str) -> str:
    """Return this day if a program of CI runs jobgen; empty if a person does."""
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat() if os.environ.get("CI", "").lower() in ("true", "1") else ""


def read_commit_date(folder: Path, commit: str = "HEAD") -> str:
    """The date of a commit as `2027-01-31`, in the time zone of its committer; empty if there is none."""
    return _read_date(f"{commit}\0{folder}")


@slow_probe
def _read_date(argument: str) -> str:
    commit, _, folder = argument.partition("\0")
    return _parse_date(_ask(Path(folder), "cat-file", "commit", commit) or "")


def _parse_date(text: str) -> str:
    from datetime import datetime, timedelta, timezone

    header = text.partition("\n\n")[0]
    found = next(filter(None, map(_COMMITTER.fullmatch, header.split("\n"))), None)
    if found is None:
        return ""
    seconds, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        return datetime.fromtimestamp(int(seconds), zone).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def resolve_commit(folder: Path, revision: str) -> str:
    """Resolve a revision to a commit; warn if it is the name of a tag and of a branch."""
    if revision.startswith("-") or "\0" in revision:
        raise GitError(f"`{revision}` is not a revision; name a branch, a tag or a commit")
    commit, _, ambiguous = _read_commit(f"{revision}\0{folder}").partition(" ")
    if commit and ambiguous:
        _warn_of_names(folder, revision)
    if commit:
        return commit
    if not _find_git(str(folder), os.environ.get("PATH", os.defpath)):
        raise GitError("git is not on PATH, and is needed to read revisions; install it")
    if find_work_tree(folder) is None:
        raise GitError(_NO_REPOSITORY)
    if is_shallow(folder):
        raise GitError(
            f"`{revision}` is not in this shallow clone; fetch it first: `git fetch --depth=1 origin {revision}`, "
            "or `fetch-depth: 0` in CI"
        )
    raise GitError(f"there is no revision `{revision}`; `git branch --all` and `git log` list them")


@slow_probe
def _read_commit(argument: str) -> str:
    """Return the commit that a revision names, with ` ambiguous` behind it if it names several; empty if none."""
    revision, _, folder = argument.partition("\0")
    done = _run(Path(folder), "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if done is None or done.returncode:
        return ""
    return done.stdout.decode().strip() + (" ambiguous" if b" is ambiguous." in done.stderr else "")


@cache
def _warn_of_names(folder: Path, revision: str) -> None:
    """Warn once that a revision has two meanings."""
    import warnings

    names = [f"refs/{kind}/{revision}" for kind in ("tags", "heads")]
    found = (_ask(folder, "for-each-ref", "--format=%(refname)", *names) or "").split("\n")
    which = "is a tag and a branch; the tag is used" if set(names) <= set(found) else "names several references"
    warnings.warn(f"`{revision}` {which}; write `refs/heads/{revision}` for the branch", stacklevel=2)


def list_references(folder: Path) -> list[str]:
    """The branches and tags of a repository, by their short names; none outside of one."""
    every = ("refs/heads", "refs/tags", "refs/remotes")
    listed = _ask(folder, "for-each-ref", "--count=1000", "--format=%(refname:short)", *every)
    return listed.split("\n") if listed else []


def is_shallow(folder: Path) -> bool:
    """Return True if a clone is shallow."""
    return _ask(folder, "rev-parse", "--is-shallow-repository") == "true"


def find_merge_base(folder: Path, one: str, other: str) -> str:
    """The merge base of two revisions; the first of them if they have no common history."""
    base = _ask(folder, "merge-base", one, other)
    if base is None and is_shallow(folder):
        raise GitError(
            "this shallow clone lacks the merge base; run `git fetch --unshallow`, or `fetch-depth: 0` in CI"
        )
    return one if base is None else base.strip()


class ObjectInfo(NamedTuple):
    """The name, the type and the size of an object."""

    name: str
    type: str
    size: int


class ObjectReader:
    """Reads objects of a repository by name, through processes that are started when the first object is read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[tuple[int, str], subprocess.Popen[bytes]] = {}

    def describe(self, name: str) -> ObjectInfo:
        """Return the type and the size of an object."""
        return _parse_info(self._ask("--batch-check", (name,)).readline())

    def describe_each(self, names: Sequence[str]) -> list[ObjectInfo | None]:
        """Return the types and the sizes of objects; None for one that is missing."""
        lines = [answers.readline() for answers in self._ask_each("--batch-check", names)]
        return [_parse_info(line) if len(line.split()) == _INFO_FIELDS else None for line in lines]

    def read(self, name: str) -> bytes:
        """Return the content of an object."""
        return _read_content(self._ask("--batch", (name,)))

    def read_each(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of objects, which exist."""
        return [_read_content(answers) for answers in self._ask_each("--batch", names)]

    def close(self) -> None:
        """End the processes."""
        for (owner, _), process in self._processes.items():
            if owner == os.getpid():
                process.communicate()
        self._processes.clear()

    def _ask_each(self, mode: str, names: Sequence[str]) -> Iterator[IO[bytes]]:
        """Ask for objects; yield the stream of answers for each one, which must be read before the next."""
        for start in range(0, len(names), _AT_ONCE):
            batch = names[start : start + _AT_ONCE]
            yield from [self._ask(mode, batch)] * len(batch)

    def _ask(self, mode: str, names: Sequence[str]) -> IO[bytes]:
        """Ask for objects, at most `_AT_ONCE`; return the stream of answers."""
        # A forked process must not read the answers of its parent.
        key = os.getpid(), mode
        if key not in self._processes:
            import subprocess

            try:
                self._processes[key] = subprocess.Popen(  # noqa: S603 -- our own arguments
                    _command(self._folder, "cat-file", mode),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=_make_environment(),
                )
            except OSError as error:
                raise GitError(f"git cannot be run: {error.strerror}") from error
        process = self._processes[key]
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write("".join(f"{name}\n" for name in names).encode())
            process.stdin.flush()
        except BrokenPipeError:
            raise GitError(_MISSING) from None
        return process.stdout


def _read_content(answers: IO[bytes]) -> bytes:
    size = _parse_info(answers.readline()).size
    content = answers.read(size + 1)
    if len(content) != size + 1:
        raise GitError("git could not read the files of that revision; check the clone with `git fsck`")
    return content[:-1]


def _parse_info(line: bytes) -> ObjectInfo:
    fields = line.split()
    if len(fields) != _INFO_FIELDS:
        raise GitError(_MISSING)
    name, kind, size = fields
    return ObjectInfo(name.decode(), kind.decode(), int(size))


def _command(folder: Path, *arguments: str) -> list[str]:
    program = _find_git(str(folder), os.environ.get("PATH", os.defpath))
    return [program, *_SAFE_OPTIONS, "-C", str(folder), *arguments]


@cache
def _find_git(folder: str, path: str) -> str:
    # Imported late: most lints ask Git nothing.
    from jobgen.engine.programs import find_outside

    return find_outside("git", folder, path)


def _make_environment() -> dict[str, str]:
    names = [name for name in os.environ if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)]
    return {**{name: os.environ[name] for name in names}, **_ENVIRONMENT}


def _run(folder: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[bytes] | None:
    import subprocess

    given: dict[str, Any] = {"input": os.fsencode(text)} if text else {"stdin": subprocess.DEVNULL}

    try:
        return subprocess.run(  # noqa: S603 -- our own arguments, and a revision that was checked
            _command(folder, *arguments),
            capture_output=True,
            check=False,
            env=_make_environment(),
            **given,
        )
    except OSError:
        return None


def _ask(folder: Path, *arguments: str) -> str | None:
    """Return what a command prints, without the last line break; None if it fails."""
    done = _run(folder, *arguments)
    return os.fsdecode(done.stdout.removesuffix(b"\n")) if done and done.returncode == 0 else None


def find_path_from_top(folder: Path) -> str:
    """The path of a folder from the top of its Git repository; empty at the top, and outside of one."""
    resolved = folder.resolve()
    for parent in (resolved, *resolved.parents):
        # A folder, or a file in a work tree and in a submodule.
        if exists_itself(str(parent / ".git")):
            path = resolved.relative_to(parent).as_posix()
            return "" if path == "." else path
    return ""
