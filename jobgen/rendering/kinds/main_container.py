"""Change the main container of a pod template that is being rendered; what the job sets stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Node, untraced, value_of, with_value
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.rendering.expand import JobSpec


def add_env(template: Any, variables: Mapping[str, str]) -> Any:
    """Add variables that the container does not set itself."""
    container = find_main_container(template)
    own = container.get("env")
    own = own if isinstance(own, list) else []
    known = {value_of(entry.get("name")) for entry in own if isinstance(entry, dict)}
    node = container.get("name")
    added = [{"name": name, "value": with_value(node, text)} for name, text in variables.items() if name not in known]
    return with_main_container(template, {**container, "env": [*added, *own]})


def set_command(template: Any, command: list[str]) -> Any:
    """Set the command of a container that has neither command nor arguments."""
    container = find_main_container(template)
    if "command" in container or "args" in container:
        return template
    words = [with_value(container.get("name"), word) for word in command]
    return with_main_container(template, {**container, "command": words})


def find_main_container(template: Any) -> dict[str, Any]:
    """Return the first container of a template; empty if it has none."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    first = containers[0] if isinstance(containers, list) and containers else None
    return first if isinstance(first, dict) else {}


def with_main_container(template: Any, container: dict[str, Any]) -> Any:
    """Return the template with another first container."""
    spec = template["spec"]
    return {**template, "spec": {**spec, "containers": [container, *spec["containers"][1:]]}}


def count_gpus(job: JobSpec, template: Any) -> int:
    """Return the number of GPUs of one pod."""
    return Pod(untraced(template), Manifest({}, job.kind, job.cluster)).gpus


_LAUNCHERS = frozenset(("deepspeed", "torchrun", "colossalai"))
# Options that take no value; the value of others follows them.
_FLAGS = frozenset(
    """--standalone --no-python --no_python --module -m --run-path --force_multi --no_local_rank --save_pid
    --enable_each_rank_log --bind_cores_to_rank --elastic_training --no_ssh --force""".split()
)


class Launch(NamedTuple):
    """What a command runs: a Python script, a `module`, or any program (`exec`); and the options of its launcher."""

    form: str
    script: list[Node]
    options: list[Node]


def take_command(template: Any) -> tuple[list[Node], Any]:
    """Return the command line of the main container, and the template without it."""
    container = find_main_container(template)
    parts = [container.get(key) for key in ("command", "args")]
    line = [word for part in parts if isinstance(part, list) for word in part]
    if not line:
        return [], template
    kept = {key: value for key, value in container.items() if key not in ("command", "args")}
    return line, with_main_container(template, kept)


def parse_launch(line: list[Node]) -> Launch:
    """Parse a command line that starts with Python, a launcher of distributed training, or another program."""
    program = str(value_of(line[0])).rpartition("/")[2]
    if program.startswith("python"):
        rest = line[2:] if len(line) > 2 and value_of(line[1]) == "-u" else line[1:]
        if len(rest) > 1 and value_of(rest[0]) == "-m":
            return Launch("module", rest[1:], [])
        is_script = bool(rest) and not str(value_of(rest[0])).startswith("-")
        return Launch("", rest, []) if is_script else Launch("exec", line, [])
    if program not in _LAUNCHERS:
        return Launch("exec", line, [])
    start = 2 if program == "colossalai" and len(line) > 1 and value_of(line[1]) == "run" else 1
    return _split_options(line[start:])


def _split_options(words: list[Node]) -> Launch:
    options: list[Node] = []
    form, index = "", 0
    while index < len(words) and str(value_of(words[index])).startswith("-"):
        word = str(value_of(words[index]))
        if word in ("-m", "--module"):
            form = "module"
        elif word in ("--no-python", "--no_python"):
            form = "exec"
        else:
            options.append(words[index])
        index += 1
        if "=" not in word and word not in _FLAGS and index < len(words):
            options.append(with_value(words[index], str(value_of(words[index]))))
            index += 1
    return Launch(form, words[index:], options)


def set_path(tree: dict[str, Node], path: tuple[Step, ...], value: Node) -> None:
    """Set a value in a tree of our own making, opening maps and named list items on the way."""
    node: Any = tree
    for step, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(step, NamedItem):
            item = next((item for item in node if isinstance(item, dict) and item.get(step.field) == step.value), None)
            if item is None:
                item = {step.field: step.value}
                node.append(item)
            node = item
        elif following is None:
            # Two of our fields may share a map: what is already there stays.
            known = node.get(step)
            node[step] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
        else:
            wanted = list if isinstance(following, NamedItem) else dict
            # A kind may map two fields to a value and to a part of it; the part wins.
            node[step] = node[step].copy() if isinstance(node.get(step), wanted) else wanted()
            node = node[step]
