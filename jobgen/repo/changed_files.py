"""Which files of a repository differ from a commit: changed, new or deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from hashlib import sha1, sha256
from pathlib import Path

from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder, open_commit
from jobgen.repo.files import File, read_file
from jobgen.repo.named_paths import read_first
from jobgen.repo.root import SOURCE_FOLDERS


def list_changed_files(root: Path, commit: str) -> list[str]:
    """List the files that jobgen reads and that differ from a commit, with their paths from the root.

    Git is not asked for its status, because that can run programs of its settings.
    """
    with open_commit(root, commit) as committed:
        found = {file.path for file in _read_files(root) if _is_changed(file, committed)}
        found.update(_list_deleted(root, committed))
    return sorted(found)


def find_uncommitted(folder: Folder, commit: str, paths: Iterable[str]) -> Iterator[str]:
    """Yield the files that a commit does not have, or not with the content that they have in a folder."""
    with ExitStack() as stack:
        committed = folder if isinstance(folder, CommitPath) else stack.enter_context(open_commit(folder, commit))
        for path in paths:
            file = read_first((folder,), path)
            if file is None or _is_changed(file, committed):
                yield path


def _read_files(root: Path) -> Iterator[File]:
    yield from (read_file(entry) for entry in layout.find_jobs(root))
    yield from layout.read_layers(root)


def _is_changed(file: File, committed: CommitPath) -> bool:
    if file.finding:
        return False
    entry = (committed / file.path).find_entry()
    # Git may store other ends of lines than the work tree has.
    contents = (file.content, file.content.replace(b"\r\n", b"\n"))
    return entry is None or entry.object not in {_name_object(content, entry.object) for content in contents}


def _name_object(content: bytes, like: str) -> str:
    """Return the name that Git gives a file, by the hash function that another name is made with."""
    make_hash = sha256 if len(like) == 64 else sha1
    return make_hash(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _list_deleted(root: Path, committed: CommitPath) -> Iterable[str]:
    for top in SOURCE_FOLDERS:
        for path, entry in (committed / top).walk():
            if entry.is_file and not (root / top / path).is_file():
                yield f"{top}/{path}"
