"""GPU containers without memory requests."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest


@rule("job", INFO)
def missing_memory(manifest: Manifest) -> Iterator[Violation]:
    """A container with GPUs that requests no memory.

    The scheduler may place it on a node without enough memory. When memory runs short, such pods are evicted or killed
    first and lose everything since the last checkpoint.

    Add a memory request.
    """
    for role in manifest.roles:
        main = role.pod.main_container
        if main is None or role.pod.partial or not main.devices or as_mapping(role.pod.spec.get("resources")):
            continue
        if "memory" not in main.limits and "memory" not in main.requests:
            node = main.device_node
            wanted = "GPUs" if main.gpus else "accelerators"
            message = f"`{role.replica_type}` has {wanted} but requests no memory, so it is evicted first"
            yield Violation(node, f"{message}; add a memory request")
            return
