"""Check the types of CEL expressions as cel-go does, which is what the API server runs.

The engine parses only: its own checker differs where a type is not known yet, as that of the items of `[]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count

from jobgen.check.cel import engine, tree
from jobgen.check.cel.signatures import (
    TYPE_CONSTANTS,
    Overload,
    Type,
    declare_functions,
    explain_missing,
    list_libraries,
    list_overloads,
    type_named,
)
from jobgen.check.cel.tree import (
    Call,
    Checked,
    Const,
    Fold,
    Ident,
    Node,
    Select,
    Sequence,
    Struct,
    fields,
    read_parsed,
    written,
)
from jobgen.check.cel.values import CompileError, line_and_column
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean

_DYN, _BOOL, _STRING, _INT, _NULL = map(Type, ("dyn", "bool", "string", "int", "null"))
_TYPES = "bool bytes double int list map null_type string type uint optional_type".split()
_WELL_KNOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Any": "any",
    "google.protobuf.Value": "dyn",
    "google.protobuf.Struct": "map<string, dyn>",
    "google.protobuf.ListValue": "list<dyn>",
    **{f"google.protobuf.{name}Value": f"wrapper<{name.lower()}>" for name in ("Bool", "Bytes", "Double", "String")},
    "google.protobuf.FloatValue": "wrapper<double>",
    **{f"google.protobuf.{name}Value": "wrapper<int>" for name in ("Int32", "Int64")},
    **{f"google.protobuf.{name}Value": "wrapper<uint>" for name in ("UInt32", "UInt64")},
}
"""Messages that every environment has, with their types in CEL."""
_NULLABLE = frozenset(("any", "timestamp", "duration", "wrapper"))
_PRIMITIVES = frozenset("dyn bool int uint double string bytes null list map type function".split())
_LITERALS = ("", "null", "bool", "int", "uint", "double", "string", "bytes", "duration", "timestamp")
OBJECT, PATCH = "Object", "JSONPatch"
_PATCH_FIELDS = {"op": _STRING, "path": _STRING, "from": _STRING, "value": _DYN}
_ENTRIES = "cel.@mapInsert"
"""A function that only loops with two variables have."""
_TWO_VARIABLES = frozenset("all exists existsOne exists_one transformList transformMap transformMapEntry".split())


class Scope(NamedTuple):
    """What an expression can use."""

    variables: tuple[tuple[str, str], ...]
    """The names of variables and their types, such as `list<string>`; a name can have dots."""
    fields: tuple[tuple[str, str, str], ...] = ()
    """The type of an object, the name of a field, the type of the field."""
    functions: tuple[tuple[str, str], ...] = ()
    """More functions with their signatures."""
    extensions: tuple[str, ...] = ()
    """More extensions of the parser."""
    has_patches: bool = False
    """True if the types of patches exist, `Object{…}` and `JSONPatch{…}`."""
    shapes: tuple[tuple[str, str], ...] = ()
    """For variables with sets or with lists that have keys, where in them these are, as JSON; see `lists.py`."""
    server: Release = NEWEST_RELEASE


class _TypeError(Exception):
    """An error of an expression: its node, and the message."""


def check(text: str, scope: Scope) -> Checked | CompileError:
    """Parse and check an expression; return its tree, in which names are resolved, or its first error."""
    macros = (each.macros for each in list_libraries(scope.server) if each.macros)
    parsed = engine.parse(text, (*macros, *scope.extensions))
    if isinstance(parsed, CompileError):
        return parsed
    root, places = read_parsed(parsed)
    checker = _Checker(scope)
    try:
        checked, _ = checker.check(root)
        types = {id_: str(checker.resolve(kind, is_final=True)) for id_, kind in checker.types.items()}
    except _TypeError as error:
        id_, message = error.args
        return CompileError(message, *line_and_column(text, places.get(id_, 0)))
    except RecursionError:
        return CompileError(engine.TOO_DEEP)
    return Checked(checked, types, places)


@lru_cache(maxsize=64)
def _list_fields(listed: tuple[tuple[str, str, str], ...]) -> dict[str, dict[str, Type]]:
    found: dict[str, dict[str, Type]] = {}
    for owner, name, kind in listed:
        found.setdefault(owner, {})[name] = type_named(kind)
    return found


@lru_cache(maxsize=64)
def _list_functions(server: Release, more: tuple[tuple[str, str], ...]) -> Mapping[str, tuple[Overload, ...]]:
    return {**declare_functions(server), **{name: list_overloads(text) for name, text in more}}


class _Checker:
    """The types of the nodes of one expression, and what is known of type parameters so far."""

    def __init__(self, scope: Scope) -> None:
        self.types: dict[int, Type] = {}
        self._names = {name: type_named(kind) for name, kind in scope.variables}
        self._names |= {name: Type("type", (Type(name),)) for name in (*_TYPES, *TYPE_CONSTANTS)}
        self._names |= {name: Type("type", (type_named(kind),)) for name, kind in _WELL_KNOWN.items()}
        self._names |= {name: type_named(kind) for name, kind in scope.variables}
        self._fields = _list_fields(scope.fields)
        self._functions = _list_functions(scope.server, scope.functions)
        self._has_patches = scope.has_patches
        self._server = scope.server
        self._bound: dict[str, Type] = {}
        self._trail: list[tuple[str, Type | None]] = []
        self._parameters = (Type(f"~{number}") for number in count())
        self._ids = count(100_000)

    def check(self, node: Node) -> tuple[Node, Type]:
        """A node with its names resolved, and its type."""
        checked, kind = self._check(node)
        self.types[checked.id] = kind
        return checked, kind

    def _check(self, node: Node) -> tuple[Node, Type]:
        match node:
            case Const():
                return node, Type(_LITERALS[next(fields(node.raw), (1, b""))[0]])
            case Ident():
                found = self._names.get(node.name.removeprefix("."))
                if found is None:
                    hint = did_you_mean(node.name, [*self._names])
                    raise _TypeError(node.id, f"undeclared reference to `{node.name}`{hint}")
                return node._replace(name=node.name.removeprefix(".")), found
            case Select():
                return self._check_select(node)
            case Call():
                return self._check_call(node)
            case Sequence():
                items, kinds = self._check_all(node.items)
                is_optional = [index in node.optional for index in range(len(items))]
                item = self._join(self._unwrap(items, kinds, is_optional))
                return node._replace(items=items), Type("list", (item,))
            case Struct():
                return self._check_message(node) if node.name else self._check_map(node)
            case Fold():
                return self._check_fold(node)

    def _check_all(self, nodes: Iterable[Node]) -> tuple[tuple[Node, ...], tuple[Type, ...]]:
        found = [self.check(node) for node in nodes]
        return tuple(node for node, _ in found), tuple(kind for _, kind in found)

    def _check_select(self, node: Select) -> tuple[Node, Type]:
        name = "" if node.test else _name_path(node)
        if name in self._names:
            return Ident(node.id, name), self._names[name]
        operand, kind = self.check(node.operand)
        found = self._select(node.id, kind, node.field)
        return node._replace(operand=operand), _BOOL if node.test else found

    def _select(self, id_: int, kind: Type, field: str, *, asks: bool = False) -> Type:
        target = self.resolve(kind)
        is_optional = target.name == "optional_type"
        target = self.resolve(target.params[0]) if is_optional else target
        found = _DYN
        if target.name == "map":
            found = target.params[1]
        elif target.name.startswith("~"):
            # What it is must not be decided by the first use.
            self._unify([(_DYN, target)])
        elif self._has_fields(target.name):
            known = self._find_field(target.name, field)
            if known is None:
                raise _TypeError(id_, f"undefined field `{field}`")
            found = known
        elif target.name not in ("dyn", "any"):
            raise _TypeError(id_, f"type `{_show(target)}` does not support field selection")
        return Type("optional_type", (found,)) if is_optional or asks else found

    def _has_fields(self, name: str) -> bool:
        is_opaque = name in _PRIMITIVES or name in _NULLABLE or name.startswith(("kubernetes.", "net."))
        return name in self._fields or not is_opaque

    def _is_patch(self, name: str) -> bool:
        return self._has_patches and (name == PATCH or name.partition(".")[0] == OBJECT)

    def _find_field(self, owner: str, name: str) -> Type | None:
        if self._is_patch(owner):
            # The fields of objects are not known before a patch is applied.
            return _PATCH_FIELDS.get(name) if owner == PATCH else _DYN
        return self._fields.get(owner, {}).get(name)

    def _check_call(self, call: Call) -> tuple[Node, Type]:
        if call.name == "_?._" and isinstance(call.args[1], Const):
            operand, kind = self.check(call.args[0])
            self.types[call.args[1].id] = _STRING
            name = call.args[1].text or ""
            return call._replace(args=(operand, call.args[1])), self._select(call.id, kind, name, asks=True)
        if call.name == "exists_one" and len(call.args) == 3 and _ENTRIES in self._functions:
            return self._check(self._expand_exists_one(call))
        if call.name in _TWO_VARIABLES and len(call.args) > 2 and _ENTRIES not in self._functions:
            hint = explain_missing(_ENTRIES, self._server)
            raise _TypeError(call.id, f"undeclared reference to `{call.name}` with two variables{hint}")
        args, kinds = self._check_all(call.args)
        if call.target is not None:
            name = f"{_name_path(call.target)}.{call.name}"
            if hint := explain_missing(name, self._server):
                raise _TypeError(call.id, f"undeclared reference to `{name}`{hint}")
            if name not in self._functions:
                target, kind = self.check(call.target)
                return call._replace(target=target, args=args), self._choose(call, (kind, *kinds), (target, *args))
            call = call._replace(name=name, target=None)
        return call._replace(args=args), self._choose(call, kinds, args)

    def _expand_exists_one(self, call: Call) -> Node:
        """`x.exists_one(k, v, p)`, which the engine's parser does not expand."""
        first, second, condition = call.args
        if not isinstance(first, Ident) or not isinstance(second, Ident) or call.target is None:
            raise _TypeError(call.id, "argument must be a simple name")
        start, one, other, always = (Const(next(self._ids), written(*raw)) for raw in ((3, 0), (3, 1), (3, 1), (2, 1)))
        total, same, found = (Ident(next(self._ids), "@result") for _ in range(3))
        step = Call(next(self._ids), None, "_+_", (total, one))
        chosen = Call(next(self._ids), None, "_?_:_", (condition, step, same))
        result = Call(next(self._ids), None, "_==_", (found, other))
        range_, name = call.target, first.name
        return Fold(call.id, name, range_, "@result", start, always, chosen, result, second.name)

    def _choose(self, call: Call, kinds: tuple[Type, ...], args: tuple[Node, ...]) -> Type:
        """The type of a call: that of the overloads that fit, or dynamic if they differ."""
        overloads = self._functions.get(call.name)
        if overloads is None:
            hint = explain_missing(call.name, self._server)
            hint = hint or did_you_mean(call.name, [name for name in self._functions if name[0].isalpha()])
            raise _TypeError(call.id, f"undeclared reference to `{call.name}`{hint}")
        if call.name in ("_&&_", "_||_"):
            for arg, kind in zip(args, kinds, strict=True):
                if not self._unify([(kind, _BOOL)]):
                    raise _TypeError(arg.id, self._mismatch(_BOOL, kind))
            return _BOOL
        result: Type | None = None
        for overload in overloads:
            if overload.is_method is (call.target is None) or len(overload.takes) != len(kinds):
                continue
            fresh: dict[str, Type] = {}
            takes = [self._instantiate(each, fresh) for each in overload.takes]
            if self._unify(list(zip(kinds, takes, strict=True))):
                found = self.resolve(self._instantiate(overload.gives, fresh))
                result = found if result in (None, found) else _DYN
        if result is None:
            shown = [_show(self.resolve(kind, is_final=True)) for kind in kinds]
            applied = f"{shown[0]}.({', '.join(shown[1:])})" if call.target is not None else f"({', '.join(shown)})"
            raise _TypeError(call.id, f"found no matching overload for `{call.name}` applied to `{applied}`")
        return result

    def _instantiate(self, kind: Type, fresh: dict[str, Type]) -> Type:
        if kind.name.startswith("~"):
            if kind.name not in fresh:
                fresh[kind.name] = next(self._parameters)
            return fresh[kind.name]
        return Type(kind.name, tuple(self._instantiate(each, fresh) for each in kind.params)) if kind.params else kind

    def _unwrap(self, nodes: Iterable[Node], kinds: Iterable[Type], optional: Iterable[bool]) -> list[Type]:
        """The types of items, of which some must be optionals."""
        found = []
        for node, kind, is_optional in zip(nodes, kinds, optional, strict=True):
            if not is_optional or kind.name in ("dyn", "any"):
                found.append(kind)
            elif kind.name == "optional_type":
                found.append(kind.params[0])
            else:
                raise _TypeError(node.id, self._mismatch(Type("optional_type", (kind,)), kind))
        return found

    def _join(self, kinds: Iterable[Type]) -> Type:
        """The type that all items of a literal have."""
        joined: Type | None = None
        for kind in kinds:
            if joined is None:
                joined = kind
            elif self._unify([(joined, kind)]):
                joined = joined if _is_less_specific(joined, kind) else kind
            else:
                # Whether items can differ is checked later.
                joined = _DYN
        return next(self._parameters) if joined is None else joined

    def _check_map(self, node: Struct) -> tuple[Node, Type]:
        entries, keys, kinds = [], [], []
        for entry in node.entries:
            assert entry.key is not None, "an entry of a mapping has a key"
            key, key_kind = self.check(entry.key)
            value, kind = self.check(entry.value)
            keys.append(key_kind)
            kinds += self._unwrap((value,), (kind,), (entry.optional,))
            entries.append(entry._replace(key=key, value=value))
        return node._replace(entries=tuple(entries)), Type("map", (self._join(keys), self._join(kinds)))

    def _check_message(self, node: Struct) -> tuple[Node, Type]:
        name = node.name.removeprefix(".")
        if name not in _WELL_KNOWN and not self._is_patch(name):
            raise _TypeError(node.id, f"undeclared reference to `{name}`")
        entries = []
        for entry in node.entries:
            value, kind = self.check(entry.value)
            (kind,) = self._unwrap((value,), (kind,), (entry.optional,))
            wanted = self._find_field(name, entry.field) if self._is_patch(name) else _DYN
            if wanted is None:
                raise _TypeError(entry.id, f"undefined field `{entry.field}`")
            if not self._unify([(wanted, kind)]):
                shown = f"`{_show(wanted)}` but provided type is `{_show(kind)}`"
                raise _TypeError(entry.id, f"expected type of field `{entry.field}` is {shown}")
            entries.append(entry._replace(value=value))
        return node._replace(entries=tuple(entries)), type_named(_WELL_KNOWN.get(name, name))

    def _check_fold(self, fold: Fold) -> tuple[Node, Type]:
        range_, kind = self.check(fold.range)
        start, result_type = self.check(fold.start)
        kind = self.resolve(kind)
        first = second = _DYN
        if kind.name == "list":
            first, second = (_INT, kind.params[0]) if fold.second_variable else (kind.params[0], _DYN)
        elif kind.name == "map":
            first, second = kind.params
        elif kind.name.startswith("~") or kind.name == "dyn":
            self._unify([(_DYN, kind)])
        else:
            message = f"expression of type `{_show(kind)}` cannot be the range of a comprehension"
            raise _TypeError(fold.range.id, f"{message} (must be list, map, or dynamic)")
        outer = self._names
        with_result = {**outer, fold.result_name: result_type}
        self._names = {**with_result, fold.variable: first}
        if fold.second_variable:
            self._names[fold.second_variable] = second
        condition, found = self.check(fold.condition)
        self._expect(condition, _BOOL, found)
        step, found = self.check(fold.step)
        self._expect(step, result_type, found)
        self._names = with_result
        result, found = self.check(fold.result)
        self._names = outer
        checked = fold._replace(range=range_, start=start, condition=condition, step=step, result=result)
        return checked, self.resolve(found)

    def _expect(self, node: Node, wanted: Type, found: Type) -> None:
        if not self._unify([(wanted, found)]):
            raise _TypeError(node.id, self._mismatch(wanted, found))

    def _mismatch(self, wanted: Type, found: Type) -> str:
        shown = (_show(self.resolve(kind, is_final=True)) for kind in (wanted, found))
        return "expected type `{}` but found `{}`".format(*shown)

    def resolve(self, kind: Type, *, is_final: bool = False) -> Type:
        """A type with what is known of its parameters; in the end, an unknown one is dynamic."""
        if kind.name.startswith("~"):
            known = self._bound.get(kind.name)
            if known is None:
                return _DYN if is_final else kind
            return self.resolve(known, is_final=is_final)
        if not kind.params:
            return kind
        return Type(kind.name, tuple(self.resolve(each, is_final=is_final) for each in kind.params))

    def _unify(self, pairs: list[tuple[Type, Type]]) -> bool:
        """Return True if types can be assigned; what that says of parameters is kept only then."""
        mark = len(self._trail)
        if all(self._assign(one, other) for one, other in pairs):
            return True
        while len(self._trail) > mark:
            name, before = self._trail.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def _assign(self, one: Type, other: Type) -> bool:
        if other.name.startswith("~"):
            is_valid, is_known = self._substitute(one, other)
            if is_valid or is_known:
                return is_valid
        if one.name.startswith("~"):
            return self._substitute(other, one)[0]
        if {one.name, other.name} & {"dyn", "any"}:
            return True
        if "null" in (one.name, other.name):
            kind = other if one.name == "null" else one
            return kind.name == "null" or kind.name in _NULLABLE or kind.name not in _PRIMITIVES
        one, other = (each.params[0] if each.name == "wrapper" else each for each in (one, other))
        if one.name != other.name:
            return False
        if one.name == "type":
            return True
        return len(one.params) == len(other.params) and all(map(self._assign, one.params, other.params))

    def _substitute(self, kind: Type, parameter: Type) -> tuple[bool, bool]:
        """Return whether a type can stand for a parameter, and whether the parameter stood for a type before."""
        if kind == parameter:
            return True, True
        known = self._bound.get(parameter.name)
        if known is None:
            if self._occurs(parameter, kind):
                return False, False
            self._bind(parameter, kind)
            return True, False
        if kind == known:
            return True, True
        if not self._assign(kind, known):
            return False, True
        general = kind if _is_less_specific(kind, known) else known
        if not self._occurs(parameter, general):
            self._bind(parameter, general)
        return True, True

    def _bind(self, parameter: Type, kind: Type) -> None:
        self._trail.append((parameter.name, self._bound.get(parameter.name)))
        self._bound[parameter.name] = kind

    def _occurs(self, parameter: Type, kind: Type) -> bool:
        if kind.name.startswith("~"):
            known = self._bound.get(kind.name)
            return kind == parameter or (known is not None and self._occurs(parameter, known))
        return any(self._occurs(parameter, each) for each in kind.params)


def _is_less_specific(one: Type, other: Type) -> bool:
    """Return True if a type is another one, or that with dynamic parts."""
    if one.name in ("dyn", "any") or one.name.startswith("~"):
        return True
    if other.name in ("dyn", "any") or other.name.startswith("~") or one.name != other.name:
        return False
    return len(one.params) == len(other.params) and all(map(_is_less_specific, one.params, other.params))


def _name_path(node: Node | None) -> str:
    """The name that a chain of fields spells, such as `net.IP`; empty if it is something else."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test:
        names.append(node.field)
        node = node.operand
    return ".".join((node.name.removeprefix("."), *reversed(names))) if isinstance(node, Ident) else ""


def _show(kind: Type) -> str:
    """A type as messages write it."""
    name = {"null": "null_type"}.get(kind.name, kind.name)
    if kind.name == "wrapper":
        return f"wrapper({_show(kind.params[0])})"
    return f"{name}({', '.join(map(_show, kind.params))})" if kind.params else name


_TIMES = ("timestamp", "duration")
_DATA_NAMES = frozenset(("self", "oldSelf"))
_TRUE = tree.written(2, 1)


def check_with_times(text: str, scope: Scope) -> tree.Checked | CompileError:
    """Check an expression with typed variables; return its tree, in which times are converted from strings."""
    checked = check(text, scope)
    if isinstance(checked, CompileError):
        return checked
    converter = _TimeConverter(checked)
    return checked._replace(root=converter.convert(checked.root), types=converter.types, places=converter.places)


class _TimeConverter:
    """Rebuilds a tree with conversions around the fields that are times."""

    def __init__(self, checked: tree.Checked) -> None:
        self.types = dict(checked.types)
        self.places = dict(checked.places)
        self.last = max(node.id for node in tree.walk(checked.root)) + 1_000

    def convert(self, node: tree.Node) -> tree.Node:
        made = tree.map_children(node, self.convert)
        is_data = isinstance(node, tree.Ident) and node.name in _DATA_NAMES
        is_field = isinstance(node, tree.Select) and not node.test
        if is_data or is_field or (isinstance(node, tree.Call) and node.name == "_?._"):
            return self._to_times(made, self.types.get(node.id, "dyn"))
        return made

    def _to_times(self, node: tree.Node, kind: str) -> tree.Node:
        if kind in _TIMES:
            return tree.Call(self._new(node, kind), None, kind, (node,))
        if not any(name in kind for name in _TIMES):
            return node
        name, _, inner = kind.partition("<")
        if name == "list":
            item = tree.Ident(self._new(node, "dyn"), "@item")
            result = tree.Ident(self._new(node, "dyn"), "@result")
            added = tree.Sequence(self._new(node, kind), (self._to_times(item, inner[:-1]),))
            step = tree.Call(self._new(node, kind), None, "_+_", (result, added))
            start, always = tree.Sequence(self._new(node, kind), ()), tree.Const(self._new(node, "bool"), _TRUE)
            return tree.Fold(self._new(node, kind), "@item", node, "@result", start, always, step, result)
        if name == "optional_type":
            value = self._to_times(tree.Call(self._new(node, "dyn"), node, "value", ()), inner[:-1])
            wrapped = tree.Call(self._new(node, kind), None, "optional.of", (value,))
            has_value = tree.Call(self._new(node, "bool"), node, "hasValue", ())
            nothing = tree.Call(self._new(node, kind), None, "optional.none", ())
            return tree.Call(self._new(node, kind), None, "_?_:_", (has_value, wrapped, nothing))
        return node

    def _new(self, like: tree.Node, kind: str) -> int:
        """An unused id, with the position of a node."""
        self.last += 1
        self.types[self.last] = kind
        self.places[self.last] = self.places.get(like.id, 0)
        return self.last
