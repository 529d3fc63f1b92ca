"""Compare two containers, as their processes see them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.features.convert.operators.created import CreatedPod, Fields
from jobgen.features.convert.operators.differences import Change
from jobgen.features.convert.operators.fields import as_fields, as_items, as_string
from jobgen.features.convert.operators.hosts import Hosts
from jobgen.features.convert.operators.pod_edits import find_container, list_containers
from jobgen.features.convert.operators.process_env import Variable, expand, read_env
from jobgen.k8s.accelerators import is_device
from jobgen.k8s.command_line import find_option_values, parse_command
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import canonicalize_quantity, to_milli

_SEPARATE = frozenset("name image command args env ports resources volumeMounts".split())
_LAUNCHERS = re.compile(r"torchrun|torch\.distributed|accelerate|torchx|mpirun|mpiexec|deepspeed")
_WORLD = re.compile(
    r"(PET|JAX|DMLC|PADDLE|OMPI_MCA|I_MPI|HYDRA)_\w+|MASTER_(ADDR|PORT)|WORLD_SIZE|(NODE_)?RANK|TF_CONFIG|"
    r"COORDINATOR_(ADDRESS|PORT)|NUM_PROCESSES|PROCESS_ID|WORKER_(ADDRS|PORT)|MPI_HOST|JOB_COMPLETION_INDEX"
)
"""Variables that describe the nodes. A job must set them itself where no operator does."""
_SCRIPTS = re.compile(r"\.(sh|bash)$")


class Side(NamedTuple):
    """A container of a pod."""

    pod: CreatedPod
    container: Fields
    hosts: Hosts
    """The addresses of the nodes."""


_Envs = tuple[dict[str, Variable], dict[str, Variable]]


def compare_containers(before: Side, after: Side, field: str) -> Iterator[Change]:
    """List what differs between a container of one pod and its partner in another."""
    one, first, second, other = before.pod, before.container, after.container, after.pod
    written = [_find_written(side.pod, side.container, field) for side in (before, after)]
    env = read_env(one, first, written[0]), read_env(other, second, written[1])
    hosts = before.hosts, after.hosts
    prefix = "" if field == "containers" and as_string(first.get("name")) == one.main else f"{first.get('name')} "
    if first.get("name") != second.get("name"):
        yield Change("name", f"{prefix}container", first.get("name"), second.get("name"), training=False)
    if first.get("image") != second.get("image"):
        yield Change("image", f"{prefix}image", first.get("image"), second.get("image"), training=True)
    yield from _compare_command_lines(prefix, (first, second), written, env, hosts)
    yield from _compare_env(prefix, env, hosts)
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
    written = read_env(pod, _find_main(pod), {}).get("PET_NPROC_PER_NODE")
    processes = pod.processes or (written.value if written else "")
    return str(devices) if processes in ("auto", "gpu") and devices else processes


def read_elastic_range(pod: CreatedPod) -> str:
    """Return the range of nodes that the launcher accepts, such as `1:4`; empty if the number of nodes is fixed."""
    container = _find_main(pod)
    variable = read_env(pod, container, {}).get("PET_NNODES")
    options = find_option_values(
        parse_command([*as_items(container.get("command")), *as_items(container.get("args"))]), "nnodes"
    )
    text = next((option.text for option in options), variable.value if variable else "")
    least, colon, most = text.partition(":")
    return text if colon and least != most else ""


def _find_main(pod: CreatedPod) -> Fields:
    return find_container(pod.spec, pod.main) or next(list_containers(pod.spec), {})


def _find_written(pod: CreatedPod, container: Fields, field: str) -> Fields:
    return find_container(as_fields(pod.template.get("spec")), as_string(container.get("name")), field)


def _compare_command_lines(
    prefix: str,
    sides: tuple[Fields, Fields],
    written: list[Fields],
    env: _Envs,
    hosts: tuple[Hosts, Hosts],
) -> Iterator[Change]:
    """Compare `command` and `args`. If an operator changes the command, what users wrote decides.

    A command that an operator sets where users wrote none, such as that of a worker of MPI, belongs to the operator.
    """
    commands, own = _read_command_lines(sides), _read_command_lines(written)
    given = any(any(line) and not any(wrote) for line, wrote in zip(commands, own, strict=True))
    if given or (commands != own and own[0] == own[1]):
        texts = [[*command, *args] for command, args in commands]
        if texts[0] != texts[1]:
            yield Change("injected", f"{prefix}command", texts[0], texts[1], training=False)
        return
    for place, name in enumerate(("command", "args")):
        yield from _compare_texts(f"{prefix}{name}", [line[place] for line in commands], env, hosts)


def _read_command_lines(containers: Iterable[Fields]) -> list[tuple[list[Any], list[Any]]]:
    """Return command and arguments. If all containers have a command, what is in which of them does not matter."""
    lines = [(as_items(each.get("command")), as_items(each.get("args"))) for each in containers]
    return [([*command, *args], []) for command, args in lines] if all(line[0] for line in lines) else lines


def _compare_texts(field: str, raw: list[list[Any]], env: _Envs, hosts: tuple[Hosts, Hosts]) -> Iterator[Change]:
    """Compare arguments with references to variables expanded, and with nodes instead of their addresses."""
    expanded = [[expand(as_string(text), own) for text in texts] for texts, own in zip(raw, env, strict=True)]
    texts = [[each.text for each in side] for side in expanded]
    neutral = [[own.neutralize(text) for text in side] for own, side in zip(hosts, texts, strict=True)]
    if neutral[0] == neutral[1]:
        if texts[0] != texts[1]:
            yield Change("host", field, texts[0], texts[1], training=False)
        return
    resolved = not any(each.unresolved for side in expanded for each in side)
    depends = any(each.depends for side in expanded for each in side)
    if raw[0] == raw[1] and resolved and depends:
        yield Change("injected", field, texts[0], texts[1], training=False)
    else:
        shown = neutral if texts[0] == texts[1] else texts
        yield Change(field.rpartition(" ")[2], field, shown[0], shown[1], training=True)


def _compare_env(prefix: str, env: _Envs, hosts: tuple[Hosts, Hosts]) -> Iterator[Change]:
    for name in dict.fromkeys([*env[0], *env[1]]):
        one, other = env[0].get(name), env[1].get(name)
        kind = "injected" if one is None and _WORLD.fullmatch(name) else _classify_variable(one, other, hosts)
        if kind == "env" and one and other and name.endswith("_PORT") and _WORLD.fullmatch(name):
            kind = "ports"
        if kind:
            values = [each.value if each else None for each in (one, other)]
            if one and other and one.value == other.value:
                values = [own.neutralize(each.value) for own, each in zip(hosts, (one, other), strict=True)]
            yield Change(kind, f"{prefix}env {name}", values[0], values[1], training=kind == "env")


def _classify_variable(one: Variable | None, other: Variable | None, hosts: tuple[Hosts, Hosts]) -> str:
    """Return the kind of a difference; empty if there is none.

    Users' variables must be equal, or contain addresses of the same nodes.
    """
    if one is None or other is None:
        return "injected" if (one and one.injected) or (other and other.injected) else "env"
    if _is_same_entry(one, other):
        return ""
    if hosts[0].neutralize(one.value) == hosts[1].neutralize(other.value):
        if one.value == other.value:
            return ""
        return "injected" if one.injected or other.injected else "host"
    if one.injected or other.injected:
        return "" if one.value == other.value else "injected"
    same = one.entry == other.entry and (one.depends or other.depends)
    return "injected" if same and not (one.unresolved or other.unresolved) else "env"


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


def _compare_mounts(prefix: str, before: Side, after: Side, field: str) -> Iterator[Change]:
    mounts = [_list_mounts(side.pod, side.container) for side in (before, after)]
    written = [_list_mounts(each.pod, _find_written(each.pod, each.container, field)) for each in (before, after)]
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
