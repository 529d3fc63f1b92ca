"""Normalize layers: expand the short forms of fields, so that layers can be merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobgen.model.data import TracedKey, TracedList, to_key, to_scalar, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence

ROLE_FIELDS = frozenset(
    """podTemplate restartPolicy image imagePullPolicy imagePullSecrets command args workingDir containerName env
    envFrom ports resources volumes shm nodeSelector tolerations affinity serviceAccount securityContext labels
    annotations initContainers sidecars secrets configs""".split()
)
"""Fields that a job and each of its roles can set."""

FIELDS = ROLE_FIELDS | frozenset(
    """framework platform replicas runPolicy queue priority suspend description tensorboard run roles matrix
    manifest""".split()
)
"""All fields of a job but the blocks of its frameworks; a test compares them with the schema."""

REPLICA_FIELDS = frozenset(("replicas", "minReplicas", "maxReplicas", "restartPolicy", "platforms"))
"""Fields of a role that concern its replicas; all others concern its pods."""

NOT_RENDERED = frozenset(("replicas", "run"))
"""Fields without a counterpart in the object: the roles add up to `replicas`, and `run` names the finished object."""

# Fields of a spec that no layer merges as job or role fields; `matrix` has been expanded before.
_APART = frozenset(("roles", "manifest", "matrix"))
# Blocks that are merged into what the other fields are rendered to.
_MERGED_LATER = frozenset(("podTemplate", "manifest"))


def is_job_field(name: str) -> bool:
    """Return True if a field belongs to the job alone: one of the job's own fields, or the block of a framework."""
    return name not in ROLE_FIELDS and name not in _APART


class RoleFields(NamedTuple):
    """The fields that a layer sets for one role, or for all."""

    replica: dict[str, Any]
    pod: dict[str, Any]
    template: Any
    manifest: Any = None


class Layer(NamedTuple):
    """The fields that one layer sets, by where they apply; a role that is None is deleted."""

    job: dict[str, Any]
    common: RoleFields
    roles: dict[str, RoleFields | None]
    manifest: Any


def normalize(spec: dict[str, Any], gpu_resource: str, problems: list[Problem]) -> Layer:
    """Normalize a valid spec, `defaults` block or `merge` block."""
    job: dict[str, Any] = {}
    common: dict[str, Any] = {}
    for key, value in spec.items():
        if key in ROLE_FIELDS:
            common[key] = value
        elif key not in _APART:
            job[key] = value
    roles = {
        name: _normalize_role(role, gpu_resource, problems) if isinstance(role, dict) else None
        for name, role in spec.get("roles", {}).items()
    }
    return Layer(job, _normalize_role(common, gpu_resource, problems), roles, _merge_block(spec, "manifest"))


def _normalize_role(fields: dict[str, Any], gpu_resource: str, problems: list[Problem]) -> RoleFields:
    replica: dict[str, Any] = {}
    pod: dict[str, Any] = {}
    for key, value in fields.items():
        if key in REPLICA_FIELDS:
            replica[key] = value
        elif key in _NORMALIZERS and isinstance(value, (dict, list)):
            pod[key] = normalized = _NORMALIZERS[key](value, gpu_resource, problems)
            if type(key) is TracedKey and isinstance(normalized, list):
                pod[key] = TracedList(normalized, key.location, key.layer)
        elif key not in _MERGED_LATER:
            pod[key] = value
    return RoleFields(replica, pod, _merge_block(fields, "podTemplate"), _merge_block(fields, "manifest"))


def _merge_block(fields: dict[str, Any], name: str) -> Any:
    """A block that is merged later; null becomes a deletion, and None means that it is not set."""
    block = fields.get(name)
    return block if isinstance(block, dict) or name not in fields else {"$patch": with_value(block, "delete")}


def _normalize_env(env: Any, _: str, problems: list[Problem]) -> Any:
    """Convert `env` to a mapping: plain values unchanged, other sources as `{valueFrom: …}`."""
    if isinstance(env, dict):
        return {
            name: _with_value_from(name, value, problems) if isinstance(value, dict) else value
            for name, value in env.items()
        }
    known: dict[str, Any] = {}
    for item in env:
        name = to_key(item["name"])
        if name in known:
            problems.append(Problem("duplicate-env", Sentence("`{}` is set twice in one `env`", name), item["name"]))
        if "$patch" in item:
            known[name] = with_value(item["$patch"], None)
        elif "valueFrom" in item:
            source = {key: value for key, value in item.items() if key != "name"}
            known[name] = _with_value_from(name, source, problems)
        else:
            known[name] = item.get("value", {})
    return known


_REFERENCES = frozenset(("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"))


def _with_value_from(name: str, source: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """`{secretKeyRef: …}` is short for `{valueFrom: {secretKeyRef: …}}`."""
    if "$patch" in source:
        return source
    short = source.get("valueFrom", source)
    if isinstance(short, dict) and not _REFERENCES.issuperset(short):
        # Imported late: most names are right.
        from jobgen.spec.env_sources import name_source

        named = name_source(name, short, problems)
        return {"valueFrom": named} if short is source else {**source, "valueFrom": named}
    return {"valueFrom": source} if short is source else source


def _normalize_ports(ports: Any, _: str, __: list[Problem]) -> Any:
    """Convert a mapping of names to numbers to a list of ports."""
    if isinstance(ports, list):
        return ports
    return [{"name": to_scalar(name), "containerPort": port} for name, port in ports.items()]


def _normalize_secrets(secrets: Any, _: str, __: list[Problem]) -> list[Any]:
    """Convert names to references."""
    return [item if isinstance(item, dict) else {"name": item} for item in secrets]


def _normalize_resources(resources: Any, gpu_resource: str, problems: list[Problem]) -> dict[str, Any]:
    """Use amounts outside of `requests` and `limits` for both; amounts inside override them."""
    flat = {key: value for key, value in resources.items() if key not in ("limits", "requests", "claims")}
    normal: dict[str, Any] = {"claims": resources["claims"]} if "claims" in resources else {}
    _report_two_names(flat, gpu_resource, problems)
    for side in ("limits", "requests"):
        own = resources.get(side)
        _report_two_names(own, gpu_resource, problems)
        amounts = {**flat, **own} if isinstance(own, dict) else flat
        if amounts:
            normal[side] = {_resource_name(key, gpu_resource): value for key, value in amounts.items()}
        elif side in resources:
            normal[side] = own
    return normal


def _report_two_names(amounts: Any, gpu_resource: str, problems: list[Problem]) -> None:
    """Report GPUs that one mapping has under two names: which of the amounts is meant is unknown."""
    if isinstance(amounts, dict) and "gpu" in amounts and gpu_resource in amounts:
        last = [key for key in amounts if key in ("gpu", gpu_resource)][-1]
        message = Sentence(
            "`gpu` is `{}` in this cluster, so the amount is set twice; remove one of them", gpu_resource
        )
        problems.append(Problem("duplicate-key", message, last, category="yaml"))


def _resource_name(key: str, gpu_resource: str) -> str:
    if key != "gpu":
        return key
    return TracedKey.at(gpu_resource, key.location, key.layer) if type(key) is TracedKey else gpu_resource


def _normalize_containers(containers: Any, gpu_resource: str, problems: list[Problem]) -> dict[str, Any]:
    """Convert containers to a mapping by name, each with its short forms expanded."""
    if isinstance(containers, dict):
        return {name: _normalize_container(each, gpu_resource, problems) for name, each in containers.items()}
    known: dict[str, Any] = {}
    for item in containers:
        name = to_key(item["name"])
        if name in known:
            problems.append(
                Problem("duplicate-container-name", Sentence("`{}` is listed twice; rename one", name), item["name"])
            )
        rest = {key: value for key, value in item.items() if key != "name"}
        is_deleted = value_of(rest.get("$patch")) == "delete"
        known[name] = (
            with_value(rest["$patch"], None) if is_deleted else _normalize_container(rest, gpu_resource, problems)
        )
    return known


def _normalize_container(container: Any, gpu_resource: str, problems: list[Problem]) -> Any:
    return _normalize_role(container, gpu_resource, problems).pod if isinstance(container, dict) else container


def _normalize_mounts(mounts: Any, _: str, __: list[Problem]) -> dict[str, Any]:
    """A path is short for a mapping with `mountPath`."""
    return {
        name: each if isinstance(each, dict) or value_of(each) is None else {"mountPath": each}
        for name, each in mounts.items()
    }


_NORMALIZERS: dict[str, Callable[[Any, str, list[Problem]], Any]] = {
    "env": _normalize_env,
    "ports": _normalize_ports,
    "imagePullSecrets": _normalize_secrets,
    "resources": _normalize_resources,
    "initContainers": _normalize_containers,
    "sidecars": _normalize_containers,
    "mounts": _normalize_mounts,
}
