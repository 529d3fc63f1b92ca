"""What is wrong with a rendered tree: files that are not as jobgen wrote them, or not as it would write them now."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from enum import Enum

from jobgen.engine.inputs import FOLDER, MISSING
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.commit import Folder, describe_path
from jobgen.repo.lock import LOCK, TREE, LockFile, compute_digest, is_object_path, parse_lock
from jobgen.repo.rendered_tree import (
    MAX_LOCK_BYTES,
    find_environments,
    is_edited,
    list_files,
    list_names,
    list_own_files,
    read_content,
)


class FaultCause(Enum):
    """Why a file of a tree is at fault."""

    EDITED = "edited"
    DELETED = "deleted"
    LINE_ENDS = "line ends"
    UNLISTED = "unlisted"
    LINKED = "linked"
    LOCK_MISSING = "lock missing"
    LOCK_BROKEN = "lock broken"
    ENVIRONMENT_GONE = "environment gone"
    FORGED = "forged"
    """The lock file lists another content than the sources have, although it names the same sources."""
    STALE = "stale"
    """The sources have changed since."""
    ABSENT = "absent"
    """There is no tree of an environment."""
    DOUBLE = "double"
    SUBMODULE = "submodule"
    IGNORED = "ignored"
    NOT_COMPARED = "not compared"


class TreeFault(NamedTuple):
    """A file of a rendered tree that is not as it should be."""

    path: str
    """The path below the folder of the tree; empty for the tree itself."""
    cause: FaultCause
    what: str
    advice: str
    env: str = ""
    state: str = ""
    """What identifies the fault, if that is not the content of the file."""

    @property
    def message(self) -> str:
        """What is wrong, and what to do."""
        return f"{self.what}; {self.advice}"

    @property
    def is_listed(self) -> bool:
        """Return True if a lock file lists the file, or lists files of an environment that is gone."""
        return self.cause in _LISTED


_LISTED = frozenset((FaultCause.EDITED, FaultCause.DELETED, FaultCause.LINE_ENDS, FaultCause.ENVIRONMENT_GONE))
_NOT_OURS = "so jobgen did not write it"
_REMOVE = "remove it, or move it out of the tree"
_LINK = "a symbolic link, which is not followed"
_UNLINK = "replace it by a folder that `jobgen render` writes"
_LINE_ENDS = (
    "the file has other line ends than jobgen wrote: Git gave it those of this system, which `.gitattributes` in the"
    " tree forbids"
)


class TreeName(NamedTuple):
    """How messages name a tree."""

    folder: str = TREE
    by_environment: bool = False
    """True if a command names the environment that it repairs."""

    def describe_repair(self, env: str = "", options: str = "") -> str:
        """Return the advice to render an environment again."""
        return f"run `{self.command(env)}{options}`"

    def command(self, env: str = "") -> str:
        """Return the command that renders an environment again."""
        chosen = f" -e {env}" if env and self.by_environment else ""
        return f"jobgen render{chosen} -o {self.folder}"


_RENDERED = TreeName()


def find_tree_faults(
    tree: Folder, known: Container[str] | None = None, name: TreeName = _RENDERED
) -> Iterator[TreeFault]:
    """Compare the files of a tree with its lock files; nothing is rendered.

    `known` are the environments of the repository: no other may have a tree, and theirs must have a lock. Apart from
    these, a folder without any lock is no tree.
    """
    what = describe_path(tree)
    if what.startswith("link"):
        yield TreeFault("", FaultCause.LINKED, _LINK, _UNLINK)
    if what != FOLDER:
        return
    environments = find_environments(tree)
    for env in environments:
        if known is not None and env not in known:
            subject = f"there is no environment `{env}`" if env else "the repository has environments"
            advice = f"{name.describe_repair(options=' --allow-empty')}, which removes them"
            path = f"{env}/{LOCK}" if env else LOCK
            what = f"{subject}, so the files of this lock are stale"
            yield TreeFault(path, FaultCause.ENVIRONMENT_GONE, what, advice, env)
            continue
        others = () if env else tuple(f"{each}/" for each in environments if each)
        yield from _find_faults(tree, env, others, name)
    if "" in environments:
        return
    for entry in list_names(tree):
        if entry in environments:
            continue
        is_environment = known is not None and entry in known
        if environments or is_environment:
            yield from _find_faults_without_lock(tree, entry, name, is_environment=is_environment)


def _find_faults_without_lock(tree: Folder, entry: str, name: TreeName, *, is_environment: bool) -> Iterator[TreeFault]:
    """Report an entry of a tree that has no lock: a link, a file, or a folder."""
    what = describe_path(tree / entry)
    if what.startswith("link"):
        yield TreeFault(entry, FaultCause.LINKED, _LINK, _UNLINK)
    elif what != FOLDER:
        yield TreeFault(entry, FaultCause.UNLISTED, f"no {LOCK} lists the file, {_NOT_OURS}", _REMOVE)
    elif is_environment and any(True for _ in list_files(tree / entry)):
        message = f"the lock file of environment `{entry}` is missing"
        advice = f"{name.describe_repair(entry)}, which writes it"
        yield TreeFault(f"{entry}/{LOCK}", FaultCause.LOCK_MISSING, message, advice, entry)
    else:
        for path in list_files(tree / entry):
            message = f"there is no {LOCK} in `{entry}`, {_NOT_OURS}"
            yield TreeFault(f"{entry}/{path}", FaultCause.UNLISTED, message, _REMOVE, entry)


def _find_faults(tree: Folder, env: str, others: tuple[str, ...], name: TreeName) -> Iterator[TreeFault]:
    folder, prefix = (tree / env, f"{env}/") if env else (tree, "")
    lock, remedy = _parse_lock(folder), name.describe_repair(env)
    if lock is None:
        message = "the lock file does not list jobgen's files"
        yield TreeFault(f"{prefix}{LOCK}", FaultCause.LOCK_BROKEN, message, remedy, env)
        return
    found = set()
    for path in list_own_files(folder, lock):
        found.add(path)
        if path == LOCK or path.startswith(others):
            continue
        if path not in lock.files:
            message = f"{LOCK} does not list the file, {_NOT_OURS}"
            yield TreeFault(f"{prefix}{path}", FaultCause.UNLISTED, message, _REMOVE, env)
        elif is_edited(folder, lock, path):
            if name.by_environment and _has_other_line_ends(folder, lock, path):
                yield TreeFault(f"{prefix}{path}", FaultCause.LINE_ENDS, _LINE_ENDS, remedy, env)
            else:
                message = "the file was changed after jobgen wrote it"
                yield TreeFault(f"{prefix}{path}", FaultCause.EDITED, message, remedy, env)
    for path in sorted(lock.files.keys() - found):
        # In a jobs repository, not all files are listed.
        if describe_path(folder / path).endswith(MISSING):
            message = "the file was deleted after jobgen wrote it"
            yield TreeFault(f"{prefix}{path}", FaultCause.DELETED, message, remedy, env)


def _parse_lock(folder: Folder) -> LockFile | None:
    return parse_lock((read_content(folder / LOCK, MAX_LOCK_BYTES) or b"").decode("utf-8", "replace"))


def _has_other_line_ends(folder: Folder, lock: LockFile, path: str) -> bool:
    """Return True if a file differs from what its lock lists in nothing but the ends of its lines."""
    content = (read_content(folder / path) or b"").replace(b"\r\n", b"\n")
    return compute_digest(content.decode("utf-8", "surrogateescape")) == lock.files.get(path)


def find_source_faults(tree: Folder, env: str, wanted: LockFile, name: TreeName) -> Iterator[TreeFault]:
    """Compare the lock file of an environment with the one that its sources have now.

    Whether the files are as their lock says is another question, which `find_tree_faults` answers.
    """
    folder, prefix = (tree / env, f"{env}/") if env else (tree, "")
    if describe_path(folder / LOCK).endswith(MISSING):
        # A lock file that is missing beside other files of an environment is a fault of its own.
        has_files = bool(env) and describe_path(folder) == FOLDER and any(True for _ in list_files(folder))
        if wanted.files and not has_files:
            subject = f"`{name.folder}` has no tree of environment `{env}`" if env else f"`{name.folder}` has no tree"
            yield TreeFault(prefix + LOCK, FaultCause.ABSENT, subject, name.describe_repair(env), env)
        return
    lock = _parse_lock(folder)
    if lock is None:
        return
    remedy, stale = name.describe_repair(env), _list_stale(lock, wanted)
    for path in sorted(lock.files.keys() | wanted.files.keys()):
        listed, rendered = lock.files.get(path), wanted.files.get(path)
        if listed == rendered:
            continue
        if path not in stale and listed is not None:
            message = f"the file and its entry in {LOCK} are not what the sources render"
            yield TreeFault(f"{prefix}{path}", FaultCause.FORGED, message, remedy, env)
            continue
        state = "lacks the file" if listed is None else "has an old file" if rendered else "still has the file"
        message = f"`{name.folder}` {state} `{prefix}{path}`: the sources render something else"
        yield TreeFault(f"{prefix}{path}", FaultCause.STALE, message, remedy, env)
    if lock.files == wanted.files and (lock.origin.layers, lock.origin.jobs) != wanted.origin[1:3]:
        message = f"`{prefix}{LOCK}` in `{name.folder}` names other sources than those of the repository"
        yield TreeFault(f"{prefix}{LOCK}", FaultCause.STALE, message, remedy, env)


def _list_stale(lock: LockFile, wanted: LockFile) -> Collection[str]:
    """Return the files whose sources have changed since they were rendered, as far as the lock file says that."""
    before, now = lock.origin, wanted.origin
    paths = lock.files.keys() | wanted.files.keys()
    if (before.tool, before.layers) != (now.tool, now.layers):
        return paths
    changed = {path for path in paths if before.jobs.get(path) != now.jobs.get(path)}
    # The files beside objects follow from the names of these.
    has_others = {*filter(is_object_path, lock.files)} != {*filter(is_object_path, wanted.files)}
    return changed | ({path for path in paths if not is_object_path(path)} if has_others else set())
