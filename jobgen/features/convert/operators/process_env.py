"""What a process in a container sees: its variables, with fields and references resolved, and addresses of nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from jobgen.features.convert.operators.created import CreatedPod, Fields, as_fields, as_items, as_string, get_fields

_REFERENCE = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_METADATA = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


class Variable(NamedTuple):
    """A variable of a process."""

    entry: Fields
    """The entry of `env`."""
    value: str
    """Its value; for a secret or another object, the text of the reference."""
    injected: bool
    """Whether the operator adds it."""
    depends: bool = False
    """Whether its value has a reference to a variable of the operator."""
    unresolved: bool = False
    """Whether its value has a reference to a variable that does not exist."""


class Expanded(NamedTuple):
    """A text after Kubernetes expanded its references to variables."""

    text: str
    unresolved: bool
    """Whether it has a reference to a variable that does not exist."""
    depends: bool
    """Whether it depends on a variable of the operator."""


def read_env(pod: CreatedPod, container: Fields, written: Fields) -> dict[str, Variable]:
    """Return the variables of a container; `written` is the same container in the pod template."""
    own = as_items(written.get("env"))
    found: dict[str, Variable] = {}
    for entry in as_items(container.get("env")):
        name = as_string(as_fields(entry).get("name"))
        if name:
            injected = entry not in own
            if isinstance(entry.get("valueFrom"), dict):
                found[name] = Variable(entry, _resolve_source(pod, entry["valueFrom"]), injected)
            else:
                expanded = expand(as_string(entry.get("value")), found)
                found[name] = Variable(entry, expanded.text, injected, expanded.depends, expanded.unresolved)
    return found


def expand(text: str, env: dict[str, Variable]) -> Expanded:
    """Expand `$(NAME)` as Kubernetes does: a reference to an unknown variable stays, and `$$` is one `$`."""
    unresolved = depends = False

    def replace(match: re.Match[str]) -> str:
        nonlocal unresolved, depends
        if match[1] == "$":
            return "$"
        variable = env.get(match[2])
        if variable is None:
            unresolved = True
            return match[0]
        depends = depends or variable.injected or variable.depends
        return variable.value

    return Expanded(_REFERENCE.sub(replace, text), unresolved, depends)


def _resolve_source(pod: CreatedPod, source: Fields) -> str:
    path = as_string(get_fields(source, "fieldRef").get("fieldPath"))
    match = _METADATA.fullmatch(path)
    if match:
        values = pod.labels if match[1] == "labels" else pod.annotations
        return as_string(values.get(match[2]))
    return pod.name if path == "metadata.name" else json.dumps(source, sort_keys=True, default=str)


class Hosts(NamedTuple):
    """The ranks of nodes by their addresses."""

    ranks: dict[str, int]

    def neutralize(self, text: str) -> str:
        """Return a text with `<rank 0>` in place of the address of the node with this rank."""
        found = [address for address in self.ranks if address in text]
        if not found:
            return text
        names = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-])", lambda match: f"<rank {self.ranks[match[0]]}>", text)


def find_hosts(pods: Iterable[CreatedPod]) -> Hosts:
    """Collect the addresses of the nodes of a set of pods."""
    return Hosts({pod.address: pod.rank for pod in pods if pod.rank is not None and pod.address})
