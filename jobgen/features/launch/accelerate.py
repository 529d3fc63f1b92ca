"""`accelerate launch`: its flags and its YAML file, which decide what it hands to torchrun or DeepSpeed.

`--num_processes` counts the processes of all machines. With one machine, accelerate leaves the number of nodes to
torchrun, which takes `PET_NNODES`. Source: accelerate 1.15, commands/launch.py and utils/launch.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.launch import torchrun
from jobgen.features.launch.hf_trainer import check_file
from jobgen.features.launch.options import (
    NumbersInFile,
    Options,
    check_unknown,
    get_value,
    make_syntax,
    read_config,
    read_options,
)
from jobgen.features.launch.torchrun import JOINED, Torchrun
from jobgen.features.launch.values import Fault, Pods, Program, Word, World, count_visible
from jobgen.model.finding import pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place, is_same

NAMES = frozenset(("accelerate", "accelerate-launch", "accelerate.commands.launch"))
SYNTAX = make_syntax("accelerate", stops=True)
_MODES = ("cpu", "multi_gpu", "tpu", "use_deepspeed", "use_fsdp")
_TYPES = {"DEEPSPEED": "use_deepspeed", "FSDP": "use_fsdp", "MEGATRON_LM": "use_megatron_lm", "XLA": "tpu"}
_COMMANDS = ("config", "env", "estimate-memory", "launch", "merge-weights", "test", "to-fsdp2", "tpu-config")
_STANDARD = "standard"
_PRECISIONS = ("no", "fp16", "bf16", "fp8")


class _Settings(NamedTuple):
    """What accelerate decides from its flags and its file."""

    modes: frozenset[str]
    processes: Word | None
    machines: Word | None
    rank: Word | None
    address: Word | None
    gpu_ids: str | None
    deepspeed_launcher: str
    has_file: bool
    has_file_rank: bool
    source: Place
    """Where the path of its file was written."""

    def name(self, option: str, word: Word) -> str:
        """Return an option as it is written: with dashes, or as a key of the file."""
        is_key = self.has_file and word.node is not None and is_same(word.node, self.source)
        return f"`{option}` of the config file" if is_key else f"`--{option}`"


def judge(program: Program, pods: Pods) -> tuple[list[Fault], World, tuple[Program, ...]]:
    """Return what fails, the world of the script, and the script."""
    words = program.words
    if program.name == "accelerate":
        if not words or words[0].text != "launch":
            return list(_check_command(words)), World(), ()
        words = words[1:]
    options = read_options(words, SYNTAX)
    if options.unknown is not None or not options.is_certain:
        return list(check_unknown(options, SYNTAX, "accelerate launch")), World(), ()
    faults = list(_check_flags(program, options))
    path = options.values.get("config_file")
    config = None if path is None else read_config(program, path.text)
    scripts = torchrun.list_scripts(Torchrun(program, options, None, None, None))
    if faults or (path is not None and config is None):
        return faults, World(), scripts
    settings = _read(options, config, path)
    if config is not None and path is not None and "mixed_precision" not in options.values:
        value = config.get("mixed_precision")
        # YAML reads `no` as false.
        text = None if value is None or isinstance(value, bool) else str(value).lower()
        faults += _check_precision(Word(text, path.node), "Unknown mixed_precision mode")
    faults += _check_settings(program, settings, pods)
    if faults:
        return faults, World(), scripts
    faults, world = _judge_settings(program, settings, pods)
    if config is not None and path is not None and path.text:
        inner = {key: value for key, value in config.items() if key not in options.values}
        faults = [_locate(fault, program, path, inner) for fault in faults]
    if not faults and "use_deepspeed" in settings.modes:
        faults += check_file(_find_deepspeed(options, config, path), program._replace(words=()), world, pods)
    return faults, world, scripts


_KEYS = {
    "nnodes": "num_machines",
    "node_rank": "machine_rank",
    "nproc_per_node": "num_processes",
    "rdzv_endpoint": "main_process_ip",
}
"""The keys of the config file, by the options of torchrun that they stand for."""


def _locate(fault: Fault, program: Program, path: Word, config: Mapping[str, Any]) -> Fault:
    """Return a fault of a value of the config file at its line there."""
    key = _KEYS.get(fault.subject)
    if key is None or key not in config or not is_same(fault.node, path.node):
        return fault
    return NumbersInFile(program, path.text or "", {key: key}).move(fault._replace(related=()), (key,))


def _check_command(words: Sequence[Word]) -> Iterator[Fault]:
    """Report a script where `launch` is missing."""
    text = words[0].text if words else None
    if text is not None and text.endswith(".py"):
        error = f"invalid choice: '{text}'"
        message = f"`accelerate` takes `{text}` for one of its commands (`{error}`); write `launch` before it"
        yield Fault(words[0].node, message)
    elif text is not None and text not in _COMMANDS and text[:1] != "-":
        # Imported late: most commands are right.
        from jobgen.model.meant import find_meant

        if meant := find_meant(text, _COMMANDS):
            message = f"`{text}` is not a command of accelerate (`invalid choice: '{text}'`); did you mean `{meant}`?"
            yield Fault(words[0].node, message)


def _check_flags(program: Program, options: Options) -> Iterator[Fault]:
    given = [name for name in _MODES if name in options.values]
    if len(given) > 1:
        shown = " and ".join(f"`--{name}`" for name in given)
        error = "You can only use one of `--cpu`, `--multi_gpu`, `--tpu`, `--use_deepspeed`, `--use_fsdp` at a time."
        yield Fault(options.values[given[1]].node, f"{shown} cannot be combined (accelerate: {error}); remove one")
    for name in ("num_processes", "num_machines", "machine_rank"):
        word = options.values.get(name)
        if word is not None and word.text is not None and word.number is None:
            error = f"argument --{name}: invalid int value: '{word.text}'"
            message = (
                f"`{word.text}` is not a number for `--{name}`" if word.text else f"`--{name}` gets an empty value"
            )
            yield Fault(word.node, f"{message} (accelerate: `{error}`); write an integer")
    yield from _check_precision(options.values.get("mixed_precision"), "argument --mixed_precision: invalid choice")
    yield from _check_number(options, options.values.get("num_processes"), "multi_gpu" in options.values)


def _check_precision(word: Word | None, error: str) -> Iterator[Fault]:
    """Check the precision, of which all releases have the same choices, and the first ones not `fp8`."""
    if word is not None and word.text is not None and word.text not in _PRECISIONS:
        known = ", ".join(f"`{each}`" for each in _PRECISIONS)
        message = f"`{word.text}` is not a mixed precision (accelerate: `{error}: '{word.text}'`)"
        yield Fault(word.node, f"{message}; use one of {known}")


def _check_number(_options: Options, processes: Word | None, is_multi: bool) -> Iterator[Fault]:
    if is_multi and processes is not None and processes.number is not None and processes.number < 2:
        error = "You need to use at least 2 processes to use `--multi_gpu`."
        message = f"`--multi_gpu` with `--num_processes {processes.text}` is refused (accelerate: {error})"
        yield Fault(processes.node, f"{message}; use the number of GPUs of all pods, or remove `--multi_gpu`")


def _read(options: Options, config: Mapping[str, Any] | None, path: Word | None) -> _Settings:
    flags = options.values
    modes = {name for name in (*_MODES, "use_megatron_lm") if name in flags}
    file = config or {}
    node = path.node if path else None

    def find(name: str) -> Word | None:
        if name in flags:
            return flags[name]
        value = file.get(name)
        return None if value is None else Word(str(value), node)

    if config is not None and not modes - {"cpu"}:
        kind = str(file.get("distributed_type", "NO"))
        modes |= (
            {_TYPES[kind]}
            if kind in _TYPES
            else {"multi_gpu"}
            if kind.startswith("MULTI_") and kind != "MULTI_CPU"
            else set()
        )
    machines = find("num_machines") or (Word("1", node) if config is not None else None)
    rank = find("machine_rank") or (Word("0", node) if config is not None else None)
    inner = file.get("deepspeed_config")
    launcher = flags.get("deepspeed_multinode_launcher")
    written = inner.get("deepspeed_multinode_launcher", "pdsh") if isinstance(inner, Mapping) else "pdsh"
    gpu_ids = find("gpu_ids")
    return _Settings(
        frozenset(modes),
        find("num_processes"),
        machines,
        rank,
        find("main_process_ip"),
        gpu_ids.text if gpu_ids else "all",
        str(launcher.text if launcher else written),
        config is not None,
        config is not None and "machine_rank" not in flags,
        node,
    )


def _find_deepspeed(options: Options, config: Mapping[str, Any] | None, path: Word | None) -> Word | None:
    """Return the path of the config of DeepSpeed, which the file of accelerate can name."""
    if "deepspeed_config_file" in options.values:
        return options.values["deepspeed_config_file"]
    written = get_value(config, "deepspeed_config.deepspeed_config_file")
    return Word(written, path.node) if isinstance(written, str) and path is not None else None


def _check_settings(program: Program, settings: _Settings, pods: Pods) -> Iterator[Fault]:
    processes = settings.processes
    if settings.has_file and processes is not None and processes.number == -1:
        error = "You need to manually pass in `--num_processes` using this config yaml."
        yield Fault(
            processes.node,
            f"`num_processes: -1` in the config file (accelerate: {error}); write the number of GPUs of all pods",
        )
    ids = settings.gpu_ids
    one_machine = settings.machines is not None and (settings.machines.number or 1) <= 1
    if settings.has_file and ids and ids != "all" and "," not in ids and "multi_gpu" in settings.modes and one_machine:
        error = "Less than two GPU ids were configured and tried to run on multiple GPUs."
        yield Fault(
            program.node, f"one GPU in `gpu_ids`, and several processes (accelerate: `{error}`); write `gpu_ids: all`"
        )


def _judge_settings(program: Program, settings: _Settings, pods: Pods) -> tuple[list[Fault], World]:
    env = dict(program.env)
    if settings.gpu_ids not in (None, "all"):
        env["CUDA_VISIBLE_DEVICES"] = Word(settings.gpu_ids, program.node)
    program = program._replace(env=env)
    gpus = count_visible(program, pods)
    processes = settings.processes
    if processes is None:
        processes = Word(None if gpus is None else str(gpus), program.node)
    machines = settings.machines or Word("1", program.node)
    total, count = processes.number, machines.number
    if "cpu" in settings.modes:
        return _judge_cpu(program, pods)
    if total is None or count is None or "tpu" in settings.modes:
        return [], World()
    modes = settings.modes
    if not settings.has_file and not modes and total > 1:
        if pods.gpus is None:
            return [], World()
        modes = frozenset(("multi_gpu",)) if pods.gpus > 1 else modes
    if not modes:
        return list(_check_alone(program, processes, pods)), World(1, 1, 1)
    if "use_deepspeed" in modes and count > 1 and settings.deepspeed_launcher != _STANDARD:
        # DeepSpeed starts the processes by SSH, with a hostfile.
        return [], World(count, total // count, total // count * count)
    return _judge_processes(program, processes, machines, settings, pods)


def _judge_cpu(program: Program, pods: Pods) -> tuple[list[Fault], World]:
    """Judge `--cpu`, which starts one process in each pod; it finds the others by `WORLD_SIZE`, and not by `PET_*`."""
    size = program.variable("WORLD_SIZE")
    if pods.kind not in JOINED or pods.count is None or pods.count < 2 or size is not None:
        nodes = size.number if size else None
        return [], World(nodes, 1, nodes)
    message = f"`accelerate launch --cpu` starts one process in each of {pods.count} pods, which train alone"
    advice = "start the script with `torchrun`, and set `ACCELERATE_USE_CPU: true`"
    return [Fault(program.node, f"{message}; {advice}", False, (), pods.related, torchrun.NODES_RULE)], World(1, 1, 1)


def _check_alone(program: Program, processes: Word, pods: Pods) -> Iterator[Fault]:
    """Check a launch of one process without torchrun."""
    if pods.kind in torchrun.TRAINING:
        yield from torchrun.check_other_operator(program, pods, "pytorch", "PyTorchJob")
    elif pods.kind in JOINED and pods.count is not None and pods.count > 1:
        message = f"accelerate starts one process in each of {pods.count} pods, which train alone"
        advice = "write `--multi_gpu`, or a config file with `distributed_type: MULTI_GPU`"
        yield Fault(
            processes.node,
            f"{message}; {advice if pods.gpus != 0 else 'write `--cpu`, because they have no GPU'}",
            False,
            (),
            pods.related,
            torchrun.NODES_RULE,
        )
    elif processes.number == 1:
        yield from torchrun.compare_processes(processes, program, pods)


def _judge_processes(
    program: Program, processes: Word, machines: Word, settings: _Settings, pods: Pods
) -> tuple[list[Fault], World]:
    total, count = processes.number or 0, machines.number or 1
    values: dict[str, Word] = {"nproc_per_node": Word(str(total // max(count, 1)), processes.node)}
    faults: list[Fault] = []
    if count > 1:
        if settings.rank is None:
            error = "int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"
            message = f"`--num_machines {count}` without `--machine_rank` (accelerate: `{error}`)"
            # Without an address, the ranks would meet at `None`.
            others = " --main_process_ip $(MASTER_ADDR) --main_process_port $(MASTER_PORT)"
            advice = f"write `--machine_rank $(RANK){others if settings.address is None else ''}`"
            faults.append(Fault(machines.node, f"{message}; {advice}"))
            return faults, World()
        address = settings.address
        values["nnodes"] = Word(str(count), machines.node)
        values["node_rank"] = settings.rank
        values["rdzv_endpoint"] = Word(
            "None:" if address is None else None if address.text is None else f"{address.text}:0",
            (address or machines).node,
        )
    option = settings.name("num_machines", machines)
    each = total // max(count, 1)
    run = Torchrun(program, Options(values, {}, ()), None, None, each, "accelerate", option, settings.has_file_rank)
    nodes = torchrun.parse_nodes(run.find("nnodes", "1:1").text)
    run = run._replace(least=nodes[0] if nodes else None, most=nodes[1] if nodes else None)
    if count > 1 and total < count:
        needed = f"{pluralize(count, 'machine')} need at least as many"
        faults.append(
            Fault(
                processes.node,
                f"{settings.name('num_processes', processes)} is {total} for all machines, and {needed}; "
                "use the number of GPUs of all pods",
            )
        )
        return faults, World()
    faults += torchrun.check_nodes(run, pods)
    if not faults:
        faults += _check_processes(run, processes, settings.name("num_processes", processes), count, pods)
    world = run.world
    if pods.count is not None and pods.kind in JOINED:
        world = World(pods.count, run.processes, pods.count * (run.processes or 0), world.nodes)
    return faults, world


def _check_processes(run: Torchrun, processes: Word, option: str, machines: int, pods: Pods) -> Iterator[Fault]:
    """Compare the processes of each pod with its GPUs: they are those of all machines, divided."""
    value = run.find("nproc_per_node")
    start = advice = ""
    if machines > 1 and pods.gpus:
        start = f"{option} is {processes.text} for {machines} machines"
        advice = f"use {machines * pods.gpus}, the GPUs of all pods"
    yield from torchrun.compare_processes(value, run.program, pods, start, advice)
