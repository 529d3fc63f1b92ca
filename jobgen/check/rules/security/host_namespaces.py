"""Namespaces of the node."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, WARNING, Violation, rule
from jobgen.k8s.objects import Pod, as_text, get_path
from jobgen.model.data import value_of

_SO = {
    "hostPID": "sees and may signal all processes of its node",
    "hostIPC": "shares memory with other pods of its node; an `emptyDir` with `medium: Memory` is enough",
    "hostNetwork": "takes ports of its node: two that want the same one cannot share it, and no network policy holds",
}
_FABRIC = ("rdma", "efa", "hostdev", "/ib", "roce", "sriov", "hca", "nic")


@rule("pod", WARNING, beyond=True, fields=tuple(_SO))
def host_namespaces(pod: Pod) -> Iterator[Violation]:
    """A pod in the network, process or IPC namespace of its node.

    It reaches what belongs to the node and to other pods there, and many clusters refuse it (the Pod Security level
    `baseline` does). The network of the node is needed for some RDMA fabrics, where this is only said for information.
    """
    for field, so in _SO.items():
        node = pod.spec.get(field)
        if node is not None and value_of(node) is True:
            fast = field == "hostNetwork" and any(_on_fabric(role.pod) for role in pod.role.manifest.roles)
            yield Violation(node, f"with `{field}` the pod {so}", severity=INFO if fast else None)


def _on_fabric(pod: Pod) -> bool:
    """Whether the pod uses a network that needs the node's own."""
    names = [str(name) for container in pod.containers for name in (*container.limits, *container.requests)]
    if any(sign in name for name in names for sign in _FABRIC):
        return True
    # A privileged container sees the cards without asking for them.
    if any(value_of(get_path(container.data, "securityContext", "privileged")) is True for container in pod.containers):
        return True
    return any(as_text(get_path(volume, "hostPath", "path")).startswith("/dev/infiniband") for volume in pod.volumes)
