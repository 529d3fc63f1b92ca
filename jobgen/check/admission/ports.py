"""Ports of containers, and the host's that they take."""

from __future__ import annotations

from jobgen.check.admission.fields import PodCheck, mappings, missing, number, string, text, unsupported
from jobgen.check.admission.names import PORT_NAME, is_port_name
from jobgen.model.data import Data, value_of

_PROTOCOLS = ("TCP", "UDP", "SCTP")

port_number = number(1, 65535, rule="invalid-port")
port_name = text("invalid-port-name", "a port's name", is_port_name, PORT_NAME)


def ports(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The ports of one container."""
    if not isinstance(value, list):
        return
    names: set[str] = set()
    for port in value:
        if isinstance(port, dict):
            _port(port, key, names, pod)


def port_of_handler(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A port that a probe or a hook calls: a number, or the name of one."""
    if type(value_of(value)) is int:
        port_number(key, value, owner, pod)
    else:
        port_name(key, value, owner, pod)


def _port(port: dict[str, Data], around: str, names: set[str], pod: PodCheck) -> None:
    wanted = port.get("containerPort")
    found = value_of(wanted)
    if found is None or found == 0:
        missing("a port", port, "containerPort", around, pod)
    elif type(found) is int and not 0 < found < 65536:
        port_number("containerPort", wanted, port, pod)
    if "name" in port:
        _name(port["name"], names, pod)
    if "protocol" in port and (protocol := string(port["protocol"])) and protocol not in _PROTOCOLS:
        unsupported("protocol", port["protocol"], _PROTOCOLS, pod)
    if "hostPort" in port and value_of(port["hostPort"]) != 0:
        port_number("hostPort", port["hostPort"], port, pod)


def _name(value: Data, names: set[str], pod: PodCheck) -> None:
    name = string(value)
    if name and not is_port_name(name):
        pod.report("invalid-port-name", f"`{name}` is not a port's name; {PORT_NAME}", value)
    elif name in names:
        pod.report("duplicate-port", f"`{name}` names two ports of the container", value)
    elif name:
        names.add(name)


def host_ports(containers: list[Data], pod: PodCheck) -> None:
    """No two of these containers take the same port of the host."""
    host = "hostNetwork" in pod.spec and pod.says("hostNetwork")
    taken: set[tuple[str, str, int]] = set()
    for container in containers:
        if isinstance(container, dict) and isinstance(container.get("ports"), list):
            for port in container["ports"]:
                if isinstance(port, dict) and (host or "hostPort" in port):
                    _host_port(port, taken, pod, host=host)


def _host_port(port: dict[str, Data], taken: set[tuple[str, str, int]], pod: PodCheck, *, host: bool) -> None:
    inside, found = value_of(port.get("containerPort")), value_of(port.get("hostPort"))
    # On the host's network a port left out is the container's.
    taking = found or (host and inside)
    if type(taking) is not int or taking == 0:
        return
    place = (string(port.get("protocol")) or "TCP", string(port.get("hostIP")), taking)
    if place in taken:
        message = f"port `{taking}` of the host is taken twice; give one of them another"
        pod.report("duplicate-port", message, port["hostPort" if found else "containerPort"])
    taken.add(place)


def same_on_host(pod: PodCheck) -> None:
    """On the host's network a container's port is the host's."""
    for container in pod.containers("containers"):
        for port in mappings(container.get("ports")):
            inside, found = value_of(port.get("containerPort")), value_of(port.get("hostPort"))
            if type(found) is int and found not in (0, inside):
                message = f"`hostPort` is `{found}` and `containerPort` `{inside}`; `hostNetwork` wants them equal"
                pod.report("host-port-mismatch", message, port["hostPort"])
