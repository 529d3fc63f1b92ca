"""Which parts of an object an expression can read: what is not among them cannot change its value.

An expression is evaluated without data: a value is the set of the places in the object from which it may come. Each
step to a part is a read, a loop reads which parts there are, and a function reads its arguments whole.
"""

from __future__ import annotations

from functools import lru_cache, reduce

from jobgen.check.cel import Expression, compile_cel
from jobgen.check.cel.engine import PREFIX
from jobgen.check.cel.together import NAMES, Shared
from jobgen.check.cel.tree import Call, Const, Fold, Ident, Node, Select, Sequence, Struct, read_root
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple

# Any step, and any step to an item of a list.
_ANY, _ITEM = "*", "[]"
# Their value is one of their arguments, or a part of them that is read later.
_PASSES = frozenset(("dyn", "_?_:_", "_+_", "or", "orValue", "value", "optional.of", "optional.ofNonZeroValue"))
_LOGICAL = frozenset(("_&&_", "_||_", "!_", "@not_strictly_false", "hasValue", "optional.none"))
_MAX_ROUNDS = 8


class Places(NamedTuple):
    """Where a value may come from: places in the object, and the values in a list or mapping that is made of them."""

    places: frozenset[tuple[str, ...]] = frozenset()
    inner: Places | None = None

    def plus(self, other: Places) -> Places:
        """A value that may be one or the other."""
        inner = self.inner.plus(other.inner) if self.inner and other.inner else self.inner or other.inner
        return Places(self.places | other.places, inner)


class Reads:
    """Parts of an object, as a tree of their steps."""

    __slots__ = ("_merged", "is_whole", "steps")

    def __init__(self) -> None:
        self.steps: dict[str, Reads] = {}
        self.is_whole = False
        self._merged: dict[str, Reads] = {}

    def add(self, place: tuple[str, ...], *, is_whole: bool = False) -> None:
        """Add a part, which may be read whole."""
        node = self
        for step in place:
            node = node.steps.setdefault(step, Reads())
        node.is_whole |= is_whole

    def follow(self, step: str) -> Reads | None:
        """What is read of a part; None if it is not read."""
        found, of_any = self.steps.get(step), self.steps.get(_ANY)
        if found is None or of_any is None:
            return found or of_any
        if step not in self._merged:
            self._merged[step] = found.merge(of_any)
        return self._merged[step]

    def merge(self, other: Reads) -> Reads:
        """What is read here or there."""
        merged = Reads()
        merged.is_whole = self.is_whole or other.is_whole
        merged.steps = {**self.steps, **other.steps}
        for step in self.steps.keys() & other.steps.keys():
            merged.steps[step] = self.steps[step].merge(other.steps[step])
        return merged


def project(tree: Plain, expression: Shared) -> Plain:
    """What an expression can read of an object; lists keep the number of their items."""
    reads = find_reads(expression)
    return _project(tree, reads) if reads else tree


def _project(tree: Plain, reads: Reads) -> Plain:
    if not isinstance(tree, (dict, list)) or reads.is_whole:
        return tree
    if isinstance(tree, list):
        below = reads.follow(_ITEM)
        return [_project(item, below) for item in tree] if below else []
    return {key: _project(value, below) for key, value in tree.items() if (below := reads.follow(key))}


@lru_cache(maxsize=1024)
def find_reads(expression: Shared) -> Reads | None:
    """What an expression can read of the object, itself and through variables; None if it is not known."""
    reads = Reads()
    try:
        _Reader(reads, {}).find_value(expression)
    except (_UnknownError, RecursionError):
        return None
    return reads


class _UnknownError(Exception):
    """It is unknown what an expression reads."""


class _Reader:
    """Evaluates expressions without data, and collects what they read."""

    def __init__(self, reads: Reads, values: dict[Shared, Places]) -> None:
        self.reads = reads
        self.values = values

    def find_value(self, expression: Shared) -> Places:
        if expression not in self.values:
            compiled = compile_cel(expression.text, NAMES, returns=expression.returns)
            if not isinstance(compiled, Expression):
                raise _UnknownError
            self.values[expression] = self.evaluate(
                read_root(compiled.serialized), {"object": Places(frozenset(((),)))}, dict(expression.variables)
            )
        return self.values[expression]

    def evaluate(self, node: Node, known: dict[str, Places], variables: dict[str, Shared]) -> Places:
        match node:
            case Const():
                return Places()
            case Ident():
                if node.name == "variables":
                    raise _UnknownError
                return known.get(node.name, Places())
            case Select():
                return self._select(node, known, variables)
            case Sequence():
                return self._make([self.evaluate(item, known, variables) for item in node.items])
            case Struct():
                for key in (entry.key for entry in node.entries if entry.key):
                    self._read_whole(self.evaluate(key, known, variables))
                return self._make([self.evaluate(entry.value, known, variables) for entry in node.entries])
            case Fold():
                return self._fold(node, known, variables)
            case Call():
                nodes = node.args if node.target is None else (node.target, *node.args)
                return self._call(node, nodes, [self.evaluate(each, known, variables) for each in nodes])

    def _select(self, node: Select, known: dict[str, Places], variables: dict[str, Shared]) -> Places:
        if isinstance(node.operand, Ident) and node.operand.name == "variables" and node.field in variables:
            value = self.find_value(variables[node.field])
        else:
            value = self._take(self.evaluate(node.operand, known, variables), node.field)
        return Places() if node.test else value

    def _call(self, call: Call, nodes: tuple[Node, ...], values: list[Places]) -> Places:
        if call.name in _PASSES:
            # Which of two values it is depends on the condition, not on where that comes from.
            return reduce(Places.plus, values[1:] if call.name == "_?_:_" else values)
        if call.name in _LOGICAL:
            return Places()
        if call.name == f"{PREFIX}@inOrder":
            # Its argument is in a list.
            return values[0].inner or Places()
        if call.name in ("_[_]", "_[?_]", "_?._"):
            key = nodes[1].text if isinstance(nodes[1], Const) else None
            self._read_whole(values[1])
            return self._take(values[0], _ANY if key is None else key)
        for value in values:
            self._read_whole(value)
        return Places()

    def _fold(self, fold: Fold, known: dict[str, Places], variables: dict[str, Shared]) -> Places:
        items = self.evaluate(fold.range, known, variables)
        values = self._take(items, _ANY)
        # With one variable, a loop goes through the keys of a mapping.
        loop = {fold.variable: self._take(items, _ITEM), fold.second_variable: values}
        total = self.evaluate(fold.start, known, variables)
        for _ in range(_MAX_ROUNDS):
            inner = {**known, **loop, fold.result_name: total}
            self.evaluate(fold.condition, inner, variables)
            more = total.plus(self.evaluate(fold.step, inner, variables))
            if more == total:
                return self.evaluate(fold.result, {**known, fold.result_name: total}, variables)
            total = more
        raise _UnknownError

    def _take(self, value: Places, step: str) -> Places:
        """A part of a value; of a list or mapping that the expression makes, any."""
        places = frozenset((*place, step) for place in value.places)
        for place in places:
            self.reads.add(place)
        taken = Places(places)
        return taken.plus(value.inner) if value.inner else taken

    @staticmethod
    def _make(values: list[Places]) -> Places:
        return Places(inner=reduce(Places.plus, values, Places()))

    def _read_whole(self, value: Places | None) -> None:
        while value:
            for place in value.places:
                self.reads.add(place, is_whole=True)
            value = value.inner
