"""A tree with one more file, which a program writes before it builds a folder."""

from __future__ import annotations

import posixpath
from typing import Any

from jobgen.kustomize import SourceTree
from jobgen.model.data import Location, TracedKey, TracedList, TracedMapping, TracedScalar
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import BuiltObject, File


class VirtualFile(NamedTuple):
    """The files of a tree, and a file that is not there."""

    tree: SourceTree
    path: str
    content: bytes

    @property
    def depth(self) -> int:
        """How many folders above the linted one belong to the repository."""
        return self.tree.depth

    def read(self, path: str) -> File:
        """Return the content of a file, or the finding that explains why it is not read."""
        return File(path, self.content) if path == self.path else self.tree.read(path)

    def exists(self, path: str) -> bool:
        """Return True if there is a file or folder that may be read."""
        return path in (self.path, posixpath.dirname(self.path)) or self.tree.exists(path)

    def is_folder(self, path: str) -> bool:
        """Return True if the path is a folder that may be read."""
        return path == posixpath.dirname(self.path) or self.tree.is_folder(path)


def move_nodes(built: BuiltObject, file: str, location: Location) -> BuiltObject:
    """Return an object whose nodes in a virtual file are at a location of the file that it was made from."""

    def move(node: Any) -> Any:
        if isinstance(node, dict) and node:
            return {_move_key(key, file, location): move(value) for key, value in node.items()}
        if type(node) is TracedList:
            items = TracedList(map(move, node), _move(node.location, file, location), node.layer, move(node.overridden))
            items.item_locations = [_move(each, file, location) for each in node.item_locations]
            return items
        if type(node) is TracedMapping:
            return TracedMapping(_move(node.location, file, location), node.layer)
        if type(node) is TracedScalar and node.location.file == file:
            return TracedScalar(node.value, location, node.layer, move(node.overridden), node.written)
        return node

    return built._replace(traced=move(built.traced), location=_move(built.location, file, location))


def _move_key(key: str, file: str, location: Location) -> str:
    is_inside = type(key) is TracedKey and key.location.file == file
    return TracedKey.at(str(key), location, key.layer) if is_inside else key  # type: ignore[attr-defined]


def _move(place: Location, file: str, location: Location) -> Location:
    return location if place.file == file else place
