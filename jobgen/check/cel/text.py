"""Functions on strings in CEL in which the engine differs from Go."""

from __future__ import annotations

from jobgen.check.cel.values import NO_OVERLOAD, strings


def substring(text: object, start: object, end: object = None) -> str:
    """`string.substring(start)` and `string.substring(start, end)`; the end may be the size of the text."""
    (found,) = strings(text)
    last = len(found) if end is None else end
    if type(start) is not int or type(last) is not int:
        raise TypeError(NO_OVERLOAD)
    if start < 0 or start > len(found):
        raise ValueError(f"index out of range: {start}")
    if last < 0 or last > len(found):
        raise ValueError(f"index out of range: {last}")
    if start > last:
        raise ValueError(f"invalid substring range. start: {start}, end: {last}")
    return found[start:last]


def escape_key(text: object) -> str:
    """`jsonpatch.escapeKey(string)`: a key as a step of a JSON pointer."""
    (found,) = strings(text)
    return found.replace("~", "~0").replace("/", "~1")


def with_type(kind: object, name: object, value: object) -> object:
    """A value that the type checker found to have a type; Go has no conversion from another one to call then."""
    if _TYPES.get(type(value)) not in (None, kind) and not (kind == "uint" and type(value) is int):
        raise TypeError(f"{NO_OVERLOAD}: {name}({_TYPES[type(value)]})")
    return value


_TYPES: dict[type, str] = {bool: "bool", int: "int", float: "double", str: "string", type(None): "null_type"}
