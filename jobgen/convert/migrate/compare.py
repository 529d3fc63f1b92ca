"""Two objects held against each other: what runs, with what, and how often."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.model.data import Data, value_of
from jobgen.model.path import Step
from jobgen.model.quantity import canonicalize_quantity
from jobgen.spec.kinds import Kind


class Workload(NamedTuple):
    """What a job is to those who run it, whatever its kind."""

    images: frozenset[str]
    commands: frozenset[str]
    env: frozenset[str]
    resources: frozenset[str]
    nodes: frozenset[str]
    processes: frozenset[str]


def describe_workload(made: dict[str, Data], kind: Kind, framework: str) -> Workload:
    """The footprint of an object."""
    replicas = list(_replicas(made, kind))
    containers = [container for _, _, container in replicas if isinstance(container, dict)]
    # Launchers start processes on the nodes, and are no nodes.
    count = sum(number for launches, number, _ in replicas if not launches and isinstance(number, int))
    return Workload(
        images=frozenset(str(each["image"]) for each in containers if "image" in each),
        commands=frozenset(_shown([*_items(each, "command"), *_items(each, "args")]) for each in containers) - {"[]"},
        env=frozenset(_variable(item) for each in containers for item in _items(each, "env")),
        resources=frozenset(_resources(each["resources"]) for each in containers if each.get("resources")),
        nodes=frozenset([str(count)]),
        processes=frozenset([str(_processes(made, kind, framework))]),
    )


def compare_workloads(before: Workload, after: Workload) -> Iterator[str]:
    """What differs, one line for each."""
    for aspect, one, other in zip(Workload._fields, before, after, strict=True):
        gone, new = sorted(one - other), sorted(other - one)
        if gone or new:
            was = ", ".join(f"`{each}`" for each in gone) or "nothing"
            now = ", ".join(f"`{each}`" for each in new) or "nothing"
            yield f"{aspect} differ: {was} before, {now} now"


def _replicas(made: dict[str, Data], kind: Kind) -> Iterator[tuple[bool, int, dict[str, Data]]]:
    """The roles of an object: whether they only launch, how many pods they have, their main container."""
    if kind.template is not None:
        container = {field: value for field, path in kind.template.container.items() if (value := _at(made, path))}
        yield False, _at(made, kind.replicas_at) or 1, container
        return
    found = _at(made, kind.replicas_at)
    for name, role in kind.roles.items():
        spelling = value_of(role.spelling)
        if isinstance(found, dict):
            replica = found.get(spelling)
        else:
            items = (item for item in (found if isinstance(found, list) else ()) if isinstance(item, dict))
            replica = next((item for item in items if item.get("type") == spelling), None)
        containers = _at(replica, ("template", "spec", "containers"))
        if isinstance(replica, dict) and isinstance(containers, list) and containers:
            yield role.launches, replica.get("replicas", kind.roles[name].omitted), containers[0]


def _processes(made: dict[str, Data], kind: Kind, framework: str) -> Data:
    """Processes on each node; where nobody says it, as many as the operator finds right."""
    for field in (f"{framework}.nprocPerNode", f"{framework}.slotsPerWorker"):
        if field in kind.fields:
            value = _at(made, kind.fields[field].at)
            return value if value is not None else ("auto" if field.endswith("nprocPerNode") else 1)
    return "auto"


def _items(container: dict[str, Data], name: str) -> list[Data]:
    found = container.get(name)
    return found if isinstance(found, list) else []


def _variable(item: Data) -> str:
    if not isinstance(item, dict):
        return _shown(item)
    return f"{item.get('name')}={item['value']}" if "value" in item else _shown(item)


def _resources(resources: Data) -> str:
    if not isinstance(resources, dict):
        return _shown(resources)
    sides = {
        side: {name: canonicalize_quantity(str(value)) or value for name, value in amounts.items()}
        for side, amounts in resources.items()
        if isinstance(amounts, dict)
    }
    return _shown({**resources, **sides})


def _shown(value: Data) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _at(tree: Data, path: tuple[Step, ...]) -> Data:
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(str(step))
    return tree
