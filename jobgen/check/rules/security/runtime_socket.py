"""Sockets of the container runtime."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent, list_host_paths
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Pod

_SOCKETS = ("docker.sock", "containerd.sock", "crio.sock", "cri-dockerd.sock", "podman.sock")


@rule("pod", WARNING, fields=("volumes",))
def runtime_socket(pod: Pod) -> Iterator[Violation]:
    """The socket of the container runtime, mounted from the node.

    Anyone who can write to the socket can start any container on the node as root, and so controls everything that runs
    there. Training never needs it. DaemonSets and other agents of the node are not reported.

    Remove the volume.
    """
    for volume in pod.volumes if any(list_host_paths(pod)) and not is_node_agent(pod) else ():
        node = get_path(volume, "hostPath", "path") if "hostPath" in volume else None
        if as_text(node).rpartition("/")[2] in _SOCKETS:
            yield Violation(node, f"`{as_text(node)}` gives the pod full control of its node; remove the volume")
