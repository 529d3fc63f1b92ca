"""DeepSpeed's configuration: batch sizes that multiply out, ZeRO stages and precisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.launch.arguments import Arguments, Invariant, find_faults, read_arguments
from jobgen.features.launch.config_files import as_number, get_value, read_config
from jobgen.features.launch.values import Fault, Pods, Program, World

_KEYS = {
    "train": "train_batch_size",
    "micro": "train_micro_batch_size_per_gpu",
    "steps": "gradient_accumulation_steps",
    "stage": "zero_optimization.stage",
    "fp16": "fp16.enabled",
    "bf16": "bf16.enabled",
}
# With one of these, the ranks that share a batch are not all processes, or the batch is computed.
_OTHER_BATCHES = ("elasticity", "tensor_parallel", "autotuning", "sequence_parallel_size", "mpu", "pipeline")
_AT = "deepspeed_config deepspeed"
STAGES = (
    Invariant(
        "stage",
        lambda stage: stage in (0, 1, 2, 3),
        "`zero_optimization.stage` of the DeepSpeed config is {stage} (DeepSpeed: `Input should be 0, 1, 2, 3`); use "
        "one of these",
        _AT,
    ),
    Invariant(
        "fp16 bf16",
        lambda fp16, bf16: not (fp16 and bf16),
        "the DeepSpeed config enables `fp16` and `bf16` (DeepSpeed: `bfloat16 and fp16 modes cannot be simultaneously "
        "enabled`); disable one",
        _AT,
    ),
)
_BATCHES = (
    Invariant(
        "has_batch",
        lambda has_batch: has_batch,
        "the DeepSpeed config has no batch size (DeepSpeed: `Either train_batch_size or "
        "train_micro_batch_size_per_gpu needs to be provided`); write one of them",
        _AT,
    ),
    Invariant(
        "world train micro steps advice",
        lambda world, train, micro, steps, _advice: micro < 1 or steps < 1 or train == micro * steps * world,
        "the batch sizes of the DeepSpeed config do not multiply out on {world} processes (DeepSpeed: "
        "`train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size {train} != {micro} * "
        "{steps} * {world}`); {advice}",
        _AT,
    ),
    Invariant(
        "train",
        lambda train: train > 0,
        "`train_batch_size` of the DeepSpeed config is {train} (DeepSpeed: `Train batch size: {train} has to be "
        "greater than 0`)",
        _AT,
    ),
    Invariant(
        "world train micro",
        lambda _world, train, micro: train < 1 or micro > 0,
        "`train_batch_size` {train} of the DeepSpeed config is too small for {world} processes (DeepSpeed: `Micro "
        "batch size per gpu: {micro} has to be greater than 0`); use a multiple of {world}",
        _AT,
    ),
    Invariant(
        "world train steps micro",
        lambda _world, train, steps, micro: train < 1 or micro < 1 or steps > 0,
        "`train_batch_size` {train} of the DeepSpeed config is too small for {world} processes with {micro} samples "
        "each (DeepSpeed: `Gradient accumulation steps: {steps} has to be greater than 0`); use a multiple of {micro} "
        "x {world}",
        _AT,
    ),
)


def check(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the configuration that a script gets with `--deepspeed_config`, as DeepSpeed itself reads it."""
    options = read_arguments(program.words, ("deepspeed",))
    config = read_own(program, options)
    if config is None:
        return
    # With `mpu`, a script divides the processes otherwise.
    divides = any("parallel" in name for name in options.words)
    size = None if divides else world.size
    yield from find_faults((*STAGES, *_BATCHES), read_numbers(config, size), options.words, program, pods)


def read_own(program: Program, options: Arguments) -> Mapping[str, Any] | None:
    """Return the configuration that `--deepspeed_config` names; None if it is not known."""
    return read_config(program, options.text("deepspeed_config")) if "deepspeed_config" in options.words else None


def read_numbers(config: Mapping[str, Any], size: int | None) -> dict[str, Any]:
    """Return the numbers of the tables by name; DeepSpeed computes the batch sizes that are not given."""
    numbers: dict[str, Any] = {name: as_number(get_value(config, path)) for name, path in _KEYS.items()}
    if numbers["bf16"] is None:
        numbers["bf16"] = as_number(get_value(config, "bfloat16.enabled"))
    given = [get_value(config, _KEYS[name]) for name in ("train", "micro", "steps")]
    if any(name in config for name in _OTHER_BATCHES) or any(
        value is not None and as_number(value) is None for value in given
    ):
        return numbers | dict.fromkeys(("train", "micro", "steps", "has_batch", "world"))
    train, micro, steps = map(as_number, given)
    numbers["world"] = size
    numbers["advice"] = _advise(train, micro, steps, size)
    numbers["has_batch"] = train is not None or micro is not None
    if size is not None and train is not None:
        if micro is None:
            steps = 1 if steps is None else steps
            micro = train // size // steps if steps else None
        elif steps is None:
            steps = train // micro // size if micro else None
    return numbers | {"train": train, "micro": micro, "steps": steps}


def _advise(train: int | None, micro: int | None, steps: int | None, size: int | None) -> str | None:
    """Return which `train_batch_size` multiplies out: the multiple of the other sizes that is nearest."""
    if train is None or not size or size < 1 or (micro or 1) < 1 or (steps or 1) < 1:
        return None
    unit = (micro or 1) * (steps or 1) * size
    if micro is not None and steps is not None:
        return f"write `train_batch_size: {unit}`, or remove it, so that DeepSpeed computes it"
    nearest = max((train + unit // 2) // unit, 1) * unit
    factors = " x ".join(f"{each}" for each in (micro, steps, size) if each is not None)
    return f"use a multiple of {factors}{f' = {unit}' if unit != size else ''}, such as `train_batch_size: {nearest}`"
