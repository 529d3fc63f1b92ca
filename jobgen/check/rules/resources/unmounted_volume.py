"""Volumes that nothing mounts."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Pod


@rule("pod", WARNING, fields=("volumes",))
def unmounted_volume(pod: Pod) -> Iterator[Violation]:
    """A volume that no container of the pod mounts.

    The data that the container expects is not there, and the pod still waits for the volume before it starts.

    Mount the volume (`mountPath` in a job), or remove it.
    """
    if pod.partial or not pod.containers:
        return
    mounted = {
        as_text(as_mapping(mount).get("name"))
        for container in (*pod.containers, *pod.init_containers)
        for field in ("volumeMounts", "volumeDevices")
        for mount in as_list(container.data.get(field))
    }
    for volume in pod.volumes:
        name = as_text(volume.get("name"))
        if name and name not in mounted:
            yield Violation(volume["name"], f"no container mounts the volume `{name}`; add `mountPath`, or remove it")
