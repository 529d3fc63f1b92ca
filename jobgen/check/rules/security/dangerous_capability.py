"""A capability that is as good as being root on the node."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Container, as_list, as_text, get_path

_DANGEROUS = frozenset(
    "ALL BPF DAC_READ_SEARCH MAC_ADMIN MAC_OVERRIDE NET_ADMIN SYS_ADMIN SYS_BOOT SYS_MODULE SYS_RAWIO SYSLOG".split()
)


@rule("container", WARNING, fields=("securityContext",))
def dangerous_capability(container: Container) -> Iterator[Violation]:
    """A capability with which a container can take over its node, such as `SYS_ADMIN`.

    Training needs none of them; RDMA needs `IPC_LOCK`, and debuggers `SYS_PTRACE`. Many clusters refuse the others (the
    Pod Security level `baseline` does). Remove it.
    """
    for node in as_list(get_path(container.data, "securityContext", "capabilities", "add")):
        if as_text(node).removeprefix("CAP_") in _DANGEROUS:
            yield Violation(
                node, f"with `{as_text(node)}` the container `{container.name}` can take over its node; remove it"
            )
