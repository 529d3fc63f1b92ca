"""Edits of plain pod specs. They return new values and keep the order of lists, as operators do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jobgen.features.convert.operators.created import Fields
from jobgen.features.convert.operators.fields import as_items

Item = dict[str, Any]


def list_containers(spec: Fields, field: str = "containers") -> Iterator[Fields]:
    """Yield the containers of a pod spec."""
    return (container for container in as_items(spec.get(field)) if isinstance(container, dict))


def find_container(spec: Fields, name: str, field: str = "containers") -> Fields:
    """Return the container with a name; empty if there is none."""
    return next((each for each in list_containers(spec, field) if each.get("name") == name), {})


def edit_containers(
    spec: Fields, edit: Callable[[Fields], Fields], *, name: str = "", field: str = "containers"
) -> Item:
    """Return a pod spec with all its containers edited, or only those with a name."""
    containers = [
        edit(each) if isinstance(each, dict) and (not name or each.get("name") == name) else each
        for each in as_items(spec.get(field))
    ]
    return {**spec, field: containers} if containers else dict(spec)


def edit_first_container(spec: Fields, edit: Callable[[Fields], Fields]) -> Item:
    """Return a pod spec with its first container edited."""
    containers = as_items(spec.get("containers"))
    if not containers or not isinstance(containers[0], dict):
        return dict(spec)
    return {**spec, "containers": [edit(containers[0]), *containers[1:]]}


def variable(name: str, value: object) -> Item:
    """Return an entry of `env`."""
    return {"name": name, "value": str(value)}


def field_variable(name: str, path: str) -> Item:
    """Return an entry of `env` whose value is a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def append(fields: Fields, key: str, items: Iterable[Any]) -> Item:
    """Return the fields with items appended to a list."""
    added = list(items)
    return {**fields, key: [*as_items(fields.get(key)), *added]} if added else dict(fields)


def upsert(fields: Fields, key: str, items: Iterable[Fields], *by: str) -> Item:
    """Return the fields with items that replace the first one with an equal field, or are appended."""
    found = list(as_items(fields.get(key)))
    for item in items:
        for place, other in enumerate(found):
            if isinstance(other, dict) and any(other.get(field) == item.get(field) for field in by):
                found[place] = item
                break
        else:
            found.append(item)
    return {**fields, key: found} if found else dict(fields)


def upsert_env(container: Fields, entries: Iterable[Fields]) -> Item:
    """Return a container whose variables replace those with the same name, or are appended."""
    return upsert(container, "env", (entry for entry in entries if isinstance(entry, dict)), "name")
