"""Variables of a container against its devices, its network and the pods of the job."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.devices import count_visible
from jobgen.features.launch.read_job import Launch
from jobgen.features.launch.signs import VARIABLES
from jobgen.features.launch.values import Fault, Program, Word
from jobgen.k8s.devices import is_device
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern

RULE = "launch-variables"
_CHECKED = lazy_pattern(VARIABLES)
_RDMA = lazy_pattern(r"rdma/|.*(?:rdma|roce|infiniband|mlnx|mellanox|hostdev|sriov|efa|\bib\b|\bhca\b|nic|tcpx|dxs)")
# Kinds whose pods exchange data.
_JOINED = frozenset(("PyTorchJob", "PyTorchTrainingJob", "TrainJob", "MPIJob", "JobSet", "LeaderWorkerSet"))
_SERVERS = {"DMLC_NUM_WORKER": "worker", "DMLC_NUM_SERVER": "server"}


def check_settings(launch: Launch) -> Iterator[Fault]:
    """Yield what is wrong with the variables of the programs that a container starts."""
    if launch.programs and _CHECKED.search(launch.container.search_text):
        # They usually share their variables; the last program is the one that trains.
        program = launch.programs[-1]
        yield from _check_devices(launch, program)
        yield from _check_network(launch, program)
        yield from _check_threads(launch, program)
        yield from _check_servers(launch, program)


def _find(program: Program, name: str) -> Word | None:
    """Return a variable that the job sets, if its value is known."""
    word = program.env.get(name)
    return word if word is not None and word.text and word.node is not None else None


def _check_devices(launch: Launch, program: Program) -> Iterator[Fault]:
    pods, value = launch.pods, _find(program, "CUDA_VISIBLE_DEVICES")
    if value is None or not pods.gpus or launch.container is not pods.container:
        return
    seen = count_visible(program, pods)
    listed = [item.strip() for item in str(value.text).split(",")]
    wrong = next((item for item in listed if item.isdecimal() and int(item[:9]) >= (pods.gpus or 0)), None)
    has = f"a pod has {pluralize(pods.gpus, 'GPU')}"
    related = ((pods.container.device_node, ""),)
    if wrong is not None:
        message = f"`CUDA_VISIBLE_DEVICES` names `{wrong}`, but {has}, from 0: CUDA hides it and all that follow"
        yield Fault(value.node, f"{message}; remove the variable", False, (), related, RULE)
    elif seen is not None and 0 < seen < pods.gpus:
        message = f"`CUDA_VISIBLE_DEVICES` leaves GPUs idle: it shows {seen}, and {has}"
        yield Fault(value.node, f"{message}; remove the variable, or request {seen}", False, (), related, RULE)


def _check_network(launch: Launch, program: Program) -> Iterator[Fault]:
    pods = launch.pods
    gloo = _find(program, "GLOO_SOCKET_IFNAME")
    if gloo is not None and str(gloo.text).startswith("^"):
        message = f"`GLOO_SOCKET_IFNAME` needs the name of one interface, not `{gloo.text}`"
        yield Fault(gloo.node, f"{message} (`Unable to find address for: {gloo.text}`); write `eth0`", False, rule=RULE)
    if not pods.gpus:
        return
    interface = _find(program, "NCCL_SOCKET_IFNAME")
    is_several = pods.count is not None and pods.count > 1 and pods.kind in _JOINED
    if interface is not None and str(interface.text).lstrip("=") == "lo" and is_several:
        message = f"`NCCL_SOCKET_IFNAME` is `{interface.text}`, by which {pods.count} pods cannot reach each other"
        yield Fault(interface.node, f"{message}; write `eth0`, or remove the variable", False, rule=RULE)
    cards = [str(name) for name in (*pods.container.limits, *pods.container.requests) if _RDMA.match(str(name))]
    disabled = _find(program, "NCCL_IB_DISABLE")
    if disabled is not None and disabled.text == "1" and cards and cards[0].startswith("rdma/"):
        message = f"`NCCL_IB_DISABLE` is 1, so that `{cards[0]}` is requested and not used"
        yield Fault(disabled.node, f"{message}; remove one of them", False, rule=RULE)
    wanted = _find(program, "NCCL_IB_HCA")
    if wanted is not None and disabled is None and is_several and not _may_have_cards(pods.container):
        message = "`NCCL_IB_HCA` has no effect: the container requests no RDMA device, so that NCCL uses sockets"
        yield Fault(wanted.node, f"{message}; request the device, such as `rdma/hca`", False, rule=RULE, is_info=True)


def _may_have_cards(container: Container) -> bool:
    """Return True if a container can use RDMA devices in any way."""
    spec, security = container.pod.spec, as_mapping(container.data.get("securityContext"))
    resources = [str(name) for name in (*container.limits, *container.requests) if "/" in str(name)]
    return (
        value_of(spec.get("hostNetwork")) is True
        or value_of(security.get("privileged")) is True
        or any(not is_device(name) for name in resources)
        or bool(container.pod.metadata.get("annotations"))
        or bool(as_list(spec.get("resourceClaims")))
        or any("hostPath" in volume for volume in container.pod.volumes)
    )


def _check_threads(launch: Launch, program: Program) -> Iterator[Fault]:
    threads, cpus = _find(program, "OMP_NUM_THREADS"), launch.pods.cpus
    gpus = launch.pods.gpus or 1
    if threads is None or cpus is None or threads.number is None or launch.container is not launch.pods.container:
        return
    if threads.number * gpus > cpus:
        message = f"`OMP_NUM_THREADS` {threads.text} for each of {gpus} processes is more than {cpus:g} CPUs"
        most = max(int(cpus) // gpus, 1)
        yield Fault(threads.node, f"{message}, which is slow; use {most}", False, rule=RULE, is_info=True)


def _check_servers(launch: Launch, program: Program) -> Iterator[Fault]:
    """Compare the numbers of workers and servers of MXNet with the roles."""
    manifest = launch.container.pod.manifest
    for variable, name in _SERVERS.items():
        value = _find(program, variable)
        role = manifest.find_role(name)
        if value is None or role is None or value.number in (None, role.count) or manifest.kind_name == "MXJob":
            continue
        message = (
            f"`{variable}` is {value.text}, but the job has {pluralize(role.count, f'`{as_text(role.key) or name}`')}"
        )
        yield Fault(value.node, f"{message}; use {role.count}", False, (), role.compared_count, RULE)
