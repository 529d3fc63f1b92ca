"""Checkpoints that are deleted with their pod."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.command_line import find_written_volumes
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Container, Pod
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key

_DELETED = ("emptyDir", "ephemeral")
_NAME = lazy_pattern(r"(?:\A|[-_/.])(?:ckpts?|checkpoints?)(?=\Z|[-_/.])")


@rule("pod", WARNING, fields=("volumes",))
def lost_checkpoints(pod: Pod) -> Iterator[Violation]:
    """Checkpoints or results of a job in a volume that is deleted with its pod.

    An `emptyDir` lives as long as its pod. When the pod is replaced after a failure, a preemption or the loss of its
    node, the training starts again from the beginning. A volume that another container also mounts, such as one that
    uploads the checkpoints, is not reported.

    Write checkpoints to a persistent volume or to object storage.
    """
    if not any(container.devices for container in pod.containers) or pod.manifest.kind is None:
        return
    written = {name: text for each in pod.containers for name, text in _find_written(each)}
    for volume in pod.volumes if written else ():
        name = as_text(volume.get("name"))
        field = next((field for field in _DELETED if field in volume), "")
        if field and name in written and _count_mounts(pod, name) == 1:
            message = f"checkpoints in `{written[name]}` are in an `{field}`, which is deleted with the pod"
            advice = "write them to a persistent volume, so that a restarted job continues"
            yield Violation(find_key(volume, field), f"{message}; {advice}")


def _find_written(container: Container) -> Iterator[tuple[str, str]]:
    """Yield the volumes that a container plainly writes checkpoints to, with the path."""
    yield from find_written_volumes(container)
    for mount in map(as_mapping, as_list(container.data.get("volumeMounts"))):
        name, path = as_text(mount.get("name")), as_text(mount.get("mountPath"))
        if _NAME.search(path.lower()) or _NAME.search(name.lower()):
            yield name, path


def _count_mounts(pod: Pod, volume: str) -> int:
    """Return how many containers mount a volume."""
    several = (*pod.containers, *pod.init_containers)
    mounts = (map(as_mapping, as_list(each.data.get("volumeMounts"))) for each in several)
    return sum(any(as_text(mount.get("name")) == volume for mount in each) for each in mounts)
