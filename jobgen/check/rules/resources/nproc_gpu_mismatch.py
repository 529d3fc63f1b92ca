"""Processes of torchrun and GPUs of a pod."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.command_line import find_option_values, parse_command
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.data import Node, value_of
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
    GPUs some fail (`invalid device ordinal`); with fewer, some GPUs are never used.

    Use the number of GPUs, or `gpu`.
    """
    is_set = False
    for role in manifest.roles:
        main = role.pod.main_container
        if main and main.gpus:
            for node, count in _find_in_command(main):
                is_set = True
                yield from _compare(node, count, main.gpus, role.replica_type)
    # The command line takes precedence over the field.
    for path in () if is_set else _FIELDS:
        node = get_path(manifest.spec, *path)
        for role in manifest.roles if node is not None else ():
            declared = parse_digits(str(value_of(node)))
            if role.pod.main_container and role.pod.main_container.gpus and declared is not None:
                yield from _compare(node, declared, role.pod.main_container.gpus, role.replica_type)
                return


def _find_in_command(main: Container) -> Iterator[tuple[Node, int]]:
    if "nproc" in main.search_text:
        for word in find_option_values(parse_command(main.command_line), "nproc-per-node"):
            count = parse_digits(word.text)
            if count is not None:
                yield word.node, count


def _compare(node: Node, count: int, gpus: int, role: str) -> Iterator[Violation]:
    if count > gpus:
        message = f"{count} processes per pod, but a pod of `{role}` has {pluralize(gpus, 'GPU')}"
        yield Violation(node, f"{message}; use the number of GPUs")
    elif count < gpus:
        message = f"{count} process{'es' * (count != 1)} per pod leave GPUs idle: a pod of `{role}` has {gpus}"
        yield Violation(node, f"{message}; use the number of GPUs")
