"""Folders that containers of one pod share by a volume, and that one of them does not mount."""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container, Pod
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.sentence import Sentence, Words

_SHARED = ("emptyDir", "ephemeral", "persistentVolumeClaim")
_PATH = lazy_pattern(r"(?:\A|[\s='\"(>])(/[\w.-]+(?:/[\w.-]+)*)")
_PATH_MAX = 4096
# Folders that every container has and uses for itself.
_OWN = frozenset(("/", "/dev/shm", "/root", "/run", "/tmp", "/var/run", "/var/tmp"))  # noqa: S108


@rule("pod", WARNING, fields=("volumes",), words=_SHARED)
def unshared_folder(pod: Pod) -> Iterator[Violation]:
    """A container that uses a folder of a volume that only another container of the pod mounts.

    Every container has a file system of its own. An init container that downloads to `/data` without a mount there
    writes to its own `/data`, which is gone when it ends: the main container, which mounts a volume at `/data`, finds
    it empty. The same holds for a sidecar that reads logs or uploads checkpoints. An `emptyDir` that all containers
    mount with `readOnly: true` also stays empty.

    Mount the volume in both containers, at the same path.

    When to turn it off: if both images really have a folder of that name, and the container is meant to use the one of
    its image, suppress the finding on the argument.
    """
    if pod.partial:
        return
    mounts = _list_mounts(pod) if len(pod.all_containers) > 1 else []
    by_folder = _group(mounts, lambda mount: mount.folder)
    by_volume = _group([mount for mount in mounts if mount.container.init], lambda mount: mount.volume)
    for container in pod.all_containers if mounts else ():
        found = next(_find_unshared(container, by_folder, by_volume), None)
        if found is not None:
            yield found
            return
    empty = {as_text(volume.get("name")) for volume in pod.volumes if "emptyDir" in volume}
    for name, mount in _find_readers(pod, empty):
        message = Sentence(
            "nothing can write to the `emptyDir` `{}`, which is mounted read-only, so it stays empty", name
        )
        yield Violation(
            At(mount, "readOnly"), Sentence("{}; remove `readOnly`, or mount it where its files are written", message)
        )
        return


class _Mount(NamedTuple):
    """Where a container mounts a volume that containers can share."""

    container: Container
    folder: str
    volume: str
    data: Mapping[str, Plain]


def _list_mounts(pod: Pod) -> list[_Mount]:
    """Return the mounts of volumes that containers of a pod can share, but for folders that each has for itself."""
    shared = {as_text(volume.get("name")) for volume in pod.volumes if not volume.keys().isdisjoint(_SHARED)}
    mounts = (
        _Mount(container, _read_path(mount), as_text(mount.get("name")), mount)
        for container in pod.all_containers
        for mount in container.volume_mounts
    )
    return [mount for mount in mounts if mount.volume in shared and mount.folder not in _OWN]


def _group(mounts: Iterable[_Mount], key: Callable[[_Mount], str]) -> dict[str, list[_Mount]]:
    groups: dict[str, list[_Mount]] = {}
    for mount in mounts:
        groups.setdefault(key(mount), []).append(mount)
    return groups


def _find_unshared(
    container: Container, by_folder: Mapping[str, Sequence[_Mount]], by_volume: Mapping[str, Sequence[_Mount]]
) -> Iterator[Violation]:
    """Yield the arguments of a container with a path that is in a volume of another container."""
    own = {_read_path(mount) for mount in container.volume_mounts}
    moved = {} if container.init else _find_moved(container, by_volume)
    for index, text in enumerate(container.words) if moved else ():
        # What precedes may be the program, which is in the image.
        path = text.rpartition("=")[2] if text[:1] == "-" else text if index else ""
        folders = list(_list_folders(path))
        if own.isdisjoint(folders):
            for mount, place in (moved[folder] for folder in folders if folder in moved):
                yield _report_moved(container, index, path, mount.container, mount.data, place)
    names = {as_text(mount.get("name")) for mount in container.volume_mounts}
    for index, text in enumerate(container.words):
        for path in _PATH.findall(text):
            folders = list(_list_folders(path))
            if not own.isdisjoint(folders):
                continue
            others = (mount for folder in folders for mount in by_folder.get(folder, ()))
            found = next((mount for mount in others if mount.volume not in names), None)
            if found is not None:
                yield _report(container, index, path, found.container, found.data)


def _find_moved(
    container: Container, by_volume: Mapping[str, Sequence[_Mount]]
) -> dict[str, tuple[_Mount, Mapping[str, Plain]]]:
    """Return the folders at which init containers mount volumes that a container mounts elsewhere, with both mounts."""
    moved: dict[str, tuple[_Mount, Mapping[str, Plain]]] = {}
    for own in container.volume_mounts:
        for mount in by_volume.get(as_text(own.get("name")), ()) if "subPath" not in own else ():
            if mount.folder != _read_path(own):
                moved.setdefault(mount.folder, (mount, own))
    return moved


def _list_folders(path: str) -> Iterator[str]:
    """Yield a path and the folders that it is in, but for the root; none of one that is longer than Linux takes."""
    while path != "/" and 0 < len(path) < _PATH_MAX:
        yield path
        path = path.rpartition("/")[0]


def _report_moved(
    container: Container, index: int, path: str, other: Container, mount: Mapping[str, Plain], own: Mapping[str, Plain]
) -> Violation:
    meant = posixpath.normpath(path.replace(_read_path(mount), _read_path(own), 1))
    start = Sentence(
        "`{}` is where `{}` has the volume `{}`, which `{}`",
        path,
        other.name,
        as_text(mount.get("name")),
        container.name,
    )
    related = ((At(own, "mountPath"), "mounted here"),)
    message = Sentence("{} has at `{}`; write `{}`, or mount it at the same path", start, _read_path(own), meant)
    return Violation(container.word_place(index), message, related)


def _read_path(mount: Mapping[str, Plain]) -> str:
    return posixpath.normpath(as_text(mount.get("mountPath")) or "-")


def _report(container: Container, index: int, path: str, other: Container, mount: Mapping[str, Plain]) -> Violation:
    name, folder = as_text(mount.get("name")), _read_path(mount)
    start = Sentence(
        "`{}` is in the file system of `{}` alone, which does not mount the volume `{}` that",
        path,
        container.name,
        name,
    )
    start = Sentence("{} `{}` has at `{}`", start, other.name, folder)
    finish = partial(_name_field_of_spec, start, name, folder)
    related = ((At(mount, "mountPath"), "mounted here"),)
    message = Sentence("{}; add `{{name: {}, mountPath: {}}}` to its `volumeMounts`", start, name, folder)
    return Violation(container.word_place(index), message, related, finish=finish)


def _name_field_of_spec(start: Words, name: str, folder: str, problem: Problem, is_spec: bool) -> Problem:
    """Return a problem with the field that a container of a job spec has for mounts."""
    return (
        problem._replace(sentence=Sentence("{}; add `mounts: {{{}: {}}}` to it", start, name, folder))
        if is_spec
        else problem
    )


def _find_readers(pod: Pod, names: AbstractSet[str]) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    """Yield the volumes with names that are only mounted read-only, each with its first mount."""
    mounts: dict[str, list[Mapping[str, Plain]]] = {}
    for container in pod.all_containers if names else ():
        for mount in container.volume_mounts:
            if (name := as_text(mount.get("name"))) in names:
                mounts.setdefault(name, []).append(mount)
    for name, found in mounts.items():
        if all(mount.get("readOnly") is True for mount in found):
            yield name, found[0]
