"""The DeepSpeedJob of TensorStack: what `deepspeed` runs is in fields of the job, not in the command of its pods."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import ValidFields, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import count_gpus, find_main_container, parse_launch, take_command

_RUNS = {"": "python", "module": "module", "exec": "exec"}


def prepare(job: JobSpec, templates: ValidFields, resource: ValidFields, _problems: list[Problem]) -> ValidFields:
    """Move the command of the workers to the fields that say what runs."""
    [(name, template)] = templates.items()
    spec = resource["spec"]
    config: dict[str, Any] = dict(spec.get("config") or {})
    command, kept = take_command(template)
    if not {"run", "customCommand"} & config.keys() and command:
        launch = parse_launch(command)
        config["run"] = {_RUNS[launch.form]: launch.script}
        if launch.options and value_of(command[0]) == "deepspeed" and "otherArgs" not in config:
            config["otherArgs"] = launch.options
        template = kept
    gpus = count_gpus(job, template)
    if gpus and "slotsPerWorker" not in config and "customCommand" not in config:
        config["slotsPerWorker"] = with_value(find_main_container(template).get("name"), gpus)
    if config:
        spec["config"] = config
    return {name: template}
