"""Privileged containers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of

# Parts of the names of resources that device plugins offer for RDMA.
_FABRIC = ("rdma", "efa", "hostdev", "/ib", "roce", "sriov", "hca", "nic")
_DEVICES = "/dev/"


@rule("container", WARNING, fields=("securityContext",))
def privileged_container(container: Container) -> Iterator[Violation]:
    """A privileged container.

    It sees all devices of the node, including GPUs of other pods, and anyone who gets into it controls the node. Many
    clusters reject it; the Pod Security level `baseline` does. `node-agent` reports agents of the node, such as
    DaemonSets, which need it.

    Remove `privileged`. For RDMA, a device plugin that offers the devices and the capability `IPC_LOCK` are enough; a
    `hostPath` volume with the device files is not, because only a privileged container can open them.
    """
    node = get_path(container.data, "securityContext", "privileged")
    if value_of(node) is True and not is_node_agent(container.pod):
        message = f"privileged container `{container.name}` has full control of its node"
        yield Violation(node, f"{message}; {_describe_remedy(container)}")


def _describe_remedy(container: Container) -> str:
    """Return what the container needs instead, as far as the pod shows what it is privileged for."""
    if any(sign in str(name) for name in (*container.limits, *container.requests) for sign in _FABRIC):
        return "for RDMA, `IPC_LOCK` is enough"
    if any(as_text(get_path(volume, "hostPath", "path")).startswith(_DEVICES) for volume in container.pod.volumes):
        return "request the devices from a device plugin, and remove `privileged`"
    return "remove `privileged`"
