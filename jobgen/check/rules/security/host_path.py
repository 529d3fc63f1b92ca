"""A folder of the node."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Pod, as_text, get_path

# Where drivers put their devices: there is no other way to them without a device plugin.
_DEVICES = ("/dev/infiniband", "/dev/kfd", "/dev/dri", "/dev/nvidia", "/dev/hugepages", "/dev/davinci", "/dev/mlu")


@rule("pod", WARNING, fields=("volumes",))
def host_path(pod: Pod) -> Iterator[Violation]:
    """A `hostPath` volume: a folder of whatever node the pod lands on.

    Pods on other nodes see other files, what is written there is lost with the node, and many clusters refuse such pods
    (the Pod Security level `baseline` does). Use a PersistentVolumeClaim, or an `emptyDir` for scratch and `/dev/shm`.
    """
    for volume in pod.volumes:
        node = get_path(volume, "hostPath", "path") if "hostPath" in volume else None
        path = as_text(node)
        if not path or path.startswith(_DEVICES) or path.endswith(".sock"):
            continue
        if path.rstrip("/") == "/dev/shm":  # noqa: S108
            message = "the shared memory of the node, which other pods see; use an `emptyDir` with `medium: Memory`"
        else:
            message = f"`{path}` is of whatever node the pod lands on; for data use a claim, for scratch an `emptyDir`"
        yield Violation(node, message)
