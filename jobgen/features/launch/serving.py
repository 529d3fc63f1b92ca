"""vLLM and SGLang: tensor and pipeline parallel sizes against GPUs, pods and attention heads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.launch.options import (
    Arguments,
    Invariant,
    Number,
    as_number,
    compared_values,
    find_faults,
    parse_config,
    read_arguments,
    read_config,
)
from jobgen.features.launch.python_calls import list_ray_nodes
from jobgen.features.launch.server_options import check_command, check_options
from jobgen.features.launch.values import Fault, Model, Pods, Program, Word, World, find_model
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.quantity import to_milli
from jobgen.repo.shipped import read_data

_VLLM = ("vllm", "vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "vllm.entrypoints.cli.main")
_SGLANG = ("sglang.launch_server", "sglang")
_TGI = "text-generation-launcher"
# The names of the options, of which the first is the one that the program knows the value by.
SIZES = {
    "tp": "tensor_parallel_size tp tp_size num_shard",
    "pp": "pipeline_parallel_size pp pp_size",
    "dp": "data_parallel_size dp dp_size",
    "local_dp": "data_parallel_size_local dpl",
    "nodes": "nnodes",
}
_AT = " ".join(f"{SIZES[name]}" for name in ("tp", "pp", "dp"))
_FLAGS = frozenset(read_data("launch.yaml")["options"]["serving"]["flags"].split())

_NODES = (
    Invariant(
        lambda nodes, count: nodes <= count,
        "`--nnodes {nodes}` on {count} pods waits for nodes that do not come; use {count}",
        "nnodes",
    ),
    Invariant(
        lambda nodes, is_ray: nodes == 1 or not is_ray,
        "`--nnodes {nodes}` cannot be used with the Ray backend (vLLM: `nnodes > 1 can only be set when distributed "
        "executor backend is mp, uni or external_launcher.`); remove `--nnodes`",
        "nnodes",
    ),
    Invariant(
        lambda size, nodes, is_sglang: not is_sglang or size % nodes == 0,
        "tensor x pipeline parallel size {size} is not a multiple of `--nnodes {nodes}` (SGLang: `tp_size must be "
        "divisible by number of nodes`); use a multiple",
        "nnodes",
    ),
)
_GPUS = (
    Invariant(
        lambda used, gpus, nodes, count: nodes > count or used <= gpus,
        "tensor x pipeline x data parallel size {tp} x {pp} x {dp} needs {used} GPUs, and there are {gpus} ({error}); "
        "use sizes with a product of {gpus}",
        _AT,
    ),
    Invariant(
        lambda used, gpus, leaves: not leaves or used >= gpus,
        "tensor x pipeline x data parallel size {tp} x {pp} x {dp} uses {used} of {gpus} GPUs, and the others are "
        "idle; use sizes with a product of {gpus}, or fewer GPUs",
        _AT,
        is_error=False,
    ),
)
_HEADS = (
    Invariant(
        lambda heads, tp, is_sglang: is_sglang or heads % tp == 0,
        "the {heads} attention heads of the model cannot be divided by the tensor parallel size {tp} (vLLM: `Total "
        "number of attention heads ({heads}) must be divisible by tensor parallel size ({tp}).`); use a divisor of "
        "{heads}",
        _AT,
    ),
)
_TOO_MANY = (
    "vLLM: `World size ({size}) is larger than the number of available GPUs ({pod_gpus}) in this node.`",
    "Ray: `No available node types can fulfill resource request`",
    "SGLang starts a process for each rank, and a rank without a GPU fails",
    "text-generation-inference starts a process for each shard, and a shard without a GPU fails",
)


class Server(NamedTuple):
    """A server of vLLM or SGLang: its options, the model, the parallel sizes, and whether Ray starts its ranks."""

    options: Arguments
    model: str | None
    sizes: Mapping[str, int | None]
    is_ray: bool | None
    is_sglang: bool
    is_tgi: bool = False


def read_server(program: Program) -> Server | None:
    """Return the server that a program starts; None if it is another program."""
    if program.name == _TGI:
        return _read_tgi(program)
    is_sglang = program.name in _SGLANG
    words = program.words
    if program.name in ("vllm", "sglang"):
        # Other subcommands do not serve.
        if not words or words[0].text != "serve":
            return None
        words = words[1:]
    elif program.name not in _VLLM and not is_sglang:
        return None
    options = _with_config(program, read_arguments(words, _FLAGS))
    names = ("model_path", "model") if is_sglang else ("model", "model_tag")
    word = next((options.words[name] for name in names if name in options.words), next(iter(options.rest), None))
    sizes = {short: _read_size(options, names, 1 if short != "local_dp" else None) for short, names in SIZES.items()}
    backend = options.text("distributed_executor_backend", "")
    is_ray = None if backend is None else backend == "ray"
    return Server(options, word.text if word else None, sizes, is_ray, is_sglang)


def _read_tgi(program: Program) -> Server:
    """Return a server of text-generation-inference: without a number of shards, it has one for each GPU."""
    options = read_arguments(program.words, _FLAGS)
    word = options.words.get("model_id")
    sizes = dict.fromkeys(SIZES, 1) | {"tp": _read_size(options, SIZES["tp"], None), "local_dp": None}
    return Server(options, word.text if word else None, sizes, is_ray=False, is_sglang=False, is_tgi=True)


def _with_config(program: Program, options: Arguments) -> Arguments:
    """Add the values of `--config`, over which those of the command line win."""
    if "config" not in options.words:
        return options
    config = read_config(program, options.text("config"))
    if config is None:
        return options._replace(is_closed=False)
    node = options.words["config"].node
    words = {
        name.replace("-", "_"): Word(str(value), node)
        for name, value in config.items()
        if isinstance(value, str | float) or as_number(value) is not None
    }
    return options._replace(words=words | dict(options.words))


def _read_size(options: Arguments, names: str, default: int | None) -> int | None:
    found = next((name for name in names.split() if name in options.words), "")
    return options.number(found, default)


def check_server(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the sizes of a server with the GPUs of its pods."""
    server = read_server(program)
    if server is None:
        yield from check_command(program.words) if program.name == "vllm" else ()
        return
    if not server.is_tgi:
        yield from check_options(program, server.options, is_sglang=server.is_sglang)
    yield from _check_server(server, program, pods)


def count_gpus(server: Server, program: Program, pods: Pods) -> tuple[int | None, int | None, int | None]:
    """Return the GPUs that a server can use, the pods that they are in, and the GPUs of one pod; None: not known."""
    manifest = pods.container.pod.manifest
    # A pod without GPUs is a server on CPUs.
    own = pods.gpus or None
    nodes = list_ray_nodes(manifest)
    if nodes is not None:
        return (sum(node.number * node.gpus for node in nodes) or None) if server.is_ray else None, None, own
    if manifest.kind_name == "LeaderWorkerSet":
        total = _count_group(manifest, pods)
        if server.is_ray or (server.sizes["nodes"] or 1) > 1:
            return total, pods.count, own
        # Without a backend, vLLM up to 0.11 takes Ray for what does not fit in a pod, and 0.12 refuses it.
        needed = math.prod(server.sizes[name] or 1 for name in ("tp", "pp"))
        is_too_large = total is not None and needed > total
        if pods.count == 1 or server.is_sglang:
            return own, pods.count, own
        # What does not fit in a pod needs the group.
        is_spread = is_too_large or (own is not None and needed > own)
        return total if is_spread else None, pods.count, own
    if server.is_ray and (program.variable("RAY_ADDRESS") is not None or not _starts_alone(pods)):
        return None, None, own
    if (server.sizes["nodes"] or 1) > 1:
        count = pods.count
        return own * count if own and count else None, count, own
    return own, None, own


def _starts_alone(pods: Pods) -> bool:
    """Return True if no program of the pod's containers can join a Ray cluster of other pods."""
    return all("ray start" not in container.search_text for container in pods.container.pod.containers)


def _count_group(manifest: Manifest, pods: Pods) -> int | None:
    """Return the GPUs of a group of a LeaderWorkerSet."""
    template = as_mapping(manifest.spec.get("leaderWorkerTemplate"))
    by_template = {id(pod.template): pod.gpus for pod in manifest.pods}
    worker = by_template.get(id(template.get("workerTemplate")))
    leader = by_template.get(id(template.get("leaderTemplate")), worker)
    if worker is None or leader is None or pods.count is None or pods.gpus is None:
        return None
    return leader + (pods.count - 1) * worker or None


def _check_server(server: Server, program: Program, pods: Pods) -> Iterator[Fault]:
    sizes, options = server.sizes, server.options
    if any(size is not None and size < 1 for size in sizes.values()):
        return
    tp, pp, dp, nodes = (sizes[name] for name in ("tp", "pp", "dp", "nodes"))
    gpus, count, own = count_gpus(server, program, pods)
    size = tp * pp if tp and pp else None
    if dp is not None and dp > 1:
        # With expert parallelism or several nodes, ranks of data parallelism are elsewhere or share GPUs.
        is_shared = server.is_sglang and options.has("enable_dp_attention") is not False
        local = sizes["local_dp"] if "data_parallel_size_local" in options.words else dp if count in (None, 1) else None
        dp = 1 if is_shared else local
    model = find_model(server.model) if server.model else None
    limits = program.variable("CUDA_VISIBLE_DEVICES") is not None
    numbers: dict[str, Number] = {
        **sizes,
        "dp": dp,
        "size": size,
        "used": size * dp if size and dp else None,
        "gpus": None if limits else gpus,
        "pod_gpus": own,
        "count": count or (1 if (nodes or 1) == 1 else pods.count),
        "is_ray": server.is_ray,
        "is_sglang": server.is_sglang,
        # Ray can start other things in the same cluster.
        "leaves": list_ray_nodes(pods.container.pod.manifest) is None,
        "heads": model.heads if model and not server.is_tgi else None,
    }
    error = _TOO_MANY[3 if server.is_tgi else 2 if server.is_sglang else 1 if server.is_ray else 0].format(**numbers)
    table = (row._replace(text=row.text.replace("{error}", error.replace("{", "{{"))) for row in _GPUS)
    faults = list(find_faults((*_NODES, *table, *_HEADS), numbers, options.words, program, pods))
    is_error = any(fault.is_error for fault in faults)
    # What is idle of a server that does not start is not worth a word.
    yield from (fault._replace(related=compared_values(pods)) for fault in faults if fault.is_error or not is_error)
    if not is_error:
        yield from _check_backend(server, pods)
        yield from _check_memory(server, pods)
        yield from _check_probes(server, program, pods)


# Releases of vLLM whose Ray backend takes all ranks of tensor parallelism for those of one node.
_LOCAL_RANKS = ("vllm/vllm-openai:v0.11.1", "vllm/vllm-openai:v0.11.2")


def _check_backend(server: Server, pods: Pods) -> Iterator[Fault]:
    """Report tensor parallelism over several nodes in a release whose Ray backend cannot start it."""
    tp, own = server.sizes["tp"], pods.gpus
    image = pods.container.image.rpartition("docker.io/")[2]
    if not server.is_ray or not tp or not own or tp <= own or not image.startswith(_LOCAL_RANKS):
        return
    word = next((server.options.words[name] for name in SIZES["tp"].split() if name in server.options.words), None)
    message = (
        f"tensor parallel size {tp} is more than the {own} GPUs of a pod, and the Ray backend of vLLM 0.11.1 and "
        "0.11.2 refuses that; use tensor parallelism in a pod and pipeline parallelism across pods, or vLLM 0.12"
    )
    yield Fault(word.node if word else At(pods.container.data, "image"), message, is_error=False)


_SHM = "/dev/shm"  # noqa: S108
_PER_GPU = {True: 1 << 30, False: 1 << 28}
"""The least shared memory for each GPU: with data parallelism, processes also pass requests and tensors through it."""


def _check_memory(server: Server, pods: Pods) -> Iterator[Fault]:
    """Report shared memory that the processes of a server fill."""
    container, own = pods.container, pods.gpus or 0
    mount = next((each for each in container.volume_mounts if as_text(each.get("mountPath")).rstrip("/") == _SHM), {})
    name = as_text(mount.get("name"))
    volume = next((each for each in container.pod.volumes if name and as_text(each.get("name")) == name), {})
    node = get_path(volume, "emptyDir", "sizeLimit")
    size = to_milli(node) if node is not None else None
    is_data_parallel = "data_parallel_size" in server.options.words and (server.sizes["dp"] or 2) > 1
    needed = own * _PER_GPU[is_data_parallel]
    if own > 1 and size and size < needed * 1000:
        message = (
            f"`sizeLimit: {node}` is small for the shared memory of {own} GPUs: segments of processes that "
            f"crashed stay in it, and NCCL fails when it is full; use at least {needed >> 30 or 1}Gi"
        )
        yield Fault(At(volume["emptyDir"], "sizeLimit"), message, is_error=False, rule="small-shared-memory")


_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_PORTS = {True: 30000, False: 8000}
"""The ports of SGLang and vLLM without `--port`."""
_OF_TGI = 80
"""The port that the image of text-generation-inference sets."""
_START_SECONDS = 30
_LARGE, _LARGE_SECONDS = 30 * 10**9, 90
"""Less than any server needs until it answers, and less than one needs that loads a model of so many parameters."""


def _check_probes(server: Server, program: Program, pods: Pods) -> Iterator[Fault]:
    """Report probes of a port that the server does not listen to, and those that end it before its model is loaded."""
    container = pods.container
    default = _OF_TGI if server.is_tgi else _PORTS[server.is_sglang]
    # Another program of the container may listen to other ports.
    is_alone = not any(" & " in word or word.rstrip().endswith("&") for word in container.words)
    port = server.options.number("port", default) if is_alone and program.variable("PORT") is None else None
    for field in _PROBES:
        probe = as_mapping(container.data.get(field))
        place = next((find_at(probe, kind, "port") for kind in ("httpGet", "tcpSocket", "grpc") if kind in probe), None)
        asked = as_number(place.node) if place is not None else None
        if port and asked and asked != port:
            message = f"the {field} asks port {asked}, but the server listens to {port}, so the pod is never ready"
            if field != "readinessProbe":
                message = f"the {field} asks port {asked}, but the server listens to {port}, so it is restarted forever"
            yield Fault(place, f"{message}; write {port}", is_error=False, rule=PROBE_RULE)
            return
    yield from _check_start(server, container)


def _check_start(server: Server, container: Container) -> Iterator[Fault]:
    probe = as_mapping(container.data.get("livenessProbe"))
    if not probe or "startupProbe" in container.data:
        return
    numbers = [probe.get("initialDelaySeconds", 0), probe.get("periodSeconds", 10), probe.get("failureThreshold", 3)]
    delay, period, failures = (as_number(node) for node in numbers)
    model = find_model(server.model) if server.model else None
    is_large = model is not None and model.parameters >= _LARGE
    least = _LARGE_SECONDS if is_large else _START_SECONDS
    if delay is not None and period and failures and (seconds := delay + period * failures) < least:
        message = f"the livenessProbe restarts the server {seconds} seconds after its start, before the model is loaded"
        yield Fault(
            At(container.data, "livenessProbe", is_key=True),
            f"{message}; add a `startupProbe` with a greater `failureThreshold`",
            False,
            rule=PROBE_RULE,
        )


PROBE_RULE = "failing-probe"


def check_ray_service(manifest: Manifest) -> Iterator[Fault]:
    """Check the sizes of `llm_configs` in the `serveConfigV2` of a RayService with the GPUs of its cluster."""
    node = manifest.spec.get("serveConfigV2")
    nodes = list_ray_nodes(manifest)
    config = parse_config(as_text(node), "serveConfigV2.yaml") if as_text(node) else None
    if config is None or nodes is None:
        return
    gpus = sum(each.number * each.gpus for each in nodes)
    for application in as_list(config.get("applications")):
        for item in as_list(as_mapping(as_mapping(application).get("args")).get("llm_configs")):
            yield from _check_llm(as_mapping(item), gpus, At(manifest.spec, "serveConfigV2"))


def _check_llm(item: Mapping[str, Any], gpus: int, place: At) -> Iterator[Fault]:
    engine, source = as_mapping(item.get("engine_kwargs")), as_mapping(item.get("model_loading_config"))
    tp, pp = (as_number(engine.get(f"{name}_parallel_size", 1)) for name in ("tensor", "pipeline"))
    if tp is None or pp is None or tp < 1 or pp < 1:
        return
    model: Model | None = find_model(as_text(source.get("model_source", source.get("model_id"))))
    if model and model.heads % tp:
        yield Fault(
            place,
            f"the {model.heads} attention heads of the model cannot be divided by `tensor_parallel_size: {tp}` (vLLM: "
            f"`Total number of attention heads ({model.heads}) must be divisible by tensor parallel size ({tp}).`); "
            f"use a divisor of {model.heads}",
        )
    if gpus and tp * pp > gpus:
        yield Fault(
            place,
            f"`tensor_parallel_size: {tp}` x `pipeline_parallel_size: {pp}` needs {tp * pp} GPUs, and the Ray cluster "
            f"has {gpus} (Ray: `No available node types can fulfill resource request`); use smaller sizes, or more "
            "workers",
        )
