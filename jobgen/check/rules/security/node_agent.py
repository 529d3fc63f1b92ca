"""Agents that control their nodes."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.node_agents import AGENT_KINDS, is_node_agent, is_privileged, list_capabilities, list_host_paths
from jobgen.k8s.nodes import as_list, get_path
from jobgen.k8s.objects import Pod
from jobgen.model.data import Node, value_of

_NAMESPACES = ("hostPID", "hostIPC")
_SYSTEM = "kube-system"


@rule("pod", INFO, kinds=AGENT_KINDS)
def node_agent(pod: Pod) -> Iterator[Violation]:
    """A pod that works for its node and therefore controls it, such as a CNI plugin, a device plugin or a driver.

    It needs `privileged`, `hostPID` or a capability such as `SYS_ADMIN`, and does not work without them. Anyone who can
    change it, or run a command in it, controls the nodes that it runs on. A DaemonSet is such an agent, and so is a pod
    that requests no devices and mounts folders of the node such as `/var/lib/kubelet`, or runs commands such as
    `nsenter`. Agents in `kube-system` are not reported.

    Give it a namespace of its own, with the Pod Security level `privileged`, in which only administrators can change
    objects, and select the nodes that need it.
    """
    means = [*_list_means(pod)]
    if not means or pod.manifest.namespace == _SYSTEM or not is_node_agent(pod):
        return
    root = ["hostPath: /"] if "/" in list_host_paths(pod) else []
    names = ", ".join(f"`{name}`" for name in dict.fromkeys([*(name for name, _ in means), *root]))
    message = f"this agent controls its node ({names}); restrict who can change it, for example with a namespace"
    message += " of its own that has the Pod Security level `privileged`"
    yield Violation(means[0][1], message)


def _list_means(pod: Pod) -> Iterator[tuple[str, Node]]:
    """Yield what gives the pod control of its node, and where it is set."""
    for field in _NAMESPACES:
        if value_of(pod.spec.get(field)) is True:
            yield field, pod.spec[field]
    for container in (*pod.containers, *pod.init_containers):
        if is_privileged(container):
            yield "privileged", get_path(container.data, "securityContext", "privileged")
    for container in (*pod.containers, *pod.init_containers):
        names = list_capabilities(container)
        for node in as_list(get_path(container.data, "securityContext", "capabilities", "add")):
            if value_of(node) in names:
                yield str(value_of(node)), node
