"""Build the shipped schemas: the types of Kubernetes, and custom resources, each file with all releases in one.

    python tools/build_schemas.py kubernetes        # the types of Kubernetes, from the package kubernetes-validate
    python tools/build_schemas.py kinds             # custom resources that a kind description describes

`jobgen schema update` builds the custom resources of operators from their CRDs.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from jobgen.check.schema.build import describe_custom
from jobgen.check.schema.crd_history import format_file
from jobgen.schema.types_of_release import Schema, merge_history
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


def main(command: str) -> None:
    """Write the files of a command, one type or field on a line."""
    for name, content in {"kubernetes": build_kubernetes, "kinds": build_kinds}[command]():
        path = HOME / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(format_file(content), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
