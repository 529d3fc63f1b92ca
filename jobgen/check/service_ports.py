"""Find ports of Services that lead to a port which none of their pods has, in one file or one build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.check.admission.fields import iter_mappings
from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.k8s.nodes import as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.budget import Work, charge
from jobgen.model.data import Plain, list_scalars
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

RULE = "service-selects-nothing"
_UNFILLED = ("$", "{{", "<")
_DIGITS = lazy_pattern(r"[0-9]+")


def find_lost_ports(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Problem]]:
    """Report each target port, by the number of its Service, that no selected pod of the objects has.

    Pods need not declare the ports on which they listen, but a name leads only to a declared port. A number is compared
    only with pods whose only container declares its ports and does not name the number elsewhere, and if no other port
    of the Service is declared: then it is not another port, such as that of metrics. Custom resources may create pods
    with any ports.
    """
    if any(as_text(obj.get("apiVersion")).rpartition("/")[0] not in BUILTIN_GROUPS for obj in objects):
        return
    pods = [pod for obj in objects for pod in _list_pods(obj)]
    for number, service in enumerate(objects) if pods else ():
        selector = as_mapping(get_path(service, "spec", "selector"))
        if as_text(service.get("kind")) != "Service" or not selector:
            continue
        charge(Work.DOCUMENTS, len(pods))
        wanted = {str(key): as_text(value) for key, value in selector.items()}
        namespace = as_text(get_path(service, "metadata", "namespace"))
        selected = [
            spec
            for place, labels, spec in pods
            if wanted.items() <= labels.items() and (place == namespace or "" in (place, namespace))
        ]
        if selected:
            ports = [*iter_mappings(get_path(service, "spec", "ports"))]
            yield from ((number, problem) for problem in _check_ports(ports, selected))


def _list_pods(obj: Mapping[str, Plain]) -> Iterator[tuple[str, dict[str, str], Mapping[str, Plain]]]:
    """Yield the namespace, the labels and the spec of each pod that an object creates."""
    group, kind = as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind"))
    for path in list_template_paths(group, kind):
        for template in find_nodes(obj, path):
            labels = as_mapping(get_path(template, "metadata", "labels"))
            found = {str(name): as_text(value) for name, value in labels.items()}
            yield as_text(get_path(obj, "metadata", "namespace")), found, as_mapping(get_path(template, "spec"))


def _check_ports(ports: Sequence[Mapping[str, Plain]], pods: Sequence[Mapping[str, Plain]]) -> Iterator[Problem]:
    containers = [
        container
        for spec in pods
        for field in ("containers", "initContainers")
        for container in iter_mappings(spec.get(field))
    ]
    declared = [item for each in containers for item in iter_mappings(each.get("ports"))]
    names = sorted({name for item in declared if (name := as_text(item.get("name")))})
    numbers = sorted({number for item in declared if type(number := item.get("containerPort")) is int})
    targets = [port.get("targetPort", port.get("port")) for port in ports]
    is_compared = len(containers) == 1 and bool(numbers) and not any(one in numbers or one in names for one in targets)
    for port in ports:
        wanted = port.get("targetPort")
        message = Sentence("")
        if isinstance(wanted, str) and not wanted.isdigit() and wanted not in names:
            if wanted and not any(sign in wanted for sign in _UNFILLED):
                only = f"; write `{names[0]}`, the name of its port" if len(names) == 1 else ""
                advice = did_you_mean(wanted, names) or only or "; name a port so, or write its number"
                message = Sentence("no container that the Service selects has a port named `{}`{}", wanted, advice)
        elif type(wanted) is int and is_compared and not _mentions(containers[0], wanted):
            listed = " and ".join(f"`{number}`" for number in numbers)
            message = Sentence(
                "the container that the Service selects declares port {}, not `{}`; write the same number",
                listed,
                wanted,
            )
        if message:
            yield Problem(RULE, message, At(port, "targetPort"), category="fleet", severity=Severity.WARNING)


def _mentions(container: Mapping[str, Plain], number: int) -> bool:
    """Return True if the command, the variables or the probes of a container have the number of a port."""
    text = str(number)
    return any(text in _DIGITS.findall(str(scalar)) for scalar in list_scalars(container))
