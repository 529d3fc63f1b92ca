"""Build the shipped schemas: the types of Kubernetes, and custom resources, each file with all releases in one.

    python tools/build_schemas.py kubernetes        # the types of Kubernetes, from the package kubernetes-validate
    python tools/build_schemas.py kinds             # custom resources that a kind description describes
    python tools/build_schemas.py crds FOLDER...    # the CRDs of operators, from folders named `<operator>-<release>`

A file of such a folder is a CRD in YAML or JSON. Pods in a CRD become references to the types of Kubernetes;
`schemas/operators.json` lists the release of these types for each release of an operator.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

from jobgen.check.schema.build import describe_custom
from jobgen.check.schema.history import Schema, merge_history
from jobgen.check.schema.types_of_release import QUANTITY
from jobgen.spec.kinds import parse_version
from jobgen.yamlio.read import read

HOME = Path(__file__).parent.parent / "schemas"
RELEASES = [f"1.{minor}" for minor in range(25, 37)]
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Types whose JSON form is not that of their definition.
_SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "Any",
    f"{_META}Time": "Time",
    f"{_META}MicroTime": "MicroTime",
    f"{_META}Duration": "Duration",
    f"{_META}FieldsV1": "Any",
}
_SCALARS |= {
    f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{name}": "Any"
    for name in ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")
}
_KEPT_KEYWORDS = frozenset(
    """type format pattern enum required minimum maximum exclusiveMinimum exclusiveMaximum multipleOf default nullable
    minLength maxLength minItems maxItems minProperties maxProperties uniqueItems
    x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields x-kubernetes-embedded-resource
    x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-validations""".split()
)
_LIST_MARKS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys")


def build_kubernetes() -> Iterator[tuple[str, dict[str, Any]]]:
    """The types of every group and version of Kubernetes, each with the name of its file."""
    history: dict[str, list[dict[str, Schema]]] = defaultdict(lambda: [{} for _ in RELEASES])
    groups: dict[str, str] = {}
    kinds: dict[str, set[str]] = defaultdict(set)
    for index, release in enumerate(RELEASES):
        for name, definition in _read_definitions(release).items():
            place, _, short = _shorten(name).rpartition(".")
            if name in _SCALARS or not place:
                continue
            history[place][index][short] = _convert_definition(definition)
            for api_version in _find_api_versions(short, definition):
                groups[place] = api_version
                kinds[place].add(short)
    for place, releases in sorted(history.items()):
        names = sorted({name for types in releases for name in types})
        steps = list(zip(RELEASES, releases, strict=True))
        types = {name: merge_history([(release, types.get(name)) for release, types in steps]) for name in names}
        head = {"apiVersion": groups[place], "kinds": sorted(kinds[place])} if place in groups else {}
        yield f"kubernetes/{place}.json", {**head, "types": types}


def _find_api_versions(name: str, definition: Mapping[str, Any]) -> Iterator[str]:
    """The apiVersion of a kind that has objects; none for lists, and for what only API calls contain."""
    is_kind = "metadata" in definition.get("properties", ()) and not name.endswith("List") and name != "Status"
    for kind in definition.get("x-kubernetes-group-version-kind", ()):
        if is_kind and kind["kind"] == name:
            yield "/".join(filter(None, (kind["group"], kind["version"])))


def _read_definitions(release: str) -> dict[str, Any]:
    path = f"kubernetes-json-schema/v{release}.0-local-strict/_definitions.json"
    definitions: dict[str, Any] = json.loads(resources.files("kubernetes_validate").joinpath(path).read_bytes())[
        "$defs"
    ]
    if release == "1.30":
        # Operators embed later patch releases of 1.30, in which an alias requires its address.
        definitions["io.k8s.api.core.v1.HostAlias"]["required"] = ["ip"]
    return definitions


def _shorten(name: str) -> str:
    """`io.k8s.api.core.v1.Pod` as `core_v1.Pod`."""
    parts = name.split(".")
    if name.startswith(
        ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apiextensions", "io.k8s.kube-aggregator")
    ):
        return f"{parts[-3]}_{parts[-2]}.{parts[-1]}"
    return parts[-1]


def _convert_definition(node: Mapping[str, Any]) -> Schema:
    """A definition without descriptions, null and keywords that the API server does not use."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return {"$ref": _SCALARS.get(name) or _shorten(name)}
    kinds = node.get("type", [])
    kind = kinds if isinstance(kinds, str) else next((one for one in kinds if one != "null"), "")
    schema: Schema = {"type": kind} if kind else {}
    schema |= {word: node[word] for word in ("format", *_LIST_MARKS) if word in node and node[word] != "atomic"}
    if "properties" in node:
        schema["properties"] = {name: _convert_definition(child) for name, child in node["properties"].items()}
        schema |= {"required": sorted(node["required"])} if node.get("required") else {}
    if "items" in node:
        schema["items"] = _convert_definition(node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        schema["additionalProperties"] = _convert_definition(node["additionalProperties"])
    return schema


def build_crds(folders: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The custom resources of operators, each with the name of its file."""
    found: dict[str, dict[str, Schema]] = defaultdict(dict)
    heads: dict[str, dict[str, Any]] = {}
    known: dict[str, list[str]] = defaultdict(list)
    for folder in sorted(folders, key=lambda folder: parse_version(folder.name.rpartition("-")[2])):
        operator, _, release = folder.name.rpartition("-")
        known[operator].append(release)
        for head, schema in (crd for path in sorted(folder.iterdir()) for crd in _read_crd(path)):
            group, version = head["apiVersion"].split("/")
            name = f"crds/{group}/{head['kind'].lower()}_{version}.json"
            found[name][release] = schema
            heads[name] = {**head, "operator": operator}
    for name, schemas in sorted(found.items()):
        # Of some kinds, only the newest release is at hand: when they appeared is unknown.
        releases = known[heads[name]["operator"]] if len(schemas) > 1 else list(schemas)
        steps = [(_name_release(release, releases), schemas.get(release)) for release in releases]
        gone = {} if schemas.get(releases[-1]) else {"last": list(schemas)[-1]}
        yield name, {**heads[name], **gone, "schema": merge_history(steps)}


def _name_release(release: str, known: list[str]) -> str:
    """The release that a schema appeared with: the first of its minor release, unless an earlier one is known."""
    minor = release.split(".")[:2]
    first = next(one for one in known if one.split(".")[:2] == minor)
    return ".".join((*minor, "0")) if release == first else release


def _read_crd(path: Path) -> Iterator[tuple[dict[str, Any], Schema]]:
    """The converted schemas of a file, each with its apiVersion, kind, plural and scope."""
    for document in read(path.read_bytes(), path.name).documents:
        data: Any = document.data
        if "openAPIV3Schema" in data:
            # One version, whose pods are references already.
            head = data["header"]
            schema = _convert_crd(data["openAPIV3Schema"], head.get("subresources", {}))
            yield _describe(head["group"], head["version"], head, head["scope"]), schema
        elif data.get("kind") == "CustomResourceDefinition":
            spec = data["spec"]
            for version in spec["versions"]:
                if version.get("served", True):
                    head = _describe(spec["group"], version["name"], spec["names"], spec["scope"])
                    yield head, _convert_crd(version["schema"]["openAPIV3Schema"], version.get("subresources", {}))


def _describe(group: str, version: str, names: Mapping[str, Any], scope: str) -> dict[str, Any]:
    head = {"apiVersion": f"{group}/{version}", "kind": names["kind"], "plural": names["plural"]}
    return head if scope == "Namespaced" else {**head, "scope": scope}


def _convert_crd(schema: Schema, subresources: Mapping[str, Any]) -> Schema:
    """The schema of a custom resource without the fields that every object has."""
    converted = _convert_node(schema)
    path = subresources.get("scale", {}).get("specReplicasPath", "")
    if path:
        _require_positive(converted, path.strip(".").split("."))
    fields = {name: child for name, child in converted["properties"].items() if name not in ("apiVersion", "kind")}
    return {**converted, "properties": {**fields, "metadata": {"$ref": "meta_v1.ObjectMeta"}}}


def _require_positive(node: Schema, steps: list[str]) -> None:
    """Set the bound of the field that the scale subresource changes, which the API server checks."""
    for step in steps:
        fields = node.setdefault("properties", {})
        if step not in fields:
            fields[step] = deepcopy(node["additionalProperties"])
        node = fields[step]
    node["minimum"] = max(0, node.get("minimum", 0))


def _convert_node(node: Schema) -> Schema:
    if "$pod" in node or "containers" in node.get("properties", {}).get("spec", {}).get("properties", {}):
        return {"$ref": "core_v1.PodSpec" if node.get("$pod") == "spec" else "core_v1.PodTemplateSpec"}
    if (
        node.get("x-kubernetes-int-or-string")
        and node.get("pattern") == QUANTITY
        and not node.keys() - _QUANTITY_KEYWORDS
    ):
        return {"$ref": "Quantity"}
    kept = {word: value for word, value in node.items() if word in _KEPT_KEYWORDS and value != "atomic"}
    if node.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
    else:
        kept |= {word: list(map(_convert_node, node[word])) for word in ("allOf", "anyOf", "oneOf") if word in node}
    kept |= {word: _convert_node(node[word]) for word in ("items", "not") if word in node}
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = _convert_node(node["additionalProperties"])
    if "properties" in node:
        kept["properties"] = {name: _convert_node(child) for name, child in node["properties"].items()}
    if "required" in kept:
        kept["required"] = sorted(kept["required"])
    return kept


_QUANTITY_KEYWORDS = frozenset(("anyOf", "pattern", "x-kubernetes-int-or-string", "type"))


def build_kinds() -> Iterator[tuple[str, dict[str, Any]]]:
    """The custom resources of kind descriptions with a `spec`, each with the name of its file."""
    shared: Any = read((HOME / "types.yaml").read_bytes(), "types.yaml").documents[0].data
    for path in (*sorted(HOME.glob("*/*.yaml")), Path(__file__).parent / "documented_kinds.yaml"):
        for document in read(path.read_bytes(), path.name).documents:
            described: Any = document.data
            if "spec" in described:
                group, version = described["apiVersion"].split("/")
                name = f"crds/{group}/{described['kind'].lower()}_{version}.json"
                yield name, describe_custom(described, shared)


def main(command: str, *folders: str) -> None:
    """Write the files of a command, one type or field on a line."""
    builders = {"kubernetes": build_kubernetes, "kinds": build_kinds}
    built = build_crds([Path(folder) for folder in folders]) if command == "crds" else builders[command]()
    for name, content in built:
        path = HOME / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(_format(content), "utf-8")


def _format(content: dict[str, Any]) -> str:
    """JSON with one entry of the outer two levels on a line, so that a change shows where it is."""
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


if __name__ == "__main__":
    main(*sys.argv[1:])
