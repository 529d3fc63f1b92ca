"""A container that may do anything on its node."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Container, get_path
from jobgen.model.data import value_of


@rule("container", WARNING, fields=("securityContext",))
def privileged_container(container: Container) -> Iterator[Violation]:
    """A privileged container: it sees all devices of the node, also GPUs that other pods hold.

    Whoever gets into it owns the node, and many clusters refuse it (the Pod Security level `baseline` does). For RDMA
    the capability `IPC_LOCK` and a device plugin are enough.
    """
    node = get_path(container.data, "securityContext", "privileged")
    if value_of(node) is True:
        message = f"the container `{container.name}` may do anything on its node; for RDMA `IPC_LOCK` is enough"
        yield Violation(node, message)
