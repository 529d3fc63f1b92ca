"""The files that a container gets from ConfigMaps of the repository, by their paths in the container."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

from jobgen.features.convert.operators.created import Fields, as_fields, as_items, as_string
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple


class MountedFolder(NamedTuple):
    """A volume with files at a path of a container."""

    path: str
    """Where it is mounted."""
    files: Mapping[str, Plain]
    """The texts of its files, by their paths below it; null for a file whose text is not known."""
    is_complete: bool
    """True if it certainly has no other files."""
    config: str
    """The name of its ConfigMap."""


class MountedFiles:
    """The mounts of a container."""

    def __init__(
        self,
        mounts: Sequence[Fields],
        volumes: Sequence[Fields],
        find_config: Callable[..., Mapping[str, Plain] | None],
    ) -> None:
        self._mounts = mounts
        self._volumes = {as_string(volume.get("name")): volume for volume in volumes}
        self._find_config = find_config
        self._known: dict[str, MountedFolder] = {}

    @cached_property
    def _folders(self) -> list[tuple[str, Fields]]:
        """The paths with mounts, the longest first."""
        found = [(posixpath.normpath(as_string(each.get("mountPath"), "-")), each) for each in self._mounts]
        return sorted(found, key=lambda pair: -len(pair[0]))

    def find_folder(self, path: str) -> MountedFolder | None:
        """Return the volume that a path is in; None if it is in the image, or a part of a volume is mounted there."""
        found = self._find_mount(path)
        if found is None or not found[1].keys().isdisjoint(("subPath", "subPathExpr")):
            return None
        return self._read_volume(*found)

    def find_text(self, path: str) -> Plain:
        """Return the text of a file as it is written; None if it is not known."""
        path = posixpath.normpath(path)
        found = self._find_mount(path)
        if found is None or "subPathExpr" in found[1]:
            return None
        folder, mount = found
        inner = posixpath.join(as_string(mount.get("subPath")), path[len(folder) :].strip("/")).rstrip("/")
        volume = self._read_volume(folder, mount)
        return volume.files.get(inner) if volume else None

    def locate_text(self, path: str) -> Plain:
        """Return the text of a file as it is written, with its location; None if it is not known."""
        located = MountedFiles(self._mounts, [*self._volumes.values()], partial(self._find_config, is_traced=True))
        return located.find_text(path)

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if it is not known."""
        return to_text(self.find_text(path))

    def _find_mount(self, path: str) -> tuple[str, Fields] | None:
        path = posixpath.normpath(path)
        return next(
            (each for each in self._folders if path == each[0] or path.startswith(f"{each[0].rstrip('/')}/")), None
        )

    def _read_volume(self, folder: str, mount: Fields) -> MountedFolder | None:
        volume = self._volumes.get(as_string(mount.get("name")))
        if volume is None or ("configMap" not in volume and "projected" not in volume):
            return None
        if folder not in self._known:
            self._known[folder] = self._read_sources(folder, volume)
        return self._known[folder]

    def _read_sources(self, folder: str, volume: Fields) -> MountedFolder:
        files: dict[str, Plain] = {}
        is_complete, config = True, ""
        sources = [as_fields(each) for each in as_items(as_fields(volume.get("projected")).get("sources"))]
        for source in sources or [volume]:
            reference = as_fields(source.get("configMap"))
            name = as_string(reference.get("name"))
            data = self._find_config(name) if name else None
            config = config or name
            if data is None or reference.get("optional") is True:
                is_complete = False
            items = [as_fields(each) for each in as_items(reference.get("items"))]
            pairs = [(as_string(each.get("path")), as_string(each.get("key"))) for each in items]
            for path, key in pairs or [(key, key) for key in data or ()]:
                files.setdefault(posixpath.normpath(path), (data or {}).get(key))
        return MountedFolder(folder, files, is_complete, config)


def to_text(node: Plain) -> str | None:
    """Return the text of a value of a ConfigMap; None if it is binary."""
    return None if node is None else as_text(node)
