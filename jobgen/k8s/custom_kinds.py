"""The kinds that CustomResourceDefinitions define, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from jobgen.model.data import Location

DEFINITION_KIND = "CustomResourceDefinition"
_KIND_BYTES = DEFINITION_KIND.encode()
_OLD_API = "apiextensions.k8s.io/v1beta1"
KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
"""The keyword of a schema that allows unknown fields."""
_ANY_OBJECT = {"type": "object", KEEPS_UNKNOWN: True}


class DefinedVersion(NamedTuple):
    """A version of a kind in a definition."""

    name: str
    is_served: bool
    schema: Mapping[str, Any]
    """Its `openAPIV3Schema`, as it is written."""
    subresources: Any
    keeps_unknown: bool
    """Whether the cluster keeps unknown fields everywhere, as it does for definitions of `v1beta1`."""


class Definition(NamedTuple):
    """A kind that a CustomResourceDefinition defines."""

    group: str
    kind: str
    versions: tuple[DefinedVersion, ...]
    location: Location


DefinitionSource: TypeAlias = Callable[[str], Sequence[Definition]]
"""Returns the definitions of an API group among the files of a run."""


def no_definitions(_: str) -> Sequence[Definition]:
    """Return no definitions: for runs whose files define no kinds for each other."""
    return ()


def may_define_kinds(content: bytes) -> bool:
    """Return True if a file may hold a CustomResourceDefinition."""
    return _KIND_BYTES in content


def read_definition(data: Any, location: Location) -> Definition | None:
    """Return what an object defines; None if it is no CustomResourceDefinition, or a patch of one."""
    if not isinstance(data, dict) or data.get("kind") != DEFINITION_KIND:
        return None
    spec = data.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return None
    group, kind = spec.get("group"), names.get("kind")
    versions = tuple(_read_versions(spec, is_old=data.get("apiVersion") == _OLD_API))
    if not (isinstance(group, str) and isinstance(kind, str) and versions):
        return None
    return Definition(group, kind, versions, location)


def _read_versions(spec: Mapping[str, Any], *, is_old: bool) -> Iterator[DefinedVersion]:
    """The versions of a definition. One of `v1beta1` may have a single one, and a schema that all versions share."""
    keeps_unknown = is_old and spec.get("preserveUnknownFields") is not False
    listed = spec.get("versions")
    if is_old and not listed:
        listed = [{"name": spec.get("version"), "served": True}]
    for version in listed if isinstance(listed, list) else ():
        if isinstance(version, dict) and isinstance(version.get("name"), str):
            schema = _read_schema(version.get("schema")) or (_read_schema(spec.get("validation")) if is_old else {})
            subresources = version.get("subresources") or (spec.get("subresources") if is_old else None)
            served = version.get("served") is not False
            yield DefinedVersion(version["name"], served, schema or _ANY_OBJECT, subresources, keeps_unknown)


def _read_schema(holder: Any) -> Mapping[str, Any]:
    schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
    return schema if isinstance(schema, dict) else {}
