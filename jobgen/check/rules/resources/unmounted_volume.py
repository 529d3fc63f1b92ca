"""Volumes that nothing mounts."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.injected_volumes import is_mounted_by_sidecar
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Pod


@rule("pod", WARNING, fields=("volumes",))
def unmounted_volume(pod: Pod) -> Iterator[Violation]:
    """A volume that no container of the pod mounts.

    The data that the container expects is not there, and the pod still waits for the volume before it starts.

    Mount the volume (`mountPath` in a job), or remove it.
    """
    if pod.partial or not pod.containers:
        return
    mounted = pod.mounted_volumes
    for volume in pod.volumes:
        name = as_text(volume.get("name"))
        if name and name not in mounted and not is_mounted_by_sidecar(name, pod):
            yield Violation(volume["name"], f"no container mounts the volume `{name}`; add `mountPath`, or remove it")
