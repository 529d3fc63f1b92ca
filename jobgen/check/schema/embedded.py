"""Checks objects inside of objects: fields with `x-kubernetes-embedded-resource`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobgen.check.admission.names import DNS_LABEL_1035, PATH_SEGMENT_NAME, is_dns_label_1035
from jobgen.check.admission.object_metadata import MetadataFormat, validate_object_metadata
from jobgen.check.schema.object_meta import OBJECT_META
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem

Check = Callable[[Node, str, Node, list[Problem]], None]

_FIELDS = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": OBJECT_META}
_METADATA = MetadataFormat(PATH_SEGMENT_NAME)


def add_object_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with the fields that every object has, whatever it says of them."""
    required = [*schema.get("required", ()), "apiVersion", "kind"]
    return {**schema, "properties": {**schema.get("properties", {}), **_FIELDS}, "required": sorted({*required})}


def with_embedded_object(check_value: Check) -> Check:
    """A check that also validates the version, the kind and the metadata of an embedded object."""

    def check(value: Node, name: str, parent: Node, problems: list[Problem]) -> None:
        check_value(value, name, parent, problems)
        if isinstance(value, dict):
            problems.extend(validate_object_metadata(value.get("metadata"), _METADATA))
            version, kind = value_of(value.get("apiVersion")), value_of(value.get("kind"))
            if type(version) is str and (not version or version.count("/") > 1):
                message = f"`{version}` is not an API version; write `v1` or `group/version`"
                problems.append(Problem("invalid-value", message, value["apiVersion"], category="schema"))
            if type(kind) is str and not is_dns_label_1035(kind.lower()):
                message = f"`{kind}` is not a kind; in lower case, {DNS_LABEL_1035}"
                problems.append(Problem("invalid-value", message, value["kind"], category="schema"))

    return check
