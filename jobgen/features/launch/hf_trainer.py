"""DeepSpeed configs and the Hugging Face Trainer: batch sizes, arguments that cannot be combined, disagreements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.launch.options import (
    Arguments,
    Invariant,
    NumbersInFile,
    as_number,
    compared_values,
    find_faults,
    get_value,
    parse_config,
    read_arguments,
    read_config,
)
from jobgen.features.launch.values import Fault, Pods, Program, Word, World

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
_NAMES = (
    "deepspeed",
    "deepspeed_config_file",
    "deepspeed_config_path",
    "ds_config",
    "ds_config_file",
    "ds_config_path",
)
"""Options whose value is usually a config of DeepSpeed."""
STAGES = (
    Invariant(
        lambda stage: stage in (0, 1, 2, 3),
        "`zero_optimization.stage` of the DeepSpeed config is {stage} (DeepSpeed: `Input should be 0, 1, 2, 3`); use "
        "one of these",
        _AT,
    ),
    Invariant(
        lambda fp16, bf16: not (fp16 and bf16),
        "the DeepSpeed config enables `fp16` and `bf16` (DeepSpeed: `bfloat16 and fp16 modes cannot be simultaneously "
        "enabled`); disable one",
        _AT,
    ),
)
_BATCHES = (
    Invariant(
        lambda has_batch: has_batch,
        "the DeepSpeed config has no batch size (DeepSpeed: `Either train_batch_size or "
        "train_micro_batch_size_per_gpu needs to be provided`); write one of them",
        _AT,
    ),
    Invariant(
        lambda world, train, micro, steps, _advice: micro < 1 or steps < 1 or train == micro * steps * world,
        "the batch sizes of the DeepSpeed config do not multiply out on {world} processes (DeepSpeed: "
        "`train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size {train} != {micro} * "
        "{steps} * {world}`); {advice}",
        _AT,
    ),
    Invariant(
        lambda train: train > 0,
        "`train_batch_size` of the DeepSpeed config is {train} (DeepSpeed: `Train batch size: {train} has to be "
        "greater than 0`)",
        _AT,
    ),
    Invariant(
        lambda _world, train, micro: train < 1 or micro > 0,
        "`train_batch_size` {train} of the DeepSpeed config is too small for {world} processes (DeepSpeed: `Micro "
        "batch size per gpu: {micro} has to be greater than 0`); use a multiple of {world}",
        _AT,
    ),
    Invariant(
        lambda _world, train, steps, micro: train < 1 or micro < 1 or steps > 0,
        "`train_batch_size` {train} of the DeepSpeed config is too small for {world} processes with {micro} samples "
        "each (DeepSpeed: `Gradient accumulation steps: {steps} has to be greater than 0`); use a multiple of {micro} "
        "x {world}",
        _AT,
    ),
)


def check_deepspeed(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the configuration that a script gets with `--deepspeed_config`, as DeepSpeed itself reads it."""
    options = read_arguments(program.words, ("deepspeed",))
    config = read_own(program, options)
    if config is None:
        yield from _check_named(program, world, pods)
        return
    path = options.text("deepspeed_config")
    yield from _check_config(config, path, options, program, world, pods, (*STAGES, *_BATCHES))


def check_file(word: Word | None, program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the config that a launcher or a script names, which probably gives it to DeepSpeed as it is."""
    text = (word.text or "") if word is not None else ""
    config = parse_config(text, "deepspeed.json") if text[:1] == "{" else read_config(program, text)
    # What is left out, the program may add.
    if word is None or config is None or as_number(get_value(config, _KEYS["train"])) is None:
        return
    options = Arguments({**read_arguments(program.words).words, "deepspeed": word}, (), True)
    for fault in _check_config(config, text, options, program, world, pods, (*STAGES, *_BATCHES[1:])):
        yield fault._replace(is_error=False)


def _check_named(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the config of another option of a script."""
    if not any(name in (word.text or "") for word in program.words for name in ("deepspeed", "ds_", "ds-")):
        return
    options = read_arguments(program.words)
    word = next((options.words[name] for name in _NAMES if name in options.words), None)
    if not is_trainer(program, options):
        yield from check_file(word, program, world, pods)


def _check_config(
    config: Mapping[str, Any],
    path: str | None,
    options: Arguments,
    program: Program,
    world: World,
    pods: Pods,
    table: Sequence[Invariant],
) -> Iterator[Fault]:
    # With `mpu`, a script divides the processes otherwise.
    divides = any("parallel" in name for name in options.words)
    numbers = read_numbers(config, None if divides else world.size)
    yield from find_faults(table, numbers, options.words, program, pods, _find_places(program, config, path))


def _find_places(program: Program, config: Mapping[str, Any], path: str | None) -> NumbersInFile | None:
    """Return where a DeepSpeed config has its numbers, if it is a file."""
    keys = {name: key for name, key in _KEYS.items() if get_value(config, key) is not None}
    return NumbersInFile(program, path, keys) if path and not path.startswith("{") else None


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


_FSDP_OPTIONS = frozenset(
    "full_shard shard_grad_op no_shard hybrid_shard hybrid_shard_zero2 offload auto_wrap true false".split()
)
_TABLE = (
    Invariant(
        lambda fp16, bf16: not (fp16 and bf16),
        "`--fp16` and `--bf16` cannot be combined (Trainer: `At most one of fp16 and bf16 can be True, but not "
        "both`); remove one",
        "fp16",
    ),
    Invariant(
        lambda best, save_is_eval: not best or save_is_eval,
        "`--load_best_model_at_end` needs the same `--save_strategy` and `--eval_strategy` (Trainer: "
        "`--load_best_model_at_end requires the save and eval strategy to match`); write the same for both",
        "load_best_model_at_end",
    ),
    Invariant(
        lambda best, by_steps, save_steps, eval_steps: (
            not (best and by_steps) or eval_steps < 1 or save_steps % eval_steps == 0
        ),
        "`--save_steps {save_steps}` is not a multiple of `--eval_steps {eval_steps}` (Trainer: "
        "`--load_best_model_at_end requires the saving steps to be a round multiple of the evaluation steps`); use a "
        "multiple",
        "save_steps",
    ),
    Invariant(
        lambda needs_eval, evaluates: evaluates or not needs_eval,
        "this `--lr_scheduler_type` needs evaluations (Trainer: `lr_scheduler_type reduce_lr_on_plateau requires an "
        "eval strategy`); write `--eval_strategy`",
        "lr_scheduler_type",
    ),
    Invariant(
        lambda workers, _prefetch: workers > 0,
        "`--dataloader_prefetch_factor` needs `--dataloader_num_workers` (Trainer: `--dataloader_prefetch_factor can "
        "only be set when data is loaded in a different process`); write both",
        "dataloader_prefetch_factor",
    ),
)
_EVALUATED = ("reduce_lr_on_plateau", "greedy")  # schedules that need evaluations
# Values of the DeepSpeed config that must be those of an argument, with the argument's default.
_MATCHES: tuple[tuple[str, str, float], ...] = (
    ("train_micro_batch_size_per_gpu", "per_device_train_batch_size", 8),
    ("gradient_accumulation_steps", "gradient_accumulation_steps", 1),
    ("gradient_clipping", "max_grad_norm", 1.0),
    ("optimizer.params.lr", "learning_rate", 5e-5),
    ("optimizer.params.eps", "adam_epsilon", 1e-8),
    ("optimizer.params.weight_decay", "weight_decay", 0.0),
    ("scheduler.params.warmup_max_lr", "learning_rate", 5e-5),
)


def is_trainer(program: Program, options: Arguments) -> bool:
    """Return True if a script certainly parses the arguments of the Trainer."""
    if "output_dir" not in options.words or "no_trainer" in program.name:
        return False
    is_example = program.name.startswith("run_") and program.name.endswith(".py")
    return is_example or ("per_device_train_batch_size" in options.words and "deepspeed_config" not in options.words)


def check_trainer(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the arguments of the Trainer, and the DeepSpeed config that they name."""
    if not any((word.text or "").startswith(("--output_dir", "--output-dir")) for word in program.words):
        return
    options = read_arguments(program.words)
    if not is_trainer(program, options):
        return
    evaluation = options.text("eval_strategy", options.text("evaluation_strategy", "no"))
    save = options.text("save_strategy", "steps")
    numbers = {
        "fp16": options.has("fp16"),
        "bf16": options.has("bf16"),
        "best": options.has("load_best_model_at_end"),
        "save_is_eval": None if None in (evaluation, save) else save in (evaluation, "best"),
        "needs_eval": options.text("lr_scheduler_type", "linear") in _EVALUATED,
        "evaluates": None if evaluation is None else evaluation != "no",
        "workers": options.number("dataloader_num_workers", 0),
        "prefetch": options.number("dataloader_prefetch_factor"),
        "by_steps": save == "steps" and evaluation == "steps",
        "save_steps": options.number("save_steps", 500),
        "eval_steps": options.number("eval_steps", options.number("logging_steps", 500)),
    }
    yield from find_faults(_TABLE, numbers, options.words, program, pods)
    sharding = options.words.get("fsdp")
    for option in (sharding.text or "").split() if sharding else ():
        if option.lower() not in _FSDP_OPTIONS:
            yield Fault(
                options.words["fsdp"].node,
                f"`{option}` is not an option of `--fsdp` (Trainer: `Unknown fsdp option: {option}`); use "
                "`full_shard`, `shard_grad_op`, `hybrid_shard`, `offload` or `auto_wrap`",
            )
    config = read_deepspeed(program, options)
    if config is not None:
        yield from _check_deepspeed(config, options, program, world, pods)


def read_deepspeed(program: Program, options: Arguments) -> Mapping[str, Any] | None:
    """Return the DeepSpeed config that `--deepspeed` names, or is; None if it is not known."""
    text = options.text("deepspeed")
    if text is None or text.startswith("{"):
        return parse_config(text, "deepspeed.json") if text else None
    return read_config(program, text)


def _check_deepspeed(
    config: Mapping[str, Any], options: Arguments, program: Program, world: World, pods: Pods
) -> Iterator[Fault]:
    mismatches = list(_find_mismatches(config, options, world))
    places = _find_places(program, config, options.text("deepspeed"))
    if mismatches:
        found = ", ".join(
            f"`{key}` is {json.dumps(given)}, and {_name(name)} is {json.dumps(expected)}"
            for key, given, name, expected in mismatches
        )
        fault = Fault(
            options.words["deepspeed"].node,
            f"the DeepSpeed config disagrees with the arguments: {found} (Trainer: `Please correct the following "
            "DeepSpeed config values that mismatch TrainingArguments values`); write `auto` in the config",
            related=compared_values(pods) if any(key == "train_batch_size" for key, *_ in mismatches) else (),
        )
        key = mismatches[0][0]
        yield places._replace(keys={key: key}).move(fault, (key,)) if places else fault
    numbers = read_numbers(config, None)
    yield from find_faults(STAGES, numbers, options.words, program, pods, places)


def _name(option: str) -> str:
    return f"`--{option}`" if option else "the product of processes, device batch and steps"


def _find_mismatches(
    config: Mapping[str, Any], options: Arguments, world: World
) -> Iterator[tuple[str, Any, str, float]]:
    if options.has("auto_find_batch_size") is not False:
        return
    for key, name, default in _MATCHES:
        given = get_value(config, key)
        expected = _to_float(options.text(name, str(default)))
        if isinstance(given, int | float) and abs(given) < 10**15 and expected is not None and given != expected:
            yield key, given, name, expected
    batch = options.number("per_device_train_batch_size", 8)
    steps = options.number("gradient_accumulation_steps", 1)
    given = get_value(config, "train_batch_size")
    if world.size and batch is not None and steps is not None and as_number(given) is not None:
        expected = world.size * batch * steps
        if given != expected:
            yield "train_batch_size", given, "", expected
    for key in ("fp16", "bf16"):
        enabled, flag = get_value(config, f"{key}.enabled"), options.has(key)
        if (
            options.has(f"{key}_full_eval") is False
            and isinstance(enabled, bool)
            and flag is not None
            and enabled != flag
        ):
            yield f"{key}.enabled", enabled, key, flag


def _to_float(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None and len(text) < 32 else None
    except ValueError:
        return None
    return int(value) if value is not None and value.is_integer() else value
