"""Pods that are bound to a node by name."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Pod
from jobgen.model.lazy_re import lazy_pattern

_NAME = lazy_pattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@rule("pod", WARNING, fields=("nodeName",))
def fixed_node(pod: Pod) -> Iterator[Violation]:
    """`nodeName` in a pod of a training job.

    The pod skips the scheduler: nothing waits until the node has free GPUs and memory, and a gang scheduler does not
    see the pod. If the node is full, the kubelet refuses the pod, and it fails. All pods of the role run on that node.

    Use a `nodeSelector` with `kubernetes.io/hostname`.
    """
    node = pod.spec["nodeName"]
    name = as_text(node)
    # In the file of a team, it is an error.
    if pod.manifest.team is not None:
        return
    if pod.manifest.kind is None or not _NAME.fullmatch(name) or pod.spec.get("schedulingGates"):
        return
    # A Job that does something on one node is meant to run there.
    if pod.manifest.group == "batch" and (not any(pod.devices.values()) or is_node_agent(pod)):
        return
    message = f"`nodeName: {name}` skips the scheduler, so the pod fails if the node has no room"
    yield Violation(node, f"{message}; remove it, and add `nodeSelector: {{kubernetes.io/hostname: {name}}}`")
