"""torchtitan and PyTorch Lightning: degrees of parallelism, devices and nodes against the processes and pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from jobgen.features.launch.options import (
    Arguments,
    Invariant,
    Number,
    NumbersInFile,
    as_number,
    compared_values,
    find_faults,
    get_value,
    read_arguments,
    read_config,
)
from jobgen.features.launch.values import Fault, Pods, Program, Word, World
from jobgen.repo.shipped import read_data

DEGREES = {
    "replicate": "data_parallel_replicate_degree",
    "shard": "data_parallel_shard_degree",
    "cp": "context_parallel_degree",
    "tp": "tensor_parallel_degree",
    "pp": "pipeline_parallel_degree",
    "ep": "expert_parallel_degree",
}
_DEFAULTS = {"replicate": 1, "shard": -1, "cp": 1, "tp": 1, "pp": 1, "ep": 1}
_DEGREE_OPTIONS = " ".join(f"parallelism.{name}" for name in DEGREES.values())
_NAMES = "dp_replicate({replicate}) * dp_shard({shard}) * cp({cp}) * tp({tp}) * pp({pp})"
_DEGREES = (
    Invariant(
        lambda least: least >= 1,
        "a degree of parallelism is {least} (torchtitan: `Parallelism degree should be >= 1, except for dp_shard`); "
        "use 1 or more",
        _DEGREE_OPTIONS,
    ),
    Invariant(
        lambda world, given, least: least < 1 or world % given == 0,
        "the product of the degrees of parallelism is {given}, which does not divide the {world} processes of this job "
        "(torchtitan: `Invalid parallel dims: … != WORLD_SIZE({world})`); use degrees whose product divides {world}",
        _DEGREE_OPTIONS,
    ),
    Invariant(
        lambda world, given, total, _shard, least: least < 1 or world % given or total == world,
        "the degrees of parallelism are not those of {world} processes (torchtitan: `Invalid parallel dims: "
        f"{_NAMES} != WORLD_SIZE({{world}})`); write `--parallelism.data_parallel_shard_degree=-1`, which is the rest",
        _DEGREE_OPTIONS,
    ),
    Invariant(
        lambda world, total, ep, region: total != world or ep < 1 or region % ep == 0,
        "`--parallelism.expert_parallel_degree` {ep} does not divide the {region} ranks that shard the experts "
        "(torchtitan: `expert_parallel_degree ({ep}) must divide dp_shard * cp * tp ({region})`); use a divisor of "
        "{region}",
        "parallelism.expert_parallel_degree",
    ),
)


def check_torchtitan(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the degrees of torchtitan's command line and its TOML file with the processes of the launcher."""
    if not is_titan(program):
        return
    options = read_arguments(program.words)
    numbers = read_degrees(program, options, world)
    path = options.text("job.config_file")
    config = read_config(program, path)
    keys = {short: f"parallelism.{long}" for short, long in DEGREES.items()}
    keys = {short: key for short, key in keys.items() if key not in options.words and get_value(config, key)}
    places = NumbersInFile(program, path, keys, is_whole=False) if path and keys else None
    for fault in find_faults(_DEGREES, numbers, options.words, program, pods):
        # The message is about all degrees, of which those of the command win.
        is_written = any(f"parallelism.{long}" in options.words for long in DEGREES.values())
        yield places.move(fault, keys) if places and not is_written else fault


def is_titan(program: Program) -> bool:
    """Return True if a program is torchtitan's, by its module or by its options."""
    return program.name.startswith("torchtitan.") or any(
        (word.text or "").startswith("--parallelism.") for word in program.words
    )


def read_degrees(program: Program, options: Arguments, world: World) -> dict[str, Number]:
    """Return the degrees; those that are not given have the defaults of the config, if it is known."""
    config = read_config(program, options.text("job.config_file"))
    known = _DEFAULTS if config is not None else None
    name = options.text("config")
    configs = read_data("launch.yaml")["torchtitan"]
    if name is not None and name in configs:
        known = {**_DEFAULTS, **configs[name]}
    degrees: dict[str, int | None] = {}
    for short, long in DEGREES.items():
        written = get_value(config, f"parallelism.{long}")
        default = known[short] if known and written is None else as_number(written)
        degrees[short] = options.number(f"parallelism.{long}", default)
    shard, size = degrees["shard"], world.size
    others = [degrees[short] for short in ("replicate", "cp", "tp", "pp")]
    least = min((degree for degree in (*others, degrees["ep"]) if degree is not None), default=1)
    given = prod(degree for degree in (*others, shard if shard and shard > 0 else None) if degree)
    rest = [degree for degree in others if degree is not None]
    if shard == -1 and len(rest) == len(others) and size and least > 0 and size % prod(rest) == 0:
        shard = size // prod(rest)
    total = prod(rest) * shard if len(rest) == len(others) and shard and shard > 0 else None
    cp, tp = degrees["cp"], degrees["tp"]
    region = shard * cp * tp if shard and shard > 0 and cp and tp else None
    return {**degrees, "shard": shard, "world": size, "least": least, "given": given, "total": total, "region": region}


_DEVICE_OPTIONS = "trainer.devices trainer.num_nodes"
_DEVICES = (
    Invariant(
        lambda devices, gpus: devices <= gpus,
        "`--trainer.devices` is {devices}, and a pod has {gpus} GPUs (Lightning: `You requested gpu: … But your "
        "machine only has: …`); use {gpus}, or `-1` for all",
        _DEVICE_OPTIONS,
    ),
    Invariant(
        lambda world, devices, nodes, gpus: devices > gpus or devices * nodes == world,
        "`devices` x `num_nodes` is {devices} x {nodes}, and the launcher starts {world} processes (Lightning: `You "
        "set devices={devices} and num_nodes={nodes} in Lightning, but the product ({devices} * {nodes}) does not "
        "match the world size ({world}).`); use the GPUs of a pod and the number of pods",
        "trainer.num_nodes trainer.devices",
    ),
    Invariant(
        lambda _alone, nodes, count, devices, gpus: devices > gpus or nodes <= count,
        "`--trainer.num_nodes` is {nodes}, and the job has {count} pods, so that Lightning waits for nodes that do "
        "not come; use {count}",
        "trainer.num_nodes",
    ),
    Invariant(
        lambda _alone, nodes, count, devices, gpus: nodes > count or devices >= gpus,
        "`--trainer.devices` is {devices}, and a pod has {gpus} GPUs: the others have no process; use `-1` for all",
        "trainer.devices",
        is_error=False,
    ),
)


def check_lightning(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the trainer's devices and nodes, if the script is started by `LightningCLI` arguments."""
    if not any((word.text or word.prefix).startswith("--trainer.") for word in program.words):
        return
    values, words = _read_trainer(program)
    devices, nodes, accelerator = (values.get(name, _TRAINER_DEFAULTS[name]) for name in _TRAINER_DEFAULTS)
    if pods.gpus is None or not pods.gpus or accelerator not in ("auto", "gpu", "cuda"):
        return
    numbers = {
        "devices": _count_devices(devices, pods.gpus),
        "nodes": _to_int(nodes),
        "gpus": pods.gpus,
        "count": pods.count,
        "world": world.size,
        # Without a launcher, Lightning starts the processes of a pod itself.
        "alone": None if world.is_launched else True,
    }
    for fault in find_faults(_DEVICES, numbers, words, program, pods):
        yield fault._replace(related=compared_values(pods))


_TRAINER_DEFAULTS: Mapping[str, Any] = {"devices": "auto", "num_nodes": 1, "accelerator": "auto"}


def _read_trainer(program: Program) -> tuple[dict[str, Any], Mapping[str, Word]]:
    """Return the values of the trainer, of which the last wins, also among files; None: not known."""
    values: dict[str, Any] = {}
    options = read_arguments(program.words)
    seen = 0
    for at, word in enumerate(program.words):
        written = word.text or word.prefix
        name, equals, value = written.partition("=")
        if not equals and at + 1 < len(program.words):
            value = program.words[at + 1].text or ""
        if name in ("--config", "-c", "--trainer"):
            config = read_config(program, value)
            section = config if name == "--trainer" else get_value(config, "trainer")
            for key in _TRAINER_DEFAULTS:
                if config is None:
                    values[key] = None
                elif isinstance(section, Mapping) and key in section:
                    values[key] = section[key]
        elif name.startswith("--trainer.") and name[10:] in _TRAINER_DEFAULTS:
            seen += 1
            values[name[10:]] = value if word.text is not None and value else None
    if not options.is_closed:
        values = (
            {key: values.get(key) for key in _TRAINER_DEFAULTS}
            if not seen
            else values | {key: None for key in _TRAINER_DEFAULTS if key not in values}
        )
    return values, options.words


def _to_int(value: Any) -> int | None:
    try:
        return as_number(int(value) if isinstance(value, str) and len(value) < 10 else value)
    except ValueError:
        return None


def _count_devices(value: Any, gpus: int) -> int | None:
    """Return the number of devices that a value of `devices` means: a number, a list, `auto` or `-1`."""
    if value in ("auto", "-1", -1):
        return gpus
    if isinstance(value, str) and ("," in value or value.startswith("[")):
        listed = [each for each in value.strip("[]").split(",") if each.strip()]
        return len(listed) if listed else None
    if isinstance(value, list):
        return len(value)
    return _to_int(value)
