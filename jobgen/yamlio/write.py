"""The canonical text of an object: YAML that YAML 1.1, YAML 1.2 and Go all read alike, and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern

# Kubernetes' own order for the keys everybody looks for first; the rest follow by name.
_FIRST = """
    apiVersion kind metadata type name namespace generateName key operator op path labels annotations spec
    framework runPolicy replicas replicaSpecs restartPolicy image imagePullPolicy command args workingDir env envFrom
    ports containerPort protocol resources limits requests volumeMounts mountPath value valueFrom template
    initContainers containers volumes status
""".split()
_RANK = {key: place for place, key in enumerate(_FIRST)}

_SAFE = lazy_pattern(r"[A-Za-z_/.][A-Za-z0-9_./@+$-]*(?:[:=][A-Za-z0-9_./@+$=-]+)*\Z")
_READS_AS_SOMETHING_ELSE = lazy_pattern(
    r"""(?:y|n|yes|no|on|off|true|false|null|nan|inf|infinity|\.nan|\.inf|~|=|<<)\Z  # words of some YAML
    |[-+.]?[0-9_]                                        # numbers, dates, times, and all that begins like one
    |\.[-+._eE0-9]*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_QUANTITY = lazy_pattern(r"[0-9]+(?:[KMGTP]i?|Ei|[numk])\Z")
_FLAG = lazy_pattern(r"--?[A-Za-z][A-Za-z0-9_./@+=-]*\Z")
# Literal blocks cannot carry these, or carry them differently in different readers.
_NOT_LITERAL = lazy_pattern(
    "[^\n\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffd]|[ \t]\n|[ \t]\\Z"
)
_ESCAPED = lazy_pattern('["\\\\\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_texts: dict[str, str] = {}
_orders: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
_MEMORY = 50_000
_LONGEST_NAME = 1000


def to_yaml(value: Plain) -> str:
    """One document, ending in a newline."""
    lines: list[str] = []
    if isinstance(value, dict) and value:
        _mapping(value, "", "", lines, {})
    elif isinstance(value, list) and value:
        _sequence(value, "", "", lines, {})
    else:
        lines.append(_inline(value, ""))
    lines.append("")
    return "\n".join(lines)


def to_yaml_stream(objects: Iterable[Plain]) -> Iterator[str]:
    """Documents with separators between them, one text for each object."""
    for number, value in enumerate(objects):
        yield ("---\n" if number else "") + to_yaml(value)


def to_json(value: Plain) -> str:
    """The same object as JSON, keys in the same order."""
    return json.dumps(_ordered(value), ensure_ascii=False, indent=2) + "\n"


def to_inline_yaml(value: Plain) -> str:
    """A value on one line, as it can stand in braces too."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{to_inline_yaml(str(key))}: {to_inline_yaml(child)}" for key, child in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(to_inline_yaml, value)) + "]"
    return _text(value) if isinstance(value, str) else _inline(value, "")


def sort_key(key: str) -> tuple[int, str]:
    """What sorts the keys of a mapping: those that everybody looks for first, then by name."""
    return _RANK.get(key, len(_RANK)), str(key)


def _ordered(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key, _ in _order(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


def _order(mapping: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The keys in their order, each with the text it is written as."""
    keys = tuple(mapping)
    known = _orders.get(keys)
    if known is None:
        if len(_orders) > _MEMORY:
            _orders.clear()
        ordered = sorted(keys, key=sort_key)
        known = tuple((key, _name(key)) for key in ordered)
        _orders[keys] = known
    return known


def _name(key: str) -> str:
    """A key with its colon; or behind a question mark, if it is longer than readers look ahead for the colon."""
    text = _text(key)
    return f"{text}:" if len(text) < _LONGEST_NAME else f"? {text}"


Written = dict[tuple[int, str], tuple[int, int]]
"""Where a shared pod template was first written: roles that are alike hold one and the same."""


def _mapping(mapping: dict[str, Any], first: str, indent: str, lines: list[str], written: Written) -> None:
    """The lines of a mapping; `first` stands before its first key, `indent` before the others."""
    lead = first
    for key, name in _order(mapping):
        value = mapping[key]
        if name[0] == "?":
            name = f"{name}\n{indent}:"  # noqa: PLW2901
        if type(value) is str and value in _texts:
            lines.append(f"{lead}{name} {_texts[value]}")
        elif isinstance(value, dict) and value:
            lines.append(lead + name)
            if key == "template":
                _template(value, indent + "  ", lines, written)
            else:
                _mapping(value, indent + "  ", indent + "  ", lines, written)
        elif isinstance(value, list) and value:
            lines.append(lead + name)
            _sequence(value, indent, indent, lines, written)
        else:
            lines.append(f"{lead}{name} {_inline(value, indent)}")
        lead = indent


def _template(template: dict[str, Any], indent: str, lines: list[str], written: Written) -> None:
    key = (id(template), indent)
    if key in written:
        start, end = written[key]
        lines.extend(lines[start:end])
        return
    start = len(lines)
    _mapping(template, indent, indent, lines, written)
    written[key] = (start, len(lines))


def _sequence(items: list[Any], first: str, indent: str, lines: list[str], written: Written) -> None:
    """The lines of a list; `first` stands before its first dash, `indent` before the others."""
    lead, inner = first, indent + "  "
    for item in items:
        if type(item) is str and item in _texts:
            lines.append(f"{lead}- {_texts[item]}")
        elif isinstance(item, dict) and item:
            _mapping(item, lead + "- ", inner, lines, written)
        elif isinstance(item, list) and item:
            _sequence(item, lead + "- ", inner, lines, written)
        else:
            lines.append(f"{lead}- {_inline(item, indent)}")
        lead = indent


def _inline(value: Plain, indent: str) -> str:
    if isinstance(value, str):
        if "\n" in value:
            return _multiline(value, indent)
        return _texts.get(value) or _text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    return "{}" if isinstance(value, dict) else "[]"


def _text(value: str) -> str:
    """A string bare where every reader takes it for that string, else in double quotes."""
    safe = _SAFE.match(value) or _FLAG.match(value)
    bare = (safe and not _READS_AS_SOMETHING_ELSE.match(value)) or _QUANTITY.match(value)
    shown = value if bare else _quoted(value)
    if len(_texts) > _MEMORY:
        _texts.clear()
    # As a value, a text of several lines is written in another way than as a key.
    if "\n" not in value:
        _texts[value] = shown
    return shown


def _quoted(value: str) -> str:
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT_ESCAPES.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}")


def _multiline(value: str, indent: str) -> str:
    """A literal block where it says exactly the string, else one quoted line."""
    body = value.rstrip("\n")
    if not body or body.startswith((" ", "\n")) or _NOT_LITERAL.search(value):
        return _quoted(value)
    newlines = len(value) - len(body)
    chomp = ("-", "")[newlines] if newlines < 2 else "+"
    inner = indent + "  "
    lines = [inner + line if line else "" for line in value.split("\n")]
    if newlines:
        lines.pop()
    return "\n".join([f"|{chomp}", *lines])


def _float(value: float) -> str:
    """Digits with a point and a signed exponent: the one spelling that all readers take for a float."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent):+d}"
