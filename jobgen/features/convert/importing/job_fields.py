"""Map fields of a custom resource to fields of the job spec, by the paths of its kind description."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.importing.pod_fields import is_valid_field
from jobgen.model.data import Node, Plain, untraced, value_of
from jobgen.model.path import Step
from jobgen.rendering.kinds.main_container import set_path
from jobgen.spec.frameworks import Frameworks, collect_frameworks
from jobgen.spec.kinds import FieldMapping, Kind, Network
from jobgen.spec.replicas import count_pods, find_count, find_template

_MISSING = object()


_GENERIC = "generic"
_SIGNS = {
    "pytorch": ("torchrun", "torch.distributed", "PET_NNODES", "MASTER_ADDR"),
    "tensorflow": ("TF_CONFIG",),
    "paddle": ("paddle.distributed", "PADDLE_MASTER"),
    "jax": ("JAX_COORDINATOR_ADDRESS",),
}
"""Texts in the command and names of variables by which a framework is recognized in a kind that runs any."""


def list_frameworks(manifest: dict[str, Plain], kind: Kind) -> list[str]:
    """The frameworks that a job may have, the most likely first."""
    if _GENERIC not in kind.frameworks:
        return [detect_framework(manifest, kind)]
    items = list(kind.list_items(manifest))
    texts = [text for item in items for text in _list_texts(find_template(item.data, kind.replicas))]
    signs = (name for name, signs in _SIGNS.items() if any(sign in text for sign in signs for text in texts))
    plugins = _get(manifest, ("spec", "plugins"))
    found = (*(plugins if isinstance(plugins, dict) else ()), *signs)
    keys = {item.key for item in items}
    served = (name for name in found if name in kind.frameworks and keys <= _list_spellings(kind, name))
    return [*list(served)[:1], _GENERIC]


def _list_spellings(kind: Kind, framework: str) -> set[Any]:
    return {value_of(kind.roles[name].spelling) for name in kind.frameworks[framework].roles}


def _list_texts(template: Any) -> Iterator[str]:
    """Yield the words of the commands in a pod template, and the names of variables."""
    containers = _get(template, ("spec", "containers"))
    for each in containers if isinstance(containers, list) else ():
        words = (word for field in ("command", "args") for word in (_get(each, (field,)),) if isinstance(word, list))
        yield from (word for listed in words for word in listed if isinstance(word, str))
        env = _get(each, ("env",))
        yield from (str(_get(entry, ("name",))) for entry in (env if isinstance(env, list) else ()))


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
        if field.at[0] == "item":
            _take_item_field(spec, left, kind, (path, field), frameworks)
            continue
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
    if kind.network is not None and kind.network.has_service and _have_names(manifest, kind, kind.network):
        # What the manifest has is all there is: its Service, if there is one, is another object.
        set_path(spec, (kind.platform, "service"), value=False)
    return spec, left


def _have_names(manifest: Fields, kind: Kind, network: Network) -> bool:
    """Return True if a job with these pods is rendered with a Service for their DNS names."""
    items = [item.data for item in kind.list_items(manifest)]
    named = all(_get(item, path) == value for item in items for path, value in network.when)
    return named and sum(count_pods(item, kind.replicas, 1) for item in items) > 1


def _take_item_field(
    spec: Fields, left: Fields, kind: Kind, named: tuple[str, FieldMapping], frameworks: Frameworks
) -> None:
    """Take a field that all items of roles have with the same value."""
    (path, field), items = named, list(kind.list_items(left))
    at = field.at[1:]
    values = [_get(item.data, at) for item in items]
    if not values or values[0] is _MISSING or any(value != values[0] for value in values):
        return
    if at in kind.replicas.counts and all(
        value == find_count(item.data, kind.replicas) for item, value in zip(items, values, strict=True)
    ):
        return
    if _set_if_valid(spec, tuple(path.split(".")), values[0], frameworks):
        for item in items:
            assert isinstance(item.data, dict), "items of a copied manifest"
            _remove(item.data, at)


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
