"""The names of a cluster's objects, and which object of a name counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.k8s.kind_groups import qualify_kind
from jobgen.k8s.kind_scopes import CLUSTER_SCOPED
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, untraced

CLUSTER_KINDS = CLUSTER_SCOPED | {"Queue"}
"""Kinds whose objects have no namespace here; a Queue is that of Volcano."""

Name = tuple[str, str, str]
"""Kind, namespace and name of an object; the namespace of kinds without one is empty.

The kind of another group than the one that is known by this name has its group.
"""


def replace_exported(
    exported: Iterable[Mapping[str, Node]], own: Iterable[Mapping[str, Node]]
) -> list[Mapping[str, Node]]:
    """Return the exported objects and those of the repository, which replace them."""
    known: dict[Name | int, Mapping[str, Node]] = {_get_key(obj): obj for obj in exported}
    seen: dict[Name | int, Mapping[str, Node]] = {}
    for obj in own:
        name = _get_key(obj)
        if untraced(seen.setdefault(name, obj)) == untraced(obj):
            known[name] = obj
        else:
            known.pop(name, None)
    return list(known.values())


def name_object(obj: Mapping[str, Node]) -> Name:
    """Return the kind, namespace and name of an object."""
    metadata = as_mapping(obj.get("metadata"))
    kind = qualify_kind(as_text(obj.get("apiVersion")), as_text(obj.get("kind")))
    namespace = "" if kind in CLUSTER_KINDS else as_text(metadata.get("namespace"))
    return kind, namespace, as_text(metadata.get("name"))


def show_name(obj: Mapping[str, Node]) -> str:
    """Return the name of an object for messages; the beginning of one that the API server generates."""
    return name_object(obj)[2] or as_text(as_mapping(obj.get("metadata")).get("generateName"))


def _get_key(obj: Mapping[str, Node]) -> Name | int:
    """Return what identifies an object. One without a name gets its own from the API server, so it is like no other."""
    name = name_object(obj)
    return name if name[2] else id(obj)
