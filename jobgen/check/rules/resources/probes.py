"""Probes that name a port which their container does not have."""

from collections.abc import Iterator

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.place import find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest, suggest_value

_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_ACTIONS = ("httpGet", "tcpSocket")


@rule("container", WARNING, words=("Probe",))
def unknown_probe_port(container: Container) -> Iterator[Violation]:
    """A probe of a port by a name that no port of its container has.

    The API server accepts it, and the kubelet never gets a result: the pod is never ready, or its program is not
    watched.

    Correct the name, or write the number of the port.

    When to turn it off: if an injected sidecar has the port, name the number instead of the name; a probe of one
    container cannot use another one's port names.
    """
    for probe in _PROBES:
        for action in _ACTIONS if probe in container.data else ():
            port = find_at(container.data, probe, action, "port")
            name = port.node if port is not None else None
            if type(name) is not str or name.isdigit():
                continue
            ports = iter_mappings(container.data.get("ports"))
            known = [each for each in (as_text(item.get("name")) for item in ports) if each]
            if name in known:
                continue
            meant = find_closest(name, known)
            advice = ask_for(meant) or "; name a port so, or write its number"
            fix_steps, safe = suggest_value(port, known, is_refused=False)
            message = Sentence(
                "no port of the container is named `{}`, so `{}` never gets a result{}", name, probe, advice
            )
            yield Violation(port, message, fix_steps=fix_steps, safe=safe, meant=meant)
