"""Namespaces of the node."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, WARNING, Violation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Pod
from jobgen.model.data import value_of

_RISKS = {
    "hostPID": "lets the pod see and signal all processes of its node; remove it",
    "hostIPC": "shares memory with other pods of the node; use an `emptyDir` with `medium: Memory` instead",
    "hostNetwork": "takes ports of the node, so two pods that use the same port cannot share a node,"
    " and network policies do not apply",
}
_FABRIC = ("rdma", "efa", "hostdev", "/ib", "roce", "sriov", "hca", "nic")


@rule("pod", WARNING, fields=tuple(_RISKS))
def host_namespaces(pod: Pod) -> Iterator[Violation]:
    """A pod that uses the network, process or IPC namespace of its node.

    The pod can reach what belongs to the node and to other pods on it. Many clusters reject such pods; the Pod Security
    level `baseline` does. Some RDMA fabrics need the network of the node; for pods that use one, `hostNetwork` is
    reported as info. It is not reported for DaemonSets, which have one pod on each node.

    Remove the field.
    """
    for field, risk in _RISKS.items():
        node = pod.spec.get(field)
        if field == "hostNetwork" and pod.manifest.runs_on_every_node:
            continue
        if node is not None and value_of(node) is True:
            is_needed = field == "hostNetwork" and any(map(_uses_fabric, pod.manifest.pods))
            yield Violation(node, f"`{field}` {risk}", severity=INFO if is_needed else None)


def _uses_fabric(pod: Pod) -> bool:
    """Whether the pod uses a fabric that may need the network of the node."""
    names = [str(name) for container in pod.containers for name in (*container.limits, *container.requests)]
    if any(sign in name for name in names for sign in _FABRIC):
        return True
    # A privileged container sees the network cards without requesting them.
    if any(value_of(get_path(container.data, "securityContext", "privileged")) is True for container in pod.containers):
        return True
    return any(as_text(get_path(volume, "hostPath", "path")).startswith("/dev/infiniband") for volume in pod.volumes)
