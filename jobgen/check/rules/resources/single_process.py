"""One process for several GPUs."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.command_line import parse_command
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Role
from jobgen.k8s.shell_script import find_script, split_pipelines, split_words
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern

_PYTHON = lazy_pattern(r"(?:\S*/)?python[\d.]*")
# Launchers, programs and options that use several GPUs, or name a number of processes or devices.
_USES_SEVERAL = lazy_pattern(
    r"""(?ix) torchrun | torch\.distributed | torchx | accelerate | deepspeed | horovod | mpi(?:run|exec) | colossalai
    | \bray\b | lightning | litgpt | nemo | megatron | jax | flax | tensorflow | keras | vllm | sglang | tgi | trtllm
    | triton | llama | axolotl | swift | composer | fabric | ultralytics | yolo | spawn | launch | multi | parallel
    | distribut | ddp | fsdp | zero | strategy | device | n?gpus? | nproc | num[-_]?proc | world[-_]?size
    | workers?[-_]per | \$\{?(?:PET_|NPROC|WORLD_SIZE|NUM_GPUS)"""
)


@rule("role", INFO, kinds=("PyTorchJob", "PyTorchTrainingJob"))
def single_process(role: Role) -> Iterator[Violation]:
    """A PyTorch pod with several GPUs whose command is `python train.py`, without a launcher.

    PyTorch uses one GPU for each process. Unless the script starts processes itself, as Lightning does, or splits the
    model, the other GPUs stay idle.

    Start the script with `torchrun --nproc-per-node=gpu`, or request one GPU for each pod.
    """
    main = role.pod.main_container
    if main is None or main.gpus < 2 or not role.count or main.init:
        return
    torchrun = (get_path(role.manifest.spec, *path) for path in (("torchrunConfig", "enabled"), ("elastic", "enabled")))
    if any(value_of(node) is True for node in torchrun):
        return
    # The image is no evidence: most images of PyTorch have names such as `torch-distributed`.
    command = "\n".join(map(as_text, main.command_line))
    variables = "\n".join(f"{name}={as_text(entry.get('value'))}" for name, entry in main.env if name != "NCCL_DEBUG")
    found = None if _USES_SEVERAL.search(f"{command}\n{variables}") else _find_script(main.command_line, role)
    if found:
        node, script = found
        message = f"`python {script}` is one process, and the pod has {main.gpus} GPUs"
        advice = f"unless `{script}` uses all of them, start it with `torchrun --nproc-per-node={main.gpus}`"
        yield Violation(node, f"{message}; {advice}", ((main.device_node, ""),))


def _find_script(words: list[Node], role: Role) -> tuple[Node, str] | None:
    """Return the item with the only call of Python in a command line, and the file that it runs."""
    main = role.pod.main_container
    script = find_script(main) if main else None
    if script is None:
        arguments = [argument.text for argument in parse_command(words)]
        file = _find_file(arguments)
        return (words[0], file) if file else None
    calls = [split_words(command) for each in split_pipelines(script.text) for command in each.commands]
    files = [file for call in calls if (file := _find_file(call))]
    return (script.node, files[-1]) if files and ".sh" not in script.text else None


def _find_file(words: tuple[str, ...] | list[str]) -> str:
    """Return the file that a call of Python runs; "" if it is no such call."""
    if not words or not _PYTHON.fullmatch(words[0]):
        return ""
    options = [word for word in words[1:] if word not in ("-u", "-O", "-B")]
    return options[0] if options and options[0].endswith(".py") else ""
