"""PyTorch Lightning: devices and nodes of `LightningCLI` against the processes and pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.launch.arguments import Invariant, compared_values, find_faults, read_arguments
from jobgen.features.launch.config_files import as_number, get_value, read_config
from jobgen.features.launch.values import Fault, Pods, Program, Word, World

_AT = "trainer.devices trainer.num_nodes"
_TABLE = (
    Invariant(
        "devices gpus",
        lambda devices, gpus: devices <= gpus,
        "`--trainer.devices` is {devices}, and a pod has {gpus} GPUs (Lightning: `You requested gpu: … But your "
        "machine only has: …`); use {gpus}, or `-1` for all",
        _AT,
    ),
    Invariant(
        "world devices nodes gpus",
        lambda world, devices, nodes, gpus: devices > gpus or devices * nodes == world,
        "`devices` x `num_nodes` is {devices} x {nodes}, and the launcher starts {world} processes (Lightning: `You "
        "set devices={devices} and num_nodes={nodes} in Lightning, but the product ({devices} * {nodes}) does not "
        "match the world size ({world}).`); use the GPUs of a pod and the number of pods",
        "trainer.num_nodes trainer.devices",
    ),
    Invariant(
        "alone nodes count devices gpus",
        lambda _alone, nodes, count, devices, gpus: devices > gpus or nodes <= count,
        "`--trainer.num_nodes` is {nodes}, and the job has {count} pods, so that Lightning waits for nodes that do "
        "not come; use {count}",
        "trainer.num_nodes",
    ),
    Invariant(
        "alone nodes count devices gpus",
        lambda _alone, nodes, count, devices, gpus: nodes > count or devices >= gpus,
        "`--trainer.devices` is {devices}, and a pod has {gpus} GPUs: the others have no process; use `-1` for all",
        "trainer.devices",
        is_error=False,
    ),
)


def check(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the trainer's devices and nodes, if the script is started by `LightningCLI` arguments."""
    if not any((word.text or word.prefix).startswith("--trainer.") for word in program.words):
        return
    values, words = _read_trainer(program)
    devices, nodes, accelerator = (values.get(name, _DEFAULTS[name]) for name in _DEFAULTS)
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
    for fault in find_faults(_TABLE, numbers, words, program, pods):
        yield fault._replace(related=compared_values(pods))


_DEFAULTS: Mapping[str, Any] = {"devices": "auto", "num_nodes": 1, "accelerator": "auto"}


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
            for key in _DEFAULTS:
                if config is None:
                    values[key] = None
                elif isinstance(section, Mapping) and key in section:
                    values[key] = section[key]
        elif name.startswith("--trainer.") and name[10:] in _DEFAULTS:
            seen += 1
            values[name[10:]] = value if word.text is not None and value else None
    if not options.is_closed:
        values = (
            {key: values.get(key) for key in _DEFAULTS}
            if not seen
            else values | {key: None for key in _DEFAULTS if key not in values}
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
