"""Type checks of fields: which objects have which fields is declared to the engine as functions.

The engine knows objects only as protocol buffers. So `self.spec` is checked as `self.jobgen_field_spec()`, a function
that is declared for the types of objects that have the field. The checked tree has the fields again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from jobgen.check.cel import engine, tree
from jobgen.check.cel.signatures import list_overloads
from jobgen.check.cel.values import CompileError, blank_strings, line_and_column
from jobgen.model.lazy_re import lazy_pattern


class ObjectTypes(NamedTuple):
    """The types of variables, and the fields of objects, in the notation of signatures such as `list<string>`."""

    variables: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, str, str], ...]
    """The type of the object, the name of the field, the type of the field."""
    names: tuple[str, ...]
    """What occurs in the expressions; see `find_names`."""
    shapes: tuple[tuple[str, str], ...] = ()
    """For variables with sets or with lists that have keys, where in them these are, as JSON; see `lists.py`."""


_FIELD, _OPTIONAL, _HAS = "jobgen_field_", "jobgen_optional_", "jobgen_has"
_SELECTION = lazy_pattern(r"\.\s*(\??)\s*([A-Za-z_]\w*)\b(?!\s*\()", re.ASCII)
_NAMES = lazy_pattern(r"\.\s*\??\s*[A-Za-z_]\w*|[A-Za-z_]\w*|[<>?]", re.ASCII)
_HAS_MACRO = lazy_pattern(r"(?<![\w.])has(?=\s*\()")
_TYPE_NAME = lazy_pattern(r"(?<![\w.])(?:google\.protobuf\.\w+|net\.(?:IP|CIDR)|kubernetes\.\w+)")
_UNDEFINED = lazy_pattern(
    rf"(?:undeclared reference to|found no matching overload for) `(?:{_FIELD}|{_OPTIONAL}|jobgen_set_patch_)(\w+)`.*"
)
_TIMES = ("timestamp", "duration")
_DATA_NAMES = frozenset(("self", "oldSelf"))
_TRUE = tree.written(2, 1)


_Edit = tuple[int, int, str]
"""The start and the end of a part of a text, and what replaces it."""


def find_names(text: str) -> frozenset[str]:
    """What occurs in an expression: names, names of fields with a dot, the operators `<`, `>` and `?`."""
    found = _NAMES.findall(blank_strings(text))
    return frozenset((*(re.sub(r"[\s?]", "", name) for name in found), *("?" for name in found if "?" in name))) - {""}


def check(text: str, types: ObjectTypes, functions: tuple[tuple[str, str], ...] = ()) -> tree.Checked | CompileError:
    """Check an expression with typed variables; return its tree, in which times are converted from strings.

    `functions` are more functions with their signatures.
    """
    edits = sorted(_find_edits(text))
    serialized = engine.check(
        _apply(text, edits),
        types.variables,
        functions=_declare(types, functions),
        named=frozenset(name.removeprefix(".") for name in types.names),
    )
    if isinstance(serialized, CompileError):
        message = _UNDEFINED.sub(r"undefined field `\1`", serialized.message).replace(_HAS, "has")
        edited = _apply(text, edits).split("\n")
        offset = sum(len(line) + 1 for line in edited[: serialized.line - 1]) + serialized.column - 1
        return CompileError(message, *line_and_column(text, _original_offset(offset, edits)))
    checked = tree.read(serialized)
    restorer = _FieldRestorer(checked)
    try:
        root = restorer.restore(checked.root)
    except _NotAFieldError:
        return CompileError("invalid argument to has() macro")
    places = {id_: _original_offset(place, edits) for id_, place in restorer.places.items()}
    return checked._replace(root=root, types=restorer.types, places=places)


def _find_edits(text: str) -> Iterator[_Edit]:
    blank = blank_strings(text)
    names = [match.span() for match in _TYPE_NAME.finditer(blank)]
    for match in _SELECTION.finditer(blank):
        if not any(start <= match.start() < end for start, end in names):
            prefix = _OPTIONAL if match[1] else _FIELD
            yield match.start(), match.end(), f".{prefix}{match[2]}()"
    for match in _HAS_MACRO.finditer(blank):
        yield match.start(), match.end(), _HAS


def _apply(text: str, edits: list[_Edit]) -> str:
    for start, end, replacement in reversed(edits):
        text = text[:start] + replacement + text[end:]
    return text


def _original_offset(offset: int, edits: list[_Edit]) -> int:
    shift = 0
    for start, end, replacement in edits:
        if offset < start + shift:
            break
        if offset < start + shift + len(replacement):
            return start
        shift += len(replacement) - (end - start)
    return offset - shift


@lru_cache(maxsize=256)
def _declare(types: ObjectTypes, more: tuple[tuple[str, str], ...]) -> str:
    """The declarations of variables and fields; a mapping has every field, and an optional has those of its value."""
    by_name: dict[str, list[tuple[str, str]]] = {name[1:]: [] for name in types.names if name.startswith(".")}
    for owner, name, kind in types.fields:
        by_name.setdefault(name, []).append((owner, kind))
    kinds = [kind for _, kind in types.variables] + [kind for _, _, kind in types.fields]
    has_optionals = "?" in types.names or any("opt" in word for word in (*types.names, *kinds))
    functions = [(_HAS, "(dyn) bool"), *more]
    for name, found in sorted(by_name.items()):
        owners = [*found, ("map<string, ~V>", "~V")]
        of_optional = [f"optional_type<{owner}>.() {_to_optional(kind)}" for owner, kind in owners]
        plain = [f"{owner}.() {kind}" for owner, kind in owners]
        plain += of_optional if has_optionals else of_optional[-1:]
        functions.append((f"{_FIELD}{name}", "; ".join(plain)))
        if has_optionals:
            optional = [f"{owner}.() {_to_optional(kind)}" for owner, kind in owners]
            functions.append((f"{_OPTIONAL}{name}", "; ".join(optional + of_optional)))
    return json.dumps([{"name": name, "overloads": list_overloads(name, text)} for name, text in functions])


def _to_optional(kind: str) -> str:
    return kind if kind.startswith("optional_type<") else f"optional_type<{kind}>"


class _FieldRestorer:
    """Rebuilds a tree with fields in the place of the functions that were declared for them."""

    def __init__(self, checked: tree.Checked) -> None:
        self.types = dict(checked.types)
        self.places = dict(checked.places)
        self.last = max(node.id for node in tree.walk(checked.root)) + 1_000

    def restore(self, node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Call) and node.name == _HAS:
            inner = node.args[0]
            if not (isinstance(inner, tree.Call) and inner.target is not None and inner.name.startswith(_FIELD)):
                raise _NotAFieldError
            selected = self._select(inner)
            assert isinstance(selected, tree.Select), "its name has the prefix of a field"
            return selected._replace(id=self._new(inner, "bool"), test=True)
        if isinstance(node, tree.Call) and node.target is not None and node.name.startswith((_FIELD, _OPTIONAL)):
            return self._convert(self._select(node), self.types.get(node.id, "dyn"))
        restored = tree.map_children(node, self.restore)
        if isinstance(node, tree.Ident):
            return self._convert(restored, self.types.get(node.id, "dyn")) if node.name in _DATA_NAMES else restored
        return restored

    def _select(self, call: tree.Call) -> tree.Node:
        assert call.target is not None, "it is a method"
        target = self.restore(call.target)
        if call.name.startswith(_OPTIONAL):
            name = tree.Const(self._new(call, "string"), tree.written(6, call.name.removeprefix(_OPTIONAL)))
            return tree.Call(self._new(call), None, "_?._", (target, name))
        return tree.Select(self._new(call), target, call.name.removeprefix(_FIELD))

    def _convert(self, node: tree.Node, kind: str) -> tree.Node:
        """The value of a node whose times are strings in the data."""
        if kind in _TIMES:
            return tree.Call(self._new(node, kind), None, kind, (node,))
        if not any(name in kind for name in _TIMES):
            return node
        name, _, inner = kind.partition("<")
        if name == "list":
            item = tree.Ident(self._new(node, "dyn"), "@item")
            result = tree.Ident(self._new(node, "dyn"), "@result")
            added = tree.Sequence(self._new(node, kind), (self._convert(item, inner[:-1]),))
            step = tree.Call(self._new(node, kind), None, "_+_", (result, added))
            start, always = tree.Sequence(self._new(node, kind), ()), tree.Const(self._new(node, "bool"), _TRUE)
            return tree.Fold(self._new(node, kind), "@item", node, "@result", start, always, step, result)
        if name == "optional_type":
            value = self._convert(tree.Call(self._new(node, "dyn"), node, "value", ()), inner[:-1])
            wrapped = tree.Call(self._new(node, kind), None, "optional.of", (value,))
            has_value = tree.Call(self._new(node, "bool"), node, "hasValue", ())
            nothing = tree.Call(self._new(node, kind), None, "optional.none", ())
            return tree.Call(self._new(node, kind), None, "_?_:_", (has_value, wrapped, nothing))
        return node

    def _new(self, like: tree.Node, kind: str = "") -> int:
        """An unused id, with the position of a node, and with its type if there is no other."""
        self.last += 1
        self.types[self.last] = kind or self.types.get(like.id, "dyn")
        self.places[self.last] = self.places.get(like.id, 0)
        return self.last


class _NotAFieldError(Exception):
    """The argument of `has` is not a field."""
