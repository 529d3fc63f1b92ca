"""Compare the files of a rendered tree with its lock files; nothing is rendered."""

from __future__ import annotations

from collections.abc import Container, Iterator

from jobgen.engine.inputs import FOLDER, MISSING
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.commit import Folder, describe_path
from jobgen.repo.lock import LOCK, TREE, compute_digest, parse_lock
from jobgen.repo.tree_files import (
    MAX_LOCK_BYTES,
    find_environments,
    list_files,
    list_names,
    list_own_files,
    read_content,
)

_NOT_OURS = "jobgen did not write it; remove it, or move it out of the tree"
_LINK = "a symbolic link, which is not followed; replace it by a folder that `jobgen render` writes"
_REMEDY = f"run `jobgen render -o {TREE}`"
_REMOVAL = f"run `jobgen render -o {TREE} --allow-empty`, which removes them"


class TreeFault(NamedTuple):
    """A file of a rendered tree that jobgen did not write, or that was changed since."""

    path: str
    """The path below the folder of the tree."""
    is_listed: bool
    message: str


def find_tree_faults(tree: Folder, known: Container[str] | None = None) -> Iterator[TreeFault]:
    """Compare the files of a tree with its lock files; nothing is rendered.

    `known` are the environments of the repository: no other may have a tree, and theirs must have a lock. Apart from
    these, a folder without any lock is no tree.
    """
    what = describe_path(tree)
    if what != FOLDER:
        yield from [TreeFault("", False, _LINK)] if what.startswith("link") else ()
        return
    environments = find_environments(tree)
    for env in environments:
        if known is not None and env not in known:
            subject = f"there is no environment `{env}`" if env else "the repository has environments"
            message = f"{subject}, so the files of this lock are stale; {_REMOVAL}"
            yield TreeFault(f"{env}/{LOCK}" if env else LOCK, True, message)
            continue
        others = () if env else tuple(f"{name}/" for name in environments if name)
        yield from _find_faults(tree, env, others)
    if "" in environments:
        return
    for name in list_names(tree):
        if name in environments:
            continue
        is_environment = known is not None and name in known
        if environments or is_environment:
            yield from _find_faults_without_lock(tree, name, is_environment=is_environment)


def _find_faults_without_lock(tree: Folder, name: str, *, is_environment: bool) -> Iterator[TreeFault]:
    """Report an entry of a tree that has no lock: a link, a file, or a folder."""
    what = describe_path(tree / name)
    if what.startswith("link"):
        yield TreeFault(name, False, _LINK)
    elif what != FOLDER:
        yield TreeFault(name, False, f"no {LOCK} lists the file, so {_NOT_OURS}")
    elif is_environment and any(True for _ in list_files(tree / name)):
        message = f"the lock file of environment `{name}` is missing; {_REMEDY}, which writes it"
        yield TreeFault(f"{name}/{LOCK}", False, message)
    else:
        for path in list_files(tree / name):
            yield TreeFault(f"{name}/{path}", False, f"there is no {LOCK} in `{name}`, so {_NOT_OURS}")


def _find_faults(tree: Folder, env: str, others: tuple[str, ...]) -> Iterator[TreeFault]:
    folder, prefix = (tree / env, f"{env}/") if env else (tree, "")
    lock = parse_lock((read_content(folder / LOCK, MAX_LOCK_BYTES) or b"").decode("utf-8", "replace"))
    if lock is None:
        yield TreeFault(f"{prefix}{LOCK}", False, f"the lock file does not list the files of jobgen; {_REMEDY}")
        return
    found = set()
    for path in list_own_files(folder, lock):
        found.add(path)
        if path == LOCK or path.startswith(others):
            continue
        if path not in lock.files:
            yield TreeFault(f"{prefix}{path}", False, f"{LOCK} does not list the file, so {_NOT_OURS}")
            continue
        content = read_content(folder / path)
        if content is None or compute_digest(content.decode("utf-8", "surrogateescape")) != lock.files[path]:
            yield TreeFault(f"{prefix}{path}", True, f"the file was changed after jobgen wrote it; {_REMEDY}")
    for path in sorted(lock.files.keys() - found):
        # In a jobs repository, not all files are listed.
        if describe_path(folder / path).endswith(MISSING):
            yield TreeFault(f"{prefix}{path}", True, f"the file was deleted after jobgen wrote it; {_REMEDY}")
