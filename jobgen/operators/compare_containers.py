"""Compare two containers, as their processes see them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.k8s.accelerators import is_device
from jobgen.k8s.command_line import find_option_values, parse_command
from jobgen.model.quantity import canonicalize_quantity, to_milli
from jobgen.operators.created import CreatedPod, Fields
from jobgen.operators.differences import Change
from jobgen.operators.pod_edits import as_fields, as_items, as_string, find_container, list_containers
from jobgen.operators.process_env import Variable, expand, read_env

_SEPARATE = frozenset("name image command args env ports resources volumeMounts".split())
_LAUNCHERS = re.compile(r"torchrun|torch\.distributed|accelerate|torchx|mpirun|mpiexec|deepspeed")
_SCRIPTS = re.compile(r"\.(sh|bash)$")

_Side = tuple[CreatedPod, Fields]


def compare_containers(before: _Side, after: _Side, field: str) -> Iterator[Change]:
    """List what differs between a container of one pod and its partner in another."""
    (one, first), (other, second) = before, after
    written = [_find_written(pod, container, field) for pod, container in (before, after)]
    env = read_env(one, first, written[0]), read_env(other, second, written[1])
    prefix = "" if field == "containers" and as_string(first.get("name")) == one.main else f"{first.get('name')} "
    if first.get("name") != second.get("name"):
        yield Change("name", f"{prefix}container", first.get("name"), second.get("name"), training=False)
    if first.get("image") != second.get("image"):
        yield Change("image", f"{prefix}image", first.get("image"), second.get("image"), training=True)
    yield from _compare_command_lines(prefix, (first, second), written, env)
    yield from _compare_env(prefix, env)
    resources = _normalize_resources(first.get("resources")), _normalize_resources(second.get("resources"))
    if resources[0] != resources[1]:
        yield Change("resources", f"{prefix}resources", *resources, training=True)
    yield from _compare_ports(prefix, first, second)
    yield from _compare_mounts(prefix, before, after, field)
    for name in dict.fromkeys([*first, *second]):
        values = [None if is_empty(each.get(name)) else each.get(name) for each in (first, second)]
        if name not in _SEPARATE and values[0] != values[1]:
            own = [each.get(name) for each in written]
            added = any(not is_empty(value) and is_empty(wrote) for value, wrote in zip(values, own, strict=True))
            kind = "injected" if added else "container"
            yield Change(kind, f"{prefix}{name}", values[0], values[1], training=not added)


def is_empty(value: Any) -> bool:
    """Return whether a field counts as not set."""
    return value is None or value in ("", [], {})


def is_launched(pod: CreatedPod) -> bool:
    """Return whether the number of processes that the operator sets can have an effect.

    It has none if no launcher is in the command line, or if the command line states the number of processes itself.
    What the entrypoint of an image does is unknown.
    """
    container = _find_main(pod)
    arguments = parse_command([*as_items(container.get("command")), *as_items(container.get("args"))])
    if any(find_option_values(arguments, "nproc-per-node")):
        return False
    return any(_LAUNCHERS.search(argument.text) or _SCRIPTS.search(argument.text) for argument in arguments)


def count_processes(pod: CreatedPod) -> str:
    """Return the processes on a node; `auto` is one for each accelerator."""
    limits = as_fields(as_fields(_find_main(pod).get("resources")).get("limits"))
    devices = sum((to_milli(amount) or 0) // 1000 for name, amount in limits.items() if is_device(str(name)))
    return str(devices) if pod.processes in ("auto", "gpu") and devices else pod.processes


def _find_main(pod: CreatedPod) -> Fields:
    return find_container(pod.spec, pod.main) or next(list_containers(pod.spec), {})


def _find_written(pod: CreatedPod, container: Fields, field: str) -> Fields:
    return find_container(as_fields(pod.template.get("spec")), as_string(container.get("name")), field)


def _compare_command_lines(
    prefix: str,
    sides: tuple[Fields, Fields],
    written: list[Fields],
    env: tuple[dict[str, Variable], dict[str, Variable]],
) -> Iterator[Change]:
    """Compare `command` and `args`. If an operator sets the command, what users wrote decides."""
    commands, own = _read_command_lines(sides), _read_command_lines(written)
    if commands != own and own[0] == own[1]:
        texts = [[*command, *args] for command, args in commands]
        if texts[0] != texts[1]:
            yield Change("injected", f"{prefix}command", texts[0], texts[1], training=False)
        return
    for place, name in enumerate(("command", "args")):
        yield from _compare_texts(name, prefix, [line[place] for line in commands], env)


def _read_command_lines(containers: Iterable[Fields]) -> list[tuple[list[Any], list[Any]]]:
    """Return command and arguments. If all containers have a command, what is in which of them does not matter."""
    lines = [(as_items(each.get("command")), as_items(each.get("args"))) for each in containers]
    return [([*command, *args], []) for command, args in lines] if all(line[0] for line in lines) else lines


def _compare_texts(
    name: str, prefix: str, raw: list[list[Any]], env: tuple[dict[str, Variable], dict[str, Variable]]
) -> Iterator[Change]:
    """Compare arguments after Kubernetes expanded references to variables."""
    expanded = [[expand(as_string(text), own) for text in texts] for texts, own in zip(raw, env, strict=True)]
    texts = [[each.text for each in side] for side in expanded]
    if texts[0] == texts[1]:
        return
    same = raw[0] == raw[1] and not any(each.unresolved for side in expanded for each in side)
    yield Change("injected" if same else name, f"{prefix}{name}", texts[0], texts[1], training=not same)


def _compare_env(prefix: str, env: tuple[dict[str, Variable], dict[str, Variable]]) -> Iterator[Change]:
    for name in dict.fromkeys([*env[0], *env[1]]):
        one, other = env[0].get(name), env[1].get(name)
        if one and other and (one.value == other.value or _is_same_entry(one, other)):
            continue
        injected = any(each is not None and each.injected for each in (one, other))
        lost = any(each is not None and each.unresolved for each in (one, other))
        values = [each.value if each else None for each in (one, other)]
        kind = "injected" if injected and not lost else "env"
        yield Change(kind, f"{prefix}env {name}", values[0], values[1], training=kind == "env")


def _is_same_entry(one: Variable, other: Variable) -> bool:
    """Return whether both refer to the same field of the pod, such as its name."""
    return "valueFrom" in one.entry and one.entry == other.entry


def _normalize_resources(resources: Any) -> Any:
    """Write quantities in canonical form. A request that is not set is the limit."""
    amounts = {
        side: {str(name): canonicalize_quantity(str(value)) or value for name, value in as_fields(found).items()}
        for side, found in as_fields(resources).items()
        if side in ("limits", "requests")
    }
    limits = amounts.get("limits", {})
    rest = {key: value for key, value in as_fields(resources).items() if key not in ("limits", "requests")}
    return {**rest, "limits": limits, "requests": {**limits, **amounts.get("requests", {})}}


def _compare_ports(prefix: str, first: Fields, second: Fields) -> Iterator[Change]:
    sides = [[as_fields(port) for port in as_items(each.get("ports"))] for each in (first, second)]
    numbers = [sorted({str(port.get("containerPort")) for port in ports}) for ports in sides]
    host = any("hostPort" in port for ports in sides for port in ports)
    if numbers[0] != numbers[1]:
        yield Change("ports", f"{prefix}ports", ", ".join(numbers[0]), ", ".join(numbers[1]), training=host)


def _compare_mounts(prefix: str, before: _Side, after: _Side, field: str) -> Iterator[Change]:
    mounts = [_list_mounts(pod, container) for pod, container in (before, after)]
    written = [_list_mounts(pod, _find_written(pod, container, field)) for pod, container in (before, after)]
    for path in dict.fromkeys([*mounts[0], *mounts[1]]):
        values = [side.get(path) for side in mounts]
        if values[0] != values[1]:
            added = any(value is not None and path not in own for value, own in zip(values, written, strict=True))
            kind = "injected" if added else "mounts"
            yield Change(kind, f"{prefix}mount {path}", values[0], values[1], training=not added)


def _list_mounts(pod: CreatedPod, container: Fields) -> dict[str, Any]:
    """Return the mounts by path, each with the volume that it uses."""
    volumes = {as_string(as_fields(each).get("name")): as_fields(each) for each in as_items(pod.spec.get("volumes"))}
    found = {}
    for mount in as_items(container.get("volumeMounts")):
        fields = as_fields(mount)
        volume = volumes.get(as_string(fields.get("name")), {})
        source = {key: value for key, value in volume.items() if key != "name"}
        options = {key: value for key, value in fields.items() if key != "name" and value and not is_empty(value)}
        found[as_string(fields.get("mountPath"))] = {**options, "volume": source}
    return found
