"""GPUs without memory."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.accelerators import find_device_node
from jobgen.k8s.objects import Manifest, as_mapping


@rule("job", INFO)
def missing_memory(manifest: Manifest) -> Iterator[Violation]:
    """A container that holds GPUs and says nothing about memory.

    The scheduler may put it on a node without room, and when memory runs short such pods are evicted or killed first,
    with all they have trained since the last checkpoint. Write a request for memory.
    """
    for role in manifest.roles:
        main = role.pod.main_container
        if main is None or role.pod.partial or not main.gpus or as_mapping(role.pod.spec.get("resources")):
            continue
        if "memory" not in main.limits and "memory" not in main.requests:
            node = find_device_node(main.limits, main.requests)
            yield Violation(
                node, f"`{role.replica_type}` holds GPUs and requests no memory, so it is the first to be evicted"
            )
            return
