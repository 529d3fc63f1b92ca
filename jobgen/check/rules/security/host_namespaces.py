"""Namespaces of the node."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent, is_privileged, list_host_paths
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
    reported as info. DaemonSets and other agents of the node need these namespaces; `node-agent` reports them.

    Remove the field.
    """
    set_fields = [field for field in _RISKS if value_of(pod.spec.get(field)) is True]
    for field in set_fields if set_fields and not is_node_agent(pod) else ():
        node, risk = pod.spec[field], _RISKS[field]
        is_needed = field == "hostNetwork" and any(map(_uses_fabric, pod.manifest.pods))
        yield Violation(node, f"`{field}` {risk}", severity=INFO if is_needed else None)


def _uses_fabric(pod: Pod) -> bool:
    """Return True if the pod uses a fabric that may need the network of the node."""
    names = [str(name) for container in pod.containers for name in (*container.limits, *container.requests)]
    if any(sign in name for name in names for sign in _FABRIC):
        return True
    # A privileged container sees the network cards without requesting them.
    if any(map(is_privileged, pod.containers)):
        return True
    return any(path.startswith("/dev/infiniband") for path in list_host_paths(pod))
