"""Volumes of type hostPath."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent, is_node_folder, list_host_paths
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Pod

# Device files: without a device plugin, hostPath is the only access to them.
_DEVICES = "/dev/"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
# The time zone, the identity and the certificates of the node, which no claim can hold.
_SETTINGS = ("/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo", "/etc/machine-id", "/etc/ssl", "/etc/pki")
_KERNEL = frozenset(("/dev", "/proc", "/sys"))
# Folders into which drivers of devices are installed on the node.
_DRIVERS = ("/home/kubernetes/bin/nvidia", "/run/nvidia", "/usr/local/nvidia", "/usr/local/Ascend", "/var/run/nvidia")


@rule("pod", WARNING, fields=("volumes",))
def host_path(pod: Pod) -> Iterator[Violation]:
    """A `hostPath` volume: a directory of the node that the pod runs on.

    Pods on other nodes see other files, and data written there is lost with the node. Many clusters reject such pods;
    the Pod Security level `baseline` does. Device files, sockets, the time zone and certificates are not reported, nor
    are the volumes of DaemonSets and other agents of the node.

    Use a PersistentVolumeClaim for data, and an `emptyDir` for scratch files and `/dev/shm`. No claim can hold files of
    the kernel and of drivers, such as those in `/sys`: request devices from a device plugin, and mount only the folder
    that the program reads, with `readOnly: true`.
    """
    if not any(list_host_paths(pod)) or is_node_agent(pod):
        return
    for volume in pod.volumes:
        node = get_path(volume, "hostPath", "path") if "hostPath" in volume else None
        if message := _describe(as_text(node)):
            yield Violation(node, message)


def _describe(path: str) -> str:
    """Return what is wrong with a path of the node; empty if nothing better exists."""
    folder = path.rstrip("/")
    if folder == _SHARED_MEMORY:
        return "the shared memory of the node is visible to other pods; use an `emptyDir` with `medium: Memory`"
    if folder in _KERNEL:
        return f"`{path}` shows the pod all devices and processes of its node; request devices from a device plugin"
    if not path or folder.startswith((_DEVICES, *_SETTINGS)) or path.endswith(".sock"):
        return ""
    if is_node_folder(path) or folder.startswith(_DRIVERS):
        message = f"`{path}` belongs to the node, and no claim can hold its files"
        return f"{message}; mount only what the program reads, with `readOnly: true`"
    return f"`{path}` differs from node to node; use a PersistentVolumeClaim, or an `emptyDir` for scratch"
