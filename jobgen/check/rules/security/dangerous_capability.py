"""Capabilities that give control of the node."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent, list_capabilities
from jobgen.k8s.nodes import as_list, as_text, get_path
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of

# With a network namespace of its own, a container manages that namespace and nothing of the node.
_OF_NETWORK = "NET_ADMIN"


@rule("container", WARNING, fields=("securityContext",))
def dangerous_capability(container: Container) -> Iterator[Violation]:
    """A capability that lets a container take control of its node, such as `SYS_ADMIN`.

    Training needs none of them; RDMA needs `IPC_LOCK`, and debuggers need `SYS_PTRACE`. Many clusters reject such pods;
    the Pod Security level `baseline` does. `node-agent` reports agents of the node, such as DaemonSets. `NET_ADMIN` is
    not reported for pods that do not train and have a network of their own, such as VPN clients and proxies.

    Remove the capability.
    """
    names = list_capabilities(container)
    if not names or is_node_agent(container.pod):
        return
    pod = container.pod
    has_own_network = pod.manifest.kind is None and value_of(pod.spec.get("hostNetwork")) is not True
    for node in as_list(get_path(container.data, "securityContext", "capabilities", "add")):
        if has_own_network and as_text(node).removeprefix("CAP_") == _OF_NETWORK:
            continue
        if as_text(node) in names:
            yield Violation(
                node, f"capability `{as_text(node)}` gives container `{container.name}` control of its node; remove it"
            )
