"""Invalid numbers of processes."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_text, get_path
from jobgen.k8s.objects import Manifest, Role
from jobgen.model.data import Node

_WORDS = ("auto", "cpu", "gpu", "xpu")


@rule("job", ERROR, kinds=("PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
def unknown_nproc_per_node(manifest: Manifest) -> Iterator[Violation]:
    """A number of processes per node that torchrun does not accept.

    The CRD accepts any text, or any number, and passes it on. torchrun accepts `auto`, `cpu`, `gpu`, `xpu` or a
    positive integer, and exits at once otherwise; so does `mpirun` with a negative number of slots. Other words are a
    warning, because newer versions of torchrun can know them. So is a `numProcPerNode` below 1 of a TrainJob whose
    runtime is not known to start these programs: releases of Trainer after 2.3 reject it.

    Use one of these values.
    """
    if manifest.kind_name == "TrainJob":
        yield from _check_train_job(manifest)
        return
    for node in (manifest.spec.get("nprocPerNode"), get_path(manifest.spec, "torchrunConfig", "procPerNode")):
        written = as_text(node)
        if not written or written in _WORDS or (written.isdecimal() and int(written) > 0):
            continue
        numeric = written.lstrip("-+").replace(".", "", 1).isdecimal()
        message = f"torchrun accepts `auto`, `cpu`, `gpu` or a positive integer, not `{written}`"
        yield Violation(node, message, severity=None if numeric else WARNING)


def _check_train_job(manifest: Manifest) -> Iterator[Violation]:
    node = get_path(manifest.spec, "trainer", "numProcPerNode")
    number = as_integer(node)
    if number is None or number > 0 or manifest.kind is None:
        return
    runtime = manifest.kind.requirements.runtimes.get(as_text(get_path(manifest.spec, "runtimeRef", "name")))
    own = as_text(get_path(manifest.spec, "runtimeRef", "kind")) == "TrainingRuntime"
    program = {"torch": "torchrun", "mpi": "mpirun"}.get(runtime.policy if runtime and not own else "", "")
    # A command of the job's own may start something else.
    written = " ".join(as_text(word) for role in manifest.roles for word in _list_command(role))
    is_certain = bool(program) and (not written or program in written)
    message = f"`numProcPerNode` must be at least 1, got `{number}`"
    effect = f"; `{program}` exits at once" if is_certain else ""
    yield Violation(node, f"{message}{effect}; use the number of GPUs", severity=None if is_certain else WARNING)


def _list_command(role: Role) -> list[Node]:
    return role.pod.main_container.command_line if role.pod.main_container else []
