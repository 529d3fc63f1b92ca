"""Which files of a repository differ from a commit: changed, new or deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from hashlib import sha1, sha256
from itertools import chain
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
        files = chain(map(read_file, layout.find_jobs(root)), layout.read_layers(layout.own_layers(root)))
        found = {file.path for file in files if _is_changed(file, committed)}
        for top in SOURCE_FOLDERS:
            listed = (path for path, entry in (committed / top).walk() if entry.is_file)
            found.update(f"{top}/{path}" for path in listed if not (root / top / path).is_file())
    return sorted(found)


def find_uncommitted(folder: Folder, commit: str, paths: Iterable[str]) -> Iterator[str]:
    """Yield the files that a commit does not have, or not with the content that they have in a folder."""
    with ExitStack() as stack:
        committed = folder if isinstance(folder, CommitPath) else stack.enter_context(open_commit(folder, commit))
        for path in paths:
            file = read_first((folder,), path)
            if file is None or _is_changed(file, committed):
                yield path


def _is_changed(file: File, committed: CommitPath) -> bool:
    if file.finding:
        return False
    entry = (committed / file.path).find_entry()
    if entry is None:
        return True
    make_hash = sha256 if len(entry.object) == 64 else sha1
    # Git may store other ends of lines than the work tree has.
    for content in (file.content, file.content.replace(b"\r\n", b"\n")):
        name = make_hash(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        if name == entry.object:
            return False
    return True
