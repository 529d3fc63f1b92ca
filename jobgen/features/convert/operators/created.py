"""Pods that operators create: their values, and functions to read fields and to change pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.overlay import Cluster

Fields = Mapping[str, Any]
"""Plain data of an object. A field may be missing or have a wrong type."""

_NONE: Fields = MappingProxyType({})
RANDOM = "<random>"
"""Stands for the characters that Kubernetes appends to a generated name."""

MAX_PODS = 64
"""The number of pods of a role that are computed one by one."""


class Restarts(NamedTuple):
    """What happens when a container or a pod fails."""

    policy: str
    """`restartPolicy` of the pod: what the kubelet does."""
    retried: str = "always"
    """When training that failed starts again, in the same pod or in a new one: `always`, `never`, or `retryable` if
    that depends on the exit code."""
    limit: int | None = None
    """The number of restarts or new pods after which the job fails; None if it is unlimited."""


_ALWAYS = Restarts("Always")


@dataclass(frozen=True, slots=True)
class CreatedPod:
    """A pod that an operator creates."""

    role: str
    """The role, task or replicated Job, as the operator spells it."""
    index: int
    """The index of the pod in its role."""
    name: str
    spec: Fields
    """The complete pod spec, with all that the operator adds and changes."""
    template: Fields
    """The pod template before the operator changes it: what users wrote."""
    labels: Fields
    """All labels of the pod; `template` has those that users wrote."""
    annotations: Fields
    rank: int | None = None
    """The rank of the node; None if the pod is not a node, such as a launcher or an initializer."""
    hostname: str = ""
    address: str = ""
    """The DNS name by which pods in the namespace find this one; empty if there is none."""
    main: str = ""
    """The name of the container that trains."""
    processes: str = ""
    """The processes that the operator tells the launcher to start on a node: a number or `auto`; empty if none."""
    restarts: Restarts = _ALWAYS
    count: int = 1
    """The number of pods that this one stands for; the last one of a large role stands for all that follow."""


class CreatedObject(NamedTuple):
    """A Service, ConfigMap, Secret or other object that an operator creates beside the pods."""

    kind: str
    name: str
    ports: Mapping[str, int] = _NONE
    data: Mapping[str, str] = _NONE


class Created(NamedTuple):
    """All that an operator creates from one object."""

    pods: tuple[CreatedPod, ...] = ()
    objects: tuple[CreatedObject, ...] = ()


Creator = Callable[[Fields, Sequence[Fields], Cluster], Created]
"""Computes what an operator creates from an object, with the objects that it may refer to."""


_most: ContextVar[int] = ContextVar("most", default=MAX_PODS)


@contextmanager
def limit_pods(most: int) -> Iterator[None]:
    """Compute fewer pods of each role one by one."""
    token = _most.set(most)
    try:
        yield
    finally:
        _most.reset(token)


def list_indexes(count: int) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the pods of a role, each with the number of pods that it stands for."""
    most = _most.get()
    for index in range(min(count, most)):
        yield index, count - most + 1 if index == most - 1 else 1


def as_fields(node: Any) -> Fields:
    """Return the node if it is a mapping, else an empty mapping."""
    return node if isinstance(node, dict) else {}


def as_items(node: Any) -> list[Any]:
    """Return the node if it is a list, else an empty list."""
    return node if isinstance(node, list) else []


def as_string(node: Any, default: str = "") -> str:
    """Return the node if it is a string that is not empty, else the default."""
    return node if isinstance(node, str) and node else default


def as_count(node: Any, default: int) -> int:
    """Return the node if it is an integer, but not less than zero; the default if it is not an integer."""
    return max(node, 0) if type(node) is int else default


def get_fields(node: Any, *steps: str) -> Fields:
    """Return the mapping at a path of keys; empty if there is none."""
    for step in steps:
        node = as_fields(node).get(step)
    return as_fields(node)


def get_name(obj: Fields) -> str:
    """Return the name of an object; a generated name ends with a placeholder."""
    metadata = as_fields(obj.get("metadata"))
    generated = as_string(metadata.get("generateName"))
    return as_string(metadata.get("name"), generated and generated + RANDOM)


def read_texts(node: Any) -> Mapping[str, str]:
    """Return the labels or annotations at a node."""
    return {str(key): value for key, value in as_fields(node).items() if isinstance(value, str)}


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
