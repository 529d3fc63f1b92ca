"""Where a field belongs that stands in a mapping which never has it, in cases that many people get wrong."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from jobgen.model.data import Plain

_OF_CONTAINER = "; it belongs in `securityContext` of a container"
_OF_COMPOSE = {
    "build": "; write `image`, with the name of an image that is built already",
    "cpus": "; write `cpu` below `resources.limits`",
    "depends_on": "; remove it: what must run before is one of `initContainers`",
    "deploy": "; write `resources`",
    "entrypoint": "; write `command`",
    "env_file": "; write `envFrom`",
    "environment": "; write `env: [{name: …, value: …}]`",
    "gpus": "; write `nvidia.com/gpu` below `resources.limits`",
    "healthcheck": "; write `livenessProbe`",
    "ipc": "; mount an `emptyDir` with `medium: Memory` at `/dev/shm`, or write `hostIPC` in the pod",
    "mem_limit": "; write `memory` below `resources.limits`",
    "network_mode": "; write `hostNetwork` in the pod",
    "restart": "; write `restartPolicy` in the pod",
    "shm_size": "; mount an `emptyDir` with `medium: Memory` at `/dev/shm`",
    "user": "; write `securityContext: {runAsUser: …}`",
}
"""What Docker Compose has in a service, and what to write in a container."""
_OF_AUTOSCALING_V1 = (
    "; `autoscaling/v1` has it; write `metrics: [{type: Resource, resource: {name: cpu, "
    "target: {type: Utilization, averageUtilization: …}}}]`"
)
_PLACES = {
    **{(name, "workingDir"): advice for name, advice in _OF_COMPOSE.items()},
    ("args", "entrypoint"): "; write the whole command line as `entrypoint`, as one text",
    ("command", "entrypoint"): "; write the whole command line as `entrypoint`, as one text",
    ("allowPrivilegeEscalation", "fsGroup"): _OF_CONTAINER,
    ("capabilities", "fsGroup"): _OF_CONTAINER,
    ("configMapKeyRef", "configMapRef"): "; write `configMapRef`, or `env` with `valueFrom` for one key",
    ("name", "configMapRef"): "; write `configMapRef: {name: …}`, or `secretRef: {name: …}`",
    ("privileged", "fsGroup"): _OF_CONTAINER,
    ("readOnlyRootFilesystem", "fsGroup"): _OF_CONTAINER,
    ("replicas", "numNodes"): "; did you mean `numNodes`?",
    ("secretKeyRef", "secretRef"): "; write `secretRef`, or `env` with `valueFrom` for one key",
    ("serviceName", "service"): "; write `service: {name: …, port: {number: …}}`",
    ("servicePort", "service"): "; it is `number` in `port` of `service`",
    ("ttlSecondsAfterFinished", "ttlStrategy"): "; write `ttlStrategy: {secondsAfterCompletion: …}`",
    ("targetCPUUtilizationPercentage", "metrics"): _OF_AUTOSCALING_V1,
    ("storage", "accessModes"): "; it belongs in `resources.requests`",
}
"""What to write for a field, by the field and another one that its mapping may have."""
_OTHER_NAMES = {
    ("configMapRef", "configMapKeyRef"): "configMapKeyRef",
    ("secretRef", "secretKeyRef"): "secretKeyRef",
}
"""The field that is meant by another word, by the word and a field that its mapping may have."""
_NAMES = frozenset(name for name, _ in _PLACES)
_AMOUNTS = frozenset(("cpu", "ephemeral-storage", "memory", "storage"))
"""Resources without a domain."""


def find_level_of_amounts(unknown: Collection[str], properties: Container[str]) -> str:
    """Return `limits` or `requests` for amounts that stand directly in `resources`; empty for other fields."""
    if "limits" not in properties or "requests" not in properties or not unknown:
        return ""
    is_amount = all(name in _AMOUNTS or "/" in name for name in unknown)
    return ("requests" if "storage" in unknown else "limits") if is_amount else ""


def find_other_place(field: str, holder: Mapping[str, Plain], properties: Container[str]) -> str:
    """Return `; …` with the place or the name of a field; empty if it is not known."""
    if field in _NAMES:
        for (name, beside), advice in _PLACES.items():
            if name == field and beside in properties:
                value = holder[field]
                return advice.replace("…", str(value)) if type(value) is int else advice
    is_label = "matchLabels" in properties and isinstance(holder[field], str)
    return "; it belongs in `matchLabels`" if is_label else ""


def find_other_name(field: str, holder: Container[str], properties: Container[str]) -> str:
    """Return the field of a mapping that is meant by the name of a similar one; empty if there is none."""
    found = (meant for (name, beside), meant in _OTHER_NAMES.items() if name == field and beside in properties)
    return next((meant for meant in found if meant not in holder), "")
