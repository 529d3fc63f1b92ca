"""Processes that torchrun starts in a pod, and the GPUs it has."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.command_line import find_option_values, parse_command
from jobgen.k8s.objects import Container, Manifest, get_path
from jobgen.model.data import Data, value_of

# Where the kinds say it themselves.
_SAID = (
    ("nprocPerNode",),
    ("elasticPolicy", "nProcPerNode"),
    ("torchrunConfig", "procPerNode"),
    ("trainer", "numProcPerNode"),
)


@rule("job", WARNING, kinds=("PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
def nproc_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`--nproc-per-node` or its field with another number than the pod has GPUs.

    torchrun starts so many processes in every pod, and each takes the GPU of its local rank: with more there is none
    for some (`invalid device ordinal`), with fewer some are held and never used. Write their number, or `gpu`.
    """
    told = False
    for role in manifest.roles:
        main = role.pod.main_container
        if main and main.gpus:
            for node, count in _in_command(main):
                told = True
                yield from _compared(node, count, main.gpus, role.replica_type)
    # What is said on the command line goes before the field.
    for path in () if told else _SAID:
        node = get_path(manifest.spec, *path)
        for role in manifest.roles if node is not None else ():
            if role.pod.main_container and role.pod.main_container.gpus and str(value_of(node)).isdigit():
                yield from _compared(node, int(str(value_of(node))), role.pod.main_container.gpus, role.replica_type)
                return


def _in_command(main: Container) -> Iterator[tuple[Data, int]]:
    if "nproc" in main.search_text:
        for word in find_option_values(parse_command(main.command_line), "nproc-per-node"):
            if word.text.isdigit():
                yield word.node, int(word.text)


def _compared(node: Data, count: int, gpus: int, role: str) -> Iterator[Violation]:
    if count > gpus:
        yield Violation(node, f"{count} processes a pod, and a pod of `{role}` holds {gpus} GPU{'s' * (gpus != 1)}")
    elif count < gpus:
        yield Violation(
            node, f"{count} process{'es' * (count != 1)} a pod; of the {gpus} GPUs of `{role}` some stay idle"
        )
