"""Map fields of a custom resource to fields of the job spec, by the paths of its kind description."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from jobgen.convert.importing.common_fields import Fields
from jobgen.convert.importing.pod_fields import is_valid_field
from jobgen.model.data import Node, Plain, untraced
from jobgen.model.path import Step
from jobgen.render.set_path import set_path
from jobgen.spec.frameworks import Frameworks, collect_frameworks
from jobgen.spec.kinds import FieldMapping, Kind

_MISSING = object()


def detect_framework(manifest: dict[str, Plain], kind: Kind) -> str:
    """The framework of a job; if its kind supports several, the runtime decides."""
    runtime = str(_get(manifest, ("spec", "runtimeRef", "name")))
    described = kind.requirements.runtimes.get(runtime)
    policy = {"torch": "pytorch"}.get(described.policy, described.policy) if described else ""
    if policy in kind.frameworks:
        return policy
    named = [name for name in kind.frameworks if name in runtime]
    return [*named, *kind.frameworks][0]


def take_job_fields(manifest: dict[str, Plain], kind: Kind, framework: str) -> tuple[Fields, Fields]:
    """The fields of the job spec that a custom resource has, and the manifest without them."""
    left = copy.deepcopy(manifest)
    spec: Fields = {}
    frameworks = collect_frameworks([kind])
    for path, field in _list_fields(kind, framework):
        value = _get(left, field.at)
        if value is _MISSING or field.at[0] == "template":
            continue
        if path in kind.branches and isinstance(value, dict) and value:
            for key in list(value):
                if _set_if_valid(spec, (*path.split("."), key), value[key], frameworks):
                    _remove(left, (*field.at, key))
            continue
        ours = _to_our_value(value, field)
        if ours is not _MISSING and _set_if_valid(spec, tuple(path.split(".")), ours, frameworks):
            _remove(left, field.at)
    return spec, left


def _list_fields(kind: Kind, framework: str) -> list[tuple[str, FieldMapping]]:
    """The fields of a framework: the deepest paths first, and of two names for one path the shorter."""
    others = set(kind.frameworks) - {framework}
    fields = [(path, field) for path, field in kind.fields.items() if path.split(".")[0] not in others]
    return sorted(fields, key=lambda pair: (-len(pair[1].at), len(pair[0])))


def _to_our_value(value: Any, field: FieldMapping) -> Any:
    """The value as the job spec has it, if rendering turns it into the same value again."""
    if field.values is not None:
        return next((ours for ours, theirs in field.values.items() if theirs == value), _MISSING)
    if field.as_type == "string" and not isinstance(value, str):
        return _MISSING
    if field.as_type == "int" and (isinstance(value, bool) or not isinstance(value, int)):
        return _MISSING
    return value


def _set_if_valid(spec: Fields, path: tuple[str, ...], value: Any, frameworks: Frameworks) -> bool:
    nested = value
    for step in reversed(path[1:]):
        nested = {step: nested}
    if not is_valid_field(path[0], nested, frameworks):
        return False
    set_path(spec, path, value)
    return True


def drop_defaults(spec: Fields, defaults: Mapping[str, Node]) -> None:
    """Remove fields that equal the kind's default, and set those to null that only the default has."""
    for key, value in untraced(defaults).items():
        if key == "restartPolicy":
            continue
        if isinstance(value, dict):
            below = spec.setdefault(key, {})
            drop_defaults(below, value)
            if not below:
                del spec[key]
        elif key not in spec:
            spec[key] = None
        elif spec[key] == value:
            del spec[key]


def _get(tree: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        if not isinstance(tree, dict) or step not in tree:
            return _MISSING
        tree = tree[step]
    return tree


def _remove(tree: Fields, path: tuple[Step, ...]) -> None:
    """Remove a value, and the maps that are then empty."""
    parents = [tree]
    for step in path[:-1]:
        parents.append(parents[-1][str(step)])
    del parents[-1][str(path[-1])]
    for parent, step in reversed(list(zip(parents, path[:-1], strict=False))):
        if not parent[str(step)]:
            del parent[str(step)]
