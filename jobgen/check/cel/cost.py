"""Estimate what evaluating an expression on some data costs, before it is evaluated.

The API server counts the cost while it evaluates, and stops. The engine counts only the steps of loops, so an
expression is not evaluated if its estimate is beyond the budget of the API server. An estimate is for all evaluations
of a node together: a loop over the items of each of many lists costs as much as one over all their items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from jobgen.check.cel.engine import PREFIX
from jobgen.check.cel.tree import Call, Const, Fold, Ident, Node, Select, Sequence, Struct, children, walk
from jobgen.model.limits import MAX_CEL_COST
from jobgen.model.named_tuple import NamedTuple

_CONVERTING = frozenset(f"{PREFIX}{name}" for name in ("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"))
_NUMBERS = frozenset(("int", "uint", "double", "size", f"{PREFIX}sum"))
_IN_ORDER = f"{PREFIX}@inOrder"


def converts_in_loops(node: Node, *, is_repeated: bool = False) -> bool:
    """Return True if a list that a loop has not just built may be converted in each step of a loop.

    A list of numbers that is built where it is converted costs nothing more: each item took a step of the engine's
    loops, which are limited.
    """
    if isinstance(node, Fold):
        repeats = is_repeated or not _has_one_step(node)
        return any(converts_in_loops(part, is_repeated=repeats) for part in (node.condition, node.step)) or any(
            converts_in_loops(part, is_repeated=is_repeated) for part in (node.range, node.start, node.result)
        )
    if is_repeated and isinstance(node, Call) and node.name in _CONVERTING:
        arguments = node.args[0]
        if not (isinstance(arguments, Sequence) and len(arguments.items) == 1 and _builds_numbers(arguments.items[0])):
            return True
    return any(converts_in_loops(child, is_repeated=is_repeated) for child in children(node))


def find_gathered(fold: Fold) -> Node | None:
    """The item that each step of `map` or `filter` adds to a list; None for other loops."""
    for part in (fold.step, *children(fold.step)):
        if isinstance(part, Call) and part.name == "_+_" and len(part.args) == 2:
            result, added = part.args
            if isinstance(result, Ident) and result.name == fold.result_name and isinstance(added, Sequence):
                return added.items[0] if added.items else None
    return None


def _has_one_step(fold: Fold) -> bool:
    """Return True if a loop is over a literal with one item, as a variable of a policy is."""
    range_ = fold.range
    if isinstance(range_, Call) and range_.name == _IN_ORDER and isinstance(range_.args[0], Sequence):
        range_ = range_.args[0].items[0]
    return isinstance(range_, Sequence) and len(range_.items) <= 1


def _builds_numbers(node: Node) -> bool:
    gathered = find_gathered(node) if isinstance(node, Fold) else None
    return gathered is not None and _is_number(gathered)


def _is_number(node: Node) -> bool:
    if isinstance(node, Call) and node.name == "_?_:_":
        return all(map(_is_number, node.args[1:]))
    return isinstance(node, Const) or (isinstance(node, Call) and node.name in _NUMBERS)


_CHARACTERS_PER_ITEM = 8
_CHARACTERS_PER_COST = 10
_CHARACTERS_PER_NUMBER = 20
# A list that is built item by item is copied for each of them.
_COPIED_ITEMS = 10
_MOST_WALKED = 300_000
# Functions of ours that return their last argument, or its keys.
_TRANSPARENT = frozenset((f"{PREFIX}@inOrder", f"{PREFIX}@withType"))
_PARTS = frozenset(("_[_]", "_[?_]", "_?._", "orValue", "dyn"))
_GROWING = frozenset(("_+_", "format", "join", "replace"))


class _Value(NamedTuple):
    """What a node evaluates to: the values, if they are part of the data, and their size as text."""

    values: list[Any] | None
    size: float
    times: float
    """How often it was evaluated."""


class TooExpensiveError(Exception):
    """The estimate is beyond the budget."""


def measure_all(data: Mapping[str, Any]) -> dict[int, int]:
    """The sizes of all mappings and lists in data, by identity; valid as long as the data exists."""
    sizes: dict[int, int] = {}

    def measure(value: Any) -> int:
        if isinstance(value, dict):
            size = 2 + sum(len(str(key)) + 6 + measure(item) for key, item in value.items())
        elif isinstance(value, list):
            size = 2 + sum(map(measure, value))
        else:
            return _measure_scalar(value)
        sizes[id(value)] = size
        return size

    for value in data.values():
        measure(value)
    return sizes


def is_too_expensive(root: Node, data: Mapping[str, Any], sizes: Mapping[int, int]) -> bool:
    """Return True if evaluating an expression on data of these sizes may cost more than the API server allows."""
    estimate = _Estimate(sizes)
    try:
        known = {name: _Value([value], estimate.measure([value]), 1) for name, value in data.items()}
        # The engine copies what it returns.
        estimate.spend(estimate.evaluate(root, known, 1).size)
    except TooExpensiveError:
        return True
    return False


# The size of the data of an estimate that knows none: a loop over it has about one step.
_UNKNOWN_SIZE = 1


def estimate_unknown(root: Node, names: Iterable[str]) -> float:
    """What evaluating an expression costs on any data: that of its loops over constants."""
    estimate = _Estimate({})
    with suppress(TooExpensiveError):
        estimate.evaluate(root, {name: _Value(None, _UNKNOWN_SIZE, 1) for name in names}, 1)
    return min(estimate.cost, MAX_CEL_COST)


def count_crossed_nodes(root: Node, variables: frozenset[str] = frozenset(), *, is_inner: bool = False) -> int:
    """Count the nodes in loops inside of loops, if these are not over parts of the items of the outer ones.

    All items of such parts together are no more than the data has; other loops multiply.
    """
    if isinstance(root, Fold) and not _has_one_step(root):
        if is_inner and not _is_part(root.range, variables):
            return sum(1 for _ in walk(root))
        variables, is_inner = variables | {root.variable, root.second_variable}, True
    return sum(count_crossed_nodes(child, variables, is_inner=is_inner) for child in children(root))


def _is_part(node: Node, variables: frozenset[str]) -> bool:
    """Return True if a value is a part of the item of a loop, or is looked up by it."""
    match node:
        case Ident():
            return node.name in variables
        case Select():
            return _is_part(node.operand, variables)
        case Call() if node.name == "_+_":
            return all(_is_part(child, variables) for child in children(node))
        case Call() if node.name in _PARTS or node.name in _TRANSPARENT:
            return any(_is_part(child, variables) for child in children(node))
        case Sequence():
            return len(node.items) <= 2 and any(_is_part(child, variables) for child in node.items)
        case Fold():
            return _is_part(node.range, variables)
        case _:
            return False


class _Estimate:
    """Adds up the cost of one evaluation."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self.cost = 0.0
        self._sizes = sizes
        self._walked = 0

    def measure(self, value: Any) -> int:
        """The size of a value as text. What is part of the data has been measured."""
        if not isinstance(value, (dict, list)):
            return _measure_scalar(value)
        known = self._sizes.get(id(value))
        if known is not None:
            return known
        self._walk(len(value))
        items = value.values() if isinstance(value, dict) else value
        return 2 + sum(map(self.measure, items))

    def evaluate(self, node: Node, known: Mapping[str, _Value], times: float) -> _Value:
        """The value of a node that is evaluated so many times."""
        self.spend(times)
        match node:
            case Const():
                return _Value(None, len(node.raw) * times, times)
            case Ident():
                found = known.get(node.name)
                return _repeat(found, times) if found else _Value(None, times, times)
            case Select():
                operand = self.evaluate(node.operand, known, times)
                return self._select(operand, node.field) if operand.values is not None else operand
            case Fold():
                return self._fold(node, known, times)
            case Call():
                return self._call(node, known, times)
            case Sequence():
                return self._sequence(node, known, times)
            case Struct():
                return self._struct(node, known, times)

    def _struct(self, node: Struct, known: Mapping[str, _Value], times: float) -> _Value:
        """A mapping literal: one for each value that an entry has in a loop. What is computed is left out."""
        size = len(node.entries) * _CHARACTERS_PER_ITEM * times
        parts: dict[str, list[Any]] = {}
        for entry in node.entries:
            size += self.evaluate(entry.key, known, times).size if entry.key is not None else 0
            value = self.evaluate(entry.value, known, times)
            size += value.size
            name = entry.key.text if isinstance(entry.key, Const) else None
            if name is None or (value.values is None and value.size > _CHARACTERS_PER_NUMBER * times):
                return _Value(None, size, times)
            parts[name] = value.values or []
        count = max(map(len, parts.values()), default=0)
        made: list[Any] = [
            {name: values[index] for name, values in parts.items() if index < len(values)} for index in range(count)
        ]
        return _Value(made, size, times)

    def _sequence(self, node: Sequence, known: Mapping[str, _Value], times: float) -> _Value:
        parts = [self.evaluate(item, known, times) for item in node.items]
        if all(isinstance(item, Const) for item in node.items):
            items: list[Any] = [None] * len(parts)
        elif any(part.values is None for part in parts):
            size = sum(part.size for part in parts) + len(parts) * _CHARACTERS_PER_ITEM * times
            return _Value(None, size, times)
        else:
            items = [value for part in parts for value in part.values or ()]
            self._walk(len(items))
        return _Value([items], max(self.measure([items]) * times, sum(part.size for part in parts)), times)

    def _call(self, call: Call, known: Mapping[str, _Value], times: float) -> _Value:
        if call.name in _TRANSPARENT and isinstance(call.args[0], Sequence):
            return self.evaluate(call.args[0].items[-1], known, times)
        arguments = [self.evaluate(child, known, times) for child in children(call)]
        sizes = [argument.size for argument in arguments]
        if call.name in ("_[_]", "_[?_]") and arguments[0].values is not None:
            # Over all evaluations, the key selects each item about once.
            items = [item for value in arguments[0].values for item in _items(value)]
            return _Value(items, arguments[0].size, times)
        if call.name == "dyn":
            return arguments[0]
        if call.name == "_?._" and arguments[0].values is not None:
            field = call.args[1].text if isinstance(call.args[1], Const) else None
            return self._select(arguments[0], field or "")
        if call.name == "orValue" and arguments[0].values is not None and _is_small(call.args[0]):
            return arguments[0] if arguments[1].values is None else _join(arguments, times)
        if call.name in ("_?_:_", "_+_") and all(argument.values is not None for argument in arguments[-2:]):
            return _join(arguments[-2:], times)
        if call.name in ("_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "optional.of", "hasValue"):
            return max(arguments[1:] or arguments, key=lambda argument: argument.size)
        size = sum(sizes)
        if call.name == "replace" and len(sizes) > 1:
            size = sizes[0] * max(sizes[min(2, len(sizes) - 1)] / max(times, 1), 1)
        elif call.name == "join" and len(sizes) > 1:
            size = sizes[0] * (1 + sizes[1] / max(times, 1) / _CHARACTERS_PER_ITEM)
        # Operators compare or copy their operands; arguments of our functions are converted, which takes longer.
        self.spend(size if call.name.startswith(PREFIX) else size / _CHARACTERS_PER_COST)
        return _Value(None, size if call.name in _GROWING else min(size, max(sizes, default=1)), times)

    def _fold(self, fold: Fold, known: Mapping[str, _Value], times: float) -> _Value:
        range_ = self.evaluate(fold.range, known, times)
        if range_.values is None:
            items, count, size = None, range_.size / _CHARACTERS_PER_ITEM + 1, range_.size
        else:
            items = [item for value in range_.values for item in _entries(value)]
            # A loop over a mapping sees its keys, not its values.
            repeated = max(range_.size / max(self.measure(range_.values), 1), 1)
            count, size = len(items) * repeated, self.measure(items) * repeated
        variable = _Value(items, size, max(count, 1))
        gathers = find_gathered(fold)
        inner = {
            **known,
            fold.variable: variable,
            fold.second_variable: variable,
            fold.result_name: _Value(None, 0, max(count, 1)),
        }
        self.evaluate(fold.start, known, times)
        self.evaluate(fold.condition, inner, count)
        if gathers is None:
            step = self.evaluate(fold.step, inner, count)
            return self.evaluate(fold.result, {**known, fold.result_name: _Value(None, step.size, times)}, times)
        self.spend(count * count / max(times, 1) / _COPIED_ITEMS)
        if isinstance(fold.step, Call) and fold.step.name == "_?_:_":
            self.evaluate(fold.step.args[0], inner, count)
        gathered = self.evaluate(gathers, inner, count)
        values = None if gathered.values is None else [gathered.values]
        return _Value(values, max(gathered.size, count), times)

    def _select(self, operand: _Value, field: str) -> _Value:
        values = operand.values or []
        found = [value[field] for value in values if isinstance(value, dict) and field in value]
        share = self.measure(found) / max(self.measure(values), 1)
        return _Value(found, operand.size * share, operand.times)

    def _walk(self, count: int) -> None:
        """Count what the estimate itself goes through: lists of lists with the same items hold these many times."""
        self._walked += count
        if self._walked > _MOST_WALKED:
            raise TooExpensiveError

    def spend(self, cost: float) -> None:
        """Add a cost; raise TooExpensiveError if there is too much."""
        self.cost += cost
        if self.cost > MAX_CEL_COST:
            raise TooExpensiveError


def _measure_scalar(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes)) else len(repr(value))


def _join(arguments: list[_Value], times: float) -> _Value:
    """One of two values, or both together."""
    values = [value for argument in arguments for value in argument.values or ()]
    return _Value(values, sum(argument.size for argument in arguments), times)


def _repeat(value: _Value, times: float) -> _Value:
    """A value that is read more often than it was computed."""
    return _Value(value.values, value.size * max(times / max(value.times, 1), 1), times)


def _is_small(node: Node) -> bool:
    """Return True if a default is a literal without parts, which adds nothing to what it stands for."""
    if isinstance(node, Call) and node.name == "dyn":
        return _is_small(node.args[0])
    return isinstance(node, (Const, Sequence, Struct)) and next(children(node), None) is None


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _entries(value: Any) -> list[Any]:
    """What a loop over a value sees: the keys of a mapping, the items of a list."""
    return list(value) if isinstance(value, (dict, list)) else []


_DATA = 100
_MOST = 100_000_000
_MOST_REPEATED = 1000


def repeats_data(root: Node) -> bool:
    """Return True if a value can hold the data a thousand times, as lists of lists with the same items do."""
    return _size(root, {}) > _MOST_REPEATED * _DATA


def grows_too_much(root: Node) -> bool:
    """Return True if values can become a million times as large as the data."""
    return _size(root, {}) > _MOST


def _size(node: Node, known: dict[str, int]) -> int:
    """The size of a value, if all data has the same."""
    match node:
        case Const():
            return len(node.raw)
        case Ident():
            return known.get(node.name, _DATA)
        case Select():
            return _size(node.operand, known)
        case Fold():
            # The items of a range are together as large as the range, so one step represents all.
            size = _size(node.range, known)
            inner = {**known, node.variable: size, node.second_variable: size, node.result_name: 0}
            gathered = _size(node.start, known) + _size(node.step, inner)
            return _size(node.result, {**known, node.result_name: gathered})
        case Call():
            return _called(node, known)
        case Sequence() | Struct():
            return min(sum(_size(child, known) for child in children(node)), 2 * _MOST)


def _called(call: Call, known: dict[str, int]) -> int:
    sizes = [_size(child, known) for child in children(call)]
    if call.name in ("replace", "join") and len(sizes) > 1:
        size = sizes[0] * max(sizes[-1], sizes[min(2, len(sizes) - 1)], 1)
    else:
        size = sum(sizes) if call.name in ("_+_", "format") else max(sizes, default=1)
    return min(size, 2 * _MOST)
