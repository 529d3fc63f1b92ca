"""Processes of torchrun and GPUs of a pod."""

from collections.abc import Iterator
from typing import NamedTuple

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.command_line import find_option_values, parse_command
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Container, Manifest, Role
from jobgen.model.data import Node, location_of, value_of
from jobgen.model.finding import pluralize
from jobgen.model.quantity import parse_digits

# The fields of the kinds that set it.
_FIELDS = (
    ("nprocPerNode",),
    ("elasticPolicy", "nProcPerNode"),
    ("torchrunConfig", "procPerNode"),
    ("trainer", "numProcPerNode"),
)


@rule("job", WARNING, kinds=("PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
def nproc_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`--nproc-per-node`, or its field, with a number other than the number of GPUs of the pod.

    torchrun starts that many processes in every pod, and each uses the GPU of its local rank. With more processes than
    GPUs, a program that uses CUDA fails (`invalid device ordinal`), and one that trains on the CPU does not. It is an
    error if the command names NCCL, such as `--backend=nccl`: NCCL refuses two processes on one GPU. With fewer
    processes, some GPUs are never used.

    Use the number of GPUs, or `gpu`.
    """
    mismatches: dict[object, _Mismatch] = {}
    for node, count, role, main in _list_counts(manifest):
        if count != main.gpus:
            # Roles that get the number from one line have one fault.
            key = (location_of(node) or id(node), count)
            roles = mismatches.setdefault(key, _Mismatch(node, count, {})).roles
            roles[role.title] = main
    yield from map(_report, mismatches.values())


class _Mismatch(NamedTuple):
    """A number of processes, and the containers with another number of GPUs, by role."""

    node: Node
    processes: int
    roles: dict[str, Container]


def _list_counts(manifest: Manifest) -> Iterator[tuple[Node, int, Role, Container]]:
    """Yield each number of processes with a role that has GPUs; the command line takes precedence over the field."""
    trained = [(role, main) for role in manifest.roles if (main := role.pod.main_container) and main.gpus]
    found = [(node, count, role, main) for role, main in trained for node, count in _find_in_command(main)]
    yield from found
    for path in () if found else _FIELDS:
        node = get_path(manifest.spec, *path)
        count = parse_digits(str(value_of(node))) if node is not None else None
        # Another rule reports that no process is started.
        for role, main in trained if count else ():
            yield node, count or 0, role, main


def _find_in_command(main: Container) -> Iterator[tuple[Node, int]]:
    if "nproc" in main.search_text:
        for word in find_option_values(parse_command(main.command_line), "nproc-per-node"):
            count = parse_digits(word.text)
            if count is not None:
                yield word.node, count


def _report(mismatch: _Mismatch) -> Violation:
    node, count, roles = mismatch
    counts = ((name, pluralize(main.gpus, "GPU")) for name, main in roles.items())
    has = " and ".join(f"{'a pod of ' * ('`' in name)}{name} has {gpus}" for name, gpus in counts)
    above = [main for main in roles.values() if count > main.gpus]
    devices = tuple((main.device_node, "") for main in roles.values())
    if above:
        message = f"{count} processes per pod, but {has}; use the number of GPUs"
        return Violation(node, message, devices, severity=ERROR if any(map(_names_nccl, above)) else None)
    message = f"{count} process{'es' * (count != 1)} per pod leave GPUs idle: {has}; use the number of GPUs"
    return Violation(node, message, devices)


def _names_nccl(main: Container) -> bool:
    """Return True if an argument, or the value of an option, is `nccl`."""
    return any(word.text.rpartition("=")[2] == "nccl" for word in parse_command(main.command_line))
