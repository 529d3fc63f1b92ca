"""Parse command lines, written as lists of arguments or as shell scripts, and find options and calls of mpirun."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import normpath

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.k8s.shell_script import MAX_TEXT
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple


class Argument(NamedTuple):
    """An argument of a command line, and the item of `command` or `args` that contains it."""

    text: str
    node: Node


_PROCESS_OPTIONS = frozenset(("np", "n", "c", "num-proc"))
# With these options the number of processes is not limited by the slots in the operator's hostfile.
_OVERRIDING_OPTIONS = frozenset(
    ("oversubscribe", "H", "host", "hosts", "f", "app", "min-np", "max-np", "host-discovery-script")
)
_HOSTFILE_OPTIONS = frozenset(("hostfile", "machinefile", "default-hostfile"))
# How many values the options of mpirun and similar launchers take.
_VALUE_COUNTS = {
    **dict.fromkeys(("mca", "gmca", "omca", "prtemca", "pmixmca", "env", "genv"), 2),
    **dict.fromkeys(("x", "bind-to", "map-by", "rank-by", "prefix", "wdir", "wd", "timeout", "iface", "output"), 1),
    **dict.fromkeys(("N", "npernode", "npersocket", "ppn", "perhost", "genvlist", "envlist", "tune", "path"), 1),
    **dict.fromkeys(("rf", "rankfile", "display", "hca-idx", "launcher", "rmk", "ssh-port", "p"), 1),
    **dict.fromkeys(_PROCESS_OPTIONS | _HOSTFILE_OPTIONS | _OVERRIDING_OPTIONS - {"oversubscribe"}, 1),
}
_LAUNCHERS = frozenset(("mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.hydra", "horovodrun", "orterun", "prterun"))
MPI_WORDS = ("mpirun", "mpiexec", "horovodrun", "orterun", "prterun")
"""A command line with a call of mpirun has one of these."""


class MpiLaunch(NamedTuple):
    """A call of mpirun: the argument with the number of processes, and whether the hostfile's slots limit it."""

    processes: Argument | None
    limited_by_hostfile: bool


def parse_command(command_line: Iterable[Node]) -> list[Argument]:
    """Return the arguments of a command line; scripts in it are split as a shell splits them."""
    arguments: list[Argument] = []
    for node in command_line:
        text = value_of(node)
        if not isinstance(text, str):
            continue
        parts = _split_script(text) if has_any(text, " \n\t") else (text,)
        arguments += [Argument(part, node) for part in parts]
    return arguments


@lru_cache(maxsize=4096)
def _split_script(script: str) -> tuple[str, ...]:
    if len(script) > MAX_TEXT:
        return ()
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return tuple(lexer)
    except ValueError:  # an unclosed quote, for example in a here-document
        return ()


def find_option_values(arguments: Sequence[Argument], option: str) -> Iterator[Argument]:
    """Yield the values of a long option; `-` and `_` in its name are the same."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.text.partition("=")
        if not name.startswith("--") or name[2:].replace("_", "-") != option:
            continue
        if equals:
            yield Argument(value, argument.node)
        elif index + 1 < len(arguments):
            yield arguments[index + 1]


def split_mpi_launch(words: Sequence[Node]) -> tuple[list[Node], list[Node]] | None:
    """Return the options of mpirun and the program that it starts; None if the command is not a call of mpirun."""
    if not words or str(value_of(words[0])).rpartition("/")[2] not in _LAUNCHERS:
        return None
    index = 1
    while index < len(words) and str(value_of(words[index])).startswith("-"):
        name, equals, _ = str(value_of(words[index])).lstrip("-").partition("=")
        index += 1 if equals else 1 + _VALUE_COUNTS.get(name, 0)
    return list(words[1:index]), list(words[index:])


def find_mpi_launches(arguments: Sequence[Argument]) -> Iterator[MpiLaunch]:
    """Yield the calls of mpirun in a command line."""
    for index, argument in enumerate(arguments):
        if argument.text.rpartition("/")[2] in _LAUNCHERS:
            yield _parse_launch(arguments[index + 1 :])


def _parse_launch(arguments: Sequence[Argument]) -> MpiLaunch:
    processes, limited, index = None, True, 0
    while index < len(arguments) and arguments[index].text.startswith("-"):
        option = arguments[index]
        name, equals, value = option.text.lstrip("-").partition("=")
        after = arguments[index + 1] if index + 1 < len(arguments) else None
        index += 1
        if name in _PROCESS_OPTIONS:
            processes = Argument(value, option.node) if equals else after
        if name in _OVERRIDING_OPTIONS or (name == "map-by" and after and "oversubscribe" in after.text.lower()):
            limited = False
        if name in _HOSTFILE_OPTIONS:
            file = value if equals else after.text if after else ""
            limited = limited and file == "/etc/mpi/hostfile"
        if name in ("mca", "omca") and after and "oversubscribe" in after.text:
            limited = False
        index += 0 if equals else _VALUE_COUNTS.get(name, 0)
    # `:` separates the parts of an MPMD launch, each with processes of its own.
    several = any(argument.text == ":" for argument in arguments[index:])
    return MpiLaunch(None if several else processes, limited)


# Find the folders outside of the pod that a job writes to, by the options and variables that name them.

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


def find_output_mounts(container: Container) -> Iterator[tuple[str, Node, Mapping[str, Node]]]:
    """Yield what a container certainly writes below its mounts: the text, its node and the mount."""
    wording = container.search_text
    if "DIR=" not in wording and "_PATH=" not in wording and not _FLAG.search(wording):
        return
    for text, field, path in _find_values(container, _WRITTEN):
        mount = _find_mount(text, container)
        if mount is not None:
            entry = as_list(container.data.get(field))[int(path[0])]
            yield text, get_path(entry, *map(str, path[1:])), mount


def find_written_volumes(container: Container) -> Iterator[tuple[str, str]]:
    """Yield the names of the volumes that the container writes checkpoints or results to, with the path there."""
    wording = container.search_text
    if "DIR=" not in wording and "_PATH=" not in wording and not _FLAG.search(wording):
        return
    for text, _, _ in _find_values(container):
        mount = _find_mount(text, container)
        if mount is not None and not _LOGS.search(text):
            yield as_text(mount.get("name")), text


def _find_mount(text: str, container: Container) -> Mapping[str, Node] | None:
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
