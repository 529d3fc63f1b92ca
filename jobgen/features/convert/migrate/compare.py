"""Compare what two objects of different kinds run: images, commands, variables, resources, nodes and processes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.model.data import Plain, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.model.quantity import canonicalize_quantity
from jobgen.render.rendezvous import CONNECTING
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import count_pods, find_template


class Workload(NamedTuple):
    """What a job runs, independent of its kind."""

    images: frozenset[str]
    commands: frozenset[str]
    env: frozenset[str]
    resources: frozenset[str]
    nodes: frozenset[str]
    processes: frozenset[str]


def describe_workload(obj: Mapping[str, Plain], kind: Kind, framework: str, spec: Plain) -> Workload:
    """Describe what an object runs; `spec` is what it was rendered from."""
    replicas = list(_list_replicas(obj, kind))
    containers = [container for _, _, each in replicas for container in each if isinstance(container, dict)]
    # Launchers start processes on the nodes, but are not nodes.
    count = sum(number for launches, number, _ in replicas if not launches and isinstance(number, int))
    return Workload(
        images=frozenset(str(each["image"]) for each in containers if "image" in each),
        commands=frozenset(map(_to_json, (*map(_list_command, containers), _list_entrypoint(obj, kind)))) - {"[]"},
        env=frozenset(
            _describe_variable(item) for each in containers for item in _list_own_variables(each, kind, spec)
        ),
        resources=frozenset(_describe_resources(each["resources"]) for each in containers if each.get("resources")),
        nodes=frozenset([str(count)]),
        processes=frozenset([str(_count_processes(obj, kind, framework, spec))]),
    )


def compare_workloads(before: Workload, after: Workload) -> Iterator[str]:
    """Describe each difference in one line."""
    for aspect, one, other in zip(Workload._fields, before, after, strict=True):
        only_before, only_after = sorted(one - other), sorted(other - one)
        if only_before or only_after:
            old = ", ".join(f"`{each}`" for each in only_before) or "nothing"
            new = ", ".join(f"`{each}`" for each in only_after) or "nothing"
            yield f"{aspect} differ: {old} before, {new} after"


def _list_replicas(obj: Mapping[str, Plain], kind: Kind) -> Iterator[tuple[bool, int, list[Fields]]]:
    """The roles of an object: whether they are launchers, their number of pods, and all their containers."""
    if kind.template is not None:
        container = {field: value for field, path in kind.template.container.items() if (value := _get(obj, path))}
        yield False, _get(obj, kind.replicas_at) or 1, [container]
        return
    layout = kind.replicas
    for item in kind.list_items(obj):
        role = next((each for each in kind.roles.values() if value_of(each.spelling) == item.key), kind.any_role)
        template = find_template(item.data, layout)
        containers = _get(template, ("spec", "containers"))
        if role is not None and isinstance(containers, list) and containers:
            init = _get(template, ("spec", "initContainers"))
            every = [*containers, *(init if isinstance(init, list) else ())]
            # A role at a place of its own leads others, and is not a node.
            yield role.launches or bool(role.at), count_pods(item.data, layout, role.omitted), every


def _list_own_variables(container: Fields, kind: Kind, spec: Plain) -> Iterator[Any]:
    """Yield the variables of a container, without those by which jobgen connects pods."""
    written = {name for name, _ in _list_names(spec)} if kind.network else set()
    for item in _list_items(container, "env"):
        if not kind.network or item.get("name") not in CONNECTING or item.get("name") in written:
            yield item


def _list_names(spec: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables that a spec sets, for all roles or one."""
    for holder in (spec, *(_get(spec, ("roles",)) or {}).values()):
        env = _get(holder, ("env",))
        yield from env.items() if isinstance(env, dict) else ((str(_get(item, ("name",))), item) for item in env or ())


def _count_processes(obj: Mapping[str, Plain], kind: Kind, framework: str, spec: Plain) -> Plain:
    """Processes on each node; `auto` if the operator decides."""
    for field in (f"{framework}.nprocPerNode", f"{framework}.slotsPerWorker"):
        if field in kind.fields:
            at = kind.fields[field].at
            value: Plain = _get(obj, at) if at[0] != "network" else _get(spec, tuple(field.split(".")))
            value = str(value) if field.endswith("nprocPerNode") and isinstance(value, int) else value
            return value if value is not None else ("auto" if field.endswith("nprocPerNode") else 1)
    return "auto"


def _list_entrypoint(obj: Mapping[str, Plain], kind: Kind) -> list[str]:
    """The words of the command that an object has outside of its containers."""
    text = _get(obj, ("spec", "entrypoint")) if kind.code == "ray-job" else None
    if not isinstance(text, str) or not text:
        return []
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    return words if shlex.join(words) == text else ["sh", "-c", text]


def _list_command(container: Fields) -> list[Any]:
    return [*_list_items(container, "command"), *_list_items(container, "args")]


def _list_items(container: Fields, name: str) -> list[Any]:
    found = container.get(name)
    return found if isinstance(found, list) else []


def _describe_variable(item: Any) -> str:
    if not isinstance(item, dict):
        return _to_json(item)
    return f"{item.get('name')}={item['value']}" if "value" in item else _to_json(item)


def _describe_resources(resources: Any) -> str:
    if not isinstance(resources, dict):
        return _to_json(resources)
    sides = {
        side: {name: canonicalize_quantity(str(value)) or value for name, value in amounts.items()}
        for side, amounts in resources.items()
        if isinstance(amounts, dict)
    }
    return _to_json({**resources, **sides})


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _get(tree: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(str(step))
    return tree
