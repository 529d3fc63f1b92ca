"""Validate the defaults in a schema: each is a valid value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.check.admission.fields import Validation, get_key, is_set
from jobgen.check.schema.build import convert_schema_node
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Node, untraced
from jobgen.model.limits import MALFORMED_DATA_ERRORS, Budget, BudgetExceededError

_MAX_STEPS = 100_000


def validate_defaults(schema: Mapping[str, Node], run: Validation) -> None:
    """Validate the defaults of a node and of all nodes in it."""
    if is_set(schema.get("default")):
        plain: Any = untraced(schema)
        problem = _find_problem(plain)
        if problem:
            run.report("invalid-value", f"the default is not a valid value: {problem}", get_key(schema, "default"))
    for child in (*as_mapping(schema.get("properties")).values(), schema.get("items")):
        if isinstance(child, dict):
            validate_defaults(child, run)


def _find_problem(schema: dict[str, Any]) -> str:
    value = schema["default"]
    try:
        field = convert_schema_node({word: child for word, child in schema.items() if word != "default"})
        check = compile_structural({"type": "object", "properties": {"default": field}}, Budget(_MAX_STEPS))
        problems = check({"default": value})
    except (*MALFORMED_DATA_ERRORS, BudgetExceededError):
        return ""
    return problems[0].message if problems else ""
