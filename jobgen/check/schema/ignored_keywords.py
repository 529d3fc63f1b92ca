"""Finds the keywords of JSON Schema that the schema of a CRD cannot have, and that a check therefore ignores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_IGNORED = frozenset(
    (
        *("$dynamicRef", "$recursiveRef", "additionalItems", "const", "contains", "dependencies", "dependentRequired"),
        *("dependentSchemas", "else", "if", "maxContains", "minContains", "patternProperties", "prefixItems"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "uniqueItems"),
    )
)
# Beside `$ref` the check reads no constraint, as in the old drafts of JSON Schema.
_CONSTRAINTS = frozenset(
    (
        *("additionalProperties", "allOf", "anyOf", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items"),
        *("maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum"),
        *("multipleOf", "not", "oneOf", "pattern", "properties", "required", "type"),
    )
)


def find_ignored_keywords(schema: dict[str, Any]) -> list[str]:
    """The keywords that a schema has and that its check does not evaluate, each once, in alphabetical order."""
    return sorted({word for node in _walk(schema) for word in _list_ignored(node)})


def _list_ignored(node: dict[str, Any]) -> Iterator[str]:
    # `uniqueItems: false` demands nothing.
    yield from (word for word in node.keys() & _IGNORED if node[word] is not False or word != "uniqueItems")
    if "$ref" in node:
        yield from (f"{word} beside $ref" for word in node.keys() & _CONSTRAINTS)


def _walk(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all schemas in it; the names of properties are no keywords."""
    left: list[Any] = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            for word in ("properties", "$defs"):
                left.extend(node[word].values() if isinstance(node.get(word), dict) else ())
            for word in ("anyOf", "oneOf", "allOf"):
                left.extend(node[word] if isinstance(node.get(word), list) else ())
            left.extend(node.get(word) for word in ("additionalProperties", "items", "not"))
