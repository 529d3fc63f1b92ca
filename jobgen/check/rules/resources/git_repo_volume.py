"""Volumes of type gitRepo."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.kinds import Release, format_release, parse_release
from jobgen.k8s.objects import Pod
from jobgen.model.suggest import find_key

# The kubelet's feature gate GitRepoVolumeDriver is off since the first, and cannot be turned on since the second.
_OFF, _GONE = (1, 33), (1, 36)


@rule("pod", WARNING, fields=("volumes",))
def git_repo_volume(pod: Pod) -> Iterator[Violation]:
    """A `gitRepo` volume, which Kubernetes no longer mounts.

    The API server accepts it, but since 1.33 the kubelet does not mount it unless its feature gate
    `GitRepoVolumeDriver` is turned on, and since 1.36 the gate cannot be turned on. Such a pod stays in
    `ContainerCreating` and never starts. This is an error if `cluster.kubernetes` declares 1.36 or later, and a warning
    otherwise.

    Clone the repository in an init container into an `emptyDir`, or put the files into the image.
    """
    declared = pod.manifest.cluster.kubernetes
    release = parse_release(declared) if declared else None
    for volume in pod.volumes:
        if isinstance(volume.get("gitRepo"), dict):
            message = f"{_describe(release)}; clone the repository in an init container into an `emptyDir`"
            severity = ERROR if release is not None and release >= _GONE else None
            yield Violation(find_key(volume, "gitRepo"), message, severity=severity)


def _describe(release: Release | None) -> str:
    """Return what a release does with such a volume; None if the release is not declared."""
    if release is not None and release >= _GONE:
        return f"Kubernetes {format_release(release)} cannot mount `gitRepo`, so the pod never starts"
    if release is not None and release >= _OFF:
        return f"`gitRepo` is off by default in Kubernetes {format_release(release)}, and is gone in 1.36"
    return "`gitRepo` is off by default since Kubernetes 1.33, and is gone in 1.36"
