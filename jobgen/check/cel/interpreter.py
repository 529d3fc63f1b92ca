"""Evaluates an expression step by step, and counts its cost as the API server does.

The engine is faster and is used first. It cannot handle loops of more than 10,000 steps or optionals as values, and
does not count costs. Functions and operators are those of the engine, called with one set of arguments at a time.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from jobgen.check.cel import engine
from jobgen.check.cel.engine import PREFIX
from jobgen.check.cel.lists import same
from jobgen.check.cel.rewrite import TABLE
from jobgen.check.cel.tree import Call, Checked, Const, Fold, Ident, Node, Select, Sequence, Struct, fields, write
from jobgen.check.cel.values import NO_OVERLOAD, THAN_ALLOWED, Failed, tag_of
from jobgen.model.budget import Work, charge
from jobgen.model.named_tuple import NamedTuple

LIST, MAP, MESSAGE = 10, 30, 40
"""What the creation of a value costs."""
_TRAVERSAL, _PATTERN = 0.1, 0.25
_ONCE = frozenset(
    """startsWith endsWith bytes string strings.quote format url lowerAscii upperAscii substring trim cidr isIP isCIDR
    ip quantity isQuantity semver isSemver jsonpatch.escapeKey reverse""".split()
)
_TWICE = frozenset(("replace", "split", "ip.isCanonical"))
_LISTS = frozenset("isSorted sum max min indexOf lastIndexOf includes".split())
_COMPARISONS = frozenset(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"))
_FIXED = {"_&&_": 0, "_||_": 0, "_?_:_": 0, "check": 350_000}
"""What each call of a function costs, whatever its arguments are; a check of a permission asks others."""
_SELECTORS = frozenset(("fieldSelector", "labelSelector"))
_READERS = _SELECTORS | {"matches", "find", "findAll", "contains"}
_REQUIREMENT = LIST + MESSAGE
_CHARACTERS_PER_REQUIREMENT = 2
_LONGEST_PATTERN = 200
"""About the length of the patterns of named formats."""


def count_call(name: str, args: list[Any] | tuple[Any, ...], result: Any) -> int:
    """The cost of a call, given its arguments and its result."""
    if name in _FIXED:
        return _FIXED[name]
    sizes = [measure(arg) for arg in args]
    if name in _COMPARISONS and len(sizes) == 2:
        return 1 if tag_of(args[0]) else _traverse(min(sizes))
    if name == "_+_" and len(sizes) == 2 and isinstance(args[0], (str, bytes)):
        return _traverse(sum(sizes))
    if name == "@in" and isinstance(args[-1], list):
        return sizes[-1]
    if name in _READERS and len(sizes) >= 2:
        return _count_reading(name, sizes)
    if name == "validate":
        return _traverse(1 + sizes[-1]) * math.ceil(_LONGEST_PATTERN * _PATTERN)
    if name == "join":
        return _traverse(2 * measure(result))
    if name in _LISTS and sizes:
        return sum(map(_traverse_item, args[0])) if isinstance(args[0], list) else _traverse(sizes[0])
    if sizes and name in _ONCE and isinstance(args[0], (str, bytes)):
        return _traverse(sizes[0])
    return _traverse(2 * sizes[0]) if sizes and name in _TWICE else 1


def _count_reading(name: str, sizes: list[int]) -> int:
    if name in _SELECTORS:
        return LIST + _traverse(sizes[1]) + math.ceil(sizes[1] / _CHARACTERS_PER_REQUIREMENT) * _REQUIREMENT
    if name == "contains":
        return _traverse(sizes[0]) * _traverse(sizes[1])
    return _traverse(1 + sizes[0]) * math.ceil(sizes[1] * _PATTERN)


def measure(value: Any) -> int:
    """The size of a value: its length, or 1."""
    return len(value) if isinstance(value, (str, list, dict)) or (type(value) is bytes and not tag_of(value)) else 1


def _traverse(size: int) -> int:
    return math.ceil(size * _TRAVERSAL)


def _traverse_item(item: Any) -> int:
    return _traverse(len(item)) if isinstance(item, (str, bytes)) else 1


_Scope = Mapping[str, Any]
_STRINGS, _BYTES = 6, 7
_MAX_TEXT = 100_000_000
_MAX_ITEMS = 1_000_000
_FREE_ITEMS, _ITEMS_PER_STEP = 10_000, 10
_GROWING = frozenset(("_+_", "replace", "join"))
_TYPES = {bool: "bool", int: "int", float: "double", str: "string", bytes: "bytes", list: "list", dict: "map"}
_TYPE_NAMES = frozenset("bool int uint double string bytes list map null_type type optional_type".split())


class Optional(NamedTuple):
    """An optional of CEL: at most one value."""

    values: tuple[Any, ...] = ()


class TypeName(NamedTuple):
    """A type as a value."""

    name: str


class _EvaluationError(Exception):
    """An expression has no value; `&&`, `||` and `?:` may still have one."""


class _CostExceededError(Exception):
    """The evaluation costs more than the API server allows."""


def interpret(root: Node, bindings: Mapping[str, Any], limit: int) -> Any:
    """The value of an expression, or why it has none; it fails if it costs more than the limit."""
    limit = min(limit, max(engine.WORK.last - engine.WORK.steps, 0))
    evaluation = _Evaluation(limit)
    try:
        value = evaluation.evaluate(root, bindings)
    except _CostExceededError:
        return Failed(f"it costs more {THAN_ALLOWED}: {limit}")
    except _EvaluationError as error:
        return Failed(str(error))
    except RecursionError:
        return Failed("it is nested too deeply")
    finally:
        engine.WORK.steps += limit - evaluation.rest
    # A result as plain data: an optional is the mapping of its value, as the policies read it.
    if isinstance(value, Optional):
        return {"value": value.values[0]} if value.values else {}
    return value.name if isinstance(value, TypeName) else value


class _Evaluation:
    """One evaluation and its cost so far."""

    def __init__(self, limit: int) -> None:
        self.rest = limit
        self._constants: dict[int, list[Any]] = {}
        self._sizes: dict[int, tuple[Any, int]] = {}
        """The number of values in collections, by identity, with the collections, so that these stay alive."""

    def spend(self, cost: int) -> None:
        self.rest -= cost
        if self.rest < 0:
            raise _CostExceededError

    def count(self, value: Any) -> int:
        """Count the values in a value: as often as they occur, even if they are one and the same object."""
        if isinstance(value, Optional):
            return 1 + sum(map(self.count, value.values))
        if not isinstance(value, (list, dict)):
            return 1
        known = self._sizes.get(id(value))
        if known is None:
            size = 1 + sum(map(self.count, value.values() if isinstance(value, dict) else value))
            known = self._sizes[id(value)] = value, size
        if known[1] > _MAX_ITEMS:
            raise _CostExceededError
        return known[1]

    def evaluate(self, node: Node, scope: _Scope) -> Any:
        match node:
            case Const():
                return _read_constant(node.raw)
            case Ident():
                self.spend(1)
                if node.name in scope:
                    return scope[node.name]
                if node.name in _TYPE_NAMES:
                    return TypeName(node.name)
                raise _EvaluationError(f"no such attribute: {node.name}")
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case Sequence():
                return self._sequence(node, scope)
            case Struct():
                return self._struct(node, scope)
            case Fold():
                return self._fold(node, scope)

    def _select(self, node: Select, scope: _Scope) -> Any:
        value = self.evaluate(node.operand, scope)
        self.spend(0 if node.test else 1)
        if isinstance(value, Optional):
            found = _look_up(value, node.field)
            return bool(found.values) if node.test else found
        if node.test and not isinstance(value, list):
            # A null or a text has no fields.
            return isinstance(value, dict) and node.field in value
        if not isinstance(value, dict):
            raise _EvaluationError(f"{NO_OVERLOAD}: a field of what is not a mapping")
        if node.field not in value:
            raise _EvaluationError(f"no such key: `{node.field}`")
        return value[node.field]

    def _sequence(self, node: Sequence, scope: _Scope) -> list[Any]:
        if node.id in self._constants:
            return self._constants[node.id]
        constants = [item for item in node.items if isinstance(item, Const)]
        if len(constants) == len(node.items):
            # It costs nothing, so it must take no time in loops, either.
            return self._constants.setdefault(node.id, [_read_constant(item.raw) for item in constants])
        self.spend(LIST)
        made: list[Any] = []
        for index, item in enumerate(node.items):
            value = self.evaluate(item, scope)
            made += value.values if index in node.optional and isinstance(value, Optional) else (value,)
        self.count(made)
        return made

    def _struct(self, node: Struct, scope: _Scope) -> Any:
        if node.name:
            raise _EvaluationError("messages cannot be evaluated offline")
        self.spend(MAP)
        made: dict[Any, Any] = {}
        for entry in node.entries:
            assert entry.key is not None, "an entry of a mapping has a key"
            key, value = self.evaluate(entry.key, scope), self.evaluate(entry.value, scope)
            if not entry.optional:
                made[key] = value
            elif isinstance(value, Optional) and value.values:
                made[key] = value.values[0]
        self.count(made)
        return made

    def _fold(self, fold: Fold, scope: _Scope) -> Any:
        inner = dict(scope)
        range_ = self.evaluate(fold.range, scope)
        inner[fold.result_name] = self.evaluate(fold.start, scope)
        for first, second in _list_steps(range_, has_two=bool(fold.second_variable)):
            inner[fold.variable] = first
            if fold.second_variable:
                inner[fold.second_variable] = second
            if self._attempt(fold.condition, inner) is False:
                break
            # A step that fails may be overruled by a later one, as in `all` and `exists`.
            is_logical = isinstance(fold.step, Call) and fold.step.name in ("_&&_", "_||_")
            attempt = self._attempt if is_logical else self.evaluate
            inner[fold.result_name] = attempt(fold.step, inner)
        result = self._check(inner[fold.result_name])
        return self.evaluate(fold.result, {**scope, fold.result_name: result})

    def _attempt(self, node: Node, scope: _Scope) -> Any:
        try:
            return self.evaluate(node, scope)
        except _EvaluationError as error:
            return error

    def _call(self, call: Call, scope: _Scope) -> Any:
        special = _SPECIAL.get(call.name)
        if special is not None:
            return special(self, call, scope)
        nodes = call.args if call.target is None else (call.target, *call.args)
        args = [self._check(self.evaluate(node, scope)) for node in nodes]
        known = _OPTIONALS.get(call.name)
        if known is not None and (call.name.startswith("optional") or isinstance(args[0], Optional)):
            self.spend(1)
            return known(*args)
        name, given = (call.name.removeprefix(PREFIX), args[0]) if call.name.startswith(PREFIX) else (call.name, args)
        if name != "join":
            # Before the call: what is too expensive may take too much memory.
            self.spend(count_call(name, given, None))
            if name not in _WALK_NOTHING:
                self._charge(args)
            return _apply(call, args)
        result = _apply(call, args)
        self.spend(count_call(name, given, result))
        return result

    def _charge(self, args: list[Any]) -> None:
        """Charge what a call goes through, which may be far more than the API server counts for it."""
        size = sum(self.count(arg) for arg in args if isinstance(arg, (list, dict, Optional)))
        if size > _FREE_ITEMS:
            charge(Work.POLICIES, size // _ITEMS_PER_STEP)

    @staticmethod
    def _check(value: Any) -> Any:
        if isinstance(value, _EvaluationError):
            raise value
        return value


def _logical(decides: bool) -> Callable[[_Evaluation, Call, _Scope], Any]:
    def evaluate(self: _Evaluation, call: Call, scope: _Scope) -> Any:
        failure: Any = None
        for node in call.args:
            value = self._attempt(node, scope)
            if value is decides:
                return decides
            if type(value) is not bool:
                failure = failure or (value if isinstance(value, _EvaluationError) else _EvaluationError(NO_OVERLOAD))
        if failure is not None:
            raise failure
        return not decides

    return evaluate


def _choose(self: _Evaluation, call: Call, scope: _Scope) -> Any:
    condition = self._check(self.evaluate(call.args[0], scope))
    if type(condition) is not bool:
        raise _EvaluationError(NO_OVERLOAD)
    return self.evaluate(call.args[1 if condition else 2], scope)


def _is_not_false(self: _Evaluation, call: Call, scope: _Scope) -> bool:
    value = self._attempt(call.args[0], scope)
    self.spend(1)
    return value is not False


def _or_value(self: _Evaluation, call: Call, scope: _Scope) -> Any:
    """`x.orValue(y)` and `x.or(y)`, which read `y` only if `x` has no value."""
    assert call.target is not None, "it is a method"
    value = self._check(self.evaluate(call.target, scope))
    if not isinstance(value, Optional):
        raise _EvaluationError(NO_OVERLOAD)
    if value.values:
        return value if call.name == "or" else value.values[0]
    return self.evaluate(call.args[0], scope)


_SPECIAL: Mapping[str, Callable[[_Evaluation, Call, _Scope], Any]] = {
    "_&&_": _logical(False),
    "_||_": _logical(True),
    "_?_:_": _choose,
    "@not_strictly_false": _is_not_false,
    "orValue": _or_value,
    "or": _or_value,
}


def _look_up(value: Any, key: Any) -> Optional:
    if isinstance(value, Optional):
        return _look_up(value.values[0], key) if value.values else value
    if isinstance(value, dict):
        return Optional(tuple(_find_entry(value, key)))
    if not isinstance(value, list):
        return Optional()
    if type(key) is int:
        return Optional((value[key],)) if 0 <= key < len(value) else Optional()
    raise _EvaluationError(f"{NO_OVERLOAD}: `_[?_]`")


def _find_entry(value: dict[Any, Any], key: Any) -> list[Any]:
    """The value of a key; a boolean is not the key 1, and nothing but scalars is a key."""
    is_key = isinstance(key, (str, int, float, bytes))
    return [value[key]] if is_key and key in value and any(same(key, each) for each in value) else []


def _contains(item: Any, holder: Any) -> bool:
    if isinstance(holder, dict):
        return bool(_find_entry(holder, item))
    if isinstance(holder, list):
        return any(same(item, each) for each in holder)
    raise _EvaluationError(f"{NO_OVERLOAD}: `@in`")


def _get_value(value: Optional) -> Any:
    if not value.values:
        raise _EvaluationError("optional.none() dereference")
    return value.values[0]


_OPTIONALS: Mapping[str, Callable[..., Any]] = {
    "optional.of": lambda value: Optional((value,)),
    "optional.none": Optional,
    "optional.ofNonZeroValue": lambda value: Optional((value,)) if value else Optional(),
    "hasValue": lambda value: bool(value.values),
    "value": _get_value,
    "_[_]": _look_up,
}


def _apply(call: Call, args: list[Any]) -> Any:
    name = call.name
    if name in _DIRECT:
        return _DIRECT[name](*args)
    if name.startswith(PREFIX):
        try:
            return TABLE[name.removeprefix(PREFIX)](*args[0])
        except (TypeError, ValueError, OverflowError) as error:
            raise _EvaluationError(str(error)) from error
    if name in ("_==_", "_!=_") and any(map(_is_special, args)):
        return (args[0] == args[1]) is (name == "_==_")
    if name == "_[_]" and _has_item(*args):
        return args[0][args[1]]
    if name in _GROWING and _estimate_size(name, args) > (_MAX_ITEMS if isinstance(args[0], list) else _MAX_TEXT):
        raise _CostExceededError
    # For these types, the operator of Python does the same as that of CEL.
    kinds = (list,) if name == "_+_" else (str, int, bool)
    if name in _OPERATORS and type(args[0]) is type(args[1]) and type(args[0]) in kinds:
        return _OPERATORS[name](*args)
    converted = [_to_argument(arg) for arg in args]
    compiled = _compile_call(name, call.target is not None, tuple(conversion for conversion, _ in converted))
    result = engine.run(compiled, engine.asked_of({f"a{index}": arg for index, (_, arg) in enumerate(converted)}))
    if isinstance(result, Failed):
        raise _EvaluationError(result.message)
    return result


def _estimate_size(name: str, args: list[Any]) -> int:
    if name == "_+_":
        return sum(map(measure, args))
    if not all(isinstance(arg, str) for arg in args[: 3 if name == "replace" else 0]):
        return 0
    if name == "replace":
        return len(args[0]) + int(args[0].count(args[1])) * (len(args[2]) - len(args[1]))
    separator = len(args[1]) if len(args) > 1 and isinstance(args[1], str) else 0
    items: list[Any] = args[0] if isinstance(args[0], list) else []
    return sum(len(item) + separator for item in items if isinstance(item, str))


def _has_item(value: Any, key: Any) -> bool:
    """Return True if a mapping or a list has what is looked up; other keys fail in the engine."""
    if isinstance(value, list):
        return type(key) is int and 0 <= key < len(value)
    return isinstance(value, dict) and type(key) is str and key in value


def _measure(value: Any) -> int:
    if isinstance(value, (str, list, dict, bytes)):
        return len(value)
    raise _EvaluationError(f"{NO_OVERLOAD}: `size`")


def _to_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _EvaluationError(NO_OVERLOAD)
    return value


def _unwrap(items: Any) -> list[Any]:
    return [value for item in items for value in item.values]


_DIRECT: Mapping[str, Callable[..., Any]] = {
    "@in": _contains,
    "first": lambda items: Optional(tuple(_to_list(items)[:1])),
    "last": lambda items: Optional(tuple(_to_list(items)[-1:])),
    "_?._": _look_up,
    "_[?_]": _look_up,
    "type": lambda value: TypeName(_name_type(value)),
    "dyn": lambda value: value,
    "optional.unwrap": _unwrap,
    "unwrapOpt": _unwrap,
    "size": _measure,
}


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "_==_": operator.eq,
    "_!=_": operator.ne,
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
    "_+_": operator.add,
}


def _is_special(value: Any) -> bool:
    """Return True if the engine does not take a value."""
    if isinstance(value, list):
        return any(map(_is_special, value))
    return isinstance(value, (Optional, TypeName)) or (
        isinstance(value, dict) and any(map(_is_special, value.values()))
    )


_WALK_NOTHING = frozenset(("_[_]", "_+_", *_DIRECT)) - {"@in"}
"""Calls that look at no more than the collections themselves."""


def _name_type(value: Any) -> str:
    if isinstance(value, Optional):
        return "optional_type"
    if isinstance(value, TypeName):
        return "type"
    if isinstance(value, datetime):
        return "google.protobuf.Timestamp"
    return "google.protobuf.Duration" if isinstance(value, timedelta) else _TYPES.get(type(value), "null_type")


def _list_steps(value: Any, *, has_two: bool) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from list(value.items())
    elif isinstance(value, list):
        yield from enumerate(value) if has_two else ((item, None) for item in value)
    else:
        raise _EvaluationError(f"{NO_OVERLOAD}: `<iter_range>`")


def _to_argument(value: Any) -> tuple[str, Any]:
    """What converts an argument in the engine, which takes times and durations as text; and the argument."""
    if isinstance(value, datetime):
        return "timestamp", value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return "duration", f"{value / timedelta(microseconds=1) / 1e6:.6f}s"
    return "", value


@lru_cache(maxsize=512)
def _compile_call(name: str, is_method: bool, conversions: tuple[str, ...]) -> engine.Native:
    """A program that calls one function with its arguments as variables."""
    nodes: list[Node] = []
    for index, conversion in enumerate(conversions):
        node: Node = Ident(2 * index + 10, f"a{index}")
        nodes.append(Call(2 * index + 11, None, conversion, (node,)) if conversion else node)
    call = Call(1, nodes[0], name, tuple(nodes[1:])) if is_method else Call(1, None, name, tuple(nodes))
    return engine.program(write(Checked(call, {}, {})), TABLE)


@lru_cache(maxsize=4096)
def _read_constant(raw: bytes) -> Any:
    kind, value = next(fields(raw), (1, 0))
    if kind == _STRINGS and isinstance(value, bytes):
        return value.decode()
    if kind == _BYTES and isinstance(value, bytes):
        return value
    program = engine.program(write(Checked(Const(1, raw), {}, {})), TABLE)
    return engine.run(program, engine.asked_of({}))
