"""The schema of an object's metadata, which is the same for all kinds.

The API server decodes metadata with Go's JSON decoder, not with the schema of a kind: null is valid everywhere, also in
lists, and lists may repeat their items.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_STRING: Schema = {"type": ["string", "null"]}
_INTEGER: Schema = {"type": ["integer", "null"], "format": "int64"}
_BOOLEAN: Schema = {"type": ["boolean", "null"]}
_MAP: Schema = {"type": ["object", "null"], "additionalProperties": _STRING}


def _fields(**properties: Schema) -> Schema:
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _list(items: Schema) -> Schema:
    return {"type": ["array", "null"], "items": items}


OBJECT_META: Schema = {
    **_fields(
        name=_STRING,
        generateName=_STRING,
        namespace=_STRING,
        selfLink=_STRING,
        uid=_STRING,
        resourceVersion=_STRING,
        generation=_INTEGER,
        creationTimestamp=_STRING,
        deletionTimestamp=_STRING,
        deletionGracePeriodSeconds=_INTEGER,
        labels=_MAP,
        annotations=_MAP,
        ownerReferences=_list(
            {
                **_fields(
                    apiVersion=_STRING,
                    kind=_STRING,
                    name=_STRING,
                    uid=_STRING,
                    controller=_BOOLEAN,
                    blockOwnerDeletion=_BOOLEAN,
                ),
                "required": ["apiVersion", "kind", "name", "uid"],
            }
        ),
        finalizers=_list(_STRING),
        managedFields=_list(
            _fields(
                manager=_STRING,
                operation=_STRING,
                apiVersion=_STRING,
                time=_STRING,
                fieldsType=_STRING,
                # Go keeps any JSON here, and reads it later.
                fieldsV1={},
                subresource=_STRING,
            )
        ),
    ),
    "type": "object",
}


def with_object_meta(schema: Schema) -> Schema:
    """Return the schema of a kind with the metadata of every kind."""
    return {**schema, "properties": {**schema.get("properties", {}), "metadata": OBJECT_META}}
