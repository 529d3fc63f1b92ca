"""The PersistentVolumes of teams, and what names them, selects them, or reaches the same storage."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import normpath

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import NAMESPACES, VOLUMES
from jobgen.model.data import Plain
from jobgen.model.lazy_re import has_any
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.teams import TeamScope

Storage = tuple[str, str, str]
"""A type of storage, where it is, and a path or name there."""
Requirement = tuple[str, str, tuple[str, ...]]
"""A label, an operator, and values."""


class VolumeUse(NamedTuple):
    """A PersistentVolume, or what uses one."""

    team: str
    """The team whose object uses the volume; empty for the volume itself."""
    name: str = ""
    namespace: str = ""
    """That of the user; for a volume, the one that it is reserved for."""
    owners: tuple[str, ...] = ()
    """The teams that a volume belongs to."""
    labels: tuple[tuple[str, str], ...] = ()
    storage: tuple[Storage, ...] = ()
    selector: tuple[Requirement, ...] = ()
    storage_class: str = ""
    is_shared: bool = False
    """True if a team without namespaces of its own has the volume, so that others may have parts of it."""


Path = tuple[str | int, ...]


def find_volume_uses(manifest: Manifest, team: TeamScope) -> Iterator[tuple[VolumeUse, Path]]:
    """Yield the volume that an object is, or what it uses, each with the path where it is reported."""
    spec = manifest.spec
    if manifest.kind_name == "PersistentVolume" and not manifest.group:
        namespace = as_text(get_path(spec, "claimRef", "namespace"))
        owners = team.claims.list_owners(NAMESPACES, namespace) if namespace else [team.team]
        is_shared = not namespace and not any(each.strip("*") for each in team.allowed.get(NAMESPACES, ()))
        labels = tuple((str(key), as_text(value)) for key, value in manifest.labels.items())
        storage, storage_class = tuple(_read_storage(spec)), as_text(spec.get("storageClassName"))
        volume = VolumeUse("", manifest.name, namespace, tuple(owners), labels, storage, (), storage_class, is_shared)
        yield volume, ("metadata", "name")
        return
    if manifest.kind_name == "PersistentVolumeClaim" and not manifest.group:
        if name := as_text(spec.get("volumeName")):
            yield VolumeUse(team.team, name, manifest.namespace), ("spec", "volumeName")
        elif isinstance(spec.get("selector"), dict):
            selector = tuple(_read_selector(as_mapping(spec["selector"])))
            storage_class = as_text(spec.get("storageClassName"))
            use = VolumeUse(team.team, "", manifest.namespace, selector=selector, storage_class=storage_class)
            yield use, ("spec", "selector")
        return

    # Most objects name no storage. To search the text takes less time than a closer look.
    def may_have(*words: str) -> bool:
        return has_any(manifest.text, words)

    for name in (
        dict.fromkeys(use.value for use in manifest.uses if use.what == VOLUMES) if may_have("volumeName") else ()
    ):
        yield VolumeUse(team.team, name, manifest.namespace), ("metadata", "name")
    for selector, storage_class in _find_templates(manifest.object) if may_have("accessModes") else ():
        use = VolumeUse(team.team, "", manifest.namespace, selector=selector, storage_class=storage_class)
        yield use, ("metadata", "name")
    storage = tuple(dict.fromkeys(_find_inline(manifest.object))) if may_have(*_SIGNS) else ()
    if storage:
        yield VolumeUse(team.team, "", manifest.namespace, storage=storage), ("metadata", "name")


_NFS, _NODE = "nfs", "hostPath"
_SOURCES: Mapping[str, tuple[str, str]] = {
    "awsElasticBlockStore": ("", "volumeID"),
    "azureDisk": ("", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors", "path"),
    "cinder": ("", "volumeID"),
    "csi": ("driver", "volumeHandle"),
    "gcePersistentDisk": ("", "pdName"),
    "glusterfs": ("endpoints", "path"),
    "iscsi": ("targetPortal", "iqn"),
    _NFS: ("server", "path"),
    "quobyte": ("registry", "volume"),
    "rbd": ("monitors", "image"),
    "vsphereVolume": ("", "volumePath"),
}
"""The types of storage that volumes of pods and PersistentVolumes have, each with its fields for a place and a name."""
_PATHS = frozenset((_NFS, _NODE, "cephfs", "glusterfs"))
"""Those whose names are paths, so that one contains another."""


_FIELDS = frozenset((*_SOURCES, _NODE, "local"))
_SIGNS = ("'volumeHandle'", "'volumeAttributes'", *(repr(field) for field in sorted(_FIELDS) if field != "csi"))
"""One of these is in the text of an object that reaches storage: a field, or one that a driver needs."""


def _read_storage(source: Mapping[str, Plain]) -> Iterator[Storage]:
    """Yield the storage of a volume: that of a pod or a PersistentVolume."""
    for kind, (place, name) in _SOURCES.items():
        fields = as_mapping(source.get(kind)) if kind in source else {}
        path = as_text(fields.get(name)) or ("/" if kind == "cephfs" and fields else "")
        for each in as_list(fields.get(place)) or [fields.get(place)] if path else ():
            if as_text(each) or not place:
                yield kind, as_text(each).lower().rstrip("."), _clean_path(path) if kind in _PATHS else path
    # The driver for NFS mounts what its attributes name, also without a handle.
    attributes = as_mapping(get_path(source.get("csi"), "volumeAttributes"))
    if as_text(attributes.get("server")) and as_text(attributes.get("share")):
        path = f"{as_text(attributes['share'])}/{as_text(attributes.get('subDir'))}"
        yield _NFS, as_text(attributes["server"]).lower().rstrip("."), _clean_path(path)
    # A local volume of one node is a path of another, or of the same.
    on_node = as_text(get_path(source.get("hostPath"), "path"))
    on_node = on_node or (as_text(get_path(source.get("local"), "path")) if "nodeAffinity" in source else "")
    if on_node:
        yield _NODE, "", _clean_path(on_node)


def _clean_path(path: str) -> str:
    return normpath(f"/{path.lstrip('/')}")


def _find_inline(obj: Mapping[str, Plain]) -> Iterator[Storage]:
    """Yield the storage of volumes, wherever the object has them."""
    below: list[Plain] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += node
        elif isinstance(node, dict):
            if not _FIELDS.isdisjoint(node):
                yield from _read_storage(node)
            below += node.values()


def _find_templates(obj: Mapping[str, Plain]) -> Iterator[tuple[tuple[Requirement, ...], str]]:
    """Yield the selectors of claims that an object creates; only claims have `accessModes` beside them."""
    below: list[Plain] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += node
        elif isinstance(node, dict):
            if "accessModes" in node and isinstance(node.get("selector"), dict):
                yield tuple(_read_selector(as_mapping(node["selector"]))), as_text(node.get("storageClassName"))
            below += node.values()


def _read_selector(selector: Mapping[str, Plain]) -> Iterator[Requirement]:
    if not as_mapping(selector.get("matchLabels")) and not as_list(selector.get("matchExpressions")):
        yield "", "DoesNotExist", ()
    for key, value in as_mapping(selector.get("matchLabels")).items():
        yield str(key), "In", (as_text(value),)
    for term in map(as_mapping, as_list(selector.get("matchExpressions"))):
        yield as_text(term.get("key")), as_text(term.get("operator")), tuple(map(as_text, as_list(term.get("values"))))


def find_foreign_volumes(uses: Sequence[VolumeUse]) -> Iterator[tuple[int, int, str]]:
    """Yield the numbers of a use and of the volume of another team that it reaches, and a message."""
    volumes = {use.name: number for number, use in enumerate(uses) if not use.team}
    stored = _Storages((each, number) for number in volumes.values() for each in uses[number].storage)
    for number, use in enumerate(uses):
        if not use.team:
            continue
        found: Iterable[tuple[int, str]] = ()
        if use.storage:
            near = ((each[2], pair) for each in use.storage for pair in stored.find(each))
            kept = ((path, volume) for path, (volume, is_below) in near if not (is_below and uses[volume].is_shared))
            found = ((volume, f"this pod reaches `{path}` directly; use a claim") for path, volume in kept)
        elif use.selector:
            known = ((volume, uses[volume]) for volume in volumes.values())
            selected = (volume for volume, each in known if not each.namespace and _selects(use, each))
            found = [(volume, "has the labels of the `selector`; select your own volumes") for volume in selected]
        elif use.name in volumes:
            found = [(volumes[use.name], "")]
        for volume, why in found:
            owners, reserved = uses[volume].owners, uses[volume].namespace
            if owners and use.team not in owners and (not reserved or reserved != use.namespace):
                what = f"volume `{uses[volume].name}` belongs to team `{owners[0]}`"
                yield number, volume, f"{what}, and {why}" if why else f"{what}; remove `volumeName`"
                break


class _Storages:
    """The storage of volumes, to be found by a path above or below it."""

    def __init__(self, known: Iterable[tuple[Storage, int]]) -> None:
        self._known: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for (kind, place, path), number in known:
            self._known.setdefault((kind, place), []).append((_close(kind, path), number))
        for paths in self._known.values():
            paths.sort()
        self._lengths = {key: sorted({len(path) for path, _ in paths}) for key, paths in self._known.items()}

    def find(self, storage: Storage) -> Iterator[tuple[int, bool]]:
        """Yield the volumes that share storage with it, each with whether it is below that of the volume."""
        kind, place, path = storage
        path, paths = _close(kind, path), self._known.get((kind, place), [])
        for start in range(bisect_left(paths, (path, -1)), len(paths)):
            if not paths[start][0].startswith(path):
                break
            yield paths[start][1], False
        for length in self._lengths.get((kind, place), ()):
            if length >= len(path):
                break
            above = path[:length]
            for start in range(bisect_left(paths, (above, -1)), len(paths)):
                if paths[start][0] != above:
                    break
                yield paths[start][1], True


def _close(kind: str, path: str) -> str:
    """Return a path so that one which contains another is a prefix of it; a name has an end that no other has."""
    return f"{path.rstrip('/')}/" if kind in _PATHS else f"{path}\0"


def _selects(use: VolumeUse, volume: VolumeUse) -> bool:
    labels = dict(volume.labels)
    return use.storage_class == volume.storage_class and all(
        {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }.get(operator, False)
        for key, operator, values in use.selector
    )
