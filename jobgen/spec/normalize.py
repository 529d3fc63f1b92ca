"""One spelling for each field: a layer's short forms made alike, so that layers can be merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jobgen.model.data import Data, TracedKey, TracedList, to_key, to_scalar, with_value
from jobgen.model.finding import Problem

ROLE_FIELDS = frozenset(
    """podTemplate restartPolicy image imagePullPolicy imagePullSecrets command args workingDir containerName env
    envFrom ports resources volumes shm nodeSelector tolerations affinity serviceAccount securityContext labels
    annotations""".split()
)
"""Fields that a job and each of its roles can set."""

FIELDS = ROLE_FIELDS | frozenset(
    """framework replicas runPolicy queue priority suspend description tensorboard run roles matrix manifest""".split()
)
"""All fields of a job but the blocks of its frameworks; a test compares them with the schema."""

REPLICA_FIELDS = frozenset(("replicas", "restartPolicy"))
"""Fields that say how many pods a role has and what becomes of them; all others say what the pods are."""

# Fields of a spec that no layer merges as job or role fields; `matrix` has been expanded before.
_APART = frozenset(("roles", "manifest", "matrix"))


def is_job_field(name: str) -> bool:
    """Whether a field belongs to the job alone: one of the job's own fields, or the block of a framework."""
    return name not in ROLE_FIELDS and name not in _APART


class RoleFields(NamedTuple):
    """What a layer says of one role, or of all."""

    replica: dict[str, Data]
    pod: dict[str, Data]
    template: Data


class Layer(NamedTuple):
    """One layer's words about a job, each where it applies; a role that is None is deleted."""

    job: dict[str, Data]
    common: RoleFields
    roles: dict[str, RoleFields | None]
    manifest: Data


def normalize(spec: dict[str, Data], gpu_resource: str, problems: list[Problem]) -> Layer:
    """The layer that a checked spec, `defaults` or `merge` block stands for."""
    job: dict[str, Data] = {}
    common: dict[str, Data] = {}
    for key, value in spec.items():
        if key in ROLE_FIELDS:
            common[key] = value
        elif key not in _APART:
            job[key] = value
    roles = {
        name: _words(role, gpu_resource, problems) if isinstance(role, dict) else None
        for name, role in spec.get("roles", {}).items()
    }
    return Layer(job, _words(common, gpu_resource, problems), roles, _block(spec, "manifest"))


def _words(fields: dict[str, Data], gpu_resource: str, problems: list[Problem]) -> RoleFields:
    replica: dict[str, Data] = {}
    pod: dict[str, Data] = {}
    for key, value in fields.items():
        if key in REPLICA_FIELDS:
            replica[key] = value
        elif key in _SPELLINGS and isinstance(value, (dict, list)):
            spelt = _SPELLINGS[key](value, gpu_resource, problems)
            pod[key] = (
                TracedList(spelt, key.location, key.layer)
                if type(key) is TracedKey and isinstance(spelt, list)
                else spelt
            )
        elif key != "podTemplate":
            pod[key] = value
    return RoleFields(replica, pod, _block(fields, "podTemplate"))


def _block(fields: dict[str, Data], name: str) -> Data:
    """What is merged in later; a null deletes, and None is for nothing being said."""
    block = fields.get(name)
    return block if isinstance(block, dict) or name not in fields else {"$patch": with_value(block, "delete")}


def _env(env: Data, _: str, problems: list[Problem]) -> Data:
    """A map: a plain value as it is, any other source as `{valueFrom: …}`."""
    if isinstance(env, dict):
        return {name: _sourced(value) if isinstance(value, dict) else value for name, value in env.items()}
    known: dict[str, Data] = {}
    for item in env:
        name = to_key(item["name"])
        if name in known:
            problems.append(Problem("duplicate-env", f"`{name}` is set twice in one `env`", item["name"]))
        if "$patch" in item:
            known[name] = with_value(item["$patch"], None)
        elif "valueFrom" in item:
            known[name] = {key: value for key, value in item.items() if key != "name"}
        else:
            known[name] = item.get("value", {})
    return known


def _sourced(source: dict[str, Data]) -> dict[str, Data]:
    """`{secretKeyRef: …}` is short for `{valueFrom: {secretKeyRef: …}}`."""
    return source if "valueFrom" in source or "$patch" in source else {"valueFrom": source}


def _ports(ports: Data, _: str, __: list[Problem]) -> Data:
    """A map of names to numbers as Kubernetes' list."""
    if isinstance(ports, list):
        return ports
    return [{"name": to_scalar(name), "containerPort": port} for name, port in ports.items()]


def _secrets(secrets: list[Data], _: str, __: list[Problem]) -> list[Data]:
    """Bare names as references."""
    return [item if isinstance(item, dict) else {"name": item} for item in secrets]


def _resources(resources: dict[str, Data], gpu_resource: str, _: list[Problem]) -> dict[str, Data]:
    """Flat amounts are requests and limits alike; what is written under one of these wins there."""
    flat = {key: value for key, value in resources.items() if key not in ("limits", "requests", "claims")}
    normal: dict[str, Data] = {"claims": resources["claims"]} if "claims" in resources else {}
    for side in ("limits", "requests"):
        own = resources.get(side)
        amounts = {**flat, **own} if isinstance(own, dict) else flat
        if amounts:
            normal[side] = {_spelt(key, gpu_resource): value for key, value in amounts.items()}
        elif side in resources:
            normal[side] = own
    return normal


def _spelt(key: str, gpu_resource: str) -> str:
    if key != "gpu":
        return key
    return TracedKey.at(gpu_resource, key.location, key.layer) if type(key) is TracedKey else gpu_resource


_SPELLINGS: dict[str, Callable[[Data, str, list[Problem]], Data]] = {
    "env": _env,
    "ports": _ports,
    "imagePullSecrets": _secrets,
    "resources": _resources,
}
