"""Evaluates a checked expression, and counts its cost as the API server does.

A tree becomes functions, one for each node, when it is first evaluated. The library knows neither costs nor optionals
as values, so it is called for single functions only, with one set of arguments at a time.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, NamedTuple

from jobgen.check.cel import engine
from jobgen.check.cel.engine import PREFIX
from jobgen.check.cel.lists import same
from jobgen.check.cel.quantities import TAG as QUANTITY
from jobgen.check.cel.rewrite import TABLE
from jobgen.check.cel.tree import Call, Checked, Const, Fold, Ident, Node, Select, Sequence, Struct, fields, write
from jobgen.check.cel.values import NO_OVERLOAD, THAN_ALLOWED, Failed, tag_of

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


_Scope = dict[str, Any]
_MAX_TEXT = 100_000_000
_MAX_ITEMS = 1_000_000
_MAX_CALLS, _CALL_STEPS = 100_000, 16
"""How often an evaluation calls the library at most, about a second; and the steps that each call counts for."""
_GROWING = frozenset(("_+_", "replace", "join"))
_TYPES = {bool: "bool", int: "int", float: "double", str: "string", bytes: "bytes", list: "list", dict: "map"}
_TYPE_NAMES = frozenset("bool int uint double string bytes list map null_type type optional_type".split()) | {
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
}


# These types are compared by name, because their values are bytes with tags.
_TAGGED = {"ip": "net.IP", "cidr": "net.CIDR"}


class Optional(NamedTuple):
    """An optional of CEL: at most one value."""

    values: tuple[Any, ...] = ()


class TypeName(NamedTuple):
    """A type as a value."""

    name: str


class EvaluationError(Exception):
    """An expression has no value; `&&`, `||` and `?:` may still have one."""


class _CostExceededError(Exception):
    """The evaluation costs more than the API server allows."""


class _Evaluation:
    """What one evaluation may still cost. Calls and steps of loops look at it, and other nodes only count."""

    __slots__ = ("calls", "rest")

    def __init__(self, limit: int) -> None:
        self.rest = limit
        self.calls = 0
        """How often it called the library, which takes longer than the cost says."""

    def spend(self, cost: int) -> None:
        self.rest -= cost
        if self.rest < 0:
            raise _CostExceededError


Evaluate = Callable[[_Evaluation, _Scope], Any]
"""Returns the value of a node for some variables."""


def interpret(evaluate: Evaluate, bindings: Mapping[str, Any], limit: int) -> tuple[Any, int]:
    """The value of an expression, or why it has none, and the steps that it took; it fails beyond a limit of cost."""
    run = _Evaluation(limit)
    try:
        value = _check(evaluate(run, dict(bindings)))
        run.spend(0)
    except _CostExceededError:
        value = Failed(f"it costs more {THAN_ALLOWED}: {limit}")
    except EvaluationError as error:
        value = Failed(str(error))
    except RecursionError:
        value = Failed("it is nested too deeply")
    return value.name if isinstance(value, TypeName) else value, limit - run.rest + _CALL_STEPS * run.calls


def prepare(node: Node) -> Evaluate:
    """The function that evaluates a node."""
    match node:
        case Const():
            constant = _read_constant(node.raw)
            return lambda _run, _scope: constant
        case Ident():
            return _read_variable(node.name)
        case Select():
            return _select(node)
        case Call():
            special = _SPECIAL.get(node.name) or (_operate if node.name in _OPERATORS else _call)
            return special(node)
        case Sequence():
            return _sequence(node)
        case Struct():
            return _struct(node)
        case Fold():
            return _fold(node)


def _read_variable(name: str) -> Evaluate:
    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        run.rest -= 1
        if name in scope:
            return scope[name]
        if name in _TYPE_NAMES:
            return TypeName(name)
        raise EvaluationError(f"no such attribute: {name}")

    return evaluate


def _select(node: Select) -> Evaluate:
    operand, field, is_test = prepare(node.operand), node.field, node.test

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        value = operand(run, scope)
        if not is_test:
            run.rest -= 1
            if isinstance(value, dict) and field in value:
                return value[field]
        if isinstance(value, Optional):
            found = _look_up(value, field)
            return bool(found.values) if is_test else found
        if is_test and not isinstance(value, list):
            # A null or a text has no fields.
            return isinstance(value, dict) and field in value
        if not isinstance(value, dict):
            raise EvaluationError(f"{NO_OVERLOAD}: a field of what is not a mapping")
        raise EvaluationError(f"no such key: `{field}`")

    return evaluate


def _sequence(node: Sequence) -> Evaluate:
    if all(isinstance(item, Const) for item in node.items):
        # It costs nothing.
        constant = [_read_constant(item.raw) for item in node.items if isinstance(item, Const)]
        return lambda _run, _scope: constant
    items = [(prepare(item), index in node.optional) for index, item in enumerate(node.items)]

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        run.spend(LIST)
        made: list[Any] = []
        for item, is_optional in items:
            value = item(run, scope)
            made += value.values if is_optional and isinstance(value, Optional) else (value,)
        return made

    return evaluate


def _struct(node: Struct) -> Evaluate:
    entries = [(prepare(each.key) if each.key else None, prepare(each.value), each.optional) for each in node.entries]

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        if node.name:
            raise EvaluationError("messages cannot be evaluated offline")
        run.spend(MAP)
        made: dict[Any, Any] = {}
        for find_key, find_value, is_optional in entries:
            assert find_key is not None, "an entry of a mapping has a key"
            key, value = find_key(run, scope), find_value(run, scope)
            if not is_optional:
                made[key] = value
            elif isinstance(value, Optional) and value.values:
                made[key] = value.values[0]
        return made

    return evaluate


def _fold(fold: Fold) -> Evaluate:
    parts = (fold.range, fold.start, fold.condition, fold.step, fold.result)
    find_range, start, condition, step, find_result = map(prepare, parts)
    first_name, second_name, result_name = fold.variable, fold.second_variable, fold.result_name
    # A step that fails may be overruled by a later one, as in `all` and `exists`.
    is_logical = isinstance(fold.step, Call) and fold.step.name in ("_&&_", "_||_")

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        inner = dict(scope)
        range_ = find_range(run, scope)
        inner[result_name] = start(run, scope)
        for first, second in _list_steps(range_, has_two=bool(second_name)):
            inner[first_name] = first
            if second_name:
                inner[second_name] = second
            run.spend(0)
            if _attempt(condition, run, inner) is False:
                break
            inner[result_name] = _attempt(step, run, inner) if is_logical else step(run, inner)
        return find_result(run, {**scope, result_name: _check(inner[result_name])})

    return evaluate


def _call(call: Call) -> Evaluate:
    steps = tuple(map(prepare, call.args if call.target is None else (call.target, *call.args)))
    known = _OPTIONALS.get(call.name)
    is_ours = call.name.startswith(PREFIX)
    makes_optional = call.name.startswith("optional")
    name = call.name.removeprefix(PREFIX)

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        args = [_check(step(run, scope)) for step in steps]
        if known is not None and (makes_optional or isinstance(args[0], Optional)):
            run.spend(1)
            return known(*args)
        given = args[0] if is_ours else args
        if name == "join":
            result = _apply(run, call, args)
            run.spend(count_call(name, given, result))
            return result
        # Before the call: what is too expensive may take too much memory.
        run.spend(count_call(name, given, None))
        return _apply(run, call, args)

    return evaluate


def _operate(call: Call) -> Evaluate:
    """An operator or method on scalars, for which Python does the same as CEL; others are calls."""
    kinds, operate = _OPERATORS[call.name]
    steps = [prepare(each) for each in (call.target, *call.args) if each is not None]
    first, second = steps[0], steps[-1]
    is_one, name = len(steps) == 1, call.name

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        one = first(run, scope)
        other = one if is_one else second(run, scope)
        kind = type(one)
        if kind is not type(other) or kind not in kinds:
            args = [_check(one)] if is_one else [_check(one), _check(other)]
            run.spend(count_call(name, args, None))
            return _apply(run, call, args)
        run.spend(count_call(name, (one, other), None) if kind is str else 1)
        return operate(one, other)

    return evaluate


def _attempt(evaluate: Evaluate, run: _Evaluation, scope: _Scope) -> Any:
    try:
        return evaluate(run, scope)
    except EvaluationError as error:
        return error


def _check(value: Any) -> Any:
    if isinstance(value, EvaluationError):
        raise value
    return value


def _logical(decides: bool, call: Call) -> Evaluate:
    steps = tuple(map(prepare, call.args))

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        failure: Any = None
        for step in steps:
            try:
                value = step(run, scope)
            except EvaluationError as error:
                value = error
            if value is decides:
                return decides
            if type(value) is not bool:
                failure = failure or (value if isinstance(value, EvaluationError) else EvaluationError(NO_OVERLOAD))
        if failure is not None:
            raise failure
        return not decides

    return evaluate


def _choose(call: Call) -> Evaluate:
    condition, first, second = map(prepare, call.args)

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        chosen = _check(condition(run, scope))
        if type(chosen) is not bool:
            raise EvaluationError(NO_OVERLOAD)
        return first(run, scope) if chosen else second(run, scope)

    return evaluate


def _is_not_false(call: Call) -> Evaluate:
    argument = prepare(call.args[0])

    def evaluate(run: _Evaluation, scope: _Scope) -> bool:
        run.rest -= 1
        return _attempt(argument, run, scope) is not False

    return evaluate


def _or_value(call: Call) -> Evaluate:
    """`x.orValue(y)` and `x.or(y)`, which read `y` only if `x` has no value."""
    assert call.target is not None, "it is a method"
    target, otherwise = prepare(call.target), prepare(call.args[0])

    def evaluate(run: _Evaluation, scope: _Scope) -> Any:
        value = _check(target(run, scope))
        if not isinstance(value, Optional):
            raise EvaluationError(NO_OVERLOAD)
        if value.values:
            return value if call.name == "or" else value.values[0]
        return otherwise(run, scope)

    return evaluate


_SPECIAL: Mapping[str, Callable[[Call], Evaluate]] = {
    "_&&_": partial(_logical, False),
    "_||_": partial(_logical, True),
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
    raise EvaluationError(f"{NO_OVERLOAD}: `_[?_]`")


def _find_entry(value: dict[Any, Any], key: Any) -> list[Any]:
    """The value of a key; a boolean is not the key 1, and nothing but scalars is a key."""
    is_key = isinstance(key, (str, int, float, bytes))
    return [value[key]] if is_key and key in value and any(same(key, each) for each in value) else []


def _contains(item: Any, holder: Any) -> bool:
    if isinstance(holder, dict):
        return bool(_find_entry(holder, item))
    if isinstance(holder, list):
        return any(same(item, each) for each in holder)
    raise EvaluationError(f"{NO_OVERLOAD}: `@in`")


def _get_value(value: Optional) -> Any:
    if not value.values:
        raise EvaluationError("optional.none() dereference")
    return value.values[0]


_OPTIONALS: Mapping[str, Callable[..., Any]] = {
    "optional.of": lambda value: Optional((value,)),
    "optional.none": Optional,
    "optional.ofNonZeroValue": lambda value: Optional((value,)) if value else Optional(),
    "hasValue": lambda value: bool(value.values),
    "value": _get_value,
    "_[_]": _look_up,
}


def _apply(run: _Evaluation, call: Call, args: list[Any]) -> Any:
    name = call.name
    if name in _DIRECT:
        return _DIRECT[name](*args)
    if name.startswith(PREFIX):
        try:
            return TABLE[name.removeprefix(PREFIX)](*args[0])
        except (TypeError, ValueError, OverflowError) as error:
            raise EvaluationError(str(error)) from error
    if name in ("_==_", "_!=_"):
        is_quantity = all(tag_of(arg) == QUANTITY for arg in args)
        return (TABLE["compareTo"](*args) == 0 if is_quantity else same(*args)) is (name == "_==_")
    if (name == "string" and tag_of(args[0])) or (name == "getMilliseconds" and isinstance(args[0], timedelta)):
        return TABLE[name](*args)
    if name == "_[_]" and _has_item(*args):
        return args[0][args[1]]
    if name in _GROWING and _estimate_size(name, args) > (_MAX_ITEMS if isinstance(args[0], list) else _MAX_TEXT):
        raise _CostExceededError
    if name == "_+_" and isinstance(args[0], list) and isinstance(args[1], list):
        return args[0] + args[1]
    return _call_library(run, call, args)


def _call_library(run: _Evaluation, call: Call, args: list[Any]) -> Any:
    run.calls += 1
    if run.calls > _MAX_CALLS:
        raise _CostExceededError
    converted = [_to_argument(arg) for arg in args]
    compiled = _compile_call(call.name, call.target is not None, tuple(conversion for conversion, _ in converted))
    result = engine.run(compiled, engine.asked_of({f"a{index}": arg for index, (_, arg) in enumerate(converted)}))
    if isinstance(result, Failed):
        raise EvaluationError(result.message)
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
    raise EvaluationError(f"{NO_OVERLOAD}: `size`")


def _to_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise EvaluationError(NO_OVERLOAD)
    return value


def _unwrap(items: Any) -> list[Any]:
    return [value for item in items for value in item.values]


_DIRECT: Mapping[str, Callable[..., Any]] = {
    "@in": _contains,
    "first": lambda items: Optional(tuple(_to_list(items)[:1])),
    "last": lambda items: Optional(tuple(_to_list(items)[-1:])),
    "_?._": _look_up,
    "_[?_]": _look_up,
    "type": lambda value: _TAGGED.get(tag_of(value)) or TypeName(_name_type(value)),
    "dyn": lambda value: value,
    "optional.unwrap": _unwrap,
    "unwrapOpt": _unwrap,
    "size": _measure,
}


_SCALARS = frozenset((str, int, bool))
_STRINGS = frozenset((str,))
_INTEGERS = frozenset((int,))


def _in_range(operate: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """An operator of integers, whose result must have 64 bits."""

    def evaluate(one: int, other: int) -> int:
        result = operate(one, other)
        if -(1 << 63) <= result < 1 << 63:
            return result
        raise EvaluationError("integer overflow")

    return evaluate


_OPERATORS: Mapping[str, tuple[frozenset[type], Callable[[Any, Any], Any]]] = {
    "_==_": (_SCALARS, operator.eq),
    "_!=_": (_SCALARS, operator.ne),
    "_<_": (_SCALARS, operator.lt),
    "_<=_": (_SCALARS, operator.le),
    "_>_": (_SCALARS, operator.gt),
    "_>=_": (_SCALARS, operator.ge),
    "_+_": (_INTEGERS, _in_range(operator.add)),
    "_-_": (_INTEGERS, _in_range(operator.sub)),
    "_*_": (_INTEGERS, _in_range(operator.mul)),
    "!_": (frozenset((bool,)), lambda value, _: not value),
    "startsWith": (_STRINGS, str.startswith),
    "endsWith": (_STRINGS, str.endswith),
    "contains": (_STRINGS, operator.contains),
}


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
        # In order, so that what a loop makes does not depend on how the keys were written.
        yield from sorted(value.items(), key=lambda entry: str(entry[0]))
    elif isinstance(value, list):
        yield from enumerate(value) if has_two else ((item, None) for item in value)
    else:
        raise EvaluationError(f"{NO_OVERLOAD}: `<iter_range>`")


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
    return engine.program(write(Checked(call, {}, {})))


@lru_cache(maxsize=4096)
def _read_constant(raw: bytes) -> Any:
    """The value of a literal: null, a boolean, an integer, an unsigned one, a number, a text or bytes."""
    kind, value = next(fields(raw), (1, 0))
    if isinstance(value, int):
        # A negative number is written as its complement.
        return (None, bool(value), value - (1 << 64) if value >> 63 else value, value)[kind - 1]
    if kind == 5:
        return struct.unpack("<d", value)[0]
    return value.decode() if kind == 6 else value
