"""Compare the pods of two objects: what changes for training, and what only the operators do differently.

Pods are compared by rank, containers by name, and the container that trains with the one that trains. Fields that users
wrote must be equal. Names, addresses, ports, and what an operator adds, may differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.operators.created import (
    CreatedPod,
    Fields,
    Restarts,
    as_fields,
    as_items,
    as_string,
    find_container,
    get_fields,
    list_containers,
    read_texts,
)
from jobgen.k8s.devices import is_device
from jobgen.k8s.shell.commands import find_option_values, parse_command
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import canonicalize_quantity, to_milli

# What a process in a container sees: its variables, with fields and references resolved, and addresses of nodes.

_REFERENCE = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_METADATA = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


class Variable(NamedTuple):
    """A variable of a process."""

    entry: Fields
    """The entry of `env`."""
    value: str
    """Its value; for a secret or another object, the text of the reference."""
    injected: bool
    """True if the operator adds it."""
    depends: bool = False
    """True if its value has a reference to a variable of the operator."""
    unresolved: bool = False
    """True if its value has a reference to a variable that does not exist."""


class Expanded(NamedTuple):
    """A text after Kubernetes expanded its references to variables."""

    text: str
    unresolved: bool
    """True if it has a reference to a variable that does not exist."""
    depends: bool
    """True if it depends on a variable of the operator."""


def read_env(pod: CreatedPod, container: Fields, written: Fields) -> dict[str, Variable]:
    """Return the variables of a container; `written` is the same container in the pod template."""
    own = as_items(written.get("env"))
    found: dict[str, Variable] = {}
    for entry in as_items(container.get("env")):
        name = as_string(as_fields(entry).get("name"))
        if name:
            injected = entry not in own
            if isinstance(entry.get("valueFrom"), dict):
                found[name] = Variable(entry, _resolve_source(pod, entry["valueFrom"]), injected)
            else:
                expanded = expand(as_string(entry.get("value")), found)
                found[name] = Variable(entry, expanded.text, injected, expanded.depends, expanded.unresolved)
    return found


def expand(text: str, env: dict[str, Variable]) -> Expanded:
    """Expand `$(NAME)` as Kubernetes does: a reference to an unknown variable stays, and `$$` is one `$`."""
    unresolved = depends = False

    def replace(match: re.Match[str]) -> str:
        nonlocal unresolved, depends
        if match[1] == "$":
            return "$"
        variable = env.get(match[2])
        if variable is None:
            unresolved = True
            return match[0]
        depends = depends or variable.injected or variable.depends
        return variable.value

    return Expanded(_REFERENCE.sub(replace, text), unresolved, depends)


def _resolve_source(pod: CreatedPod, source: Fields) -> str:
    path = as_string(get_fields(source, "fieldRef").get("fieldPath"))
    match = _METADATA.fullmatch(path)
    if match:
        values = pod.labels if match[1] == "labels" else pod.annotations
        return as_string(values.get(match[2]))
    return pod.name if path == "metadata.name" else json.dumps(source, sort_keys=True, default=str)


class Hosts(NamedTuple):
    """The ranks of nodes by their addresses."""

    ranks: dict[str, int]

    def neutralize(self, text: str) -> str:
        """Return a text with `<rank 0>` in place of the address of the node with this rank."""
        found = [address for address in self.ranks if address in text]
        if not found:
            return text
        names = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-])", lambda match: f"<rank {self.ranks[match[0]]}>", text)


def find_hosts(pods: Iterable[CreatedPod]) -> Hosts:
    """Collect the addresses of the nodes of a set of pods."""
    return Hosts({pod.address: pod.rank for pod in pods if pod.rank is not None and pod.address})


class Change(NamedTuple):
    """What differs between two pods."""

    kind: str
    field: str
    before: Any
    after: Any
    training: bool


def describe_changes(
    pairs: Iterable[tuple[str, Iterable[Change]]], total: int
) -> Iterator[tuple[str, str, str, Any, Any, bool]]:
    """Yield each change once, with the ranks that it concerns.

    Changes of a name, an address or a variable of an operator are the same if only the values differ from rank to rank.
    """
    found: dict[str, tuple[Change, list[int]]] = {}
    for rank, changes in pairs:
        for change in changes:
            values = [change.before, change.after] if change.training else [change.before is None, change.after is None]
            key = json.dumps([change.kind, change.field, *values], sort_keys=True, default=str)
            found.setdefault(key, (change, []))[1].append(int(rank))
    for change, ranks in found.values():
        where = name_ranks(ranks, total)
        yield change.kind, where, change.field, change.before, change.after, change.training


def name_ranks(ranks: Sequence[int], total: int) -> str:
    """Return ranks as `all nodes`, `rank 0` or `ranks 1-3, 5`."""
    if len(ranks) == total:
        return "all nodes"
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and spans[-1][1] == rank - 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(texts)}"


_SEPARATE_CONTAINER_FIELDS = frozenset("name image command args env ports resources volumeMounts".split())
_LAUNCHERS = re.compile(r"torchrun|torch\.distributed|accelerate|torchx|mpirun|mpiexec|deepspeed")
WORLD = re.compile(
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
    sides = [[as_fields(port) for port in as_items(each.get("ports"))] for each in (first, second)]
    numbers = [sorted({str(port.get("containerPort")) for port in ports}) for ports in sides]
    host = any("hostPort" in port for ports in sides for port in ports)
    if numbers[0] != numbers[1]:
        yield Change("ports", f"{prefix}ports", ", ".join(numbers[0]), ", ".join(numbers[1]), training=host)
    yield from _compare_mounts(prefix, before, after, field)
    yield from _compare_named_files(prefix, before, after, written)
    for name in dict.fromkeys([*first, *second]):
        values = [None if is_empty(each.get(name)) else each.get(name) for each in (first, second)]
        if name not in _SEPARATE_CONTAINER_FIELDS and values[0] != values[1]:
            own = [each.get(name) for each in written]
            added = any(not is_empty(value) and is_empty(wrote) for value, wrote in zip(values, own, strict=True))
            kind = "injected" if added else "container"
            yield Change(kind, f"{prefix}{name}", values[0], values[1], training=not added)


def is_empty(value: Any) -> bool:
    """Return True if a field counts as not set."""
    return value is None or value in ("", [], {})


def is_launched(pod: CreatedPod) -> bool:
    """Return True if the number of processes that the operator sets can have an effect.

    It has none if no launcher is in the command line, or if the command line states the number of processes itself.
    What the entrypoint of an image does is unknown.
    """
    container = find_main(pod)
    arguments = parse_command([*as_items(container.get("command")), *as_items(container.get("args"))])
    if any(find_option_values(arguments, "nproc-per-node")):
        return False
    return any(_LAUNCHERS.search(argument.text) or _SCRIPTS.search(argument.text) for argument in arguments)


def count_processes(pod: CreatedPod) -> str:
    """Return the processes on a node; `auto` is one for each accelerator."""
    limits = as_fields(as_fields(find_main(pod).get("resources")).get("limits"))
    devices = sum((to_milli(amount) or 0) // 1000 for name, amount in limits.items() if is_device(str(name)))
    written = read_env(pod, find_main(pod), {}).get("PET_NPROC_PER_NODE")
    processes = pod.processes or (written.value if written else "")
    return str(devices) if processes in ("auto", "gpu") and devices else processes


def read_elastic_range(pod: CreatedPod) -> str:
    """Return the range of nodes that the launcher accepts, such as `1:4`; empty if the number of nodes is fixed."""
    container = find_main(pod)
    variable = read_env(pod, container, {}).get("PET_NNODES")
    options = find_option_values(
        parse_command([*as_items(container.get("command")), *as_items(container.get("args"))]), "nnodes"
    )
    text = next((option.text for option in options), variable.value if variable else "")
    least, colon, most = text.partition(":")
    return text if colon and least != most else ""


def find_main(pod: CreatedPod) -> Fields:
    """Return the container that trains, or else the first one."""
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
    if raw[0] == raw[1] and depends and _drop_ports(neutral[0]) == _drop_ports(neutral[1]):
        yield Change("host", field, texts[0], texts[1], training=False)
    elif raw[0] == raw[1] and resolved and depends:
        yield Change("injected", field, texts[0], texts[1], training=False)
    else:
        shown = neutral if texts[0] == texts[1] else texts
        yield Change(field.rpartition(" ")[2], field, shown[0], shown[1], training=True)


_PORT = re.compile(r"(?<=>):\d+")
"""The port of a node, which follows its address."""


def _drop_ports(texts: Iterable[str]) -> list[str]:
    return [_PORT.sub("", text) for text in texts]


def _compare_env(prefix: str, env: _Envs, hosts: tuple[Hosts, Hosts]) -> Iterator[Change]:
    for name in dict.fromkeys([*env[0], *env[1]]):
        one, other = env[0].get(name), env[1].get(name)
        kind = "injected" if one is None and WORLD.fullmatch(name) else _classify_variable(one, other, hosts)
        if kind == "env" and one and other and name.endswith("_PORT") and WORLD.fullmatch(name):
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
    if "valueFrom" in one.entry and one.entry == other.entry:
        return ""
    if hosts[0].neutralize(one.value) == hosts[1].neutralize(other.value):
        if one.value == other.value:
            return ""
        return "injected" if one.injected or other.injected else "host"
    if one.injected or other.injected:
        return "" if one.value == other.value else "injected"
    same = one.entry == other.entry and (one.depends or other.depends)
    return "injected" if same and not (one.unresolved or other.unresolved) else "env"


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


def _compare_named_files(prefix: str, before: Side, after: Side, written: list[Fields]) -> Iterator[Change]:
    """Yield the files of the operator that users name in their commands or variables, and that are not there after."""
    found = _list_operator_files(before, written[0])
    entries = [as_fields(each) for each in as_items(after.container.get("env"))]
    words = (*as_items(after.container.get("command")), *as_items(after.container.get("args")))
    own = [as_string(each.get("value")) for each in entries if each in as_items(written[1].get("env"))]
    text = "\n".join((*map(as_string, words), *own)) if found else ""
    mounts = _list_mounts(after.pod, after.container)
    for path in found:
        if re.search(rf"{re.escape(path)}(?![\w./-])", text) and not any(
            _has_file(mount, folder, path) for folder, mount in mounts.items()
        ):
            yield Change("files", f"{prefix}file `{path}`", "mounted by the operator", None, training=True)


def _list_operator_files(side: Side, written: Fields) -> list[str]:
    """Return the paths of the files that an operator mounts by name."""
    own = [as_fields(each).get("mountPath") for each in as_items(written.get("volumeMounts"))]
    mounts = _list_mounts(side.pod, side.container)
    return [f"{path}/{name}" for path, mount in mounts.items() if path not in own for name in _list_names(mount)]


def _list_names(mount: Fields) -> list[str]:
    items = as_items(get_fields(mount, "volume", "configMap").get("items"))
    return [as_string(as_fields(each).get("path")) for each in items]


def _has_file(mount: Fields, folder: str, path: str) -> bool:
    """Return True if a mount has a file, or may have it because its files are not listed."""
    names = _list_names(mount)
    return path.startswith(f"{folder}/") and (not names or path.removeprefix(f"{folder}/") in names)


_SCHEDULING = frozenset(
    """affinity nodeName nodeSelector overhead preemptionPolicy priority priorityClassName resourceClaims resources
    runtimeClassName schedulerName schedulingGates tolerations topologySpreadConstraints""".split()
)
_SEPARATE = frozenset(
    "containers initContainers volumes hostname subdomain restartPolicy serviceAccount setHostnameAsFQDN".split()
)


class Numbers(NamedTuple):
    """The values that a variable has from the first of some nodes to the last one, such as their ranks."""

    first: int
    last: int


class PodDifference(NamedTuple):
    """A difference between the pods of two objects."""

    kind: str
    """`nodes`, `processes`, `restart`, `retries`, `image`, `command`, `args`, `env`, `injected`, `resources`, `mounts`,
    `files`, `volumes`, `container`, `initContainers`, `scheduling`, `pod`, `metadata`, `ports`, `name` or `host`."""
    where: str
    """The pods: `all nodes`, `rank 0`, `ranks 1-3`, or the role of pods that are not nodes."""
    field: str
    """What differs, such as `env RANK` or `nodeSelector`."""
    before: Any
    after: Any
    training: bool
    """True if training differs; otherwise only the operators do something else."""


def compare_pods(before: Sequence[CreatedPod], after: Sequence[CreatedPod]) -> list[PodDifference]:
    """List what differs between two sets of pods, first what changes for training."""
    hosts = find_hosts(before), find_hosts(after)
    found = [PodDifference(change.kind, "all nodes", *change[1:]) for change in _compare_worlds(before, after)]
    nodes = [sorted((pod for pod in pods if pod.rank is not None), key=_get_rank) for pods in (before, after)]
    pairs = [(f"{one.rank}", _compare_pair(one, other, hosts)) for one, other in zip(*nodes, strict=False)]
    total = min(map(len, nodes))
    found += [PodDifference(*row) for row in describe_changes(pairs, total)]
    found += _compare_others(before, after, hosts)
    return sorted(found, key=lambda difference: not difference.training)


def _get_rank(pod: CreatedPod) -> int:
    return pod.rank or 0


def _compare_worlds(before: Sequence[CreatedPod], after: Sequence[CreatedPod]) -> Iterator[Change]:
    counts = [sum(pod.count for pod in pods if pod.rank is not None) for pods in (before, after)]
    if counts[0] != counts[1]:
        yield Change("nodes", "nodes", counts[0], counts[1], training=True)


def _compare_others(
    before: Sequence[CreatedPod], after: Sequence[CreatedPod], hosts: tuple[Hosts, Hosts]
) -> Iterator[PodDifference]:
    """Compare pods that are not nodes, such as launchers: they match by role, or by order if roles have other names."""
    others = [_join_by_role(pod for pod in pods if pod.rank is None) for pods in (before, after)]
    lost, added = ([role for role in others[side] if role not in others[1 - side]] for side in (0, 1))
    partners = dict(zip(lost, added, strict=False))
    for role in dict.fromkeys([*others[0], *(role for role in others[1] if role not in partners.values())]):
        one, other = others[0].get(role), others[1].get(partners.get(role, role))
        if one and other:
            changes = [*_compare_pair(one, other, hosts), *_compare_counts(one, other)]
            yield from (PodDifference(change.kind, role, *change[1:]) for change in changes)
        else:
            counts = [pod.count if pod else 0 for pod in (one, other)]
            yield PodDifference("nodes", role, "pods", counts[0], counts[1], training=True)


def _join_by_role(pods: Iterable[CreatedPod]) -> dict[str, CreatedPod]:
    """Return the last pod of each role, which stands for all of them."""
    found: dict[str, CreatedPod] = {}
    for pod in pods:
        role = pod.role.lower()
        found[role] = replace(pod, count=pod.count + found[role].count) if role in found else pod
    return found


def _compare_counts(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    if one.count != other.count:
        yield Change("nodes", "pods", one.count, other.count, training=True)


def _compare_pair(one: CreatedPod, other: CreatedPod, hosts: tuple[Hosts, Hosts]) -> Iterator[Change]:
    yield from _compare_starts(one, other)
    yield from _compare_all_containers(one, other, hosts)
    # Compare what volumes hold; their names do not matter, because mounts are compared with the volumes they use.
    sides = []
    for pod in (one, other):
        written = as_items(as_fields(pod.template.get("spec")).get("volumes"))
        sides.append([{key: value for key, value in as_fields(each).items() if key != "name"} for each in written])
    for lost in (volume for volume in sides[0] if volume not in sides[1]):
        yield Change("volumes", f"volume {next(iter(lost), '')}", lost, None, training=True)
    for added in (volume for volume in sides[1] if volume not in sides[0]):
        yield Change("volumes", f"volume {next(iter(added), '')}", None, added, training=True)
    yield from _compare_fields(one, other)
    yield from _compare_metadata(one, other)
    for kind, field in (("name", "name"), ("host", "hostname"), ("host", "address")):
        if getattr(one, field) != getattr(other, field):
            yield Change(kind, field, getattr(one, field), getattr(other, field), training=False)


UNLIMITED = 2**31 - 1
"""The limit of retries that stands for none: the largest number that fits."""
_DEFAULT_LIMIT = 6
"""The limit of a Job that sets none."""


def _compare_starts(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    """Compare how many processes start, and what happens if they fail."""
    processes = count_processes(one), count_processes(other)
    if all(processes) and processes[0] != processes[1]:
        yield Change("processes", "processes", *processes, training=is_launched(one) or is_launched(other))
    ranges = read_elastic_range(one), read_elastic_range(other)
    if ranges[0] != ranges[1]:
        launched = is_launched(one) or is_launched(other)
        yield Change("nodes", "elastic nodes", ranges[0] or None, ranges[1] or None, training=launched)
    before, after = one.restarts, other.restarts
    if before[:2] != after[:2]:
        # `Always` also restarts what succeeded. Who restarts what failed, the kubelet or the operator, does not matter.
        endless = "Always" in (before.policy, after.policy) and before.policy != after.policy
        differs = before.retried != after.retried or endless
        yield Change("restart", "restartPolicy", _describe(before), _describe(after), training=differs)
    limits = [None if each.limit == UNLIMITED else each.limit for each in (before, after)]
    if limits[0] != limits[1] and "never" not in (before.retried, after.retried):
        # Operators have other defaults; a number that is none of them was meant.
        is_meant = limits[0] not in (None, _DEFAULT_LIMIT)
        yield Change("retries", "backoffLimit", limits[0], limits[1], training=is_meant)


def _describe(restarts: Restarts) -> str:
    outcome = {
        "always": "training is retried",
        "never": "training is not retried",
        "retryable": "training is retried if the exit code allows it",
    }
    return f"{restarts.policy}, {outcome[restarts.retried]}"


def _compare_all_containers(one: CreatedPod, other: CreatedPod, hosts: tuple[Hosts, Hosts]) -> Iterator[Change]:
    for field in ("containers", "initContainers"):
        first, second = (_list_written(pod, field) for pod in (one, other))
        for name, container in first.items():
            partner = second.pop(name, None)
            if partner is None:
                yield Change(field, f"{field} {name}", container.get("image"), None, training=True)
            else:
                yield from compare_containers(Side(one, container, hosts[0]), Side(other, partner, hosts[1]), field)
        for name, container in second.items():
            yield Change(field, f"{field} {name}", None, container.get("image"), training=True)
        added = [_list_injected(pod, field) for pod in (one, other)]
        for name in dict.fromkeys([*added[0], *added[1]]):
            values = [side.get(name) for side in added]
            if values[0] != values[1]:
                images = [as_fields(value).get("image") for value in values]
                yield Change("injected", f"{field} {name}", images[0], images[1], training=False)


def _list_written(pod: CreatedPod, field: str) -> dict[str, Fields]:
    """Return the containers that users wrote, as the operator completes them; the one that trains has an empty name."""
    names = [as_string(each.get("name")) for each in list_containers(as_fields(pod.template.get("spec")), field)]
    main = pod.main if pod.main in names else names[0] if names else ""
    return {
        "" if name == main and field == "containers" else name: find_container(pod.spec, name, field) for name in names
    }


def _list_injected(pod: CreatedPod, field: str) -> dict[str, Fields]:
    """Return the containers that the operator adds."""
    written = as_fields(pod.template.get("spec"))
    named = ((as_string(each.get("name")), each) for each in list_containers(pod.spec, field))
    return {name: container for name, container in named if not find_container(written, name, field)}


def _compare_fields(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    """Compare the other fields of the pod spec."""
    for field in dict.fromkeys([*one.spec, *other.spec]):
        values = [_get_field(pod, field) for pod in (one, other)]
        if field in _SEPARATE or values[0] == values[1]:
            continue
        written = [not is_empty(as_fields(pod.template.get("spec")).get(field)) for pod in (one, other)]
        added = any(not is_empty(value) and not wrote for value, wrote in zip(values, written, strict=True))
        kind = "injected" if added else "scheduling" if field in _SCHEDULING else "pod"
        yield Change(kind, field, values[0], values[1], training=not added)


def _get_field(pod: CreatedPod, field: str) -> Any:
    value = pod.spec.get(field)
    if field == "serviceAccountName" and is_empty(value):
        value = pod.spec.get("serviceAccount")
    return None if is_empty(value) else value


def _compare_metadata(one: CreatedPod, other: CreatedPod) -> Iterator[Change]:
    """Compare the labels and annotations that users wrote."""
    for field in ("labels", "annotations"):
        first, second = (read_texts(as_fields(pod.template.get("metadata")).get(field)) for pod in (one, other))
        for key in dict.fromkeys([*first, *second]):
            values = [getattr(pod, field).get(key) for pod in (one, other)]
            if values[0] != values[1]:
                yield Change("metadata", f"{field} {key}", values[0], values[1], training=True)
