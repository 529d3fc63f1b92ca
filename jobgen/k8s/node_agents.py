"""Agents of a node: pods whose task is the node itself, so that they need what other pods must not have.

A CNI plugin, a device plugin, a driver, a kernel patch or a benchmark of the node's configuration does not work without
the namespaces, files and devices of its node. Advice to remove them would break it; what helps is to restrict who can
change it. A pod that trains is no agent, whatever it mounts.
"""

from __future__ import annotations

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Pod
from jobgen.model.lazy_re import lazy_pattern

DANGEROUS_CAPABILITIES = frozenset(
    "ALL BPF DAC_READ_SEARCH MAC_ADMIN MAC_OVERRIDE NET_ADMIN SYS_ADMIN SYS_BOOT SYS_MODULE SYS_RAWIO SYSLOG".split()
)
"""Capabilities with which a container can take control of its node."""
AGENT_KINDS = tuple("CronJob DaemonSet Deployment Job Pod ReplicaSet ReplicationController StatefulSet".split())
"""Kinds of agents, which are Kubernetes' own: others train, or are run by an operator that knows what they need."""
_GROUPS = frozenset(("", "apps", "batch"))
# Folders that belong to the node: the kernel, the kubelet, the container runtime, the network, the control plane.
_NODE_FOLDERS = tuple(
    """/boot /etc/cni /etc/containerd /etc/docker /etc/kubernetes /etc/systemd /lib/modules /lib/systemd /opt/cni /proc
    /run/containerd /run/systemd /run/udev /sys /usr/lib/modules /usr/src /var/lib/cni /var/lib/containerd
    /var/lib/docker /var/lib/etcd /var/lib/kubelet /var/log/containers /var/log/pods /var/run/cni
    /var/run/netns""".split()
)
# Folders that belong to the node only as a whole: data and devices may be below them.
_WHOLE_FOLDERS = frozenset(("/", "/bin", "/dev", "/etc", "/sbin", "/usr", "/usr/bin", "/usr/sbin", "/var/log"))
# Commands that run in the namespaces or the file system of the node, or change its kernel. Others, such as `sysctl`,
# may change the namespaces of the pod only.
_NODE_COMMAND = lazy_pattern(
    r"(?:\A|[\s/;&|(\"'])(?:nsenter|modprobe|insmod|rmmod)(?=\Z|[\s;&|\"'])"
    r"|(?:\A|[\s/;&|(])chroot\s+/(?:host|node|mnt|rootfs)"
)
# Servers that are part of the kernel, by their ports: a container can only start them with its privileges.
_NFS, _ISCSI = 2049, 3260


def is_node_agent(pod: Pod) -> bool:
    """Return True if the pod plainly works for its node, and needs control of it."""
    manifest = pod.manifest
    if manifest.runs_on_every_node:
        return True
    if manifest.group not in _GROUPS or manifest.kind_name not in AGENT_KINDS or any(pod.devices.values()):
        return False
    if any(map(is_node_folder, list_host_paths(pod))):
        return True
    # A container that can control its node runs a command, or a server, of the node.
    for container in pod.all_containers:
        ports = (as_mapping(port).get("containerPort") for port in as_list(container.data.get("ports")))
        serves = any(port in (_NFS, _ISCSI) for port in ports)
        has_control = is_privileged(container) or list_capabilities(container)
        if has_control and (serves or any(_NODE_COMMAND.search(as_text(word)) for word in container.command_line)):
            return True
    return False


def is_node_folder(path: str) -> bool:
    """Return True if a folder belongs to the node, and does not hold the data of pods."""
    folder = path.rstrip("/") or "/"
    return folder in _WHOLE_FOLDERS or any(folder == own or folder.startswith(f"{own}/") for own in _NODE_FOLDERS)


def list_host_paths(pod: Pod) -> list[str]:
    """Return the paths of the node that the pod has as volumes."""
    paths = [as_text(get_path(volume, "hostPath", "path")) for volume in pod.volumes if "hostPath" in volume]
    return [path for path in paths if path] if paths else paths


def is_privileged(container: Container) -> bool:
    """Return True if the container is privileged."""
    return get_path(container.data, "securityContext", "privileged") is True


def list_capabilities(container: Container) -> list[str]:
    """Return the capabilities of the container that give it control of its node."""
    added = map(as_text, as_list(get_path(container.data, "securityContext", "capabilities", "add")))
    return [name for name in added if name.removeprefix("CAP_") in DANGEROUS_CAPABILITIES]
