"""Calls with literal arguments in the Python scripts of a repository: JAX and Ray Train against pods and nodes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jobgen.features.launch.options import Invariant, compared_values, find_faults
from jobgen.features.launch.values import Fault, Pods, Program, World
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import Location
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_digits, to_milli


class Call(NamedTuple):
    """A call: its arguments by name or position, without those that are not known, and its line."""

    arguments: Mapping[str | int, Any]
    names: frozenset[str | int]
    """The names and positions of all arguments; `*` for those that `*` and `**` add."""
    line: int

    def get(self, name: str, position: int, default: Any) -> Any:
        """Return an argument, its default if it is not given, or None if it is not known."""
        if name in self.names or position in self.names:
            return self.arguments.get(name, self.arguments.get(position))
        return None if "*" in self.names else default


_CONDITIONS = (ast.If, ast.Try, ast.While, ast.For, ast.IfExp, ast.Lambda, ast.Match, ast.comprehension, ast.BoolOp)
_MAX_TEXT = 200_000


@lru_cache(maxsize=64)
def parse_python(text: str) -> ast.Module | None:
    """Return the tree of a script; None if it is too long, or is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text) if len(text) <= _MAX_TEXT else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def find_call(program: Program, function: str) -> Call | None:
    """Return the call of a function, such as `jax.distributed.initialize`, if a script has one that certainly runs."""
    text = program.files(program.path) if program.path.endswith(".py") else None
    if text is None or function.rpartition(".")[2] not in text or (tree := parse_python(text)) is None:
        return None
    try:
        names = _read_imports(tree)
        found = list(_find_calls(tree, function, names))
        if len(found) != 1 or found[0] is None:
            return None
        return _read_call(found[0], _read_constants(tree, program), program)
    except RecursionError:
        return None


def _read_imports(tree: ast.Module) -> dict[str, str]:
    """Return what names of the script stand for: `ScalingConfig` for `ray.train.ScalingConfig`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                names[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    return names


def _find_calls(tree: ast.AST, function: str, names: Mapping[str, str]) -> Iterator[ast.Call | None]:
    """Yield the calls of a function; None for one that a condition decides on."""
    stack: list[tuple[ast.AST, bool]] = [(tree, True)]
    while stack:
        node, is_certain = stack.pop()
        if isinstance(node, ast.Call) and _full_name(node.func, names) == function:
            yield node if is_certain else None
        if isinstance(node, _CONDITIONS) and not _is_main(node):
            is_certain = False
        stack += [(child, is_certain) for child in ast.iter_child_nodes(node)]


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)


def _full_name(node: ast.expr, names: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((names.get(node.id, node.id), *reversed(parts)))


def _read_constants(tree: ast.Module, program: Program) -> dict[str, Any]:
    """Return the names that are assigned once, at the top of the script, to a value that is known."""
    written: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            written.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            written.setdefault(node.arg, []).append(None)
    constants: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and len(written.get(target.id, ())) == 1:
                value = _evaluate(statement.value, constants, program)
                if value is not None:
                    constants[target.id] = value
    return constants


def _read_call(node: ast.Call, constants: Mapping[str, Any], program: Program) -> Call:
    given: dict[str | int, ast.expr] = {}
    names: set[str | int] = set()
    for at, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred):
            names.add("*")
        else:
            given[at] = argument
    for keyword in node.keywords:
        if keyword.arg is None:
            names.add("*")
        else:
            given[keyword.arg] = keyword.value
    values = {name: _evaluate(value, constants, program) for name, value in given.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return Call(known, frozenset(names | given.keys()), node.lineno)


def _evaluate(node: ast.expr, constants: Mapping[str, Any], program: Program) -> Any:
    """Return the value of an expression: a constant, a name or variable that is known, or `int(…)`; else None."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Dict):
        keys = [_evaluate(key, constants, program) if key else None for key in node.keys]
        values = [_evaluate(value, constants, program) for value in node.values]
        return None if None in (*keys, *values) else dict(zip(keys, values, strict=True))
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        return _read_variable(_evaluate(node.slice, constants, program), None, program)
    if isinstance(node, ast.Call) and not node.keywords:
        name = ast.unparse(node.func)
        arguments = [_evaluate(each, constants, program) for each in node.args]
        if name == "int" and len(arguments) == 1 and isinstance(arguments[0], str | int):
            text = str(arguments[0])
            return int(text) if text.lstrip("-").isdecimal() and len(text) < 10 else None
        if name in ("os.environ.get", "os.getenv") and arguments:
            return _read_variable(arguments[0], arguments[1] if len(arguments) > 1 else None, program)
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    if isinstance(value, int):
        return value if abs(value) < 10**15 else None
    return value if isinstance(value, str | float | dict | list | tuple) else None


def _read_variable(name: Any, default: Any, program: Program) -> Any:
    word = program.variable(name) if isinstance(name, str) else None
    # The image can set variables that the manifest does not.
    return None if word is None and default is None else word.text if word else default


_JAX = (
    Invariant(
        lambda process, count: 0 <= process < count,
        "`jax.distributed.initialize` in line {line} of `{path}` has `process_id={process}` and "
        "`num_processes={count}` (JAX: `process_id and num_processes must be nonnegative, with process_id < "
        "num_processes. Got process_id={process}, num_processes={count}.`); pass the number of pods and the index of "
        "this one",
    ),
    Invariant(
        lambda count, world: count <= world,
        "`num_processes={count}` in line {line} of `{path}`, but the job starts {world} processes, so that JAX waits "
        "for processes that do not come; pass {world}",
    ),
)


def check_jax(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the literal numbers of `jax.distributed.initialize` with each other and with the pods."""
    call = find_call(program, "jax.distributed.initialize")
    if call is None:
        return
    address = call.get("coordinator_address", 0, "")
    count, process = call.get("num_processes", 1, None), call.get("process_id", 2, None)
    manifest = pods.container.pod.manifest
    started = world.size if world.is_launched else pods.count
    # Pods of other jobs can take part, if the coordinator is not one of this job.
    is_own = isinstance(address, str) and (not address or address.startswith(manifest.name))
    numbers = {
        "process": process if isinstance(process, int) else None,
        "count": count if isinstance(count, int) else None,
        "world": started if is_own else None,
        "line": call.line,
        "path": program.path,
    }
    faults = find_faults(_JAX, numbers, {}, program, pods)
    # Numbers that JAX refuses are not compared with the pods.
    for fault in list(faults)[:1]:
        yield fault._replace(file=program.path, inside=Location("", call.line, 1))


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
    is_scaled = cluster.get("enableInTreeAutoscaling") is True
    nodes: list[RayNode] = []
    for group in map(as_mapping, (cluster.get("headGroupSpec"), *as_list(cluster.get("workerGroupSpecs")))):
        container = containers.get(id(group.get("template")))
        if container is None or "resources" in group or as_mapping(container.data.get("resources")).get("claims"):
            return None
        given = as_mapping(group.get("rayStartParams"))
        is_head = group is cluster.get("headGroupSpec")
        field = "maxReplicas" if is_scaled else "replicas"
        replicas = group.get(field, group.get("minReplicas", 1))
        hosts = group.get("numOfHosts", 1)
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
_RAY_TRAIN = (
    Invariant(
        lambda has_gpus, uses_gpus: uses_gpus or not has_gpus,
        f"{_WHERE} has `use_gpu=False` and GPUs in `resources_per_worker` (Ray: `use_gpu is False but GPU was found in "
        "resources_per_worker`); write `use_gpu=True`, or remove `GPU`",
    ),
    Invariant(
        lambda largest: largest > 0,
        f"{_WHERE} asks for {{each}} for each worker, which no node of the cluster has; ask for less",
    ),
    Invariant(
        lambda workers, room: workers <= room,
        f"{_WHERE} asks for {{workers}} workers with {{each}} each, and the cluster has room for {{room}}, so that the "
        "placement group stays pending (Ray: `No available node types can fulfill resource request`); use "
        "`num_workers={room}`, or more nodes",
    ),
    Invariant(
        lambda packed, largest: packed <= largest,
        f"{_WHERE} puts {{packed}} workers with {{each}} each on one node (`STRICT_PACK`), and a node has room for "
        "{largest}; write `PACK`",
    ),
    Invariant(
        lambda spread, hosts: spread <= hosts,
        f"{_WHERE} puts {{spread}} workers on nodes of their own (`STRICT_SPREAD`), and {{hosts}} nodes have room; "
        "write `SPREAD`",
    ),
    # Only the trainer of older releases has a CPU of its own.
    Invariant(
        lambda beside: beside > 0,
        f"{_WHERE} asks for {{each}} for each worker, and the trainer needs one more CPU on the node; ask for less",
        is_error=False,
    ),
    Invariant(
        lambda used, total: used >= total,
        f"{_WHERE} uses {{used:g}} of the {{total}} GPUs of the cluster; use more workers, or fewer nodes",
        is_error=False,
    ),
)


def check_ray_train(program: Program, _world: World, pods: Pods) -> Iterator[Fault]:
    """Check that the workers of a literal `ScalingConfig` fit on the nodes, and use their GPUs."""
    call = find_config(program)
    if call is None:
        return
    text = program.files(program.path) or ""
    numbers = read_numbers(call, pods) | {"path": program.path}
    if any(word in text for word in _OTHER_USES):
        numbers["total"] = None
    # What does not fit at all need not be packed.
    for fault in list(find_faults(_RAY_TRAIN, numbers, {}, program, pods))[:1]:
        yield fault._replace(related=compared_values(pods), file=program.path, inside=Location("", call.line, 1))


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
