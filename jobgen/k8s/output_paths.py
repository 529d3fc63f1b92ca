"""Find the folders outside of the pod that a job writes to, by the options and variables that name them."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import NamedTuple

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.model.lazy_re import lazy_pattern

_OPTION_NAMES = (
    "output_dir output_path out_dir save_dir save_path save checkpoint_dir ckpt_dir checkpoints_dir "
    "logdir log_dir logging_dir tensorboard_dir tensorboard_logdir default_root_dir job_dir export_dir artifacts_dir"
).split()
_ALTERNATIVES = "|".join(name.replace("_", "[-_]") for name in _OPTION_NAMES)
# In a script, or as an argument of its own, whose value is the next argument.
_FLAG = lazy_pattern(rf"--({_ALTERNATIVES})(?:=|\s+|$)[\"']?([^\s\"';|&]*)")
_VARIABLES = frozenset(name.upper() for name in _OPTION_NAMES if name not in ("save", "logdir"))
_URI = lazy_pattern(r"(?:s3a?|gs|gcs|oss|abfss?|wasbs?|hdfs|cos|obs|swift|nfs)://[^/]+/.+")
_UNRESOLVED = lazy_pattern(r"[$`*{<]")

OutputTarget = tuple[str, ...]
"""What identifies a folder in the cluster: a URI, or a volume and a path in it."""


class OutputPath(NamedTuple):
    """A folder that a container writes to, its text in the manifest, and the container's field and the path there."""

    target: OutputTarget
    text: str
    field: str
    path: tuple[str | int, ...]


def find_output_paths(container: Container) -> Iterator[OutputPath]:
    """Yield the folders outside of the pod that the container writes to."""
    wording = container.search_text
    if "DIR=" not in wording and "_PATH=" not in wording and not _FLAG.search(wording):
        return
    for text, field, path in _find_values(container):
        target = None if _UNRESOLVED.search(text) else _resolve_target(text, container)
        if target:
            yield OutputPath(target, text, field, path)


def _find_values(container: Container) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    for field in ("command", "args"):
        arguments = as_list(container.data.get(field))
        for index, argument in enumerate(arguments):
            for found in _FLAG.finditer(as_text(argument)) if "--" in as_text(argument) else ():
                if found[2] or index + 1 == len(arguments):
                    yield found[2], field, (index,)
                elif as_text(argument).endswith(found[1]):
                    yield as_text(arguments[index + 1]), field, (index + 1,)
    for index, entry in enumerate(as_list(container.data.get("env"))):
        if as_text(get_path(entry, "name")) in _VARIABLES:
            yield as_text(get_path(entry, "value")), "env", (index, "value")


def _resolve_target(text: str, container: Container) -> OutputTarget | None:
    """Return what a folder is for every pod of the cluster; None if it is inside the pod."""
    if _URI.match(text):
        return ("uri", text.rstrip("/"))
    if not text.startswith("/"):
        return None
    path = normpath(text)
    mounts = [mount for mount in as_list(container.data.get("volumeMounts")) if isinstance(mount, dict)]
    parents = [mount for mount in mounts if f"{path}/".startswith(f"{normpath(as_text(mount.get('mountPath')))}/")]
    if not parents:
        return None
    nearest = max(parents, key=lambda mount: len(as_text(mount.get("mountPath"))))
    if "subPathExpr" in nearest:
        return None
    rest = path[len(normpath(as_text(nearest.get("mountPath")))) :].strip("/")
    inside = normpath("/".join(("", as_text(nearest.get("subPath")).strip("/"), rest)))
    volume = _resolve_volume(as_text(nearest.get("name")), container)
    return (*volume, inside) if volume else None


def _resolve_volume(name: str, container: Container) -> OutputTarget | None:
    for volume in container.pod.volumes:
        if as_text(volume.get("name")) != name:
            continue
        if claim := as_text(get_path(volume, "persistentVolumeClaim", "claimName")):
            return ("claim", container.pod.manifest.namespace, claim)
        if server := as_mapping(volume.get("nfs")):
            return ("nfs", as_text(server.get("server")), as_text(server.get("path")))
    return None
