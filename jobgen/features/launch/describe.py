"""Describe what a job launches: the command of each role as it runs, its numbers, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from jobgen.features.launch import hf_trainer, megatron, memory, python_calls, serving, trainers
from jobgen.features.launch.judge import Judged, Stage, judge_manifest
from jobgen.features.launch.options import Number, read_arguments
from jobgen.features.launch.shell.values import Environment
from jobgen.features.launch.values import Pods, Program, Word
from jobgen.k8s.objects import Manifest
from jobgen.k8s.redaction import redact_words
from jobgen.k8s.secrets import find_secrets
from jobgen.model.data import TracedScalar
from jobgen.model.finding import pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, node_at

_UNKNOWN = "unknown"
_FACTORS = 3  # of a batch size
_SHORT = 3  # names of options such as `-tp`
_PARALLEL = {"tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert", "dp": "data"}


class Row(NamedTuple):
    """A number of a launch."""

    name: str
    value: str
    source: str
    """What gives it: an option, a field, or how it is computed."""
    node: Place = None
    """Where it was written; None if it is computed."""


class Described(NamedTuple):
    """What one role launches, or several with the same command and the same numbers."""

    roles: tuple[str, ...]
    """Empty for a kind with one role."""
    command: str
    """The command that runs, with `…` for what is not known."""
    rows: tuple[Row, ...]


def describe_launches(manifest: Manifest, locate: Callable[[Place], Any] = node_at) -> list[Described]:
    """Return what each role of a job launches; `locate` returns the nodes of places, which may have locations."""
    found: dict[object, Described] = {}
    # Few objects launch something that has numbers.
    read_secrets = cache(lambda: find_secrets(manifest.object))
    for judged in judge_manifest(manifest) if manifest.pods else ():
        role = judged.launch.container.pod.role
        names = (role.replica_type,) if role else ()
        for stage in judged.stages:
            rows = tuple(row._replace(node=locate(row.node)) for row in _list_rows(judged, stage, locate))
            # Other programs of a script, such as `pip`, have no numbers.
            if any(row.name not in ("pods", "GPUs per pod") for row in rows):
                command = show_command(stage.program, read_secrets())
                key = (command, tuple(row[:3] for row in rows))
                known = found.get(key, Described((), command, rows))
                found[key] = known._replace(roles=tuple(dict.fromkeys((*known.roles, *names))))
    return list(found.values())


def show_command(program: Program, secrets: Iterable[str] = ()) -> str:
    """Return a command with its values; `…` stands for what is not known, or is a secret."""
    env = program.env
    texts = {name: word.text for name, word in env.items() if word.text is not None}
    variables = env.all_texts if isinstance(env, Environment) else texts
    words = [f"{word.prefix}…" if word.text is None else word.text for word in program.words]
    return " ".join(map(_quote, redact_words((program.path or program.name, *words), variables, secrets)))


def _quote(text: str) -> str:
    return f"'{text}'" if not text or any(sign in text for sign in " \t\n\"'$&|;<>()") else text


def _list_rows(judged: Judged, stage: Stage, locate: Callable[[Place], Any]) -> Iterator[Row]:
    pods = judged.launch.pods
    yield Row("pods", _show(pods.count), *_find_count(pods, locate))
    yield Row("GPUs per pod", _show(pods.gpus), "resources", pods.container.device_place)
    world = stage.world
    if world.is_launched:
        asked, processes, size = world.asked, world.processes, world.size
        differs = f", but the job has {pluralize(world.nodes or 0, 'pod')}" if asked not in (None, world.nodes) else ""
        nodes = asked if differs else world.nodes
        size = nodes * processes if differs and nodes is not None and processes is not None else size
        yield Row("world size", _show(size), f"{_show(nodes)} nodes x {_show(processes)} processes{differs}")
    for part in stage.trainers:
        yield from _list_script_rows(part, pods)
        # Sizes that the GPUs do not have room for share nothing.
        is_refused = any(fault.is_error for fault in part.faults)
        for bound in () if is_refused else memory.list_bounds(part.program, part.world, pods):
            yield Row("memory per GPU", f"at least {memory.show_bytes(bound.bytes)}", bound.text)


def _find_count(pods: Pods, locate: Callable[[Place], Any]) -> tuple[str, Place]:
    """Return the field with the number of pods, and where it is written; of several roles, that of the last."""
    written = [(place, locate(place)) for place in pods.counts]
    nodes = [
        (place, node)
        for place, node in written
        if not (isinstance(node, TracedScalar) and node.layer.startswith("kind "))
    ]
    # The number of workers is one less than the number of pods that is written.
    totals = [
        (place, node) for place, node in nodes if str(pods.count) in (str(node_at(place)), getattr(node, "written", ""))
    ]
    place, node = next(iter(totals), nodes[-1] if nodes else (None, None))
    if pods.container.pod.manifest.group == "ray.io":
        return "Ray runs it on the head", None
    if not totals:
        return "replicas of all roles", place
    is_written = isinstance(node, TracedScalar) and node.layer in ("", "manifest")
    return str(place.key) if is_written and type(place) is At else "replicas", place


def _list_script_rows(stage: Stage, pods: Pods) -> Iterator[Row]:
    """Yield the sizes of parallelism, and the batch sizes, of a script or server."""
    program, world = stage.program, stage.world
    if program.name in megatron.NAMES:
        options = read_arguments(program.words, megatron.FLAGS)
        sizes = megatron.read_sizes(options, world)
        names = {short: megatron.NUMBERS[short][0] for short in ("tp", "pp", "cp", "ep")}
        yield from _list_sizes(sizes, names, options.words)
        if sizes["mbs"] and sizes["gbs"] and sizes["dp"]:
            steps = f"{sizes['mbs']} x {sizes['dp']} ranks x {int(sizes['gbs']) // int(sizes['mbs_dp'] or 1)} steps"
            yield Row("global batch size", _show(sizes["gbs"]), steps, options.words["global_batch_size"].node)
    elif trainers.is_titan(program):
        options = read_arguments(program.words)
        sizes = trainers.read_degrees(program, options, world)
        names = {short: f"parallelism.{trainers.DEGREES[short]}" for short in ("tp", "pp", "cp", "ep")}
        yield from _list_sizes(sizes, names, options.words)
        for short, label in (("replicate", "data parallel replicas"), ("shard", "data parallel shards")):
            name = f"parallelism.{trainers.DEGREES[short]}"
            yield Row(label, _show(sizes[short]), _name_source(options.words, name), _find(options.words, name))
    elif server := serving.read_server(program):
        yield from _list_sizes(
            server.sizes, {short: serving.SIZES[short] for short in ("tp", "pp", "dp")}, server.options.words
        )
    elif found := python_calls.find_config(program):
        numbers = python_calls.read_numbers(found, pods)
        where = f"`ScalingConfig` in line {found.line} of `{program.path}`"
        yield Row(
            "workers", _show(numbers.get("workers")), f"{numbers.get('each', _UNKNOWN)} each, {where}", program.node
        )
        yield Row("room for workers", _show(numbers.get("room")), "nodes of the Ray cluster")
    else:
        yield from _list_batches(stage)


def _list_sizes(sizes: Mapping[str, Number], names: Mapping[str, str], words: Mapping[str, Word]) -> Iterator[Row]:
    for short, label in _PARALLEL.items():
        if short in names or (short == "dp" and short in sizes):
            size = sizes.get(short)
            name = next((name for name in names.get(short, "").split() if name in words), "")
            if size != 1:
                yield Row(f"{label} parallel size", _show(size), _name_source(words, name), _find(words, name))


def _list_batches(stage: Stage) -> Iterator[Row]:
    program, size = stage.program, stage.world.size
    options = read_arguments(program.words, ("deepspeed",) if "--deepspeed_config" in _texts(program) else ())
    config = hf_trainer.read_own(program, options)
    if config is not None:
        numbers = hf_trainer.read_numbers(config, size)
        shown = f"{_show(numbers['micro'])} x {_show(numbers['steps'])} steps x {_show(size)} processes"
        factors = [each for each in (numbers["micro"], numbers["steps"], size) if each is not None]
        product = math.prod(factors)
        if len(factors) == _FACTORS and numbers["train"] not in (None, product):
            shown += f" = {product}, which is not {_show(numbers['train'])}"
        yield Row("batch size", _show(numbers["train"]), shown, _find(options.words, "deepspeed_config"))
    elif hf_trainer.is_trainer(program, options):
        batch, steps = (
            options.number("per_device_train_batch_size", 8),
            options.number("gradient_accumulation_steps", 1),
        )
        total = batch * steps * size if batch and steps and size else None
        shown = f"{_show(batch)} x {_show(steps)} steps x {_show(size)} processes"
        yield Row("batch size", _show(total), shown, _find(options.words, "per_device_train_batch_size"))


def _texts(program: Program) -> Sequence[str]:
    return [(word.text or "").partition("=")[0] for word in program.words]


def _name_source(words: Mapping[str, Word], name: str) -> str:
    if name not in words:
        return "computed"
    return f"-{name}" if len(name) < _SHORT else f"--{name if '.' in name else name.replace('_', '-')}"


def _find(words: Mapping[str, Word], name: str) -> Place:
    return words[name].node if name in words else None


def _show(number: Number) -> str:
    return _UNKNOWN if number is None else f"{number:g}" if isinstance(number, float) else str(number)
