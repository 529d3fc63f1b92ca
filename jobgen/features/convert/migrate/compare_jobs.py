"""Compare the pods of a job before and after a migration: all that they run, and how they find each other."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.migrate.ray_commands import read_entrypoint, to_shell_command
from jobgen.features.convert.migrate.runtime import JOB_NAME, is_torchrun
from jobgen.features.convert.operators.compare import (
    WORLD,
    Hosts,
    Numbers,
    PodDifference,
    compare_pods,
    count_processes,
    find_hosts,
    find_main,
    is_launched,
    name_ranks,
    read_env,
)
from jobgen.features.convert.operators.create import create_pods
from jobgen.features.convert.operators.created import (
    CreatedPod,
    Fields,
    as_fields,
    as_items,
    edit_first_container,
    find_container,
    get_fields,
    list_containers,
    list_indexes,
    read_texts,
    upsert_env,
)
from jobgen.features.convert.operators.tensorstack import UNDOCUMENTED
from jobgen.features.convert.operators.training_operator import map_restart_policy
from jobgen.model.data import Plain, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster
from jobgen.spec.replicas import count_pods, find_restart_policy, find_template, get_at
from jobgen.yamlio.read import read

_NEWEST = Cluster()


class Rendered(NamedTuple):
    """A job as an object of one kind, with what decides about its pods."""

    object: Mapping[str, Plain]
    kind: Kind
    framework: str
    cluster: Cluster = _NEWEST
    runtimes: Sequence[Mapping[str, Plain]] = ()
    """The runtimes that the object may refer to; those that Trainer ships are known."""


def compare_jobs(before: Rendered, after: Rendered, lost: Iterable[str] = ()) -> list[PodDifference]:
    """List all differences between the pods of two objects, and between what these start.

    The pods of `lost` roles have no counterpart; they are compared with nothing.
    """
    every, new = (_list_pods(each) for each in (before, after))
    spellings = _list_spellings(before, lost)
    old = _number([pod for pod in every if pod.role.lower() not in spellings])
    gone = [pod for pod in every if pod.role.lower() in spellings]
    new = _align(old, new)
    hosts = _map_hosts(old, new)
    found = [
        each
        for each in compare_pods(old, new)
        if not (_is_name_of_job(each) or _is_same_host(each, hosts) or is_about_world(each))
    ]
    own = (_compare_worlds(old, new), _compare_missing_processes(old, new), _list_gone(gone))
    return [*(each for part in own for each in part), *_compare_entrypoints(before, after, old, new), *found]


def _list_spellings(side: Rendered, roles: Iterable[str]) -> frozenset[str]:
    found = [(name, side.kind.find_role(name)) for name in roles]
    return frozenset(
        text.lower() for name, role in found for text in (name, str(value_of(role.spelling)) if role else "")
    )


def _list_gone(pods: Iterable[CreatedPod]) -> Iterator[PodDifference]:
    counts: Counter[str] = Counter()
    for pod in pods:
        counts[pod.role.lower()] += pod.count
    for role, count in counts.items():
        yield PodDifference("nodes", role, "pods", count, 0, training=True)


def is_about_world(difference: PodDifference) -> bool:
    """Return True if a difference is about a variable that describes the nodes."""
    match = re.search(r"(?:^| )env (\S+)$", difference.field)
    return match is not None and WORLD.fullmatch(match[1]) is not None


def _list_pods(side: Rendered) -> list[CreatedPod]:
    """Return the pods of an object. Those of an operator that jobgen does not know are the templates as they are."""
    pods = create_pods(side.object, side.runtimes, side.cluster) or tuple(_list_templates(side))
    pods = tuple(map(_assign_rank, pods))
    leading = _list_leading_roles(side)
    nodes = sorted((pod for pod in pods if pod.rank is not None and pod.role.lower() not in leading), key=_get_rank)
    if not nodes:
        return [replace(pod, rank=rank) for rank, pod in enumerate(pods)]
    others = [pod for pod in pods if pod not in nodes]
    variables = _list_runtime_variables(side)
    return [_add_variables(pod, variables) for pod in _number([*nodes, *(replace(pod, rank=None) for pod in others)])]


def _number(pods: Sequence[CreatedPod]) -> list[CreatedPod]:
    """Return the pods with ranks without gaps."""
    nodes = sorted((pod for pod in pods if pod.rank is not None), key=_get_rank)
    return [replace(pod, rank=rank) for rank, pod in enumerate(nodes)] + [pod for pod in pods if pod.rank is None]


def _list_runtime_variables(side: Rendered) -> list[Fields]:
    """Return the variables that a RayJob gives its processes besides those of its containers."""
    text = get_fields(side.object, "spec").get("runtimeEnvYAML") if side.kind.code == "ray-job" else None
    documents = read(text.encode(), "").documents if isinstance(text, str) else ()
    found = get_fields(documents[0].data, "env_vars") if documents else {}
    return [{"name": str(name), "value": str(value)} for name, value in found.items()]


def _add_variables(pod: CreatedPod, variables: list[Fields]) -> CreatedPod:
    if not variables or pod.rank is None:
        return pod
    template = as_fields(pod.template)
    written = edit_first_container(get_fields(template, "spec"), lambda each: upsert_env(each, variables))
    spec = edit_first_container(pod.spec, lambda each: upsert_env(each, variables))
    return replace(pod, spec=spec, template={**template, "spec": written})


def _list_leading_roles(side: Rendered) -> frozenset[str]:
    """Return the roles that lead: a launcher, even if its operator gives it a rank, and the head of a Ray cluster."""
    described = side.kind.frameworks.get(side.framework)
    roles = [role for name in (described.roles if described else ()) if (role := side.kind.find_role(name))]
    leading = [role for role in roles if role.launches or role.at]
    return frozenset(name.lower() for role in leading for name in (role.name, str(value_of(role.spelling))))


def _get_rank(pod: CreatedPod) -> int:
    return pod.rank or 0


def _list_templates(side: Rendered) -> Iterator[CreatedPod]:
    """Yield the pods of an object whose operator is unknown, or of a TrainJob whose runtime is unknown."""
    obj, kind = side.object, side.kind
    rows: list[tuple[str, int, Any, str]] = []
    if kind.template is not None:
        container = {field: value for field, path in kind.template.container.items() if (value := get_at(obj, path))}
        name = str(value_of(kind.container))
        template = {"spec": {"containers": [{"name": name, **container}]}}
        rows.append((name, get_at(obj, kind.replicas_at) or 1, template, ""))
    else:
        for item in kind.list_items(obj):
            role = next((each for each in kind.roles.values() if value_of(each.spelling) == item.key), kind.any_role)
            count = count_pods(item.data, kind.replicas, role.omitted if role else 1)
            policy = value_of(find_restart_policy(item.data, kind.replicas)) or kind.restart_default
            rows.append((str(item.key), count, find_template(item.data, kind.replicas), str(policy)))
    rank = 0
    for name, total, template, policy in rows:
        spec, metadata = get_fields(template, "spec"), get_fields(template, "metadata")
        restarts = map_restart_policy(policy or "OnFailure", get_fields(obj, "spec"))
        pod = CreatedPod(
            name,
            0,
            name,
            spec,
            as_fields(template),
            read_texts(metadata.get("labels")),
            read_texts(metadata.get("annotations")),
            main=next((str(each.get("name")) for each in list_containers(spec)), ""),
            restarts=restarts,
        )
        for index, count in list_indexes(total):
            yield replace(pod, index=index, name=f"{name}-{index}", rank=rank + index, count=count)
        rank += total


def _assign_rank(pod: CreatedPod) -> CreatedPod:
    """Give a pod the rank in its variable RANK, if it is a job of its own in the runtime."""
    if pod.rank is not None:
        return pod
    rank = next((value for value in _list_ranks(pod) if value.isdigit()), "")
    return replace(pod, rank=int(rank), main=pod.main or "node") if rank else pod


def _list_ranks(pod: CreatedPod) -> Iterator[str]:
    for container in list_containers(pod.spec):
        name = str(container.get("name"))
        written = find_container(as_fields(pod.template.get("spec")), name)
        variable = read_env(pod, container, written).get("RANK")
        yield variable.value if variable else ""


def _align(old: Sequence[CreatedPod], new: Sequence[CreatedPod]) -> list[CreatedPod]:
    """Give nodes of the same role and index the same rank: operators count roles without ranks in other orders."""
    sizes = [_count_roles(pods) for pods in (old, new)]
    if sizes[0] != sizes[1]:
        return list(new)
    ranks = {(pod.role.lower(), pod.index): pod.rank for pod in old if pod.rank is not None}
    return [pod if pod.rank is None else replace(pod, rank=ranks[pod.role.lower(), pod.index]) for pod in new]


def _count_roles(pods: Iterable[CreatedPod]) -> Counter[tuple[str, int]]:
    return Counter((pod.role.lower(), pod.index) for pod in pods if pod.rank is not None)


def _map_hosts(old: Sequence[CreatedPod], new: Sequence[CreatedPod]) -> dict[str, str]:
    """The addresses of the nodes before and after."""
    after = {pod.rank: pod.address for pod in new if pod.rank is not None and pod.address}
    return {pod.address: after[pod.rank] for pod in old if pod.address and pod.rank in after}


def _is_same_host(difference: PodDifference, hosts: Mapping[str, str]) -> bool:
    """Return True if a variable has the address of the same node."""
    return difference.kind == "env" and difference.before in hosts and hosts[difference.before] == difference.after


def _is_name_of_job(difference: PodDifference) -> bool:
    """Return True if a difference is the variable that other variables are composed of."""
    return difference.field.endswith(f"env {JOB_NAME}") and difference.before is None


PROCESSES = "PET_NPROC_PER_NODE"
"""What it says is compared as the number of processes."""
_RENDEZVOUS = frozenset(
    f"PET_{name}" for name in ("RDZV_BACKEND", "RDZV_ENDPOINT", "RDZV_ID", "MASTER_ADDR", "MASTER_PORT", "NODE_RANK")
)
"""Variables by which torchrun finds the other nodes: an endpoint, or an address and a rank."""
_ADDRESSES = ("PET_RDZV_ENDPOINT", "PET_MASTER_ADDR")


def _compare_worlds(old: Sequence[CreatedPod], new: Sequence[CreatedPod]) -> Iterator[PodDifference]:
    """Compare the variables that describe the nodes: those of before must be there, with the same meaning."""
    hosts = find_hosts(old), find_hosts(new)
    after = {pod.rank: pod for pod in new if pod.rank is not None}
    found: dict[str, list[tuple[CreatedPod, Any, Any]]] = {}
    for pod in old:
        partner = after.get(pod.rank) if pod.rank is not None else None
        if partner is not None:
            worlds = [_read_world(each, own) for each, own in zip((pod, partner), hosts, strict=True)]
            for name, (value, text) in worlds[0].items():
                other, other_text = worlds[1].get(name, (None, None))
                # torchrun takes one node if it has no number.
                is_default = other is None and (name, value) == ("PET_NNODES", "1")
                if value != other and UNDOCUMENTED not in (value, other) and not is_default:
                    found.setdefault(name, []).append((pod, text, other_text))
    total = sum(pod.rank is not None for pod in old)
    for name, rows in found.items():
        pods, *sides = zip(*rows, strict=True)
        where = name_ranks([*map(_get_rank, pods)], total)
        before, after = (_join_values(side, pods[-1].count) for side in sides)
        yield PodDifference("world", where, f"env {name}", before, after, training=True)


def _join_values(values: Sequence[Any], count: int) -> Any:
    """Return the value of a variable in some nodes, of which the last stands for others, too: as a range of numbers."""
    first = values[0]
    if len(values) < 2 or not str(first).isdecimal():
        return first
    last = int(first) + len(values) - 1
    return Numbers(int(first), last + count - 1) if str(last) == values[-1] else first


def _read_world(pod: CreatedPod, hosts: Hosts) -> dict[str, tuple[str, str]]:
    """Return the variables that describe the nodes: what they mean without ports and addresses, and their values."""
    container = find_main(pod)
    env = read_env(pod, container, container)
    found = {
        name: (_neutralize(name, variable.value, hosts), variable.value)
        for name, variable in env.items()
        if WORLD.fullmatch(name) and name not in _RENDEZVOUS and name != PROCESSES
    }
    if is_torchrun(dict(container)):
        # It sets the other variables for its processes, whatever it got.
        found = {name: value for name, value in found.items() if name.startswith("PET_")}
    address = next((env[name].value for name in _ADDRESSES if name in env), "")
    is_alone = len(hosts.ranks) < 2
    return (
        found if is_alone or not address else {**found, "PET_MASTER_ADDR": (_neutralize("", address, hosts), address)}
    )


def _neutralize(name: str, value: str, hosts: Hosts) -> str:
    if value == UNDOCUMENTED or name.endswith("_PORT"):
        return value if value == UNDOCUMENTED else ""
    if name == "TF_CONFIG":
        return _describe_config(value)
    if name == "PADDLE_MASTER":
        # The first node knows itself by its IP.
        return "<rank 0>"
    return re.sub(r"(?<=>):\d+", "", hosts.neutralize(value))


def _describe_config(text: str) -> str:
    """Return what a TF_CONFIG says without addresses: the size of each role, and the task."""
    try:
        config = json.loads(text)
        sizes = {role: len(hosts) for role, hosts in config["cluster"].items() if role != "evaluator"}
        return json.dumps([sizes, config["task"]["type"], str(config["task"]["index"])], sort_keys=True)
    except (TypeError, ValueError, KeyError, AttributeError):
        return text


def _compare_missing_processes(old: Sequence[CreatedPod], new: Sequence[CreatedPod]) -> Iterator[PodDifference]:
    """Compare the number of processes where one side has none: a launcher starts one then."""
    nodes = [next((pod for pod in pods if pod.rank == 0), None) for pods in (old, new)]
    if nodes[0] is None or nodes[1] is None or not is_launched(nodes[0]):
        return
    numbers = [count_processes(pod) for pod in nodes if pod]
    if any(numbers) and not all(numbers) and [number or "1" for number in numbers] != ["1", "1"]:
        values = [number or "1" for number in numbers]
        yield PodDifference("world", "all nodes", f"env {PROCESSES}", values[0], values[1], training=True)


def _compare_entrypoints(
    before: Rendered, after: Rendered, old: Sequence[CreatedPod], new: Sequence[CreatedPod]
) -> Iterator[PodDifference]:
    """Compare the command of a RayJob, which has one for all pods, with that of the node that leads."""
    sides = [(before, old), (after, new)]
    rays = [side.kind.code == "ray-job" for side, _ in sides]
    if rays[0] == rays[1]:
        return
    words = [
        read_entrypoint(side.object) if is_ray else _read_leader(pods)
        for is_ray, (side, pods) in zip(rays, sides, strict=True)
    ]
    ray, other = (words[0], words[1]) if rays[0] else (words[1], words[0])
    if ray not in (other, to_shell_command(other)):
        yield PodDifference("entrypoint", "job", "command", words[0] or None, words[1] or None, training=True)
    nodes = [sum(pod.count for pod in pods if pod.rank is not None) for _, pods in sides]
    starts = [1 if is_ray else count for is_ray, count in zip(rays, nodes, strict=True)]
    if starts[0] != starts[1]:
        yield PodDifference("starts", "job", "pods that start the program", starts[0], starts[1], training=True)


def _read_leader(pods: Sequence[CreatedPod]) -> list[str]:
    """Return the command of the launcher, or else of the first node."""
    leaders = sorted(pods, key=lambda pod: (pod.rank is not None, pod.rank or 0))
    for pod in leaders:
        container = find_container(as_fields(pod.template.get("spec")), pod.main) or next(list_containers(pod.spec), {})
        words = [str(word) for key in ("command", "args") for word in as_items(container.get(key))]
        if words:
            return words
    return []
