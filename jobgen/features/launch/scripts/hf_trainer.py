"""Hugging Face Trainer: arguments that cannot be combined, and a DeepSpeed config that disagrees with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.launch.arguments import (
    Arguments,
    Invariant,
    compared_values,
    find_faults,
    read_arguments,
)
from jobgen.features.launch.config_files import as_number, get_value, parse_config, read_config
from jobgen.features.launch.scripts import deepspeed_config
from jobgen.features.launch.values import Fault, Pods, Program, World

_FSDP_OPTIONS = frozenset(
    "full_shard shard_grad_op no_shard hybrid_shard hybrid_shard_zero2 offload auto_wrap true false".split()
)
_TABLE = (
    Invariant(
        "fp16 bf16",
        lambda fp16, bf16: not (fp16 and bf16),
        "`--fp16` and `--bf16` cannot be combined (Trainer: `At most one of fp16 and bf16 can be True, but not "
        "both`); remove one",
        "fp16",
    ),
    Invariant(
        "best save_is_eval",
        lambda best, save_is_eval: not best or save_is_eval,
        "`--load_best_model_at_end` needs the same `--save_strategy` and `--eval_strategy` (Trainer: "
        "`--load_best_model_at_end requires the save and eval strategy to match`); write the same for both",
        "load_best_model_at_end",
    ),
    Invariant(
        "best by_steps save_steps eval_steps",
        lambda best, by_steps, save, evaluate: not (best and by_steps) or evaluate < 1 or save % evaluate == 0,
        "`--save_steps {save_steps}` is not a multiple of `--eval_steps {eval_steps}` (Trainer: "
        "`--load_best_model_at_end requires the saving steps to be a round multiple of the evaluation steps`); use a "
        "multiple",
        "save_steps",
    ),
    Invariant(
        "needs_eval evaluates",
        lambda needs_eval, evaluates: evaluates or not needs_eval,
        "this `--lr_scheduler_type` needs evaluations (Trainer: `lr_scheduler_type reduce_lr_on_plateau requires an "
        "eval strategy`); write `--eval_strategy`",
        "lr_scheduler_type",
    ),
    Invariant(
        "workers prefetch",
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


def check(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
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
    if mismatches:
        found = ", ".join(
            f"`{key}` is {json.dumps(given)}, and {_name(name)} is {json.dumps(expected)}"
            for key, given, name, expected in mismatches
        )
        yield Fault(
            options.words["deepspeed"].node,
            f"the DeepSpeed config disagrees with the arguments: {found} (Trainer: `Please correct the following "
            "DeepSpeed config values that mismatch TrainingArguments values`); write `auto` in the config",
            related=compared_values(pods) if any(key == "train_batch_size" for key, *_ in mismatches) else (),
        )
    numbers = deepspeed_config.read_numbers(config, None)
    yield from find_faults(deepspeed_config.STAGES, numbers, options.words, program, pods)


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
