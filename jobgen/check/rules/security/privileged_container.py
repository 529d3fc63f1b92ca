"""Privileged containers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Container, get_path
from jobgen.model.data import value_of


@rule("container", WARNING, fields=("securityContext",))
def privileged_container(container: Container) -> Iterator[Violation]:
    """A privileged container.

    It sees all devices of the node, including GPUs of other pods, and anyone who gets into it controls the node. Many
    clusters reject it; the Pod Security level `baseline` does.

    Remove `privileged`. For RDMA, the capability `IPC_LOCK` and a device plugin are enough.
    """
    node = get_path(container.data, "securityContext", "privileged")
    if value_of(node) is True:
        message = (
            f"privileged container `{container.name}` has full control of its node; for RDMA, `IPC_LOCK` is enough"
        )
        yield Violation(node, message)
