"""Volumes of type hostPath."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Pod

# Device files of drivers; without a device plugin, hostPath is the only access to them.
_DEVICES = ("/dev/infiniband", "/dev/kfd", "/dev/dri", "/dev/nvidia", "/dev/hugepages", "/dev/davinci", "/dev/mlu")


@rule("pod", WARNING, fields=("volumes",))
def host_path(pod: Pod) -> Iterator[Violation]:
    """A `hostPath` volume: a directory of the node that the pod runs on.

    Pods on other nodes see other files, and data written there is lost with the node. Many clusters reject such pods;
    the Pod Security level `baseline` does. Device files, sockets and the volumes of DaemonSets are not reported.

    Use a PersistentVolumeClaim for data, and an `emptyDir` for scratch files and `/dev/shm`.
    """
    for volume in pod.volumes if not pod.manifest.runs_on_every_node else ():
        node = get_path(volume, "hostPath", "path") if "hostPath" in volume else None
        path = as_text(node)
        if not path or path.startswith(_DEVICES) or path.endswith(".sock"):
            continue
        if path.rstrip("/") == "/dev/shm":  # noqa: S108
            message = "the shared memory of the node is visible to other pods; use an `emptyDir` with `medium: Memory`"
        else:
            message = f"`{path}` differs from node to node; use a PersistentVolumeClaim, or an `emptyDir` for scratch"
        yield Violation(node, message)
