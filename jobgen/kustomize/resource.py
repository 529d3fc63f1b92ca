"""An object on its way through a build: its data, the names that it had, and where it comes from."""

from __future__ import annotations

from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.field_specs import KNOWN_TYPES
from jobgen.kustomize.kustomization import text_of
from jobgen.model.data import Location, Node
from jobgen.model.named_tuple import NamedTuple

_NO_NAMESPACE = "_non_namespaceable_"


class Id(NamedTuple):
    """What identifies an object in a build."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str
    """`default` for objects without one, and a value that no namespace has for those of the cluster."""

    def __str__(self) -> str:
        where = "" if self.namespace in ("default", _NO_NAMESPACE) else f"{self.namespace}/"
        return f"{self.kind} {where}{self.name}"


class Resource:
    """An object of a build. Transformers change its mappings and lists in place; leaves are shared, never changed."""

    __slots__ = ("behavior", "file", "location", "needs_hash", "node", "position", "prefixes", "previous", "suffixes")

    def __init__(self, node: dict[str, Any], file: str, position: int, location: Location) -> None:
        self.node = node
        self.file = file
        self.position = position
        self.location = location
        self.previous: list[tuple[str, str, str]] = []
        """The namespaces, names and kinds that it had."""
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.behavior = ""
        self.needs_hash = False

    @property
    def group_version(self) -> tuple[str, str]:
        """The API group, and the version in it."""
        group, _, version = text_of(self.node.get("apiVersion")).rpartition("/")
        return group, version

    @property
    def kind(self) -> str:
        """The kind as it is now."""
        return text_of(self.node.get("kind"))

    @property
    def metadata(self) -> Any:
        """The metadata, if they are a mapping."""
        return as_mapping(self.node.get("metadata"))

    @property
    def name(self) -> str:
        """The name as it is now."""
        return text_of(self.metadata.get("name"))

    @property
    def namespace(self) -> str:
        """The namespace as it is now; empty if none is set."""
        return text_of(self.metadata.get("namespace"))

    @property
    def id(self) -> Id:
        """The identity as it is now."""
        return identify(self.node)

    @property
    def previous_ids(self) -> list[Id]:
        """The identities that it had, the first one first."""
        group, version = self.group_version
        return [Id(group, version, kind, name, namespace) for namespace, name, kind in self.previous]

    @property
    def original_id(self) -> Id:
        """The identity that it had in its file."""
        return next(iter(self.previous_ids), self.id)

    def store_id(self) -> None:
        """Remember the identity, because a transformer changes it."""
        found = self.id
        self.previous.append((found.namespace, found.name, found.kind))


def identify(node: Node) -> Id:
    """Return the identity of an object."""
    data = as_mapping(node)
    metadata = as_mapping(data.get("metadata"))
    api_version, kind = text_of(data.get("apiVersion")), text_of(data.get("kind"))
    group, _, version = api_version.rpartition("/")
    namespace = text_of(metadata.get("namespace")) or "default"
    if is_of_cluster(api_version, kind):
        namespace = _NO_NAMESPACE
    return Id(group, version, kind, text_of(metadata.get("name")), namespace)


def is_of_cluster(api_version: str, kind: str) -> bool:
    """Return True if kustomize knows that objects of a type have no namespace."""
    return KNOWN_TYPES.get((api_version, kind), False)
