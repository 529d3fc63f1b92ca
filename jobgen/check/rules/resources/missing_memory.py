"""GPU containers without memory requests."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Container, Manifest


@rule("manifest", INFO)
def missing_memory(manifest: Manifest) -> Iterator[Violation]:
    """A container with GPUs that requests no memory.

    The scheduler can place it on a node without enough memory. When memory runs short, such pods are evicted or killed
    first and lose everything since the last checkpoint.

    Add a memory request.
    """
    for name, container in _list_containers(manifest):
        pod = container.pod
        if pod.partial or not container.devices or as_mapping(pod.spec.get("resources")):
            continue
        named = [str(key) for key in (*container.limits, *container.requests)]
        # A name without a domain that resembles memory has a finding of its own.
        if "memory" not in named and not any("mem" in key for key in named if "/" not in key):
            wanted = "GPUs" if container.gpus else "accelerators"
            message = f"{name} has {wanted} but requests no memory, so it is evicted first"
            yield Violation(container.device_node, f"{message}; add a memory request")
            return


def _list_containers(manifest: Manifest) -> Iterator[tuple[str, Container]]:
    """Yield the containers that compute: that of each role, or all of a kind without roles, with a name for them."""
    if manifest.kind is None:
        yield from ((f"`{container.name}`", container) for pod in manifest.pods for container in pod.containers)
    for role in manifest.roles:
        if role.pod.main_container is not None:
            yield role.title, role.pod.main_container
