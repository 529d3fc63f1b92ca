"""Where a job writes: the folders that its arguments and variables name, as places that jobs can share."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import NamedTuple

from jobgen.k8s.objects import Container, as_list, as_mapping, as_text, get_path
from jobgen.model.lazy_re import lazy_pattern

_WRITTEN = (
    "output_dir output_path out_dir save_dir save_path save checkpoint_dir ckpt_dir checkpoints_dir "
    "logdir log_dir logging_dir tensorboard_dir tensorboard_logdir default_root_dir job_dir export_dir artifacts_dir"
).split()
_NAMES = "|".join(word.replace("_", "[-_]") for word in _WRITTEN)
# Both in a script and as a word of its own, whose value is then the next word.
_FLAG = lazy_pattern(rf"--({_NAMES})(?:=|\s+|$)[\"']?([^\s\"';|&]*)")
_VARIABLES = frozenset(word.upper() for word in _WRITTEN if word not in ("save", "logdir"))
_URI = lazy_pattern(r"(?:s3a?|gs|gcs|oss|abfss?|wasbs?|hdfs|cos|obs|swift|nfs)://[^/]+/.+")
_UNKNOWN = lazy_pattern(r"[$`*{<]")

Place = tuple[str, ...]


class OutputPath(NamedTuple):
    """A place that a container writes to, how it is spelt, and where: a field of the container, the way from there."""

    target: Place
    text: str
    field: str
    path: tuple[str | int, ...]


def find_output_paths(container: Container) -> Iterator[OutputPath]:
    """Places outside of the pod that the container writes to."""
    wording = container.search_text
    if "DIR=" not in wording and "_PATH=" not in wording and not _FLAG.search(wording):
        return
    for spelling, field, way in _spellings(container):
        place = None if _UNKNOWN.search(spelling) else _place(spelling, container)
        if place:
            yield OutputPath(place, spelling, field, way)


def _spellings(container: Container) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    for field in ("command", "args"):
        words = as_list(container.data.get(field))
        for number, word in enumerate(words):
            for found in _FLAG.finditer(as_text(word)) if "--" in as_text(word) else ():
                if found[2] or number + 1 == len(words):
                    yield found[2], field, (number,)
                elif as_text(word).endswith(found[1]):
                    yield as_text(words[number + 1]), field, (number + 1,)
    for number, entry in enumerate(as_list(container.data.get("env"))):
        if as_text(get_path(entry, "name")) in _VARIABLES:
            yield as_text(get_path(entry, "value")), "env", (number, "value")


def _place(spelling: str, container: Container) -> Place | None:
    """What the spelling means to every pod of the cluster, or None if it is the pod's own."""
    if _URI.match(spelling):
        return ("uri", spelling.rstrip("/"))
    if not spelling.startswith("/"):
        return None
    path = normpath(spelling)
    mounts = [mount for mount in as_list(container.data.get("volumeMounts")) if isinstance(mount, dict)]
    over = [mount for mount in mounts if f"{path}/".startswith(f"{normpath(as_text(mount.get('mountPath')))}/")]
    if not over:
        return None
    nearest = max(over, key=lambda mount: len(as_text(mount.get("mountPath"))))
    if "subPathExpr" in nearest:
        return None
    rest = path[len(normpath(as_text(nearest.get("mountPath")))) :].strip("/")
    inside = normpath("/".join(("", as_text(nearest.get("subPath")).strip("/"), rest)))
    volume = _volume(as_text(nearest.get("name")), container)
    return (*volume, inside) if volume else None


def _volume(name: str, container: Container) -> Place | None:
    for volume in container.pod.volumes:
        if as_text(volume.get("name")) != name:
            continue
        if claim := as_text(get_path(volume, "persistentVolumeClaim", "claimName")):
            return ("claim", container.pod.role.manifest.namespace, claim)
        if server := as_mapping(volume.get("nfs")):
            return ("nfs", as_text(server.get("server")), as_text(server.get("path")))
    return None
