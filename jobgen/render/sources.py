"""Render `secrets` and `configs` of a role: variables, volumes and mounts of its main container."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobgen.model.data import Node, to_scalar, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key

_NOT_IN_NAMES = lazy_pattern(r"[^a-z0-9-]+")
_MAX_NAME = 63
_MOUNT_FIELDS = ("mountPath", "subPath", "readOnly")
# What concerns the files only.
_FILE_FIELDS = ("subPath", "readOnly", "items", "defaultMode")


class _SourceType(NamedTuple):
    """How pods refer to an object with keys."""

    field: str
    noun: str
    of_key: str
    of_all: str
    volume: str
    name: str


_TYPES = (
    _SourceType("secrets", "secret", "secretKeyRef", "secretRef", "secret", "secretName"),
    _SourceType("configs", "config", "configMapKeyRef", "configMapRef", "configMap", "name"),
)


class _Parts(NamedTuple):
    """What sources add to a pod."""

    env: list[Any]
    env_from: list[Any]
    volumes: list[Any]
    mounts: list[Any]


def add_sources(template: dict[str, Any], fields: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Add the Secrets and ConfigMaps of a role to its pod template."""
    spec = template["spec"]
    main, *others = spec["containers"]
    lists = (main.get("env"), main.get("envFrom"), spec.get("volumes"), main.get("volumeMounts"))
    parts = _Parts(*([*(found or ())] for found in lists))
    for kind in _TYPES:
        for name, source in fields.get(kind.field, {}).items():
            _add_variables(kind, name, source, parts, problems)
            _add_volume(kind, name, source, parts, problems)
    added = {"env": parts.env, "envFrom": parts.env_from, "volumeMounts": parts.mounts}
    containers = [{**main, **{key: items for key, items in added.items() if items}}, *others]
    volumes = {"volumes": parts.volumes} if parts.volumes else {}
    return {**template, "spec": {**spec, **volumes, "containers": containers}}


def name_volume(noun: str, name: str) -> str:
    """The name of the volume of a Secret or ConfigMap."""
    return _NOT_IN_NAMES.sub("-", f"{noun}-{name}".lower())[:_MAX_NAME].strip("-")


def _add_variables(
    kind: _SourceType, name: str, source: dict[str, Any], parts: _Parts, problems: list[Problem]
) -> None:
    env, optional = source.get("env"), _select(source, ("optional",))
    if isinstance(env, dict):
        known = {value_of(entry.get("name")) for entry in parts.env}
        for variable, key in env.items():
            if variable in known:
                message = f"{kind.noun} `{name}` sets `{variable}`, which is set already; set one of them to null"
                problems.append(Problem("conflicting-env", message, variable))
            reference = {"name": to_scalar(name), "key": key, **optional}
            parts.env.append({"name": to_scalar(variable), "valueFrom": {kind.of_key: reference}})
    elif value_of(env) is True:
        parts.env_from.append({**_select(source, ("prefix",)), kind.of_all: {"name": to_scalar(name), **optional}})
    if "prefix" in source and value_of(env) is not True:
        message = f"`prefix` of {kind.noun} `{name}` has no effect; set `env: true`, or remove it"
        problems.append(Problem("invalid-value", message, find_key(source, "prefix")))


def _add_volume(kind: _SourceType, name: str, source: dict[str, Any], parts: _Parts, problems: list[Problem]) -> None:
    if "mountPath" not in source:
        stray = next((key for key in source if key in _FILE_FIELDS), None)
        if stray is not None:
            message = f"{kind.noun} `{name}` has `{stray}`, but no `mountPath`; add one"
            problems.append(Problem("missing-field", message, stray))
        elif not source.get("env") or value_of(source["env"]) is False:
            message = f"{kind.noun} `{name}` is not used; add `env` or `mountPath`"
            problems.append(Problem("missing-field", message, name))
        return
    volume = with_value(to_scalar(name), name_volume(kind.noun, name))
    _check_conflicts(volume, source["mountPath"], name, parts, problems)
    content: dict[str, Any] = {kind.name: to_scalar(name)}
    if "items" in source:
        content["items"] = [{"key": to_scalar(key), "path": path} for key, path in source["items"].items()]
    if "defaultMode" in source:
        content["defaultMode"] = with_value(source["defaultMode"], int(value_of(source["defaultMode"]), 8))
    parts.volumes.append({"name": volume, kind.volume: {**content, **_select(source, ("optional",))}})
    parts.mounts.append({"name": volume, **_select(source, _MOUNT_FIELDS)})


def _check_conflicts(volume: Node, path: Node, name: str, parts: _Parts, problems: list[Problem]) -> None:
    if any(value_of(other.get("name")) == value_of(volume) for other in parts.volumes):
        message = f"`{name}` adds a volume named `{value_of(volume)}`, but there is one already; rename it"
        problems.append(Problem("conflicting-volume", message, name))
    if any(value_of(other.get("mountPath")) == value_of(path) for other in parts.mounts):
        message = f"`{name}` is mounted at `{value_of(path)}`, but another volume is mounted there; change one of them"
        problems.append(Problem("conflicting-volume", message, path))


def _select(source: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Fields of a source; keys are reused, because they carry their locations."""
    return {key: value for key, value in source.items() if key in keys}
