"""Render `secrets` and `configs` of a role: variables, volumes and mounts of its main container."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, ValidFields, to_scalar, untraced, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, find_key
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.network import build_companion
from jobgen.rendering.pod import MOUNT_FIELDS

_NOT_IN_NAMES = lazy_pattern(r"[^a-z0-9-]+")
_OBJECT_NAME = lazy_pattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_HASH_LENGTH = 8
# The name of an object has 253 characters.
_MAX_START = 253 - 1 - _HASH_LENGTH
# What concerns the files only.
_FILE_FIELDS = ("subPath", "readOnly", "items", "defaultMode")


class SourceType(NamedTuple):
    """How pods refer to an object with keys."""

    field: str
    noun: str
    of_key: str
    of_all: str
    volume: str
    name: str


SOURCE_TYPES = (
    SourceType("secrets", "secret", "secretKeyRef", "secretRef", "secret", "secretName"),
    SourceType("configs", "config", "configMapKeyRef", "configMapRef", "configMap", "name"),
)


class _Parts(NamedTuple):
    """What sources add to a pod."""

    env: list[Any]
    env_from: list[Any]
    volumes: list[Any]
    mounts: list[Any]


def add_sources(template: ValidFields, fields: ValidFields, job: JobSpec, problems: list[Problem]) -> ValidFields:
    """Add the Secrets and ConfigMaps of a role to its pod template."""
    spec = template["spec"]
    main, *others = spec["containers"]
    lists = (main.get("env"), main.get("envFrom"), spec.get("volumes"), main.get("volumeMounts"))
    parts = _Parts(*([*(found or ())] for found in lists))
    for kind in SOURCE_TYPES:
        for name, source in fields.get(kind.field, {}).items():
            if "data" in source:
                problems.extend(_check_inline(name, source))
            named = _name_object(job, name, source)
            _add_variables(kind, (name, named), source, parts, problems)
            _add_volume(kind, (name, named), source, parts, problems)
    added = {"env": parts.env, "envFrom": parts.env_from, "volumeMounts": parts.mounts}
    containers = [{**main, **{key: items for key, items in added.items() if items}}, *others]
    volumes = {"volumes": parts.volumes} if parts.volumes else {}
    return {**template, "spec": {**spec, **volumes, "containers": containers}}


def build_config_maps(made: Mapping[str, Any], job: JobSpec) -> tuple[Mapping[str, Any], ...]:
    """Build the ConfigMaps whose content is in the job, each once."""
    found: dict[str, Mapping[str, Any]] = {}
    # A patch may have replaced the name.
    owner = {**made, "metadata": {"name": job.metadata["name"], **made["metadata"]}}
    for role in job.roles.values():
        for name, source in role.pod.get("configs", {}).items():
            if "data" in source:
                named = _name_object(job, name, source)
                companion = build_companion("v1", "ConfigMap", named, owner)
                found[str(value_of(named))] = {**companion, "data": source["data"]}
    return tuple(found.values())


def _name_object(job: JobSpec, name: str, source: dict[str, Any]) -> Node:
    """The name of a Secret or ConfigMap. If the job has its content, the name has a hash of it, so that pods change."""
    if "data" not in source:
        return to_scalar(name)
    content = json.dumps(untraced(source["data"]), sort_keys=True, ensure_ascii=False)
    # Imported late: it loads OpenSSL.
    from hashlib import sha256

    digest = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    start = f"{value_of(job.metadata['name'])}-{name}"[:_MAX_START].rstrip("-.")
    return with_value(to_scalar(name), f"{start}-{digest}")


def _check_inline(name: str, source: dict[str, Any]) -> Iterator[Problem]:
    """Report a bad name, and keys that the content of a config does not have; no pod starts without them."""
    if not _OBJECT_NAME.fullmatch(name):
        rule = "lower-case letters, digits, `-` and `.`, because it is a part of a ConfigMap's name"
        yield Problem("invalid-name", Sentence("`{}` must be {}", name, rule), name, category="schema")
    data, env, items = source["data"], source.get("env"), source.get("items")
    if not isinstance(data, dict) or value_of(source.get("optional")) is True:
        return
    for key in (*(env.values() if isinstance(env, dict) else ()), *(items if isinstance(items, dict) else ())):
        if (text := str(value_of(key))) not in data:
            message = Sentence(
                "`data` of config `{}` has no `{}`, so no pod starts{}", name, text, did_you_mean(text, list(data))
            )
            yield Problem("invalid-value", message, key)


def _add_variables(
    kind: SourceType, names: tuple[str, Node], source: dict[str, Any], parts: _Parts, problems: list[Problem]
) -> None:
    name, named = names
    env, optional = source.get("env"), _select(source, ("optional",))
    if isinstance(env, dict):
        known = {value_of(entry.get("name")) for entry in parts.env}
        for variable, key in env.items():
            if variable in known:
                message = Sentence(
                    "{} `{}` sets `{}`, which is set already; set one of them to null", kind.noun, name, variable
                )
                problems.append(Problem("conflicting-env", message, variable))
            reference = {"name": named, "key": key, **optional}
            parts.env.append({"name": to_scalar(variable), "valueFrom": {kind.of_key: reference}})
    elif value_of(env) is True:
        parts.env_from.append({**_select(source, ("prefix",)), kind.of_all: {"name": named, **optional}})
    if "prefix" in source and value_of(env) is not True:
        message = Sentence("`prefix` of {} `{}` has no effect; set `env: true`, or remove it", kind.noun, name)
        problems.append(Problem("invalid-value", message, find_key(source, "prefix")))


def _add_volume(
    kind: SourceType, names: tuple[str, Node], source: dict[str, Any], parts: _Parts, problems: list[Problem]
) -> None:
    name, named = names
    if "mountPath" not in source:
        stray = next((key for key in source if key in _FILE_FIELDS), None)
        if stray is not None:
            message = Sentence("{} `{}` has `{}`, but no `mountPath`; add one", kind.noun, name, stray)
            problems.append(Problem("missing-field", message, stray))
        elif not source.get("env") or value_of(source["env"]) is False:
            message = Sentence("{} `{}` is not used; add `env` or `mountPath`", kind.noun, name)
            problems.append(Problem("missing-field", message, name, evidence=(str(name), "env", "mountPath")))
        return
    text, path = _NOT_IN_NAMES.sub("-", f"{kind.noun}-{name}".lower())[:63].strip("-"), source["mountPath"]
    if any(value_of(other.get("name")) == text for other in parts.volumes):
        message = Sentence("`{}` adds a volume named `{}`, but there is one already; rename it", name, text)
        problems.append(Problem("conflicting-volume", message, name))
    if any(value_of(other.get("mountPath")) == value_of(path) for other in parts.mounts):
        message = Sentence(
            "`{}` is mounted at `{}`, but another volume is mounted there; change one of them", name, value_of(path)
        )
        problems.append(Problem("conflicting-volume", message, path))
    volume = with_value(to_scalar(name), text)
    content: dict[str, Any] = {kind.name: named}
    if "items" in source:
        content["items"] = [{"key": to_scalar(key), "path": path} for key, path in source["items"].items()]
    if "defaultMode" in source:
        content["defaultMode"] = with_value(source["defaultMode"], int(value_of(source["defaultMode"]), 8))
    parts.volumes.append({"name": volume, kind.volume: {**content, **_select(source, ("optional",))}})
    parts.mounts.append({"name": volume, **_select(source, MOUNT_FIELDS)})


def _select(source: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Fields of a source; keys are reused, because they carry their locations."""
    return {key: value for key, value in source.items() if key in keys}
