"""Jobs of Volcano that another scheduler starts."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node

_DEFAULT = "default-scheduler"


@rule("manifest", WARNING, kinds=("Job",))
def gang_without_volcano(manifest: Manifest) -> Iterator[Violation]:
    """A Job of Volcano whose pods `default-scheduler` starts.

    The scheduler of Kubernetes ignores the PodGroup of the job, and so its `minAvailable` and its queue: it starts the
    pods one by one, and some hold their GPUs while they wait for the others. The `schedulerName` of a pod template
    takes precedence over that of the job.

    Use `schedulerName: volcano`, or remove the field.
    """
    if manifest.group != "batch.volcano.sh":
        return
    own = manifest.spec.get("schedulerName")
    nodes: list[Node] = []
    for task in map(as_mapping, as_list(manifest.spec.get("tasks"))):
        written = get_path(task, "template", "spec", "schedulerName")
        nodes.append(written if as_text(written) else own)
    # `mixed-schedulers` reports tasks with different schedulers.
    if nodes and all(as_text(node) == _DEFAULT for node in nodes):
        message = f"`{_DEFAULT}` ignores the PodGroup and the queue of the job, and starts its pods one by one"
        yield Violation(nodes[0], f"{message}; use `volcano`")
