"""MPIJob and ColossalAIJob of TensorStack: what the launcher starts on the workers is in fields of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobgen.k8s.mpi_launches import calls_mpirun, split_mpi_launch
from jobgen.model.data import Node, ValidFields, untraced, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.quantity import parse_digits
from jobgen.model.sentence import Sentence
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import count_gpus, find_main_container, parse_launch, set_path, take_command

_CONFIGS = {"mpi": "mpiConfig", "colossalai": "torchConfig"}
_PER_WORKER = frozenset(("-N", "-npernode", "--npernode", "-ppn", "--map-by", "-map-by"))


def prepare(job: JobSpec, templates: ValidFields, resource: ValidFields, problems: list[Problem]) -> ValidFields:
    """Move the command of the launcher to the fields that say what runs on the workers."""
    spec = resource["spec"]
    config: dict[str, Any] = dict(spec.get(_CONFIGS[job.framework]) or {})
    launcher = templates["launcher"]
    command, kept = take_command(launcher)
    if command and "script" not in config:
        options, config["script"] = _split_command(job, command, problems)
        if job.framework == "colossalai":
            options = _take_processes(options, config)
        if options:
            config["extraArgs"] = [*options, *(config.get("extraArgs") or ())]
        launcher = kept
    _set_processes(job, templates, config)
    if config:
        spec[_CONFIGS[job.framework]] = config
    policy = job.fields.get("runPolicy")
    wanted = policy.get("cleanPodPolicy") if isinstance(policy, dict) else None
    if value_of(wanted) == "All":
        message = Sentence("{} never deletes the launcher; use `Running` or `None` as `cleanPodPolicy`", job.kind.name)
        problems.append(Problem("unsupported-by-kind", message, wanted))
    if wanted is not None:
        set_path(spec, ("runPolicy", "cleanUpWorkers"), with_value(wanted, value_of(wanted) != "None"))
    prepared = {"launcher": launcher}
    for name, template in templates.items():
        if name != "launcher":
            own, bare = take_command(template)
            prepared[name] = bare if command and untraced(own) == untraced(command) else template
    return prepared


def _split_command(job: JobSpec, command: list[Node], problems: list[Problem]) -> tuple[Sequence[Node], list[Node]]:
    """The options of the launcher, and the program with its arguments."""
    if job.framework == "colossalai":
        launch = parse_launch(command)
        return launch.options, launch.script
    found = split_mpi_launch(command)
    if found is not None:
        return found
    if calls_mpirun(untraced(command)):
        message = "TensorStack runs `mpirun` itself, but the command of the launcher is a script that does"
        advice = "write `mpirun`, its options and the program as a list"
        problems.append(Problem("unsupported-by-kind", Sentence("{}; {}", message, advice), command[0]))
    return (), command


def _take_processes(options: Sequence[Node], config: dict[str, Any]) -> list[Node]:
    """Set the field for the processes on each worker from its option; return the other options."""
    kept: list[Node] = []
    words = iter(options)
    for word in words:
        name, equals, value = str(value_of(word)).partition("=")
        if name.lstrip("-").replace("-", "_") != "nproc_per_node":
            kept.append(word)
            continue
        node = word if equals else next(words, word)
        count = value if equals else str(value_of(node))
        number = parse_digits(count)
        if number is not None:
            config.setdefault("procPerWorker", with_value(node, number))
    return kept


def _set_processes(job: JobSpec, templates: dict[str, Any], config: dict[str, Any]) -> None:
    """Set the number of processes on each worker, where the job does not say it otherwise."""
    settings = job.fields.get(job.framework)
    slots = settings.get("slotsPerWorker") if isinstance(settings, dict) else None
    if job.framework == "mpi" and slots is not None:
        arguments = list(config.get("extraArgs") or [])
        if not _PER_WORKER & {str(value_of(argument)) for argument in arguments}:
            config["extraArgs"] = [with_value(slots, "-N"), with_value(slots, str(value_of(slots))), *arguments]
    if job.framework == "colossalai" and "procPerWorker" not in config and "worker" in templates:
        gpus = count_gpus(job, templates["worker"])
        if gpus:
            config["procPerWorker"] = with_value(find_main_container(templates["worker"]).get("name"), gpus)
