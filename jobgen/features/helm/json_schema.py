"""JSON Schema for the values of a chart, as far as all versions of helm read it alike.

What a schema says is checked or left open: a keyword that this does not know, or that depends on the version of helm,
ends the check without a result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.named_tuple import NamedTuple

Path = tuple[str, ...]


class Violation(NamedTuple):
    """A value that a schema refuses."""

    path: Path
    reason: str
    missing: str = ""
    """The key that a mapping at the path needs; empty for other violations."""


_MAX_STEPS = 50_000
_MAX_DEPTH = 60


def is_number(value: Any) -> bool:
    """Return True for a number, and not for true or false."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_OPEN = frozenset(
    "$dynamicRef $recursiveRef unevaluatedItems unevaluatedProperties dependentSchemas minContains maxContains".split()
)
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and float(value).is_integer(),
    "number": is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
_WORDS = {"array": "a list", "boolean": "true or false", "integer": "an integer", "number": "a number"}
_WORDS |= {"object": "a mapping", "string": "a string"}
_SIZES: Sequence[tuple[str, type, Callable[[int, int], bool], str]] = (
    ("minLength", str, int.__ge__, "at least {} characters long"),
    ("maxLength", str, int.__le__, "at most {} characters long"),
    ("minItems", list, int.__ge__, "a list of at least {}"),
    ("maxItems", list, int.__le__, "a list of at most {}"),
    ("minProperties", dict, int.__ge__, "a mapping of at least {}"),
    ("maxProperties", dict, int.__le__, "a mapping of at most {}"),
)
_BOUNDS: Sequence[tuple[str, Callable[[float, float], bool], str]] = (
    ("minimum", lambda found, bound: found >= bound, "at least {}"),
    ("maximum", lambda found, bound: found <= bound, "at most {}"),
    ("exclusiveMinimum", lambda found, bound: found > bound, "more than {}"),
    ("exclusiveMaximum", lambda found, bound: found < bound, "less than {}"),
)
_MAX_LISTED = 10


class OpenSchemaError(Exception):
    """A schema about which nothing is certain here."""


def find_violations(schema: Any, values: Any) -> list[Violation]:
    """Return what a schema refuses of values; none if that is not certain. Null is a value that is not known."""
    try:
        return list(_Validator(schema).check(schema, values, (), 0))
    except (OpenSchemaError, RecursionError, OverflowError):
        return []


class _Validator:
    """Checks values against parts of one schema."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.steps = 0

    def check(self, schema: Any, value: Any, path: Path, depth: int) -> Iterator[Violation]:
        self.steps += 1
        if self.steps > _MAX_STEPS or depth > _MAX_DEPTH:
            raise OpenSchemaError
        if schema is False:
            yield Violation(path, "the schema accepts no value here")
        if not isinstance(schema, dict) or value is None:
            return
        if not _OPEN.isdisjoint(schema):
            raise OpenSchemaError
        if isinstance(schema.get("$ref"), str):
            if not schema.keys() <= {"$ref", "title", "description", "default", "examples", "$comment"}:
                # Newer drafts read what is beside a reference, and older ones do not.
                raise OpenSchemaError
            yield from self.check(self.find(schema["$ref"]), value, path, depth + 1)
            return
        found = list(_check_type(schema, value, path))
        yield from found or _check_value(schema, value, path)
        if isinstance(value, dict):
            yield from self.check_mapping(schema, value, path, depth + 1)
        elif isinstance(value, list):
            yield from self.check_list(schema, value, path, depth + 1)
        yield from self.check_alternatives(schema, value, path, depth + 1)

    def find(self, reference: str) -> Any:
        """Return the part of the schema that a reference names."""
        node = self.root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            node = node[int(name)] if isinstance(node, list) and name.isdecimal() and int(name) < len(node) else node
            node = node.get(name) if isinstance(node, dict) else node
        if reference[:1] != "#" or (reference[1:2] not in ("", "/")) or not isinstance(node, (dict, bool)):
            raise OpenSchemaError
        return node

    def fits(self, schema: Any, value: Any, path: Path, depth: int) -> bool:
        if _has_null(value):
            # What null is depends on the version of helm.
            raise OpenSchemaError
        return next(self.check(schema, value, path, depth), None) is None

    def check_mapping(self, schema: Any, value: dict[str, Any], path: Path, depth: int) -> Iterator[Violation]:
        required = schema.get("required")
        yield from _list_missing(required if isinstance(required, list) else (), value, path)
        properties = _as_mapping(schema.get("properties"))
        patterns = _as_mapping(schema.get("patternProperties"))
        for key, item in value.items():
            below = (*path, str(key))
            parts = [properties[key]] if key in properties else []
            parts += [part for pattern, part in patterns.items() if _matches(pattern, str(key))]
            if not parts and schema.get("additionalProperties") is False:
                if item is not None:
                    yield Violation(below, "the schema knows no such key")
                continue
            for part in parts or [schema.get("additionalProperties", True)]:
                yield from self.check(part, item, below, depth)
            if "propertyNames" in schema and not self.fits(schema["propertyNames"], str(key), below, depth):
                yield Violation(below, "the schema does not accept this key")
        for word in ("dependencies", "dependentRequired"):
            for key, needed in _as_mapping(schema.get(word)).items():
                if not isinstance(needed, list):
                    raise OpenSchemaError
                yield from _list_missing(needed if value.get(key) is not None else (), value, path)

    def check_list(self, schema: Any, value: list[Any], path: Path, depth: int) -> Iterator[Violation]:
        first, rest = schema.get("prefixItems"), schema.get("items", True)
        if first is not None or isinstance(rest, list):
            # What these are depends on the draft.
            raise OpenSchemaError
        for at, item in enumerate(value):
            yield from self.check(rest, item, (*path, str(at)), depth)
        if "contains" in schema and not any(self.fits(schema["contains"], item, path, depth) for item in value):
            yield Violation(path, "it has no item that the schema wants in it")
        if schema.get("uniqueItems") is True and len(set(map(_write, value))) < len(value):
            yield Violation(path, "it has the same item twice")

    def check_alternatives(self, schema: Any, value: Any, path: Path, depth: int) -> Iterator[Violation]:
        for part in _as_list(schema.get("allOf")):
            yield from self.check(part, value, path, depth)
        for word, what in (("anyOf", "none"), ("oneOf", "not exactly one")):
            parts = _as_list(schema.get(word))
            fitting = sum(self.fits(part, value, path, depth) for part in parts)
            if parts and (not fitting or (word == "oneOf" and fitting > 1)):
                yield Violation(path, f"{what} of the alternatives of the schema fits")
        if "not" in schema and self.fits(schema["not"], value, path, depth):
            yield Violation(path, "the schema excludes it with 'not'")
        if "if" in schema:
            word = "then" if self.fits(schema["if"], value, path, depth) else "else"
            yield from self.check(schema.get(word, True), value, path, depth)


def _name_type(value: Any) -> str:
    # The value itself may be a secret.
    return next((_WORDS[name] for name in _WORDS if _TYPES[name](value)), "null")


def _check_type(schema: Any, value: Any, path: Path) -> Iterator[Violation]:
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else _as_list(wanted)
    if any(name not in _TYPES and name != "null" for name in names):
        raise OpenSchemaError
    if names and not any(_TYPES[name](value) for name in names if name != "null"):
        expected = " or ".join(_WORDS[name] for name in names if name != "null")
        yield Violation(path, f"it is {_name_type(value)}, and must be {expected or 'null'}")


def _check_value(schema: Any, value: Any, path: Path) -> Iterator[Violation]:
    allowed = [*_as_list(schema.get("enum")), *([schema["const"]] if "const" in schema else ())]
    if allowed and _write(value) not in set(map(_write, allowed)):
        names = ", ".join(_shorten(each) for each in allowed[:_MAX_LISTED])
        more = f" or one of {len(allowed) - _MAX_LISTED} more" if len(allowed) > _MAX_LISTED else ""
        yield Violation(path, f"it must be {'one of ' if len(allowed) > 1 else ''}{names}{more}")
    for word, kind, holds, must in _SIZES:
        limit = schema.get(word)
        if is_number(limit) and isinstance(value, kind) and not holds(len(value), int(limit)):  # type: ignore[arg-type]
            yield Violation(path, f"it must be {must.format(limit)}")
    yield from _check_number(schema, value, path) if is_number(value) else ()
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and isinstance(value, str) and not _matches(pattern, value):
        yield Violation(path, f"it must match {pattern}")


def _check_number(schema: Any, value: float, path: Path) -> Iterator[Violation]:
    for word, holds, must in _BOUNDS:
        limit = schema.get(word)
        if limit is True:
            # In draft 4, it is a word about the other bound.
            limit = schema.get({"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}.get(word, ""))
        if is_number(limit) and not holds(value, limit):
            yield Violation(path, f"it must be {must.format(limit)}")
    factor = schema.get("multipleOf")
    if isinstance(factor, int) and factor > 0 and value % factor:
        yield Violation(path, f"it must be a multiple of {factor}")


def _list_missing(names: Sequence[Any], value: Mapping[str, Any], path: Path) -> Iterator[Violation]:
    for name in names:
        if isinstance(name, str) and name not in value:
            yield Violation(path, f"it has no {name}", name)


def _matches(pattern: str, text: str) -> bool:
    # Imported late: few schemas have patterns.
    from jobgen.check.cel import available
    from jobgen.check.cel.text_format import fault, matches

    if available() or fault(pattern):
        raise OpenSchemaError
    return matches(text, pattern)


def _has_null(value: Any) -> bool:
    pending = [value]
    while pending:
        node = pending.pop()
        if node is None:
            return True
        pending += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return False


def _write(value: Any) -> str:
    """Return a text that is the same for equal values of JSON, for which 1 and 1.0 are equal."""
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{json.dumps(str(key))}:{_write(item)}' for key, item in value.items()))}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_write, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, default=str)


def _shorten(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}…"


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
