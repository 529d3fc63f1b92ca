"""Folders that containers of one pod share by a volume, and that one of them does not mount."""

import posixpath
from collections.abc import Iterator, Mapping
from functools import partial

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Container, Pod
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At

_SHARED = ("emptyDir", "ephemeral", "persistentVolumeClaim")
_PATH = lazy_pattern(r"(?:\A|[\s='\"(>])(/[\w.-]+(?:/[\w.-]+)*)")
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
    containers = pod.all_containers
    if pod.partial:
        return
    if len(containers) > 1:
        for container in containers:
            found = next(_find_unshared(container, pod), None)
            if found is not None:
                yield found
                return
    for volume in pod.volumes:
        if "emptyDir" in volume and (mount := _find_only_reader(pod, as_text(volume.get("name")))) is not None:
            name = as_text(volume.get("name"))
            message = f"nothing can write to the `emptyDir` `{name}`, which is mounted read-only, so it stays empty"
            advice = "remove `readOnly`, or mount it where its files are written"
            yield Violation(At(mount, "readOnly"), f"{message}; {advice}")
            return


def _find_unshared(container: Container, pod: Pod) -> Iterator[Violation]:
    """Yield the arguments of a container with a path that is in a volume of another container."""
    own = [_read_path(mount) for mount in container.volume_mounts]
    moved = [] if container.init else list(_list_moved(container, pod))
    for index, text in enumerate(container.words) if moved else ():
        # What precedes may be the program, which is in the image.
        path = text.rpartition("=")[2] if text[:1] == "-" else text if index else ""
        for other, mount, place in moved:
            if _is_in(path, _read_path(mount)) and not any(_is_in(path, each) for each in own):
                yield _report_moved(container, index, path, other, mount, place)
    names = {as_text(mount.get("name")) for mount in container.volume_mounts}
    others = [
        (other, mount)
        for other in pod.all_containers
        if other is not container
        for mount in other.volume_mounts
        if as_text(mount.get("name")) not in names and _is_shared(pod, mount)
    ]
    for index, text in enumerate(container.words) if others else ():
        for path in _PATH.findall(text):
            if any(_is_in(path, each) for each in own):
                continue
            for other, mount in others:
                if _is_in(path, _read_path(mount)):
                    yield _report(container, index, path, other, mount)
                    break


def _list_moved(container: Container, pod: Pod) -> Iterator[tuple[Container, Mapping[str, Node], Mapping[str, Node]]]:
    """Yield what init containers mount at another path than a container: each of them, its mount, and the other one."""
    mounts = {as_text(mount.get("name")): mount for mount in container.volume_mounts if "subPath" not in mount}
    for other in pod.init_containers:
        for mount in other.volume_mounts:
            own = mounts.get(as_text(mount.get("name")))
            if own is not None and _is_shared(pod, mount) and _read_path(own) != _read_path(mount):
                yield other, mount, own


def _report_moved(
    container: Container, index: int, path: str, other: Container, mount: Mapping[str, Node], own: Mapping[str, Node]
) -> Violation:
    meant = posixpath.normpath(path.replace(_read_path(mount), _read_path(own), 1))
    start = f"`{path}` is where `{other.name}` has the volume `{as_text(mount.get('name'))}`, which `{container.name}`"
    related = ((At(own, "mountPath"), "mounted here"),)
    message = f"{start} has at `{_read_path(own)}`; write `{meant}`, or mount it at the same path"
    return Violation(container.word_place(index), message, related)


def _read_path(mount: Mapping[str, Node]) -> str:
    return posixpath.normpath(as_text(mount.get("mountPath")) or "-")


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _is_shared(pod: Pod, mount: Mapping[str, Node]) -> bool:
    volume = next((each for each in pod.volumes if each.get("name") == mount.get("name")), {})
    return not volume.keys().isdisjoint(_SHARED) and _read_path(mount) not in _OWN


def _report(container: Container, index: int, path: str, other: Container, mount: Mapping[str, Node]) -> Violation:
    name, folder = as_text(mount.get("name")), _read_path(mount)
    start = f"`{path}` is in the file system of `{container.name}` alone, which does not mount the volume `{name}` that"
    start = f"{start} `{other.name}` has at `{folder}`"
    finish = partial(_name_field_of_spec, start, name, folder)
    related = ((At(mount, "mountPath"), "mounted here"),)
    message = f"{start}; add `{{name: {name}, mountPath: {folder}}}` to its `volumeMounts`"
    return Violation(container.word_place(index), message, related, finish=finish)


def _name_field_of_spec(start: str, name: str, folder: str, problem: Problem, is_spec: bool) -> Problem:
    """Return a problem with the field that a container of a job spec has for mounts."""
    return problem._replace(message=f"{start}; add `mounts: {{{name}: {folder}}}` to it") if is_spec else problem


def _find_only_reader(pod: Pod, name: str) -> Mapping[str, Node] | None:
    """Return the first mount of a volume if all of its mounts are read-only."""
    mounts = [
        as_mapping(mount)
        for each in pod.all_containers
        for mount in each.volume_mounts
        if as_text(mount.get("name")) == name
    ]
    is_read = bool(mounts) and all(value_of(mount.get("readOnly")) is True for mount in mounts)
    return mounts[0] if is_read else None
