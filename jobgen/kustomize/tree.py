"""The files that a kustomization can name: below one folder, on disk or in a commit. Nothing outside of it is read."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Protocol

from jobgen.engine.inputs import FOLDER, describe, exists, find_program, is_link
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.atomic import links_outside
from jobgen.repo.commit import CommitPath, Folder, list_folder_names, read_committed
from jobgen.repo.files import KUSTOMIZATION_NAMES, File, FileEntry, read_file, report_link_outside


class SourceTree(Protocol):
    """Files by their paths from the linted folder, with `/`."""

    @property
    def depth(self) -> int:
        """How many folders above the linted one belong to the repository: how often a path may begin with `../`."""

    def read(self, path: str) -> File:
        """Return the content of a file, or the finding that explains why it is not read."""

    def exists(self, path: str) -> bool:
        """Return True if there is a file or folder that may be read."""

    def is_folder(self, path: str) -> bool:
        """Return True if the path is a folder that may be read."""

    def list_names(self, path: str) -> Sequence[str]:
        """Return the names in a folder that may be read; none if it cannot be."""


class FolderTree:
    """The files below a folder, for the time of one lint: each path is asked about once.

    Links that lead out of the folder are not followed.
    """

    def __init__(self, folder: Folder, depth: int = 0) -> None:
        """Start with a folder; `depth` is the number of folders above it that belong to the same repository."""
        self.folder = folder
        self.depth = depth
        self._leads_outside: dict[str, bool] = {}
        """The folders that were asked about, and whether links lead out of the repository there."""
        # Many kustomizations can share a base.
        self.read = cache(self._read)
        self.exists = cache(self._exists)
        self.is_folder = cache(self._is_folder)

    @cached_property
    def _top(self) -> Folder:
        folder = self.folder.resolve()
        return folder.parents[self.depth - 1] if self.depth else folder

    def _read(self, path: str) -> File:
        if isinstance(self.folder, CommitPath):
            assert isinstance(self._top, CommitPath)
            return read_file(read_committed(self.folder / path, path, self._top))
        full = os.path.join(self.folder, path)
        return read_file(report_link_outside(path) if self._is_outside(full) else FileEntry(path, full))

    def _exists(self, path: str) -> bool:
        with suppress(OSError, ValueError):
            found = self._find(path)
            return found.exists() if isinstance(found, CommitPath) else bool(found)
        return False

    def _is_folder(self, path: str) -> bool:
        with suppress(OSError, ValueError):
            found = self._find(path)
            return found.is_dir() if isinstance(found, CommitPath) else bool(found) and describe(found).endswith(FOLDER)
        return False

    def list_names(self, path: str) -> Sequence[str]:
        """Return the names in a folder that may be read; none if it cannot be."""
        with suppress(OSError, ValueError):
            return sorted(list_folder_names(self.folder / path)) if self.is_folder(path) else ()
        return ()

    def _find(self, path: str) -> CommitPath | str:
        """Return where a path is; empty if that is outside of the repository, or nowhere."""
        if isinstance(self.folder, CommitPath):
            committed = self.folder / path
            assert isinstance(self._top, CommitPath)
            return committed if committed.resolve().is_relative_to(self._top) else ""
        full = os.path.join(self.folder, path)
        return full if exists(full) and not self._is_outside(full) else ""

    def _is_outside(self, full: str) -> bool:
        """Return True if symbolic links lead from a path on disk out of the repository."""
        assert not isinstance(self._top, CommitPath)
        return self.leads_outside(os.path.dirname(full)) or (is_link(full) and links_outside(full, self._top))

    def leads_outside(self, folder: str) -> bool:
        """Return True if symbolic links lead from a folder on disk out of the repository."""
        assert not isinstance(self._top, CommitPath)
        known = self._leads_outside
        if folder not in known:
            above, name = os.path.split(folder)
            # No link leads from a folder that leads nowhere else to one in it.
            is_inside = above in known and not known[above] and name not in ("", ".", "..") and not is_link(folder)
            known[folder] = not is_inside and links_outside(folder, self._top)
        return known[folder]


def resolve_path(tree: SourceTree, folder: str, path: str) -> str | None:
    """Return the path of what a kustomization in a folder names; None if it is outside of the tree."""
    joined = posixpath.normpath(posixpath.join(folder, path))
    outside = path.startswith("/") or joined.split("/").count("..") > tree.depth or "\0" in joined
    return None if outside else "" if joined == "." else joined


def find_kustomizations(tree: SourceTree, folder: str) -> list[str]:
    """Return the kustomization files of a folder; a valid one has exactly one."""
    paths = (posixpath.join(folder, name) for name in KUSTOMIZATION_NAMES)
    return [path for path in paths if tree.exists(path) and not tree.is_folder(path)]


def reach(root: str, below: Mapping[str, Sequence[str]]) -> set[str]:
    """Return a file and all files that it leads to."""
    reached: set[str] = set()
    pending = [root]
    while pending:
        path = pending.pop()
        if path not in reached:
            reached.add(path)
            pending += below.get(path, ())
    return reached


class Use(NamedTuple):
    """How a kustomization uses a file."""

    role: str
    """`resource`, `component`, `patch`, `generator input`, `replacement`, `configuration`, `crds`, `openapi`,
    `helm values`, `transformer`, or `commented out` for a line that is a comment."""
    by: str
    line: int


class Plan(NamedTuple):
    """The kustomizations of a tree."""

    roots: tuple[str, ...]
    """The kustomization files that no other one uses, so that they are built; those of a cycle have one root."""
    uses: Mapping[str, tuple[Use, ...]]
    """By the path of a file, how kustomizations use it directly; a folder stands for its kustomization file."""
    members: Mapping[str, tuple[str, ...]]
    """By the path of a file that is a resource, directly or through folders, the roots that build it."""


class Tool(NamedTuple):
    """A program that builds kustomizations."""

    name: str
    path: str
    time: str = ""
    """When its file was last changed: another version may build other objects."""


def find_tool(home: str) -> Tool | None:
    """Return kustomize, else kubectl, if one of them is on PATH and no file of a repository; it is not started."""
    for names in ("kustomize kubectl", "kubectl"):
        described, _, time = find_program(names).rpartition(" ")
        name, _, path = described.partition(" ")
        if not path:
            return None
        # Imported late: most machines have none of them.
        from jobgen.engine.programs import is_inside

        if not is_inside(path, home):
            return Tool(name, path, time)
    return None
