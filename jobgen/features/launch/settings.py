"""Variables of a container against its devices, its network and the pods of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.features.launch.signs import CHECKED, has_launch
from jobgen.features.launch.values import Fault, count_gpus, count_listed, find_absent
from jobgen.k8s.devices import is_device
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, is_same
from jobgen.model.quantity import parse_digits, to_milli

RULE = "launch-variables"
_RANGE = lazy_pattern(r"(?:^|,)\s*(\d{1,3})\s*(?:-|:|\.\.)\s*(\d{1,3})")
_MOST_LISTED = 16
# Kinds whose pods exchange data.
_JOINED = frozenset(("PyTorchJob", "PyTorchTrainingJob", "TrainJob", "MPIJob", "JobSet", "LeaderWorkerSet"))
_SERVERS = {"DMLC_NUM_WORKER": "worker", "DMLC_NUM_SERVER": "server"}


class _Setting(NamedTuple):
    """A variable of a container."""

    text: str
    node: At


class _Trainer(NamedTuple):
    """A container with its variables, and the pods of the job."""

    container: Container
    env: Mapping[str, _Setting]
    gpus: int | None
    pods: int
    """The number of pods that exchange data; 1 if they possibly work alone."""


def check_settings(manifest: Manifest) -> Iterator[Fault]:
    """Yield what is wrong with the variables of the containers that train."""
    for pod in manifest.pods:
        main = pod.main_container
        if main is None or not CHECKED.search(main.search_text):
            continue
        values = ((name, entry) for name, entry in main.env if "value" in entry)
        env = {name: _Setting(as_text(entry["value"]), At(entry, "value")) for name, entry in values}
        known = {name: each for name, each in env.items() if each.text and "$" not in each.text}
        limits = {**main.requests, **main.limits}
        count = manifest.pod_count if manifest.kind_name in _JOINED and manifest.group != "batch" else 1
        trainer = _Trainer(main, known, count_gpus(main, limits), count)
        yield from _check_devices(trainer)
        yield from _check_network(trainer)
        yield from _check_threads(trainer)
        yield from _check_servers(trainer)


def _check_devices(trainer: _Trainer) -> Iterator[Fault]:
    value, gpus = trainer.env.get("CUDA_VISIBLE_DEVICES"), trainer.gpus
    if value is None or not gpus:
        return
    if _RANGE.search(value.text):
        least, most = (int(each) for each in _RANGE.findall(value.text)[0])
        meant = ",".join(map(str, range(least, most + 1))) if least < most < least + _MOST_LISTED else "0,1"
        message = f"`CUDA_VISIBLE_DEVICES` is `{value.text}`, and CUDA reads no ranges"
        yield Fault(value.node, f'{message}; write `"{meant}"`, or remove the variable', False, rule=RULE)
        return
    seen = count_listed(value.text, gpus)
    has = f"a pod has {pluralize(gpus, 'GPU')}"
    related = ((trainer.container.device_place, ""),)
    # A GPU that the container does not have is reported by `exposed-devices`.
    if (
        seen is not None
        and 0 < seen < gpus
        and find_absent(value.text, gpus) is None
        and not _is_reported(trainer.container, value.node)
    ):
        message = f"`CUDA_VISIBLE_DEVICES` leaves GPUs idle: it shows {seen}, and {has}"
        yield Fault(value.node, f"{message}; remove the variable, or request {seen}", False, (), related, RULE)


def _is_reported(container: Container, node: At) -> bool:
    """Return True if the processes that a launcher starts do not fit a variable, which another rule reports."""
    manifest = container.pod.manifest
    if not has_launch(manifest):
        return False
    # Imported late: few jobs hide GPUs.
    from jobgen.features.launch.judge import find_faults

    return any(is_same(fault.node, node) for fault in find_faults(manifest))


def _check_network(trainer: _Trainer) -> Iterator[Fault]:
    env, container = trainer.env, trainer.container
    gloo = env.get("GLOO_SOCKET_IFNAME")
    if gloo is not None and gloo.text.startswith("^"):
        message = f"`GLOO_SOCKET_IFNAME` needs the name of one interface, not `{gloo.text}`"
        yield Fault(gloo.node, f"{message} (`Unable to find address for: {gloo.text}`); write `eth0`", False, rule=RULE)
    if not trainer.gpus:
        return
    interface = env.get("NCCL_SOCKET_IFNAME")
    if interface is not None and interface.text.lstrip("=") == "lo" and trainer.pods > 1:
        message = f"`NCCL_SOCKET_IFNAME` is `{interface.text}`, by which {trainer.pods} pods cannot reach each other"
        yield Fault(interface.node, f"{message}; write `eth0`, or remove the variable", False, rule=RULE)
    cards = [str(name) for name in (*container.limits, *container.requests) if str(name).startswith("rdma/")]
    disabled = env.get("NCCL_IB_DISABLE")
    if disabled is not None and disabled.text == "1" and cards:
        message = f"`NCCL_IB_DISABLE` is 1, so that `{cards[0]}` is requested and not used"
        yield Fault(disabled.node, f"{message}; remove one of them", False, rule=RULE)
    wanted = env.get("NCCL_IB_HCA")
    if wanted is not None and disabled is None and trainer.pods > 1 and not _may_have_cards(container):
        message = "`NCCL_IB_HCA` has no effect: the container requests no RDMA device, so that NCCL uses sockets"
        yield Fault(wanted.node, f"{message}; request the device, such as `rdma/hca`", False, rule=RULE, is_info=True)


def _may_have_cards(container: Container) -> bool:
    """Return True if a container can use RDMA devices in any way."""
    spec, security = container.pod.spec, as_mapping(container.data.get("securityContext"))
    resources = [str(name) for name in (*container.limits, *container.requests) if "/" in str(name)]
    return (
        spec.get("hostNetwork") is True
        or security.get("privileged") is True
        or any(not is_device(name) for name in resources)
        or bool(container.pod.metadata.get("annotations"))
        or bool(as_list(spec.get("resourceClaims")))
        or any("hostPath" in volume for volume in container.pod.volumes)
    )


def _check_threads(trainer: _Trainer) -> Iterator[Fault]:
    threads, gpus = trainer.env.get("OMP_NUM_THREADS"), trainer.gpus or 0
    amount = to_milli(trainer.container.limits.get("cpu", trainer.container.requests.get("cpu")))
    number = parse_digits(threads.text) if threads else None
    # Without GPUs, it is not known how many processes there are.
    if threads is None or number is None or amount is None or not gpus or number * gpus * 1000 <= amount:
        return
    each = f" for each of {gpus} processes" if gpus > 1 else ""
    message = f"`OMP_NUM_THREADS` {number}{each} is more than {amount / 1000:g} CPUs"
    most = max(amount // 1000 // gpus, 1)
    yield Fault(threads.node, f"{message}, which is slow; use {most}", False, rule=RULE, is_info=True)


def _check_servers(trainer: _Trainer) -> Iterator[Fault]:
    """Compare the numbers of workers and servers of MXNet with the roles."""
    manifest = trainer.container.pod.manifest
    # XGBoost has a variable of the same name, which counts all pods.
    for variable, name in _SERVERS.items() if "DMLC_NUM_SERVER" in trainer.env else ():
        value, role = trainer.env.get(variable), manifest.find_role(name)
        number = parse_digits(value.text) if value else None
        if value is None or role is None or number in (None, role.count) or manifest.kind_name == "MXJob":
            continue
        has = pluralize(role.count, f"`{as_text(role.key) or name}`")
        message = f"`{variable}` is {value.text}, but the job has {has}; use {role.count}"
        yield Fault(value.node, message, False, (), role.compared_count, RULE)
