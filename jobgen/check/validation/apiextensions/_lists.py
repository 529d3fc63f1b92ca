"""Validate the keywords of sets and of lists with keys."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_empty, is_set, iter_texts, report_unsupported
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of

_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_LIST_TYPES = ("atomic", "map", "set")


def validate_list_keywords(schema: Mapping[str, Node], key: Node, run: Validation) -> None:
    """Validate that a list type fits the type of the schema, its items and its keys."""
    kind = as_text(schema.get(_TYPE))
    has_type = is_set(schema.get(_TYPE))
    items = as_mapping(schema.get("items"))
    if has_type and kind not in _LIST_TYPES:
        report_unsupported(_TYPE, schema[_TYPE], _LIST_TYPES, run)
    if has_type and as_text(schema.get("type")) != "array":
        node = schema.get("type") if not is_empty(schema.get("type")) else get_key(schema, _TYPE)
        run.report("invalid-value", f"`type` must be `array` in a schema with `{_TYPE}`", node)
    elif kind == "set":
        _validate_set_items(items, get_key(schema, "items"), run)
    if as_list(schema.get(_KEYS)) and kind != "map":
        node = schema[_TYPE] if has_type else get_key(schema, _KEYS)
        run.report("invalid-value", f"`{_KEYS}` requires `{_TYPE}: map`", node)
    if kind == "map":
        _validate_keys(schema, items, key, run)
    if kind in ("set", "map") and value_of(items.get("nullable")) is True:
        run.report("invalid-value", f"items of a list with `{_TYPE}: {kind}` cannot be nullable", items["nullable"])


def _validate_set_items(items: Mapping[str, Node], key: Node, run: Validation) -> None:
    kind = as_text(items.get("type"))
    word = {"array": _TYPE, "object": "x-kubernetes-map-type"}.get(kind, "")
    found = as_text(items.get(word)) if word else ""
    if (kind == "array" and is_set(items.get(word)) and found != "atomic") or (kind == "object" and found != "atomic"):
        node = items.get(word) if is_set(items.get(word)) else key
        run.report("invalid-value", f"items of a set require `{word}: atomic`", node)


def _validate_keys(schema: Mapping[str, Node], items: Mapping[str, Node], key: Node, run: Validation) -> None:
    keys = list(iter_texts(schema.get(_KEYS)))
    if not keys:
        run.report("missing-field", f"`{_TYPE}: map` requires `{_KEYS}`; list the keys of items", schema[_TYPE])
    if not isinstance(schema.get("items"), dict):
        run.report("missing-field", f"`{_TYPE}: map` requires `items` with a schema; set it", schema[_TYPE])
        return
    if as_text(items.get("type")) != "object":
        node = items.get("type") if is_set(items.get("type")) else get_key(schema, "items")
        run.report("invalid-value", f"`type` of the items must be `object` in a list with `{_TYPE}: map`", node)
        return
    properties = as_mapping(items.get("properties"))
    required = {as_text(name) for name in as_list(items.get("required"))}
    seen: set[str] = set()
    for found, node in keys:
        if found in seen:
            run.report("duplicate-item", f"`{found}` is twice in `{_KEYS}`; remove one of them", node)
        elif found not in properties:
            run.report("invalid-value", f"`{found}` in `{_KEYS}` is not a property of the items", node)
        else:
            _validate_key(
                found, as_mapping(properties[found]), get_key(properties, found), run, is_required=found in required
            )
        seen.add(found)


def _validate_key(name: str, field: Mapping[str, Node], key: Node, run: Validation, *, is_required: bool) -> None:
    if as_text(field.get("type")) in ("array", "object"):
        run.report("invalid-value", f"the key `{name}` of a list must be a scalar", field["type"])
    if not is_required and not is_set(field.get("default")):
        run.report("missing-field", f"the key `{name}` of a list must be required or have a default", key)
    if value_of(field.get("nullable")) is True:
        run.report("invalid-value", f"the key `{name}` of a list cannot be nullable", field["nullable"])
