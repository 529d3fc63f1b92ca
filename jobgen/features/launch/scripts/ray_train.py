"""Ray Train: the workers of a `ScalingConfig` against the nodes of the Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jobgen.features.launch.arguments import Invariant, compared_values, find_faults
from jobgen.features.launch.python_calls import Call, find_call
from jobgen.features.launch.values import Fault, Pods, Program, World
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import value_of
from jobgen.model.quantity import parse_digits, to_milli

_NAMES = ("ray.train.ScalingConfig", "ray.air.config.ScalingConfig", "ray.air.ScalingConfig")
# Words of a script that uses GPUs besides the workers of Ray Train.
_OTHER_USES = ("ray.data", "map_batches", "num_gpus", "tune", "serve")


_MOST = 10**6  # more GPUs or CPUs than a worker can ask for


class RayNode(NamedTuple):
    """Nodes of a Ray cluster that are alike."""

    number: int
    gpus: int
    cpus: float | None


def list_ray_nodes(manifest: Manifest) -> list[RayNode] | None:
    """Return the nodes of a Ray cluster, as many as its autoscaler can add; None if they cannot be counted."""
    if manifest.group != "ray.io" or manifest.kind_name not in RAY_CLUSTERS:
        return None
    cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
    containers = {id(pod.template): pod.containers[0] for pod in manifest.pods if pod.containers}
    is_scaled = value_of(cluster.get("enableInTreeAutoscaling")) is True
    nodes: list[RayNode] = []
    for group in map(as_mapping, (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))):
        container = containers.get(id(group.get("template")))
        if container is None or "resources" in group or as_mapping(container.data.get("resources")).get("claims"):
            return None
        given = as_mapping(group.get("rayStartParams"))
        is_head = group is cluster.get("headGroupSpec")
        field = "maxReplicas" if is_scaled else "replicas"
        replicas = value_of(group.get(field, group.get("minReplicas", 1)))
        hosts = value_of(group.get("numOfHosts", 1))
        count = 1 if is_head else replicas * hosts if isinstance(replicas, int) and isinstance(hosts, int) else None
        gpus = parse_digits(as_text(given["num-gpus"])) if "num-gpus" in given else container.gpus
        wanted = given.get("num-cpus", container.limits.get("cpu", container.requests.get("cpu")))
        cpus = to_milli(wanted)
        if count is None or gpus is None:
            return None
        # KubeRay rounds up.
        nodes.append(RayNode(count, gpus, None if cpus is None else -(-cpus // 1000)))
    return nodes


_WHERE = "the `ScalingConfig` in line {line} of `{path}`"
_TABLE = (
    Invariant(
        "has_gpus uses_gpus",
        lambda has_gpus, uses_gpus: uses_gpus or not has_gpus,
        f"{_WHERE} has `use_gpu=False` and GPUs in `resources_per_worker` (Ray: `use_gpu is False but GPU was found in "
        "resources_per_worker`); write `use_gpu=True`, or remove `GPU`",
    ),
    Invariant(
        "largest",
        lambda largest: largest > 0,
        f"{_WHERE} asks for {{each}} for each worker, which no node of the cluster has; ask for less",
    ),
    Invariant(
        "workers room",
        lambda workers, room: workers <= room,
        f"{_WHERE} asks for {{workers}} workers with {{each}} each, and the cluster has room for {{room}}, so that the "
        "placement group stays pending (Ray: `No available node types can fulfill resource request`); use "
        "`num_workers={room}`, or more nodes",
    ),
    Invariant(
        "packed largest",
        lambda packed, largest: packed <= largest,
        f"{_WHERE} puts {{packed}} workers with {{each}} each on one node (`STRICT_PACK`), and a node has room for "
        "{largest}; write `PACK`",
    ),
    Invariant(
        "spread hosts",
        lambda spread, hosts: spread <= hosts,
        f"{_WHERE} puts {{spread}} workers on nodes of their own (`STRICT_SPREAD`), and {{hosts}} nodes have room; "
        "write `SPREAD`",
    ),
    # Only the trainer of older releases has a CPU of its own.
    Invariant(
        "beside",
        lambda beside: beside > 0,
        f"{_WHERE} asks for {{each}} for each worker, and the trainer needs one more CPU on the node; ask for less",
        is_error=False,
    ),
    Invariant(
        "used total",
        lambda used, total: used >= total,
        f"{_WHERE} uses {{used:g}} of the {{total}} GPUs of the cluster; use more workers, or fewer nodes",
        is_error=False,
    ),
)


def check(program: Program, _world: World, pods: Pods) -> Iterator[Fault]:
    """Check that the workers of a literal `ScalingConfig` fit on the nodes, and use their GPUs."""
    call = find_config(program)
    if call is None:
        return
    text = program.files(program.path) or ""
    numbers = read_numbers(call, pods) | {"path": program.path}
    if any(word in text for word in _OTHER_USES):
        numbers["total"] = None
    # What does not fit at all need not be packed.
    for fault in list(find_faults(_TABLE, numbers, {}, program, pods))[:1]:
        yield fault._replace(related=compared_values(pods))


def find_config(program: Program) -> Call | None:
    """Return the literal `ScalingConfig` of a script; None if there is none."""
    return next(filter(None, (find_call(program, name) for name in _NAMES)), None)


def read_numbers(call: Call, pods: Pods) -> dict[str, Any]:
    """Return the numbers of the table by name; none if the nodes of the cluster cannot be counted."""
    nodes = list_ray_nodes(pods.container.pod.manifest)
    if nodes is None:
        return {}
    workers, strategy = call.get("num_workers", 1, 1), call.get("placement_strategy", 4, "PACK")
    uses_gpus, given = call.get("use_gpu", 2, default=False), call.get("resources_per_worker", 3, {})
    if not isinstance(given, Mapping) or not isinstance(uses_gpus, bool) or not isinstance(workers, int) or workers < 1:
        return {}
    each = _Worker.read(given, uses_gpus=uses_gpus)
    numbers = {"has_gpus": bool(given.get("GPU")), "uses_gpus": uses_gpus, "line": call.line}
    if each.gpus is None:
        return numbers
    places = [(node.number, each.count_on(node)) for node in nodes if node.number]
    return numbers | {
        "workers": workers,
        "each": each.describe(),
        "room": sum(count * number for count, number in places),
        "largest": max((number for _, number in places), default=0),
        "hosts": sum(count for count, number in places if number),
        "packed": workers if strategy == "STRICT_PACK" else None,
        "spread": workers if strategy == "STRICT_SPREAD" else None,
        "beside": max((each.count_on(node, extra=1) for node in nodes if node.number), default=0),
        "used": workers * each.gpus,
        "total": sum(node.number * node.gpus for node in nodes),
    }


class _Worker(NamedTuple):
    gpus: float | None
    cpus: float

    @classmethod
    def read(cls, given: Mapping[str, Any], *, uses_gpus: bool) -> _Worker:
        gpus = given.get("GPU", 1 if uses_gpus else 0)
        cpus = given.get("CPU", 0 if uses_gpus or given else 1)
        is_known = all(isinstance(each, int | float) and 0 <= each < _MOST for each in (gpus, cpus))
        return cls(gpus, cpus) if is_known else cls(None, 0)

    def count_on(self, node: RayNode, extra: int = 0) -> int:
        """Return how many workers a node has room for; `extra`: CPUs for something else."""
        bounds = []
        if self.gpus:
            # A worker with a part of a GPU shares one GPU only.
            per_gpu = int(1 / self.gpus + 1e-9) if self.gpus <= 1 else 0
            bounds.append(node.gpus * per_gpu if per_gpu else int(node.gpus // self.gpus))
        if self.cpus and node.cpus is not None:
            bounds.append(max(0, int((node.cpus - extra) // self.cpus)))
        return min(bounds, default=10**9)

    def describe(self) -> str:
        parts = [f"{self.gpus:g} GPUs" if self.gpus != 1 else "1 GPU"] if self.gpus else []
        parts += [f"{self.cpus:g} CPUs" if self.cpus != 1 else "1 CPU"] if self.cpus else []
        return " and ".join(parts) or "no resources"
