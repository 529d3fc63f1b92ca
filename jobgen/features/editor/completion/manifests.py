"""The fields of raw manifests, and of the objects that jobs become: from the schemas that check them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.features.editor.completion.schema_nodes import SchemaNode, list_forms, read_definitions, read_pointers
from jobgen.k8s.kinds import find_removal
from jobgen.k8s.releases import format_release, parse_release
from jobgen.model.data import value_of
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.schema.shipped_kinds import ShippedKind, list_shipped_kinds, name_type, rank_kind
from jobgen.schema.types_of_release import DECODED, METADATA, Types
from jobgen.spec.kinds import Kind, parse_version
from jobgen.spec.overlay import Cluster


class NamedKind(NamedTuple):
    """A kind of objects."""

    api_version: str
    name: str
    source: str = ""
    """Who defines it: Kubernetes, or the name of an operator."""
    deprecated: str = ""
    """Why not to use it in this cluster, and what to use instead."""

    @property
    def plural(self) -> str:
        """The name of its resource, as authors of kinds form it."""
        name = self.name.lower()
        if name.endswith(("s", "x", "z", "ch", "sh")):
            return name if name == "endpoints" else f"{name}es"
        is_changed = name.endswith("y") and not name.endswith(("ay", "ey", "oy", "uy"))
        return f"{name[:-1]}ies" if is_changed else f"{name}s"


def find_object_schema(root: Folder, api_version: str, kind: str, clusters: Iterable[Cluster]) -> list[SchemaNode]:
    """Return the schemas that clusters have for a kind; none if it is not known."""
    group, _, version = api_version.rpartition("/")
    own = layout.read_schema(root, f"{group}/{kind.lower()}_{version}.json") if group and kind else None
    if own is not None:
        return list(_read_own_schema(own.content))
    found: dict[int, SchemaNode] = {}
    for cluster in clusters:
        for node in _find_shipped(api_version, kind, cluster.kubernetes, tuple(sorted(cluster.operators.items()))):
            found[id(node.schema)] = node
    return list(found.values())


@lru_cache(maxsize=64)
def _find_shipped(
    api_version: str, kind: str, kubernetes: str, operators: tuple[tuple[str, str], ...]
) -> tuple[SchemaNode, ...]:
    """Return the shipped schema of a kind. A type of Kubernetes says here which of its fields are required."""
    own = name_type(api_version, kind)
    if own:
        types = Types(format_release(parse_release(kubernetes)), in_crd=True)
        return list_forms(SchemaNode(_add_metadata(types[own]), read_definitions(types)))
    cluster = Cluster(kubernetes=kubernetes, operators=dict(operators))
    shipped = find_shipped_schema(api_version, kind, cluster, any_release=True)
    if shipped is None or shipped.missing:
        return ()
    return list_forms(SchemaNode(shipped.schema, read_definitions(shipped.schema["$defs"])))


def _add_metadata(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {
        "apiVersion": {},
        "kind": {},
        **schema.get("properties", {}),
        "metadata": {"$ref": DECODED + METADATA},
    }
    required = {"apiVersion", "kind", "metadata", *schema.get("required", ())}
    return {**schema, "properties": properties, "required": sorted(required)}


@lru_cache(maxsize=64)
def _read_own_schema(content: bytes) -> tuple[SchemaNode, ...]:
    """Return a schema of the repository; none if it is broken, which its own finding says."""
    try:
        schema = json.loads(content)
    except (ValueError, RecursionError):
        return ()
    return list_forms(SchemaNode(schema, read_pointers({"": schema}, ""))) if isinstance(schema, dict) else ()


def list_kinds(kinds: Sequence[Kind], clusters: Sequence[Cluster]) -> Iterator[NamedKind]:
    """Yield the kinds that a manifest can have: those with a description, then the others that jobgen knows."""
    described = {(str(value_of(kind.api_version)), kind.name): kind for kind in kinds}
    for (api_version, name), kind in described.items():
        yield NamedKind(api_version, name, kind.operator, describe_deprecation(kind, clusters))
    for known in _list_shipped():
        is_new = known.since and not known.until and not any(map(known.is_served, clusters))
        if (known.api_version, known.name) not in described and not is_new:
            yield NamedKind(known.api_version, known.name, known.source, _describe_old_version(known, clusters))


@cache
def _list_shipped() -> tuple[ShippedKind, ...]:
    return tuple(list_shipped_kinds())


@cache
def _group_versions() -> dict[tuple[str, str], list[ShippedKind]]:
    """The versions of each kind, the most stable one last."""
    versions: dict[tuple[str, str], list[ShippedKind]] = {}
    for kind in sorted(_list_shipped(), key=rank_kind):
        versions.setdefault((kind.api_version.rpartition("/")[0], kind.name), []).append(kind)
    return versions


def _describe_old_version(kind: ShippedKind, clusters: Sequence[Cluster]) -> str:
    """Say why not to use a version of a kind: the clusters do not have it, or they have a more stable one."""
    served = [
        known
        for known in _group_versions()[kind.api_version.rpartition("/")[0], kind.name]
        if all(map(known.is_served, clusters))
    ]
    better = served[-1].api_version if served and rank_kind(served[-1]) > rank_kind(kind) else ""
    use = f"; use `{better}`" if better else ""
    if kind.until and not any(map(kind.is_served, clusters)):
        return f"removed in {_SOURCES.get(kind.source, kind.source)} {kind.until}{use}"
    return f"there is a newer version{use}" if better and not kind.is_stable else ""


_SOURCES = {"kubernetes": "Kubernetes"}


def describe_deprecation(kind: Kind, clusters: Iterable[Cluster]) -> str:
    """Say why not to use a kind: the operator will remove it, or the clusters have a release without it."""
    removed = str(kind.versions.until or "")
    declared = [str(version) for cluster in clusters if (version := cluster.operators.get(kind.operator))]
    if removed and all(parse_version(version) >= parse_version(removed) for version in declared):
        return f"removed in {kind.operator} {removed}"
    return f"deprecated since {kind.operator} {value_of(kind.deprecated)}" if kind.deprecated else ""


def describe_kind(api_version: str, name: str, kinds: Iterable[Kind], clusters: Sequence[Cluster]) -> str:
    """Say why not to use a kind of objects; empty if nothing is wrong with it, or if it is not known."""
    described = next((kind for kind in kinds if kind.describes(api_version, name)), None)
    if described is not None:
        return describe_deprecation(described, clusters)
    versions = _group_versions().get((api_version.rpartition("/")[0], name), ())
    shipped = next((kind for kind in versions if kind.api_version == api_version), None)
    if shipped is not None:
        return _describe_old_version(shipped, clusters)
    removal = find_removal(api_version, name)
    if removal is None:
        return ""
    release, successor = removal
    return f"removed in Kubernetes {release}" + (f"; use `{successor}`" if successor else "")


def describe_framework(name: str, kinds: Iterable[Kind], clusters: Sequence[Cluster]) -> str:
    """Say why not to use a framework: all kinds that it is rendered as are deprecated."""
    reasons = [describe_deprecation(kind, clusters) for kind in kinds if name in kind.frameworks]
    return reasons[0] if reasons and all(reasons) else ""
