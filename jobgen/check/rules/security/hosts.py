"""What a pod gets of its node."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, WARNING, Violation, rule
from jobgen.k8s.injected_volumes import is_unmounted
from jobgen.k8s.node_agents import (
    AGENT_KINDS,
    is_node_agent,
    is_node_folder,
    is_privileged,
    list_capabilities,
    list_host_paths,
)
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Pod
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.finding import FixStep
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

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

    The pod can reach what belongs to the node and to other pods on it. Namespaces with the Pod Security level
    `baseline` refuse all three. Some RDMA fabrics need the network of the node; for pods that use one,
    `hostNetwork` is reported as info. DaemonSets and other agents of the node need these namespaces; `node-agent`
    reports them.

    Remove the field.

    When to turn it off: for an RDMA fabric without a device plugin, the network of the node is the only way: accept
    `hostNetwork` in the overlay of that cluster.
    """
    set_fields = [field for field in _RISKS if pod.spec.get(field) is True]
    for field in set_fields if set_fields and not is_node_agent(pod) else ():
        is_needed = field == "hostNetwork" and any(map(_uses_fabric, pod.manifest.pods))
        yield Violation(
            At(pod.spec, field), Sentence("`{}` {}", field, _RISKS[field]), severity=INFO if is_needed else None
        )


def _uses_fabric(pod: Pod) -> bool:
    """Return True if the pod uses a fabric that may need the network of the node."""
    names = [str(name) for container in pod.containers for name in (*container.limits, *container.requests)]
    if any(sign in name for name in names for sign in _FABRIC):
        return True
    # A privileged container sees the network cards without requesting them.
    if any(map(is_privileged, pod.containers)):
        return True
    return any(path.startswith("/dev/infiniband") for path in list_host_paths(pod))


_POLICY = "ClusterFirstWithHostNet"
_BY_NAME = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")
# Kinds whose pods find each other by names, whatever their number is.
_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_RAY = ("RayCluster", "RayJob", "RayService")
_NEED_SERVICE = ("svc", "tensorflow", "mpi", "pytorch", "ray")


@rule("pod", WARNING, fields=("hostNetwork",), kinds=(*_BY_NAME, *_RUNTIMES, *_RAY, "Job"))
def host_network_dns(pod: Pod) -> Iterator[Violation]:
    """`hostNetwork` without `dnsPolicy: ClusterFirstWithHostNet` in a job of several pods.

    Such a pod uses the DNS of its node, which usually does not resolve Services. The names by which the operator
    connects the pods, such as `MASTER_ADDR`, do not resolve then, and the job hangs. So it is with the workers of Ray,
    which connect to the Service of the head, with training runtimes, and with the plugin `svc` of Volcano, whose
    webhook sets the policy if there is none.

    Set `dnsPolicy: ClusterFirstWithHostNet` next to `hostNetwork`.

    When to turn it off: if the pods reach each other by addresses only, as with a host file of node names, suppress
    the finding on `hostNetwork`.
    """
    manifest = pod.manifest
    if pod.spec["hostNetwork"] is not True or not _is_found_by_name(pod):
        return
    # The MPIJob of training-operator reaches its workers through `kubectl exec`.
    if manifest.kind_name == "MPIJob" and manifest.kind and manifest.kind.api_version == "kubeflow.org/v1":
        return
    if as_text(pod.spec.get("dnsPolicy")) in ("", "ClusterFirst", "Default"):
        message = Sentence("pods on the host network cannot resolve Services; set `dnsPolicy: {}`", _POLICY)
        place, step = At(pod.spec, "dnsPolicy"), FixStep("set", At(pod.spec, "dnsPolicy"), _POLICY)
        if pod.spec.get("dnsPolicy") is None:
            place = At(pod.spec, "hostNetwork")
            step = FixStep("add", place._replace(is_key=True), _POLICY, "dnsPolicy")
        yield Violation(place, message, fix_steps=(step,), safe=False)


def _is_found_by_name(pod: Pod) -> bool:
    """Return True if a pod, or the pods that it connects to, are found by names of Services."""
    manifest = pod.manifest
    if manifest.kind_name in _RUNTIMES:
        return True
    if manifest.group == "ray.io":
        path = ("headGroupSpec", "template")
        cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
        return pod.template is not get_path(cluster, *path)
    if manifest.kind_name == "Job":
        plugins = as_mapping(manifest.spec.get("plugins"))
        is_set = bool(as_text(pod.spec.get("dnsPolicy")))
        return manifest.group == "batch.volcano.sh" and is_set and any(name in plugins for name in _NEED_SERVICE)
    return manifest.pod_count > 1


# Device files: without a device plugin, hostPath is the only access to them.
_DEVICES = "/dev/"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
# The time zone, the identity and the certificates of the node, which no claim can hold.
_SETTINGS = ("/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo", "/etc/machine-id", "/etc/ssl", "/etc/pki")
# Where the sockets of the node are, and where its agents look for logs.
_SOCKET_FOLDERS = frozenset(("/run", "/var/run"))
_LOGS = "/var/log/"
_KERNEL = frozenset(("/dev", "/proc", "/sys"))
# Folders into which drivers of devices are installed on the node.
_DRIVERS = ("/home/kubernetes/bin", "/run/nvidia", "/usr/local/nvidia", "/usr/local/Ascend", "/var/run/nvidia")


@rule("pod", WARNING, fields=("volumes",), words=("hostPath",))
def host_path(pod: Pod) -> Iterator[Violation]:
    """A `hostPath` volume: a directory of the node that the pod runs on.

    Pods on other nodes see other files, and data written there is lost with the node. Under the Pod Security level
    `baseline`, the pod is not created at all. Device files, sockets, the time zone and certificates are not
    reported, nor are the volumes of DaemonSets and other agents of the node. A local disk, such as
    `/mnt/k8s-disks/0`, the logs of the node and what drivers of devices install there are an info.

    Use a PersistentVolumeClaim for data, and an `emptyDir` for scratch files and `/dev/shm`. No claim can hold files of
    the kernel and of drivers, such as those in `/sys`: request devices from a device plugin, and mount only the folder
    that the program reads, with `readOnly: true`.

    When to turn it off: a cache of data sets that the administrators keep on each node, read-only, is a common
    reason: suppress it on the volume, with the owner of the path.
    """
    if not list_host_paths(pod) or is_node_agent(pod):
        return
    for volume in pod.volumes:
        path = as_text(get_path(volume, "hostPath", "path")) if "hostPath" in volume else ""
        if message := _describe(path):
            # A volume that nothing mounts has another finding.
            is_idle = is_unmounted(as_text(volume.get("name")), pod)
            is_mild = is_idle or _is_local_disk(path) or _is_driver(path)
            yield Violation(At(volume["hostPath"], "path"), message, severity=INFO if is_mild else WARNING)


# Where clouds and their machine images mount the local disks of a node.
_LOCAL_DISKS = tuple(
    "/local_nvme/ /local_ssd/ /mnt/disks/ /mnt/k8s-disks/ /mnt/localdisk/ /mnt/nvme/ /opt/dlami/nvme/".split()
)


def _is_local_disk(path: str) -> bool:
    """Return True for a fast disk or the logs of the node, which are mounted in order to have files of this node."""
    return f"{path.rstrip('/')}/".startswith((*_LOCAL_DISKS, _LOGS))


def _is_driver(path: str) -> bool:
    """Return True for what a driver has put on the node for the pods that use its device."""
    return path.startswith(_DRIVERS)


def _describe(path: str) -> str:
    """Return what is wrong with a path of the node; empty if nothing better exists."""
    folder = path.rstrip("/")
    if folder == _SHARED_MEMORY:
        return "the shared memory of the node is visible to other pods; use an `emptyDir` with `medium: Memory`"
    if folder in _KERNEL:
        return f"`{path}` shows the pod all devices and processes of its node; request devices from a device plugin"
    if not path or folder.startswith((_DEVICES, *_SETTINGS)) or path.endswith(".sock") or folder in _SOCKET_FOLDERS:
        return ""
    if is_node_folder(path) or _is_driver(folder):
        message = f"`{path}` belongs to the node, and no claim can hold its files"
        return f"{message}; mount only what the program reads, with `readOnly: true`"
    return f"`{path}` differs from node to node; use a PersistentVolumeClaim, or an `emptyDir` for scratch"


_SOCKETS = ("docker.sock", "containerd.sock", "crio.sock", "cri-dockerd.sock", "podman.sock")


@rule("pod", WARNING, fields=("volumes",), words=("hostPath",))
def runtime_socket(pod: Pod) -> Iterator[Violation]:
    """The socket of the container runtime, mounted from the node.

    Anyone who can write to the socket can start any container on the node as root, and so controls everything that runs
    there. Training never needs it. DaemonSets and other agents of the node are not reported.

    Remove the volume.

    When to turn it off: an image builder that really needs the socket should be replaced by a rootless one; until
    then, accept it on the volume with a date.
    """
    for volume in pod.volumes if list_host_paths(pod) and not is_node_agent(pod) else ():
        path = as_text(get_path(volume, "hostPath", "path")) if "hostPath" in volume else ""
        if path.rpartition("/")[2] in _SOCKETS:
            message = Sentence("`{}` gives the pod full control of its node; remove the volume", path)
            yield Violation(At(volume["hostPath"], "path"), message)


_NAMESPACES = ("hostPID", "hostIPC")
_SYSTEM = "kube-system"


@rule("pod", INFO, kinds=AGENT_KINDS)
def node_agent(pod: Pod) -> Iterator[Violation]:
    """A pod that works for its node and therefore controls it, such as a CNI plugin, a device plugin or a driver.

    It needs `privileged`, `hostPID` or a capability such as `SYS_ADMIN`, and does not work without them. Anyone who can
    change it, or run a command in it, controls the nodes that it runs on. A DaemonSet is such an agent, and so is a pod
    that requests no devices and mounts folders of the node such as `/var/lib/kubelet`, or runs commands such as
    `nsenter`. Agents in `kube-system` are not reported.

    Run it in `kube-system`, and select the nodes that need it. In another namespace, which needs the Pod Security level
    `privileged`, let only administrators change objects, and accept the info there.

    When to turn it off: the info lists who controls the nodes, for a review. Turn it off for the path of the agents
    that you have reviewed, not in general.
    """
    means = [*_list_means(pod)]
    if not means or pod.manifest.namespace == _SYSTEM or not is_node_agent(pod):
        return
    root = ["hostPath: /"] if "/" in list_host_paths(pod) else []
    names = ", ".join(f"`{name}`" for name in dict.fromkeys([*(name for name, _ in means), *root]))
    message = Sentence(
        "this agent controls its node ({}); restrict who can change it, for example with a namespace", names
    )
    message += " of its own that has the Pod Security level `privileged`"
    yield Violation(means[0][1], message)


def _list_means(pod: Pod) -> Iterator[tuple[str, At | None]]:
    """Yield what gives the pod control of its node, and where it is set."""
    for field in _NAMESPACES:
        if pod.spec.get(field) is True:
            yield field, At(pod.spec, field)
    for container in pod.all_containers:
        if is_privileged(container):
            yield "privileged", find_at(container.data, "securityContext", "privileged")
    for container in pod.all_containers:
        names = list_capabilities(container)
        added = as_list(get_path(container.data, "securityContext", "capabilities", "add"))
        for index, node in enumerate(added):
            if node in names:
                yield str(node), At(added, index)
