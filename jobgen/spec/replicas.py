"""The layout of replicas in a custom resource: where its roles are, and where each has its count and pod template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from jobgen.model.data import value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, parse_dotted

ItemPath = tuple[str | int, ...]
"""Keys and indexes that lead from an object to the item of a role."""


class ReplicaLayout(NamedTuple):
    """Where the roles of a kind are. Paths but `at` start at the item of a role."""

    at: tuple[Step, ...] = ()
    shape: str = ""
    """`map`: items by role; `list`: items that name their role; `item`: one for all roles; `one`: no templates."""
    key: str = "type"
    counts: tuple[tuple[Step, ...], ...] = (("replicas",),)
    """Paths of the number of pods; of several, the least counts. The first has a default."""
    times: tuple[Step, ...] = ()
    """Path of a factor of the number of pods, which is 1 if it is missing."""
    least: tuple[Step, ...] = ()
    most: tuple[Step, ...] = ()
    template: tuple[Step, ...] = ("template",)
    restart_policy: tuple[Step, ...] = ("restartPolicy",)
    item: Any = MappingProxyType({})
    """Fields that every item has."""
    pod_failure_policy: tuple[Step, ...] = ()
    """Path of the policy that `restartPolicy: ExitCode` becomes, in kinds that have no such restart policy."""

    @property
    def keeps_restart_policy(self) -> bool:
        """Return True if pods have the restart policy of their template, because the operator has none of its own."""
        return self.restart_policy == (*self.template, "spec", "restartPolicy")


class RoleDescription(NamedTuple):
    """A role of a kind: its name in the custom resource, its default number of replicas and their range."""

    name: str
    spelling: Any
    replicas: Any
    least: int | None = None
    most: int | None = None
    required: bool = False
    launches: bool = False
    omitted: int = 1
    restart_default: str = ""
    at: tuple[Step, ...] = ()
    """The path of its item, if it is not among those of `replicas`."""
    ignores: frozenset[str] = frozenset()
    """Fields of all roles that do not apply to this one."""
    joins: str = ""
    """The role whose replicas its replicas are counted to, because the kind has one template for both."""
    container: Any = ""
    """The name of its main container, if it is not that of the kind."""
    completed: bool = False
    """True if the operator completes its pod template."""


class ReplicaItem(NamedTuple):
    """The item of one role in an object."""

    key: Any
    """The name of the role in the custom resource."""
    data: Mapping[str, Any]
    path: ItemPath


def parse_layout(raw: Mapping[str, Any], traced: Any) -> ReplicaLayout:
    """Parse `replicas` of a valid kind description."""
    return ReplicaLayout(
        at=parse_dotted(raw["at"]),
        shape=raw["shape"],
        key=raw.get("key", "type"),
        counts=tuple(map(parse_dotted, raw.get("count", ("replicas",)))),
        times=parse_dotted(raw.get("times", "")),
        least=parse_dotted(raw.get("least", "")),
        most=parse_dotted(raw.get("most", "")),
        template=parse_dotted(raw.get("template", "template")),
        restart_policy=parse_dotted(raw.get("restartPolicy", "restartPolicy")),
        item=traced.get("item", {}),
        pod_failure_policy=parse_dotted(raw.get("podFailurePolicy", "")),
    )


def list_items(
    obj: Mapping[str, Any], layout: ReplicaLayout, roles: Mapping[str, RoleDescription], single: str
) -> Iterator[ReplicaItem]:
    """Yield the items of an object that have a pod template, in the order of the object."""
    for role in roles.values():
        node = get_at(obj, role.at) if role.at else None
        if isinstance(node, dict):
            yield ReplicaItem(role.spelling, node, tuple(map(str, role.at)))
    if not layout.at or layout.shape == "one":
        return
    node, steps = get_at(obj, layout.at), tuple(map(str, layout.at))
    if layout.shape == "item":
        if isinstance(node, dict):
            yield ReplicaItem(roles[single].spelling, node, steps)
    elif isinstance(node, dict):
        yield from (ReplicaItem(key, data, (*steps, str(key))) for key, data in node.items() if isinstance(data, dict))
    elif isinstance(node, list):
        for index, data in enumerate(node):
            if isinstance(data, dict):
                yield ReplicaItem(data.get(layout.key, ""), data, (*steps, index))


def count_pods(item: Mapping[str, Any], layout: ReplicaLayout, omitted: int) -> int:
    """Return how many pods an item has at the same time; `omitted` if it does not say."""
    first, *others = [_read_number(item, path) for path in layout.counts]
    least = _read_number(item, layout.least) if layout.least else None
    count = first if first is not None else least if least is not None else omitted
    for number in others:
        count = count if number is None else min(count, number)
    most = _read_number(item, layout.most) if layout.most else None
    count = max(count, least) if least is not None else count
    count = min(count, most) if most is not None else count
    factor = _read_number(item, layout.times) if layout.times else None
    return max(count, 0) * (1 if factor is None else max(factor, 0))


def find_count(item: Mapping[str, Any], layout: ReplicaLayout) -> Any:
    """Return the node of the number of pods, or None."""
    for path in layout.counts:
        if (node := get_at(item, path)) is not None:
            return node
    return None


def find_template(item: Mapping[str, Any], layout: ReplicaLayout) -> Any:
    """Return the pod template of an item, or None."""
    return get_at(item, layout.template)


def find_restart_policy(item: Mapping[str, Any], layout: ReplicaLayout) -> Any:
    """Return the restart policy of an item, or None."""
    return get_at(item, layout.restart_policy)


def _read_number(item: Mapping[str, Any], path: tuple[Step, ...]) -> int | None:
    found = value_of(get_at(item, path))
    return found if type(found) is int else None


def get_at(tree: Any, path: tuple[Step, ...]) -> Any:
    """Return the node at a path of keys, or None."""
    for step in path:
        if type(tree) is not dict and not isinstance(tree, dict):
            return None
        tree = tree.get(str(step))
    return tree
