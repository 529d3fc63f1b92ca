"""Where a field belongs that stands in a mapping which never has it, in cases that many people get wrong."""

from __future__ import annotations

from collections.abc import Container, Mapping

from jobgen.model.data import Node, value_of

_OF_CONTAINER = "; it belongs in `securityContext` of a container"
_PLACES = {
    ("allowPrivilegeEscalation", "fsGroup"): _OF_CONTAINER,
    ("capabilities", "fsGroup"): _OF_CONTAINER,
    ("configMapKeyRef", "configMapRef"): "; write `configMapRef`, or `env` with `valueFrom` for one key",
    ("privileged", "fsGroup"): _OF_CONTAINER,
    ("readOnlyRootFilesystem", "fsGroup"): _OF_CONTAINER,
    ("replicas", "numNodes"): "; did you mean `numNodes`?",
    ("secretKeyRef", "secretRef"): "; write `secretRef`, or `env` with `valueFrom` for one key",
    ("serviceName", "service"): "; write `service: {name: …, port: {number: …}}`",
    ("servicePort", "service"): "; it is `number` in `port` of `service`",
    ("ttlSecondsAfterFinished", "ttlStrategy"): "; write `ttlStrategy: {secondsAfterCompletion: …}`",
    ("storage", "accessModes"): "; it belongs in `resources.requests`",
}
"""What to write for a field, by the field and another one that its mapping may have."""
_NAMES = frozenset(name for name, _ in _PLACES)


def find_other_place(field: str, holder: Mapping[str, Node], properties: Container[str]) -> str:
    """Return `; …` with the place or the name of a field; empty if it is not known."""
    if field in _NAMES:
        for (name, beside), advice in _PLACES.items():
            if name == field and beside in properties:
                return advice
    is_label = "matchLabels" in properties and isinstance(value_of(holder[field]), str)
    return "; it belongs in `matchLabels`" if is_label else ""
