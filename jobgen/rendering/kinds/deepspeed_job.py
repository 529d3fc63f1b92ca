"""The DeepSpeedJob of TensorStack: what `deepspeed` runs is in fields of the job, not in the command of its pods."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Node, ValidFields, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.quantity import parse_digits
from jobgen.model.sentence import Sentence
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import count_gpus, find_main_container, parse_launch, take_command

# Where the nodes meet, and how many there are, is the matter of the operator.
_OF_OPERATOR = frozenset(
    """nnodes node_rank master_addr master_port standalone rdzv_backend rdzv_endpoint rdzv_id rdzv_conf
    local_addr""".split()
)
_PROCESSES = "nproc_per_node"
_RUNS = {"": "python", "module": "module", "exec": "exec"}


def prepare(job: JobSpec, templates: ValidFields, resource: ValidFields, problems: list[Problem]) -> ValidFields:
    """Move the command of the workers to the fields that say what runs."""
    [(name, template)] = templates.items()
    spec = resource["spec"]
    config: dict[str, Any] = dict(spec.get("config") or {})
    command, kept = take_command(template)
    if not {"run", "customCommand"} & config.keys() and command:
        launch = parse_launch(command)
        config["run"] = {_RUNS[launch.form]: launch.script}
        if str(value_of(command[0])).rpartition("/")[2] == "deepspeed":
            config |= {"otherArgs": [*launch.options, *(config.get("otherArgs") or ())]} if launch.options else {}
        else:
            _place_options(launch.options, command[0], config, problems)
        template = kept
    gpus = count_gpus(job, template)
    if gpus and "slotsPerWorker" not in config and "customCommand" not in config:
        config["slotsPerWorker"] = with_value(find_main_container(template).get("name"), gpus)
    if config:
        spec["config"] = config
    return {name: template}


def _place_options(options: list[Node], launcher: Node, config: dict[str, Any], problems: list[Problem]) -> None:
    """Set the number of processes of another launcher, which `deepspeed` replaces, and report its other options."""
    words = iter(options)
    for word in words:
        option, equals, text = str(value_of(word)).partition("=")
        name = option.lstrip("-").replace("-", "_")
        if not option.startswith("-") or name in _OF_OPERATOR:
            continue
        node = word if equals or name != _PROCESSES else next(words, word)
        count = text if equals else str(value_of(node))
        number = parse_digits(count) if name == _PROCESSES else None
        if name == _PROCESSES and count in ("auto", "gpu"):
            continue
        if number is not None and value_of(config.setdefault("slotsPerWorker", with_value(node, number))) == number:
            continue
        program = str(value_of(launcher)).rpartition("/")[2]
        message = Sentence(
            "`{}` is an option of `{}`, but a DeepSpeedJob starts the script with `deepspeed`", option, program
        )
        advice = "remove it, or write `deepspeed` and its options"
        if name == _PROCESSES:
            advice = "remove it, or set `deepspeed.slotsPerWorker` to this number"
        problems.append(Problem("unsupported-by-kind", Sentence("{}; {}", message, advice), word))
