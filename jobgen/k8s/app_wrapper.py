"""The objects that an AppWrapper contains and creates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.object_paths import ObjectPath
from jobgen.model.data import Node

_GROUP, _KIND = "workload.codeflare.dev", "AppWrapper"


def is_app_wrapper(obj: Mapping[str, Node]) -> bool:
    """Return whether an object is an AppWrapper."""
    return as_text(obj.get("kind")) == _KIND and as_text(obj.get("apiVersion")).partition("/")[0] == _GROUP


def list_wrapped_objects(obj: Mapping[str, Node]) -> Iterator[tuple[ObjectPath, Mapping[str, Node]]]:
    """Yield the objects inside an AppWrapper, each with its path; they get its namespace."""
    namespace = as_mapping(obj.get("metadata")).get("namespace")
    for index, component in enumerate(as_list(as_mapping(obj.get("spec")).get("components"))):
        template = as_mapping(component).get("template")
        if isinstance(template, dict) and as_text(template.get("kind")) and not is_app_wrapper(template):
            yield ("spec", "components", index, "template"), _with_namespace(template, namespace)


def _with_namespace(template: Mapping[str, Node], namespace: Node) -> Mapping[str, Node]:
    metadata = template.get("metadata")
    if not as_text(namespace) or not isinstance(metadata, dict) or metadata.get("namespace"):
        return template
    # The keys have locations.
    return {
        key: {**metadata, "namespace": namespace} if key == "metadata" else value for key, value in template.items()
    }
