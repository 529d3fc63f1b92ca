"""Ports that conflict in a Service."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_integer, as_list, as_text
from jobgen.k8s.objects import Container
from jobgen.model.data import Node, value_of


@rule("container", ERROR, fields=("ports",))
def service_port_clash(container: Container) -> Iterator[Violation]:
    """A port of the main container that has no name, or the same number as another port.

    The operator creates a headless Service from the container's ports and its own. The API server rejects a Service
    with several ports if one has no name or two have the same number. The pods cannot reach each other, and the status
    of the job is not updated.

    Name every port, and use each number once.
    """
    kind = container.pod.manifest.kind
    pod = container.pod
    if kind is None or not kind.requirements.ports or pod.role is None or pod.main_container is not container:
        return
    ports = [port for port in as_list(container.data.get("ports")) if isinstance(port, dict)]
    own = str(kind.port.get("name"))
    taken: dict[int, dict[str, Node]] = {}
    added = own not in [as_text(port.get("name")) for port in ports]
    if added and "number" in kind.port:
        taken[kind.port["number"]] = {}
    for port in ports:
        number = as_integer(port.get("containerPort"))
        if number is None:
            # The schema of the CRD reports it.
            continue
        if number in taken:
            yield from _report_duplicate(port, own, taken[number])
        elif not as_text(port.get("name")) and len(ports) + added > 1:
            message = (
                f"a Service with several ports must name all of them, and the operator adds `{own}`; name this port"
            )
            yield Violation(port["containerPort"], message)
        taken[number] = port


def _report_duplicate(port: dict[str, Node], own: str, other: dict[str, Node]) -> Iterator[Violation]:
    """Report two ports with the same number; the port of the operator is not in the manifest."""
    node = port["containerPort"]
    if not other:
        yield Violation(node, f"the operator adds port `{own}` with the same number; name this port `{own}`")
    elif (as_text(port.get("protocol")) or "TCP") != (as_text(other.get("protocol")) or "TCP"):
        # The CRD rejects two ports with the same number and protocol.
        number = value_of(node)
        message = f"port `{number}` can be used only once in a Service, even with different protocols; remove one"
        related = ((other["containerPort"], "the other port"),)
        yield Violation(node, message, related)
