"""Ports that make no Service."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Container, as_integer, as_list, as_text
from jobgen.model.data import Data


@rule("container", ERROR, fields=("ports",))
def service_port_clash(container: Container) -> Iterator[Violation]:
    """A port of the main container that has no name, or the number of another: no Service can be made of them.

    The operator makes a headless Service of the container's ports and its own. The API server refuses one with several
    ports of which one has no name, or two have one number: pods do not find each other, and the job's status is stuck.
    """
    kind = container.pod.role.manifest.kind
    if kind is None or not kind.requirements.ports or container.init or container.pod.main_container is not container:
        return
    ports = [port for port in as_list(container.data.get("ports")) if isinstance(port, dict)]
    own = str(kind.port.get("name"))
    taken: dict[int | None, dict[str, Data]] = {}
    added = own not in [as_text(port.get("name")) for port in ports]
    if added:
        taken[kind.port.get("number")] = {}
    for port in ports:
        number = as_integer(port.get("containerPort"))
        if number in taken:
            yield from _twice(port, own, taken[number])
        elif not as_text(port.get("name")) and len(ports) + added > 1:
            message = f"a Service of several ports must name them all, and `{own}` is one more; give this one a name"
            yield Violation(port["containerPort"], message)
        taken[number] = port


def _twice(port: dict[str, Data], own: str, other: dict[str, Data]) -> Iterator[Violation]:
    """Two ports of one number; the operator's own stands nowhere."""
    node = port["containerPort"]
    if not other:
        yield Violation(
            node, f"the operator adds `{own}` with the same number, and a Service has it once; call it `{own}`"
        )
    elif (as_text(port.get("protocol")) or "TCP") != (as_text(other.get("protocol")) or "TCP"):
        # Of one protocol, the CRD refuses them.
        message = "a Service has a number once, whatever the protocol; take one of the two out"
        yield Violation(node, message, related=((other["containerPort"], "the other"),))
