"""What rules look at: an object, its roles, their pods and containers. The same on the bare and on the traced walk.

Whatever is missing, or of another type than its schema says, is empty here: the schema has spoken of it already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen.k8s.accelerators import is_device
from jobgen.model.amounts import amount
from jobgen.model.data import Data, value_of
from jobgen.spec import kinds
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster


def as_mapping(node: Data) -> dict[str, Data]:
    """The node if it is a mapping, else an empty one."""
    return node if isinstance(node, dict) else {}


def as_list(node: Data) -> list[Data]:
    """The node if it is a list, else an empty one."""
    return node if isinstance(node, list) else []


def as_text(node: Data) -> str:
    """The string that a leaf holds; empty if it holds anything else."""
    if type(node) is str:
        return node
    value = value_of(node)
    return value if isinstance(value, str) else ""


def as_integer(node: Data) -> int | None:
    """The whole number that a leaf holds."""
    value = value_of(node)
    return value if type(value) is int else None


def get_path(node: Data, *steps: str) -> Data:
    """The node at the end of a path of keys, or None."""
    for step in steps:
        if not isinstance(node, dict):
            return None
        node = node.get(step)
    return node


class Container:
    """A container of a pod, or what a kind without templates says of its main one."""

    __slots__ = ("_gpus", "_search_text", "command_line", "data", "init", "limits", "name", "pod", "requests")

    def __init__(self, data: dict[str, Data], pod: Pod, *, init: bool) -> None:
        self.data = data
        self.pod = pod
        self.init = init
        self.name = as_text(data.get("name"))
        self.command_line: list[Data] = [*as_list(data.get("command")), *as_list(data.get("args"))]
        """Command and arguments, one after the other."""
        resources = as_mapping(data.get("resources"))
        self.limits = as_mapping(resources.get("limits"))
        self.requests = as_mapping(resources.get("requests"))
        self._gpus: int | None = None
        self._search_text: str | None = None

    @property
    def env(self) -> Iterator[tuple[str, dict[str, Data]]]:
        """Its environment: names, and the entries that set them."""
        for entry in as_list(self.data.get("env")):
            if isinstance(entry, dict):
                yield as_text(entry.get("name")), entry

    @property
    def search_text(self) -> str:
        """Image, words and variables as one text, a line each: to see at a glance whether to look closer."""
        if self._search_text is None:
            lines = [as_text(self.data.get("image")), *map(as_text, self.command_line)]
            lines += [f"{name}={as_text(entry.get('value'))}" for name, entry in self.env]
            self._search_text = "\n".join(lines)
        return self._search_text

    @property
    def gpus(self) -> int:
        """How many accelerators it gets: its limits count, requests only where there is no limit."""
        if self._gpus is None:
            wanted = {**self.requests, **self.limits} if self.requests != self.limits else self.limits
            self._gpus = sum((amount(value) or 0) // 1000 for name, value in wanted.items() if is_device(name))
        return self._gpus


class Pod:
    """The pod template of a role; `partial` where the rest of it stands elsewhere, as in a TrainJob's runtime."""

    __slots__ = (
        "_gpus",
        "containers",
        "init_containers",
        "main_container",
        "metadata",
        "partial",
        "role",
        "spec",
        "template",
    )

    def __init__(self, template: dict[str, Data], role: Role, *, partial: bool = False) -> None:
        self.template = template
        self.role = role
        self.partial = partial
        self.metadata = as_mapping(template.get("metadata"))
        self.spec = as_mapping(template.get("spec"))
        found, preparing = as_list(self.spec.get("containers")), as_list(self.spec.get("initContainers"))
        self.containers = [Container(data, self, init=False) for data in found if isinstance(data, dict)]
        self.init_containers = [Container(data, self, init=True) for data in preparing if isinstance(data, dict)]
        self.main_container = _main(self.containers, role.manifest.kind)
        """The container that trains: the one its operator looks for, or the first."""
        self._gpus: int | None = None

    @property
    def gpus(self) -> int:
        """How many accelerators one such pod holds."""
        if self._gpus is None:
            held = sum(container.gpus for container in self.containers)
            self._gpus = max([held, *(container.gpus for container in self.init_containers)])
        return self._gpus

    @property
    def volumes(self) -> Iterator[dict[str, Data]]:
        """Its volumes."""
        return (volume for volume in as_list(self.spec.get("volumes")) if isinstance(volume, dict))


def _main(containers: list[Container], kind: Kind | None) -> Container | None:
    wanted = value_of(kind.container) if kind else ""
    return next(
        (container for container in containers if container.name == wanted), containers[0] if containers else None
    )


class Role:
    """A role of a job: `key` is its name as it was written, `described` what its kind says of it, if anything."""

    __slots__ = ("count", "definition", "key", "manifest", "name", "pod", "replica_spec", "replica_type")

    def __init__(self, key: Data, replica: dict[str, Data], manifest: Manifest) -> None:
        self.key = key
        self.replica_spec = replica
        self.manifest = manifest
        self.replica_type = str(value_of(key))
        self.definition = _described(self.replica_type, manifest.kind)
        self.name = self.definition.name if self.definition else self.replica_type.lower()
        """The role as jobgen calls it, whatever the kind's spelling."""
        self.count = _count(replica, self.definition, manifest.kind)
        """How many pods it has: what is written, or what the operator takes where nothing is."""
        self.pod = Pod(as_mapping(replica.get("template")), self)
        """Its pods, all alike."""

    @property
    def restart_policy(self) -> str:
        """What the operator does when a pod ends: what is written, or its own default."""
        own = self.definition.restart_default if self.definition else ""
        default = self.manifest.kind.restart_default if self.manifest.kind else ""
        return as_text(self.replica_spec.get("restartPolicy")) or own or default

    @property
    def gpus(self) -> int:
        """How many accelerators all its pods hold."""
        return self.count * self.pod.gpus


def _count(replica: dict[str, Data], described: kinds.RoleDescription | None, kind: Kind | None) -> int:
    written = as_integer(replica.get(str(kind.replicas_at[-1]) if kind and kind.shape == "one" else "replicas"))
    if written is not None:
        return max(written, 0)
    return described.omitted if described else 1


class Manifest:
    """A whole object, in the cluster of its environment."""

    __slots__ = ("_roles", "annotations", "cluster", "kind", "kind_name", "labels", "metadata", "object", "spec")

    def __init__(self, made: Data, kind: Kind | None, cluster: Cluster) -> None:
        self.object: dict[str, Data] = made
        self.kind = kind
        self.cluster = cluster
        self.kind_name = as_text(made.get("kind"))
        """The kind as it is written."""
        self.metadata = as_mapping(made.get("metadata"))
        self.spec = as_mapping(made.get("spec"))
        self.labels = as_mapping(self.metadata.get("labels"))
        self.annotations = as_mapping(self.metadata.get("annotations"))
        self._roles: list[Role] | None = None

    @property
    def roles(self) -> list[Role]:
        """Its roles, in the order they were written."""
        if self._roles is None:
            self._roles = list(_roles(self)) if self.kind else []
        return self._roles

    @property
    def name(self) -> str:
        """Its name; empty where the server shall make one."""
        return as_text(self.metadata.get("name"))

    @property
    def namespace(self) -> str:
        """Its namespace; empty where none is written."""
        return as_text(self.metadata.get("namespace"))

    @property
    def run_policy(self) -> dict[str, Data]:
        """What the operator does with the whole job."""
        return as_mapping(self.spec.get("runPolicy"))

    @property
    def operator_version(self) -> str:
        """The declared version of its operator; empty where none is declared: then the newest that has the kind."""
        return str(self.cluster.operators.get(self.kind.operator, "")) if self.kind else ""

    def find_role(self, name: str) -> Role | None:
        """The role that jobgen calls so, if the job has it."""
        return next((role for role in self.roles if role.definition and role.definition.name == name), None)

    @property
    def gpus(self) -> int:
        """How many accelerators the whole job holds."""
        return sum(role.gpus for role in self.roles)

    @property
    def pod_count(self) -> int:
        """How many pods the whole job has."""
        return sum(role.count for role in self.roles)


def _described(spelling: str, kind: Kind | None) -> kinds.RoleDescription | None:
    roles = kind.roles.values() if kind else ()
    found = next((role for role in roles if value_of(role.spelling) == spelling), None)
    if found is None and kind and kind.demands.unknown_roles == "started":
        # An operator that looks at no names takes any case for its own.
        found = next((role for role in roles if str(value_of(role.spelling)).lower() == spelling.lower()), None)
    return found


def _roles(manifest: Manifest) -> Iterator[Role]:
    kind = manifest.kind
    assert kind is not None
    if kind.shape == "one":
        yield from _single(manifest, kind)
        return
    node = get_path(manifest.object, *map(str, kind.replicas_at))
    if isinstance(node, dict):
        for key, replica in node.items():
            if isinstance(replica, dict):
                yield Role(key, replica, manifest)
    for replica in as_list(node):
        if isinstance(replica, dict):
            yield Role(replica.get("type", ""), replica, manifest)


def _single(manifest: Manifest, kind: Kind) -> Iterator[Role]:
    """A kind without pod templates: what it says of its main container, as the part of a pod."""
    assert kind.template is not None
    *steps, _ = map(str, kind.replicas_at)
    role = Role(kind.container, as_mapping(get_path(manifest.object, *steps)), manifest)
    container: dict[str, Any] = {}
    for field, path in kind.template.container.items():
        found = get_path(manifest.object, *map(str, path))
        if found is not None:
            container[field] = found
    role.pod = Pod({"spec": {"containers": [container]}}, role, partial=True)
    yield role


ObjectPath = tuple[str | int, ...]


def path_to_role(role: Role) -> ObjectPath:
    """The way to what is written about a role."""
    kind = role.manifest.kind
    assert kind is not None
    steps = tuple(map(str, kind.replicas_at))
    if kind.shape == "one":
        return steps[:-1]
    if kind.shape == "list":
        return (*steps, next(place for place, other in enumerate(role.manifest.roles) if other is role))
    return (*steps, role.replica_type)


def path_to_container_field(container: Container, place: int, field: str) -> ObjectPath:
    """The way to a field of a container, which is the one at that place of its pod."""
    kind = container.pod.role.manifest.kind
    assert kind is not None
    if container.pod.partial and kind.template is not None:
        return tuple(map(str, kind.template.container[field]))
    return (*path_to_role(container.pod.role), "template", "spec", "containers", place, field)
