"""Write the launch line of a job: the launcher of its block in front of the script, with numbers from the spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, to_scalar, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.sentence import Sentence
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import count_gpus, find_main_container, take_command, with_main_container

LAUNCHERS = ("torchrun", "accelerate")
_PYTHON = lazy_pattern(r"(?:.*/)?python[\d.]*\Z")
_STARTS = lazy_pattern(r"(?:.*/)?(?:torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun|(?:ba|da|z)?sh)\Z")
# Modes of accelerate, of which it takes one.
_MODES = frozenset(("cpu", "multi_gpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm"))


def write_launch_lines(job: JobSpec, templates: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return the templates with the launcher of the job in front of their commands."""
    chosen = _find_launcher(job, problems)
    if chosen is None:
        return templates
    pods = sum(_count_pods(job, name) for name in templates)
    written = dict(templates)
    for name, template in templates.items():
        role = job.kind.find_role(name)
        if role is None or not role.launches:
            written[name] = _write(job, template, chosen, pods, problems)
    return written


def _find_launcher(job: JobSpec, problems: list[Problem]) -> Node:
    """Return the launcher that the blocks of a job name; None if there is none."""
    block = _read_block(job, job.framework)
    named = block.get("launcher")
    accelerate = job.fields.get("accelerate")
    if named is None and isinstance(accelerate, dict):
        named = with_value(
            to_scalar(next((key for key in job.fields if key == "accelerate"), "accelerate")), "accelerate"
        )
    if named is None and "configFile" in _read_block(job, "deepspeed"):
        named = with_value(_read_block(job, "deepspeed")["configFile"], "torchrun")
    if named is not None and value_of(named) not in LAUNCHERS:
        message = Sentence("`{}` is not a launcher that jobgen writes; use `torchrun` or `accelerate`", value_of(named))
        problems.append(Problem("invalid-value", message, named))
        return None
    if named is not None and isinstance(accelerate, dict) and value_of(named) != "accelerate":
        message = Sentence(
            "the block `accelerate` has no effect with `launcher: {}`; remove one of them", value_of(named)
        )
        problems.append(Problem("invalid-value", message, named))
    return named


def _read_block(job: JobSpec, name: str) -> Mapping[str, Any]:
    block = job.fields.get(name)
    return block if isinstance(block, dict) else {}


def _count_pods(job: JobSpec, name: str) -> int:
    written = value_of(job.roles[name].replica.get("replicas"))
    role = job.kind.find_role(name)
    default = value_of(role.replicas) if role else 1
    return written if type(written) is int else default if type(default) is int else 1


def _write(job: JobSpec, template: Any, chosen: Node, pods: int, problems: list[Problem]) -> Any:
    line, bare = take_command(template)
    if not line:
        message = Sentence(
            "`launcher: {}` needs a script to start; set `command`, such as `[train.py]`", value_of(chosen)
        )
        problems.append(Problem("invalid-value", message, chosen))
        return template
    first = str(value_of(line[0]))
    if _STARTS.match(first):
        message = Sentence(
            "jobgen writes `{}` in front of the command, which starts with `{}`", value_of(chosen), first
        )
        problems.append(Problem("invalid-value", Sentence("{}; start the command with the script", message), line[0]))
        return template
    script = line
    if _PYTHON.match(first):
        script = [word for word in line[1:2] if str(value_of(word)) not in ("-u", "-O", "-B")] + line[2:]
    gpus = count_gpus(job, template)
    words = list(_list_words(job, str(value_of(chosen)), pods, gpus))
    if value_of(chosen) == "accelerate" and script and str(value_of(script[0])) == "-m":
        words, script = [*words, "--module"], script[1:]
    config = _read_block(job, "deepspeed").get("configFile")
    after = (
        [] if config is None else [with_value(config, "--deepspeed"), with_value(config, "--deepspeed_config"), config]
    )
    container = {**find_main_container(bare), "command": [with_value(chosen, word) for word in words]}
    return with_main_container(bare, {**container, "args": [*script, *after]})


def _list_words(job: JobSpec, launcher: str, pods: int, gpus: int) -> Iterator[str]:
    """Yield the launcher and its options: torchrun takes all numbers from the variables of the operator."""
    if launcher == "torchrun":
        yield "torchrun"
        return
    block = _read_block(job, "accelerate")
    options = {str(key): value_of(value) for key, value in (block.get("options") or {}).items()}
    config = value_of(block.get("configFile"))
    yield from ("accelerate", "launch")
    if config is not None:
        yield from ("--config_file", str(config))
    if (gpus > 1 or pods > 1) and config is None and not _MODES & options.keys():
        yield "--multi_gpu" if gpus else "--cpu"
    if gpus > 1 or pods == 1:
        # torchrun, which accelerate calls, takes the number of nodes from PET_NNODES.
        yield from ("--num_machines", "1", "--num_processes", str(max(gpus, 1)))
    else:
        yield from ("--num_machines", str(pods), "--num_processes", str(pods), "--machine_rank", "$(PET_NODE_RANK)")
        yield from ("--main_process_ip", "$(PET_MASTER_ADDR)", "--main_process_port", "$(PET_MASTER_PORT)")
    for name, value in options.items():
        if value is not False and value is not None:
            yield from (f"--{name}",) if value is True else (f"--{name}", str(value))
