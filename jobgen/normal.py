"""One spelling for each field: a layer's short forms made alike, so that layers can be merged."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobgen.model import Data, Key, Problem, as_key, as_leaf

JOB_FIELDS = frozenset(
    """framework replicas runPolicy queue priority suspend description tensorboard
    mxnet mpi paddle tensorflow pytorch xgboost jax""".split()
)
"""Fields that belong to the job alone; every other field of a spec is also a role's."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's words about a job, each where it applies."""

    job: dict[str, Data] = field(default_factory=dict)
    common: dict[str, Data] = field(default_factory=dict)
    roles: dict[str, Data] = field(default_factory=dict)
    template: Data = None
    role_templates: dict[str, Data] = field(default_factory=dict)
    manifest: Data = None


def normalise(spec: dict[str, Data], gpu_resource: str, problems: list[Problem]) -> Layer:
    """The layer that a checked spec, `defaults` or `merge` block stands for."""
    roles: dict[str, Data] = {}
    templates: dict[str, Data] = {}
    for name, role in (spec.get("roles") or {}).items():
        if not isinstance(role, dict):
            roles[name] = role
            continue
        roles[name] = _fields(role, gpu_resource, problems)
        if "podTemplate" in role:
            templates[name] = role["podTemplate"]
    job = {key: value for key, value in spec.items() if key in JOB_FIELDS}
    common = {key: value for key, value in spec.items() if key not in JOB_FIELDS and key not in ("roles", "manifest")}
    return Layer(
        job, _fields(common, gpu_resource, problems), roles, spec.get("podTemplate"), templates, spec.get("manifest")
    )


def _fields(fields: dict[str, Data], gpu_resource: str, problems: list[Problem]) -> dict[str, Data]:
    normal = {key: value for key, value in fields.items() if key != "podTemplate"}
    if isinstance(normal.get("env"), list):
        normal["env"] = _env(normal["env"], problems)
    if isinstance(normal.get("ports"), dict):
        normal["ports"] = [{"name": as_leaf(name), "containerPort": port} for name, port in normal["ports"].items()]
    if isinstance(normal.get("resources"), dict):
        normal["resources"] = _resources(normal["resources"], gpu_resource)
    if isinstance(normal.get("imagePullSecrets"), list):
        normal["imagePullSecrets"] = [
            item if isinstance(item, dict) else {"name": item} for item in normal["imagePullSecrets"]
        ]
    return normal


def _env(items: list[Data], problems: list[Problem]) -> dict[str, Data]:
    """Kubernetes' list as a map; `{name, value}` is the value, `{name, valueFrom}` a mapping."""
    env: dict[str, Data] = {}
    for item in items:
        name = as_key(item["name"])
        if name in env:
            problems.append(Problem("duplicate-env", f"`{name}` is set twice in one `env`", item["name"]))
        if "$patch" in item:
            env[name] = None
        elif "valueFrom" in item:
            env[name] = {key: value for key, value in item.items() if key != "name"}
        else:
            env[name] = item.get("value", "")
    return env


def _resources(resources: dict[str, Data], gpu_resource: str) -> dict[str, Data]:
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
    return Key.at(gpu_resource, key.mark) if type(key) is Key else gpu_resource
