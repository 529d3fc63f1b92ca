"""The folders outside of a pod that its containers write to, by the options and variables that name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from posixpath import normpath

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At

_OPTION_NAMES = (
    "output_dir output_path outputs_dir output_folder output_directory outdir out_dir out_path output outputs out "
    "save_dir save_path save_folder save_directory save_to save checkpoint_dir checkpoints_dir "
    "ckpt_dir results_dir result_dir results_path "
    "exp_dir experiment_dir logdir log_dir log_path log_folder logs_dir logging_dir "
    "tensorboard_dir tensorboard_logdir tb_dir tb_logdir default_root_dir job_dir export_dir export_path "
    "artifacts_dir artifact_dir"
).split()
_ALTERNATIVES = "|".join(name.replace("_", "[-_]") for name in _OPTION_NAMES)
# In a script, or as an argument of its own, whose value is the next argument.
_FLAG = lazy_pattern(rf"--({_ALTERNATIVES})(?:=|\s+|$)[\"']?([^\s\"';|&]*)")
_VARIABLES = frozenset(name.upper() for name in _OPTION_NAMES if "_" in name and name != "save_to")
_URI = lazy_pattern(r"(?:s3a?|gs|gcs|oss|abfss?|wasbs?|hdfs|cos|obs|swift|nfs)://[^/]+/.+")
_LOGS = lazy_pattern(r"(?i)\blogs?\b|tensorboard|\btb\b")
# Names that no program uses for a folder that it only reads. TensorBoard reads `--logdir`, an evaluation `--ckpt_dir`.
_WRITTEN = lazy_pattern(r"(?i)out(?:$|[-_d]|puts?)|save|export")
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


def _find_values(
    container: Container, names: re.Pattern[str] | None = None
) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    """Yield the values of options and variables that name outputs, or of those with certain names."""
    for field in ("command", "args"):
        arguments = as_list(container.data.get(field))
        for index, argument in enumerate(arguments):
            for found in _FLAG.finditer(as_text(argument)) if "--" in as_text(argument) else ():
                if names is not None and not names.match(found[1]):
                    continue
                if found[2] or index + 1 == len(arguments):
                    yield found[2], field, (index,)
                elif as_text(argument).endswith(found[1]):
                    yield as_text(arguments[index + 1]), field, (index + 1,)
    for index, entry in enumerate(as_list(container.data.get("env"))):
        name = as_text(get_path(entry, "name"))
        if name in _VARIABLES and (names is None or names.match(name)):
            yield as_text(get_path(entry, "value")), "env", (index, "value")


def find_output_mounts(container: Container) -> Iterator[tuple[str, At, Mapping[str, Plain]]]:
    """Yield what a container certainly writes below its mounts: the text, its place and the mount."""
    wording = container.search_text
    if "DIR=" not in wording and "_PATH=" not in wording and not _FLAG.search(wording):
        return
    for text, field, path in _find_values(container, _WRITTEN):
        mount = _find_mount(text, container)
        if mount is not None:
            items, index = as_list(container.data.get(field)), int(path[0])
            yield text, At(as_mapping(items[index]), "value") if path[1:] else At(items, index), mount


def find_written_volumes(container: Container) -> Iterator[tuple[str, str]]:
    """Yield the names of the volumes that the container writes checkpoints or results to, with the path there."""
    wording = container.search_text
    if "DIR=" not in wording and "_PATH=" not in wording and not _FLAG.search(wording):
        return
    for text, _, _ in _find_values(container):
        mount = _find_mount(text, container)
        if mount is not None and not _LOGS.search(text):
            yield as_text(mount.get("name")), text


def _find_mount(text: str, container: Container) -> Mapping[str, Plain] | None:
    """Return the mount that a path is in."""
    if not text.startswith("/") or _UNRESOLVED.search(text):
        return None
    path = normpath(text)
    mounts = container.volume_mounts
    parents = [mount for mount in mounts if f"{path}/".startswith(f"{normpath(as_text(mount.get('mountPath')))}/")]
    return max(parents, key=lambda mount: len(as_text(mount.get("mountPath"))), default=None)


def _resolve_target(text: str, container: Container) -> OutputTarget | None:
    """Return what a folder is for every pod of the cluster; None if it is inside the pod."""
    if _URI.match(text):
        return ("uri", text.rstrip("/"))
    nearest = _find_mount(text, container)
    if nearest is None or "subPathExpr" in nearest:
        return None
    rest = normpath(text)[len(normpath(as_text(nearest.get("mountPath")))) :].strip("/")
    inside = normpath("/".join(("", as_text(nearest.get("subPath")).strip("/"), rest)))
    for volume in container.pod.volumes:
        if as_text(volume.get("name")) != as_text(nearest.get("name")):
            continue
        if claim := as_text(get_path(volume, "persistentVolumeClaim", "claimName")):
            return ("claim", container.pod.manifest.namespace, claim, inside)
        if server := as_mapping(volume.get("nfs")):
            return ("nfs", as_text(server.get("server")), as_text(server.get("path")), inside)
    return None
