"""CustomResourceDefinitions of several releases as the files that jobgen ships: one for each kind and version.

Of the operators that run jobs, a file has everything that the API server checks, and pods are references to the types
of Kubernetes. Of other operators it has facts about fields only: names, types, bounds and which are required, but
neither expressions nor the status, which users do not write; what a file repeats is one of its types.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from jobgen.check.schema.build import KEPT_KEYWORDS
from jobgen.model.named_tuple import NamedTuple
from jobgen.schema.types_of_release import QUANTITY, RANGE, Schema, merge_history
from jobgen.spec.kinds import parse_version

_OPEN = "x-kubernetes-preserve-unknown-fields"
_KEPT_KEYWORDS = KEPT_KEYWORDS | {"uniqueItems"}
_QUANTITY_KEYWORDS = frozenset(("anyOf", "pattern", "x-kubernetes-int-or-string", "type"))
# A part that is shorter than a reference and its place in the table would not make the file smaller.
_SHARED_LENGTH = 120


class Release(NamedTuple):
    """A release of an operator, and the documents of its CRDs."""

    operator: str
    name: str
    documents: Sequence[Any]


def parse_release_name(folder: str) -> tuple[str, str]:
    """Split the name of a folder, such as `cert-manager-1.21.1`, at the release; both are empty if it has none."""
    operator, dash, release = folder.rpartition("-")
    return (operator, release) if dash and release[:1].isdigit() else ("", "")


def build_files(releases: Iterable[Release], embedding: Container[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files of all kinds of the CRDs with their names; `embedding` are the operators that run jobs.

    If a release has two CRDs of a kind, one with fields and one without, its API server may check none of them.
    """
    found: dict[str, dict[str, Schema]] = defaultdict(dict)
    heads: dict[str, dict[str, Any]] = {}
    known: dict[str, list[str]] = defaultdict(list)
    for release in sorted(releases, key=lambda each: parse_version(each.name)):
        is_foreign = release.operator not in embedding
        known[release.operator].append(release.name)
        for head, schema in (crd for data in release.documents for crd in _convert(data, is_foreign=is_foreign)):
            group, version = head["apiVersion"].split("/")
            name = f"{'foreign' if is_foreign else 'crds'}/{group}/{head['kind'].lower()}_{version}.json"
            other = found[name].get(release.name, schema)
            is_open = heads.get(name, {}).get("openForm") or _lists_fields(other) != _lists_fields(schema)
            found[name][release.name] = schema if _lists_fields(schema) else other
            heads[name] = {**head, "operator": release.operator} | ({"openForm": True} if is_open else {})
    for name, schemas in sorted(found.items()):
        listed = known[heads[name]["operator"]]
        if name.startswith("foreign/"):
            schema, types = _share(merge_history([(each, schemas.get(each)) for each in listed], bridge=True))
            yield name, {**heads[name], "releases": listed, "schema": schema, **({"types": types} if types else {})}
        else:
            # Of some kinds, only the newest release is at hand: when they appeared is unknown.
            kept = listed if len(schemas) > 1 else list(schemas)
            steps = [(_name_release(release, kept), schemas.get(release)) for release in kept]
            gone = {} if schemas.get(kept[-1]) else {"last": list(schemas)[-1]}
            yield name, {**heads[name], **gone, "schema": merge_history(steps)}


def _lists_fields(schema: Schema) -> bool:
    return "properties" in schema["properties"].get("spec", {})


def _name_release(release: str, known: Sequence[str]) -> str:
    """The release that a schema appeared with: the first of its minor release, unless an earlier one is known."""
    minor = release.split(".")[:2]
    first = next(one for one in known if one.split(".")[:2] == minor)
    return ".".join((*minor, "0")) if release == first else release


def _convert(data: Any, *, is_foreign: bool) -> Iterator[tuple[dict[str, Any], Schema]]:
    """The converted schemas of a document, each with its apiVersion, kind, plural and scope."""
    if "openAPIV3Schema" in data:
        # One version, whose pods are references already.
        head = data["header"]
        schema = _convert_root(data["openAPIV3Schema"], head.get("subresources", {}), is_foreign=is_foreign)
        yield _describe(head["group"], head["version"], head, head["scope"]), schema
    elif data.get("kind") == "CustomResourceDefinition":
        spec = data["spec"]
        for version in spec["versions"]:
            if version.get("served", True):
                schema = version.get("schema", {}).get("openAPIV3Schema", {_OPEN: True})
                head = _describe(spec["group"], version["name"], spec["names"], spec["scope"])
                yield head, _convert_root(schema, version.get("subresources", {}), is_foreign=is_foreign)


def _describe(group: str, version: str, names: Mapping[str, Any], scope: str) -> dict[str, Any]:
    head = {"apiVersion": f"{group}/{version}", "kind": names["kind"], "plural": names["plural"]}
    return head if scope == "Namespaced" else {**head, "scope": scope}


def _convert_root(schema: Schema, subresources: Mapping[str, Any], *, is_foreign: bool) -> Schema:
    """The schema of a custom resource without the fields that every object has."""
    converted = _convert_node(schema, is_foreign=is_foreign)
    path = subresources.get("scale", {}).get("specReplicasPath", "")
    if path and not is_foreign:
        # The API server checks the bound of the field that the scale subresource changes.
        node = converted
        for step in path.strip(".").split("."):
            inner = node.setdefault("properties", {})
            if step not in inner:
                inner[step] = deepcopy(node["additionalProperties"])
            node = inner[step]
        node["minimum"] = max(0, node.get("minimum", 0))
    fields = {
        name: {"type": "object", _OPEN: True} if is_foreign and name == "status" else child
        for name, child in converted.get("properties", {}).items()
        if name not in ("apiVersion", "kind")
    }
    return {**converted, "properties": {**fields, "metadata": {"$ref": "meta_v1.ObjectMeta"}}}


def _convert_node(node: Schema, *, is_foreign: bool) -> Schema:
    has_containers = "containers" in node.get("properties", {}).get("spec", {}).get("properties", {})
    if not is_foreign and ("$pod" in node or has_containers):
        return {"$ref": "core_v1.PodSpec" if node.get("$pod") == "spec" else "core_v1.PodTemplateSpec"}
    is_scalar = node.get("x-kubernetes-int-or-string", False)
    if is_scalar and node.get("pattern") == QUANTITY and not node.keys() & _KEPT_KEYWORDS - _QUANTITY_KEYWORDS:
        return {"$ref": "Quantity"}

    def convert(child: Schema) -> Schema:
        return _convert_node(child, is_foreign=is_foreign)

    dropped = "x-kubernetes-validations" if is_foreign else ""
    kept = {word: value for word, value in node.items() if word in _KEPT_KEYWORDS - {dropped} and value != "atomic"}
    if is_scalar:
        kept["type"] = ["integer", "string"]
    else:
        kept |= {word: list(map(convert, node[word])) for word in ("allOf", "anyOf", "oneOf") if word in node}
    kept |= {word: convert(node[word]) for word in ("items", "not") if word in node}
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = convert(node["additionalProperties"])
    if "properties" in node:
        kept["properties"] = {name: convert(child) for name, child in node["properties"].items()}
    if "required" in kept:
        kept["required"] = sorted(kept["required"])
    return kept


def _share(schema: Schema) -> tuple[Schema, dict[str, Schema]]:
    """Replace what a schema repeats by references; return it and the table of these parts by name."""
    counts: Counter[str] = Counter()
    _count(schema, counts)
    names: dict[str, str] = {}
    types: dict[str, Schema] = {}

    def shorten(node: Any) -> Any:
        if isinstance(node, list):
            return [shorten(item) for item in node]
        if not isinstance(node, dict):
            return node
        key = _name_part(node)
        if counts[key] < 2:
            return {word: shorten(value) for word, value in node.items()}
        if key not in names:
            names[key] = f"part{len(names) + 1}"
            types[names[key]] = {word: shorten(value) for word, value in json.loads(key).items()}
        return {"$ref": names[key], **{word: node[word] for word in RANGE if word in node}}

    return {word: shorten(value) for word, value in schema.items()}, types


def _count(node: Any, counts: Counter[str]) -> None:
    """Count the parts of a schema; the inner ones of a part that was seen before do not count again."""
    if isinstance(node, dict):
        key = _name_part(node)
        if key:
            counts[key] += 1
        if counts[key] > 1:
            return
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _count(child, counts)


def _name_part(node: Schema) -> str:
    """The text of a part, without the releases that have it; empty if it is too short to be shared."""
    if "properties" not in node and "items" not in node:
        return ""
    text = json.dumps({word: value for word, value in node.items() if word not in RANGE}, sort_keys=True)
    return text if len(text) > _SHARED_LENGTH else ""


def format_file(content: Mapping[str, Any]) -> str:
    """Return the text of a file: JSON with one entry of the outer two levels on a line, so that a change shows."""
    lines = []
    for word, value in content.items():
        if isinstance(value, dict) and value:
            inner = ",\n".join(f"  {json.dumps(key)}: {_compact(child)}" for key, child in value.items())
            lines.append(f" {json.dumps(word)}: {{\n{inner}\n }}")
        else:
            lines.append(f" {json.dumps(word)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
