"""Written trees as answers of the store: if no input and no file of the tree has changed, nothing is rendered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from jobgen.engine.inputs import Read, add_reads, find_read_path, list_folder, record
from jobgen.engine.store import Query, Store
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.commit import list_folder_names
from jobgen.repo.files import read_file
from jobgen.repo.layout import find_jobs
from jobgen.repo.rendered_tree import list_files, read_content
from jobgen.repo.root import find_root

TREE: Query[int] = Query("tree", str, int)
"""The number of objects of a tree that is up to date."""


class TreeRequest(NamedTuple):
    """The tree of all jobs that is written or compared."""

    path: Path
    """A folder of the repository."""
    folder: Path
    envs: Sequence[str]
    """The environments that were named; without them, the tree has those of the repository and no others."""
    format: str
    today: str

    @property
    def key(self) -> str:
        """Everything but files that the tree depends on."""
        where = str(self.path.resolve()), str(self.folder.absolute())
        return repr((where, list(self.envs), self.format, self.today))


def count_unchanged(store: Store, request: TreeRequest) -> int | None:
    """Return the number of objects of a tree if no input and no file of it has changed since it was written."""
    known = store.find(TREE, request.key)
    if known is None:
        return None
    add_reads(known.reads)
    found: int = known.value
    return found


def note_tree(
    store: Store, request: TreeRequest, reads: Sequence[Read], environments: Sequence[str], objects: int
) -> None:
    """Keep that a tree is up to date, with what was read to render it, and with all of its files as they are now."""
    folder, inside = request.folder, str(request.folder.absolute())
    with record() as recording:
        if not request.envs:
            list_folder_names(folder)
        for name, argument, _ in reads:
            # The folder of the tree may be new in a folder that was listed before.
            if name == "listing" and inside.startswith(os.path.join(os.path.abspath(argument), "")):
                list_folder(argument)
        for env in environments:
            for path in list_files(folder / env):
                read_content(folder / env / path)
    if recording.is_whole and recording.is_consistent:
        inputs: list[Read] = []
        for read in reads:
            path = os.path.abspath(find_read_path(read) or os.sep)
            if read[:2] not in recording.reads and not f"{path}{os.sep}".startswith(f"{inside}{os.sep}"):
                inputs.append(read)
        store.add(TREE, request.key, [*inputs, *recording.list_reads()], objects)
        store.save()


def record_jobs(path: Path) -> None:
    """Record the jobs of the repository that a folder is in as they are now."""
    root = find_root(path.resolve()) if path.is_dir() else None
    for entry in find_jobs(root) if root is not None else ():
        read_file(entry)
