"""What the modules that build objects from several files know about the files of a lint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from jobgen.kustomize import Plan, SourceTree
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import Build


class FolderBuild(Build, Protocol):
    """The build of a kustomization."""

    def read(self) -> bytes:
        """Return the content of all files that it reads."""


Builder = Callable[[SourceTree, str, frozenset[str]], FolderBuild]
"""Makes the build of a kustomization file of a tree, given all files that it reads."""


class Surroundings(NamedTuple):
    """What is known about the files of a lint."""

    tree: FileTree
    paths: Sequence[str]
    plan: Plan
    closures: Mapping[str, frozenset[str]]
    """All files that the build of each root of the plan reads."""
    objects: frozenset[str]
    """The files whose objects are judged by themselves."""
    above: str
    """The path of the linted folder from the top of the Git repository, where the paths of Flux begin."""
    make: Builder
