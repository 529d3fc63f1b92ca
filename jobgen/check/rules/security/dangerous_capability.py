"""Capabilities that give control of the node."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_text, get_path
from jobgen.k8s.objects import Container

_DANGEROUS = frozenset(
    "ALL BPF DAC_READ_SEARCH MAC_ADMIN MAC_OVERRIDE NET_ADMIN SYS_ADMIN SYS_BOOT SYS_MODULE SYS_RAWIO SYSLOG".split()
)


@rule("container", WARNING, fields=("securityContext",))
def dangerous_capability(container: Container) -> Iterator[Violation]:
    """A capability that lets a container take control of its node, such as `SYS_ADMIN`.

    Training needs none of them; RDMA needs `IPC_LOCK`, and debuggers need `SYS_PTRACE`. Many clusters reject such pods;
    the Pod Security level `baseline` does.

    Remove the capability.
    """
    for node in as_list(get_path(container.data, "securityContext", "capabilities", "add")):
        if as_text(node).removeprefix("CAP_") in _DANGEROUS:
            yield Violation(
                node, f"capability `{as_text(node)}` gives container `{container.name}` control of its node; remove it"
            )
