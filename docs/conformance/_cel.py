"""Compare the value of a CEL expression with what the API server computes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.check.cel import CompileError, Failed, compile_cel

_CONSTRUCTORS = frozenset(("quantity", "ip", "cidr", "semver", "url", "duration", "timestamp"))


def check_expression(
    text: str, expect: Mapping[str, Any], names: Sequence[str] = (), variables: Mapping[str, Any] | None = None
) -> tuple[bool, str]:
    """Return whether an expression has the expected value, failure or refusal, and what jobgen says."""
    wanted = expect.get("value")
    if wanted:
        text, wanted = _to_plain_result(text, wanted)
    compiled = compile_cel(text, tuple(names), returns="any")
    if isinstance(compiled, CompileError):
        return "refused" in expect, f"refused: {compiled.message}"
    found = compiled(variables or {})
    said = f"fails: {found.message}" if isinstance(found, Failed) else f"value {found!r:.200}"
    if wanted:
        return not isinstance(found, Failed) and _is_value(found, wanted), said
    return "fails" in expect and isinstance(found, Failed), said


def _to_plain_result(text: str, wanted: Any) -> tuple[str, Any]:
    """An expression whose result is plain data: an optional, a quantity or a time is compared inside of CEL."""
    inner = f"({text}\n)"
    plain = text
    while wanted["t"] == "optional" and wanted["v"]:
        plain = inner = f"{inner}.value()"
        wanted = wanted["v"]
    is_true = {"t": "bool", "v": True}
    if wanted["t"] == "optional":
        return f"!{inner}.hasValue()", is_true
    if wanted["t"] in _CONSTRUCTORS:
        return f"{inner} == {wanted['t']}({json.dumps(wanted['v'], ensure_ascii=False)})", is_true
    if wanted["t"] == "type":
        return f"{inner} == {wanted['v']}", is_true
    return plain, wanted


def _is_value(value: Any, wanted: Any) -> bool:
    kind, data = wanted["t"], wanted["v"]
    if kind == "list":
        return isinstance(value, list) and len(value) == len(data) and all(map(_is_value, value, data))
    if kind == "map":
        if not isinstance(value, dict) or len(value) != len(data):
            return False
        pairs = [(key["v"], one) for key, one in data]
        return all(key in value and _is_value(value[key], one) for key, one in pairs)
    if kind == "bytes":
        return isinstance(value, bytes) and base64.b64encode(value).decode() == data
    if kind == "double":
        return isinstance(value, float) and (value == float(data) or (value != value and data == "NaN"))
    if kind == "uint":
        return isinstance(value, int) and not isinstance(value, bool) and value == data
    types = {"bool": bool, "int": int, "string": str, "null": type(None)}
    return kind in types and type(value) is types[kind] and value == data
