"""The least that the API server estimates a CEL rule of a CRD to cost, on the largest data that its schema allows.

The API server refuses a rule by its estimate, whatever the objects are. Only loops and literals count here, so a rule
that is too expensive here is certainly so for the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.check.cel import tree
from jobgen.check.cel.engine import PREFIX

MAX_RULE_COST = 10_000_000
_STEP_COST, _LIST_COST, _MAPPING_COST = 3, 10, 30
_MAX_REQUEST = 3 * 1024 * 1024
_LEAST_SIZES = {"boolean": 4, "integer": 1, "number": 1}
_FIELD_SIZE, _ENTRY_SIZE = 6, 8
_Schemas = Mapping[str, Mapping[str, Any]]


def estimate_cost(node: tree.Node, known: _Schemas) -> int:
    """Return the least cost of an expression; `known` are the schemas of its variables."""
    if isinstance(node, tree.Fold):
        schema = _find_schema(node.range, known)
        names = (node.second_variable, node.variable) if node.second_variable else (node.variable, "")
        inner = {**known, node.result_name: {}, names[1]: {}, names[0]: _find_item(schema)}
        body = sum(estimate_cost(part, inner) for part in (node.condition, node.step))
        return estimate_cost(node.range, known) + _find_size(schema) * (body + _STEP_COST)
    if isinstance(node, tree.Call) and node.name.startswith(PREFIX):
        # The engine converts the arguments of its own functions, with loops that the rule does not have.
        return 0
    costs = [estimate_cost(child, known) for child in tree.children(node)]
    if isinstance(node, tree.Call) and node.name == "_?_:_":
        return costs[0] + max(costs[1:])
    own = _LIST_COST if isinstance(node, tree.Sequence) else _MAPPING_COST if isinstance(node, tree.Struct) else 0
    return own + sum(costs)


def _find_schema(node: tree.Node, known: _Schemas) -> Mapping[str, Any]:
    if isinstance(node, tree.Ident):
        return known.get(node.name, {})
    if isinstance(node, tree.Select) and not node.test:
        owner = _find_schema(node.operand, known)
        field = (owner.get("properties") or {}).get(node.field)
        return field if isinstance(field, dict) else _find_item(owner)
    if isinstance(node, tree.Call) and node.name == "_[_]":
        return _find_item(_find_schema(node.args[0], known))
    return {}


def _find_item(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the items of a list, or of the values of a map."""
    found = schema.get("items" if _find_type(schema) == "array" else "additionalProperties")
    return found if isinstance(found, dict) else {}


def _find_size(schema: Mapping[str, Any]) -> int:
    """Return the largest number of items or entries: the limit, or how many fit into a request."""
    is_list = _find_type(schema) == "array"
    if not is_list and not isinstance(schema.get("additionalProperties"), dict):
        return 1
    limit = schema.get("maxItems" if is_list else "maxProperties")
    if type(limit) is int and limit >= 0:
        return limit
    return (_MAX_REQUEST - 2) // (_find_least_size(_find_item(schema)) + (1 if is_list else _ENTRY_SIZE))


def _find_least_size(schema: Mapping[str, Any]) -> int:
    """Return how many bytes the shortest value has in JSON."""
    properties, required = schema.get("properties"), schema.get("required")
    fields = properties if isinstance(properties, dict) else {}
    needed = [name for name in required if name in fields] if isinstance(required, list) else []
    return _LEAST_SIZES.get(_find_type(schema), 2) + sum(
        len(name) + _FIELD_SIZE + _find_least_size(fields[name]) for name in needed if isinstance(fields[name], dict)
    )


def _find_type(schema: Mapping[str, Any]) -> str:
    found = schema.get("type")
    return str(found[0] if isinstance(found, list) and found else found)
