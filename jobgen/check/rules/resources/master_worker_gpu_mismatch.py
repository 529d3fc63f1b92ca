"""GPUs of masters and workers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, Role
from jobgen.model.data import Node


@rule("job", WARNING, kinds=("PyTorchJob", "PyTorchTrainingJob"))
def master_worker_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A master and workers with different GPUs in a PyTorch job, where the master is one of the ranks that train.

    A rank without a GPU cannot take part in NCCL, and with different numbers of GPUs `torchrun` starts different
    numbers of processes. The other ranks wait.

    Request the same devices in both roles.
    """
    master, worker = manifest.find_role("master"), manifest.find_role("worker")
    if not master or not worker or not worker.count or _resources(master) == _resources(worker):
        return
    if not all(claim.is_counted for role in (master, worker) for claim in role.pod.claims.values()):
        return
    ours, theirs = _devices(master), _devices(worker)
    if ours != theirs:
        message = f"the master requests {_format_devices(ours)}, but a worker {_format_devices(theirs)}; use the same"
        one, other = (worker, master) if theirs else (master, worker)
        yield Violation(_find_request(one), message, ((_find_request(other), f"the {other.name}"),))


def _resources(role: Role) -> list[Node]:
    return [(each.limits, each.requests) for each in role.pod.containers] + [role.pod.spec.get("resourceClaims")]


def _find_request(role: Role) -> Node:
    """Return the node where a role requests devices, else its key."""
    nodes = (container.device_node for container in role.pod.containers)
    return next((node for node in nodes if node is not None), role.key)


def _devices(role: Role) -> dict[str, int]:
    return {str(name): count for name, count in role.pod.devices.items() if count}


def _format_devices(devices: dict[str, int]) -> str:
    return " and ".join(f"`{name}: {count}`" for name, count in sorted(devices.items())) or "no accelerator"
