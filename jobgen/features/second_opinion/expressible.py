"""Whether a JSON Schema can express why jobgen rejects a value, so that another tool must reject it too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.finding import Finding

_ALWAYS = frozenset(("unknown-field", "missing-field"))
_VALUES = frozenset(("invalid-form", "invalid-value", "invalid-quantity"))
_CONSTRAINTS = frozenset(
    """enum const pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems
    maxItems uniqueItems minProperties maxProperties required not oneOf""".split()
)
_MAX_NODES = 100


def is_expressible(finding: Finding, obj: Any, schema: bytes) -> bool:
    """Whether the schema of an object states what a finding reports.

    `format` is a remark to other tools, and quantities, times and base64 have no other words in a schema. A whole
    number that does not fit into 64 bits is an integer to them, and not to Kubernetes.
    """
    if finding.rule in _ALWAYS:
        return True
    steps = [step.replace("~1", "/").replace("~0", "~") for step in finding.pointer.split("/")[1:]]
    if finding.rule == "wrong-type":
        value = _find_value(obj, steps)
        return not (isinstance(value, (int, float)) and float(value).is_integer() and abs(value) >= 2**53)
    if finding.rule not in _VALUES:
        return False
    return any(_CONSTRAINTS & node.keys() for node in _find_nodes(json.loads(schema), steps))


def _find_value(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _find_nodes(root: Any, steps: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a schema that apply to the value at a path. A schema may refer to itself without end."""
    waiting = [(root, 0)]
    for node, depth in waiting:
        if not isinstance(node, dict) or len(waiting) > _MAX_NODES:
            continue
        if depth == len(steps):
            yield node
        elif isinstance(node.get("properties"), dict) and steps[depth] in node["properties"]:
            waiting.append((node["properties"][steps[depth]], depth + 1))
        else:
            waiting += [(node[word], depth + 1) for word in ("items", "additionalProperties") if word in node]
        waiting += [(child, depth) for word in ("allOf", "anyOf") for child in node.get(word) or ()]
        reference = node.get("$ref")
        if isinstance(reference, str):
            waiting.append((_find_value(root, reference.split("/")[1:]), depth))
