"""Choose the paths of the files that a migration adds."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import count

from jobgen.repo.commit import Folder


def find_free_path(root: Folder, folder: str, name: str, taken: Container[str] = ()) -> str:
    """The path of a new file: with a number if the repository has such a file, which may hold something else."""
    paths = (path for path in _list_paths(folder, name) if path not in taken)
    return next(path for path in paths if not _exists(root / path))


def _exists(path: Folder) -> bool:
    # A link that leads nowhere exists, too.
    return path.exists() or path.is_symlink()


def _list_paths(folder: str, name: str) -> Iterator[str]:
    yield f"{folder}/{name}.yaml"
    yield from (f"{folder}/{name}-{number}.yaml" for number in count(2))
