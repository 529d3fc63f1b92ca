"""Write objects as canonical YAML, which YAML 1.1, YAML 1.2 and Go read identically, and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from jobgen.model.data import EncryptedObject, Node, Plain, TracedScalar
from jobgen.model.lazy_re import lazy_pattern

# The usual order of the most important keys; all others follow by name.
_FIRST = """
    apiVersion kind metadata type name namespace generateName key operator op path labels annotations spec
    framework runPolicy replicas replicaSpecs restartPolicy image imagePullPolicy command args workingDir env envFrom
    ports containerPort protocol resources limits requests volumeMounts mountPath value valueFrom template
    initContainers containers volumes status
""".split()
_RANK = {key: place for place, key in enumerate(_FIRST)}

_SAFE = lazy_pattern(r"[A-Za-z_/.][A-Za-z0-9_./@+$-]*(?:[:=][A-Za-z0-9_./@+$=-]+)*\Z")
_NOT_A_STRING = lazy_pattern(
    r"""(?:y|n|yes|no|on|off|true|false|null|nan|inf|infinity|\.nan|\.inf|~|=|<<)\Z  # keywords of some YAML version
    |[-+.]?[0-9_]                                        # numbers, dates, times, and anything that begins like one
    |\.[-+._eE0-9]*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_QUANTITY = lazy_pattern(r"[0-9]+(?:[KMGTP]i?|Ei|[numk])\Z")
_FLAG = lazy_pattern(r"--?[A-Za-z][A-Za-z0-9_./@+=-]*\Z")
# Characters that literal blocks cannot contain, or that readers interpret differently.
_NOT_LITERAL = lazy_pattern(
    "[^\n\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffd]|[ \t]\n|[ \t]\\Z"
)
_ESCAPED = lazy_pattern('["\\\\\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_texts: dict[str, str] = {}
_orders: dict[tuple[str, ...], tuple[tuple[str, str, int], ...]] = {}
_MAX_MEMOIZED = 50_000
_MAX_SIMPLE_KEY = 1000


def to_yaml(value: Plain) -> str:
    """Format one document, which ends in a newline; one that SOPS encrypted is written as it was read."""
    if type(value) is EncryptedObject:
        return value.text
    lines: list[str] = []
    if isinstance(value, dict) and value:
        _write_mapping(value, "", "", lines, {})
    elif isinstance(value, list) and value:
        _write_sequence(value, "", "", lines, {})
    else:
        lines.append(_format_scalar(value, ""))
    lines.append("")
    return "\n".join(lines)


def to_json(value: Plain) -> str:
    """Format an object as JSON, with the keys in the same order."""
    ordered = value if type(value) is EncryptedObject else sort_keys(value)
    return json.dumps(ordered, ensure_ascii=False, indent=2) + "\n"


def to_inline_yaml(value: Plain) -> str:
    """Format a value on one line, which is also valid inside brackets and braces."""
    if isinstance(value, dict):
        entries = (f"{to_inline_yaml(str(key))}: {to_inline_yaml(child)}" for key, child in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_inline_yaml, value)) + "]"
    return _format_text(value) if isinstance(value, str) else _format_scalar(value, "")


_Templates = dict[tuple[int, str], tuple[int, int]]
"""The lines of each pod template that was written: roles with equal templates share one object."""


Shown = TypeVar("Shown")
"""What a caller makes of a line."""

DescribeLine = Callable[[str, Node, Node, Node], Shown]
"""Describes a line by its text, its nearest key, its value, and the list that the value is an item of, if it is one."""

ListedLines = dict[tuple[object, ...], list[Shown]]
"""The lines of mappings and lists, by their text before the value and the `id` of their nodes."""


def list_lines(tree: Node, describe: DescribeLine[Shown], listed: ListedLines[Shown]) -> list[Shown]:
    """List the lines that `to_yaml` writes, of data with or without locations, each as `describe` returns it.

    The lines of the same nodes are listed once: trees that are listed with the same `listed` and `describe` share them.
    All of them must be kept as long as `listed` is.
    """
    lines: list[Shown] = []
    if isinstance(tree, dict) and tree:
        _list_mapping(tree, "", "", lines, describe, listed)
    elif isinstance(tree, list) and tree:
        _list_sequence(tree, "", "", lines, describe, listed, None)
    else:
        _list_leaf("", "", None, tree, None, lines, describe)
    return lines


def _list_mapping(
    tree: Any, first: str, indent: str, lines: list[Shown], describe: DescribeLine[Shown], listed: ListedLines[Shown]
) -> None:
    lead = first
    items = list(tree.items())
    for _, text, place in _orders.get(tuple(tree)) or _order_keys(tree):
        key, value = items[place]
        label = lead + text
        lead = indent
        if text[0] == "?":
            label = f"{label}\n{indent}:"
        if type(value) is TracedScalar or not isinstance(value, (dict, list)) or not value:
            _list_leaf(f"{label} ", indent, key, value, None, lines, describe)
            continue
        name = (label, id(key), id(value))
        known = listed.get(name)
        if known is None:
            known = listed[name] = [describe(line, key, value, None) for line in label.split("\n")]
            if isinstance(value, dict):
                _list_mapping(value, indent + "  ", indent + "  ", known, describe, listed)
            else:
                _list_sequence(value, indent, indent, known, describe, listed, key)
        lines += known


def _list_sequence(
    items: Any,
    first: str,
    indent: str,
    lines: list[Shown],
    describe: DescribeLine[Shown],
    listed: ListedLines[Shown],
    above: Node,
) -> None:
    lead = first
    for item in items:
        if isinstance(item, dict) and item:
            _list_mapping(item, lead + "- ", indent + "  ", lines, describe, listed)
        elif isinstance(item, list) and item:
            _list_sequence(item, lead + "- ", indent + "  ", lines, describe, listed, above)
        else:
            _list_leaf(f"{lead}- ", indent, above, item, items, lines, describe)
        lead = indent


def _list_leaf(
    lead: str,
    indent: str,
    key: Node,
    value: Node,
    items: Node,
    lines: list[Shown],
    describe: DescribeLine[Shown],
) -> None:
    plain: Any = value.value if type(value) is TracedScalar else value
    text = _texts.get(plain) if type(plain) is str else None
    shown = lead + (text or _format_scalar(plain, indent))
    if "\n" in shown:
        lines += [describe(line, key, value, items) for line in shown.split("\n")]
    else:
        lines.append(describe(shown, key, value, items))


def sort_key(key: str) -> tuple[int, str]:
    """The key by which the keys of a mapping are sorted: the most important ones first, then by name."""
    return _RANK.get(key, len(_RANK)), str(key)


def sort_keys(value: Plain) -> Plain:
    """Return a tree with its keys in the order in which they are written."""
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key, _, _ in _order_keys(value)}
    if isinstance(value, list):
        return [sort_keys(item) for item in value]
    return value


def _order_keys(mapping: dict[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """The keys in their order, each with its text and its place in the mapping.

    Mappings with equal keys share the result, so a key of it may have another location than that of the mapping.
    """
    keys = tuple(mapping)
    known = _orders.get(keys)
    if known is None:
        if len(_orders) > _MAX_MEMOIZED:
            _orders.clear()
        ordered = sorted(range(len(keys)), key=lambda place: sort_key(keys[place]))
        texts = [_format_text(key) for key in keys]
        # After a question mark, a key may be longer than a simple key.
        labels = [f"{text}:" if len(text) < _MAX_SIMPLE_KEY else f"? {text}" for text in texts]
        known = _orders[keys] = tuple((keys[place], labels[place], place) for place in ordered)
    return known


def _write_mapping(mapping: dict[str, Any], first: str, indent: str, lines: list[str], written: _Templates) -> None:
    """Write the lines of a mapping: `first` precedes its first key, `indent` the others."""
    lead = first
    for key, name, _ in _orders.get(tuple(mapping)) or _order_keys(mapping):
        value = mapping[key]
        if name[0] == "?":
            name = f"{name}\n{indent}:"  # noqa: PLW2901
        if type(value) is str and (text := _texts.get(value)):
            lines.append(f"{lead}{name} {text}")
        elif isinstance(value, dict) and value:
            lines.append(lead + name)
            if key == "template":
                _write_template(value, indent + "  ", lines, written)
            else:
                _write_mapping(value, indent + "  ", indent + "  ", lines, written)
        elif isinstance(value, list) and value:
            lines.append(lead + name)
            _write_sequence(value, indent, indent, lines, written)
        else:
            lines.append(f"{lead}{name} {_format_scalar(value, indent)}")
        lead = indent


def _write_template(template: dict[str, Any], indent: str, lines: list[str], written: _Templates) -> None:
    key = (id(template), indent)
    if key in written:
        start, end = written[key]
        lines.extend(lines[start:end])
        return
    start = len(lines)
    _write_mapping(template, indent, indent, lines, written)
    written[key] = (start, len(lines))


def _write_sequence(items: list[Any], first: str, indent: str, lines: list[str], written: _Templates) -> None:
    """Write the lines of a list: `first` precedes its first dash, `indent` the others."""
    lead, inner = first, indent + "  "
    for item in items:
        if type(item) is str and (text := _texts.get(item)):
            lines.append(f"{lead}- {text}")
        elif isinstance(item, dict) and item:
            _write_mapping(item, lead + "- ", inner, lines, written)
        elif isinstance(item, list) and item:
            _write_sequence(item, lead + "- ", inner, lines, written)
        else:
            lines.append(f"{lead}- {_format_scalar(item, indent)}")
        lead = indent


def _format_scalar(value: Plain, indent: str) -> str:
    if isinstance(value, str):
        if "\n" in value:
            return _format_block(value, indent)
        return _texts.get(value) or _format_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _format_float(value)
    return "{}" if isinstance(value, dict) else "[]"


def _format_text(value: str) -> str:
    """A string without quotes if every reader takes it for that string, else in double quotes."""
    safe = _SAFE.match(value) or _FLAG.match(value)
    bare = (safe and not _NOT_A_STRING.match(value)) or _QUANTITY.match(value)
    shown = value if bare else _quote(value)
    if len(_texts) > _MAX_MEMOIZED:
        _texts.clear()
    # As a value, a text of several lines is formatted differently.
    if "\n" not in value:
        _texts[value] = shown
    return shown


def _quote(value: str) -> str:
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT_ESCAPES.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}")


def _format_block(value: str, indent: str) -> str:
    """A literal block if it represents the string exactly, else one quoted line."""
    body = value.rstrip("\n")
    if not body or body.startswith((" ", "\n")) or _NOT_LITERAL.search(value):
        return _quote(value)
    newlines = len(value) - len(body)
    chomp = ("-", "")[newlines] if newlines < 2 else "+"
    inner = indent + "  "
    lines = [inner + line if line else "" for line in value.split("\n")]
    if newlines:
        lines.pop()
    return "\n".join([f"|{chomp}", *lines])


def _format_float(value: float) -> str:
    """Digits with a point and a signed exponent: the only form that all readers take for a float."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent):+d}"
