"""A pod as the checks of Pod Security read it, and what they find in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, value_of
from jobgen.model.named_tuple import NamedTuple


class Breach(NamedTuple):
    """A value that a level forbids, or one that it requires and that is missing."""

    node: Node
    fault: str
    """What the pod sets, or does not set."""
    remedy: str
    """What to write instead."""
    is_missing: bool = False


class PodView(NamedTuple):
    """A pod's metadata and spec, and its containers of all three lists."""

    metadata: Mapping[str, Node]
    spec: Mapping[str, Node]
    containers: tuple[Mapping[str, Node], ...]

    @property
    def annotations(self) -> Mapping[str, Node]:
        """The annotations of the pod."""
        return as_mapping(self.metadata.get("annotations"))

    @property
    def security_context(self) -> Mapping[str, Node]:
        """The security context of the pod."""
        return as_mapping(self.spec.get("securityContext"))

    @property
    def is_windows(self) -> bool:
        """Whether the pod declares Windows, which has no such thing as Linux capabilities."""
        return as_text(as_mapping(self.spec.get("os")).get("name")) == "windows"

    @property
    def has_user_namespace(self) -> bool:
        """Whether root in the pod is not root on the node."""
        return value_of(self.spec.get("hostUsers")) is False

    def iter_security_contexts(self) -> Iterator[tuple[str, Mapping[str, Node]]]:
        """Yield the security contexts of the pod and of its containers, each with the name of its owner."""
        yield "the pod", self.security_context
        for container in self.containers:
            yield name_container(container), as_mapping(container.get("securityContext"))

    def place_of_security(self) -> Node:
        """The node for a field that is missing in the pod's security context."""
        return self.security_context or self.spec or self.metadata


def view_pod(metadata: Node, spec: Node) -> PodView:
    """Return a pod as the checks read it: init containers first, as the admission controller visits them."""
    fields = as_mapping(spec)
    lists = ("initContainers", "containers", "ephemeralContainers")
    return PodView(
        as_mapping(metadata), fields, tuple(each for name in lists for each in iter_mappings(fields.get(name)))
    )


def name_container(container: Mapping[str, Node]) -> str:
    """Return what a message calls a container."""
    return f"container `{as_text(container.get('name'))}`"


def get_set(mapping: Mapping[str, Node], *steps: str) -> Node:
    """Return the value at a path of keys; None if it is missing or null."""
    node: Node = mapping
    for step in steps:
        node = as_mapping(node).get(step)
    return node if is_set(node) else None


def find_key(mapping: Mapping[str, Node], name: str) -> Node:
    """Return a key of a mapping, which has a location even if its value has none."""
    return next((key for key in mapping if key == name), None)
