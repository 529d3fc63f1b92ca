"""CEL as the API server of Kubernetes 1.36 evaluates it in policies and CRDs, offline.

Data must be plain: exact dicts, lists, strings, numbers, booleans and None, because nothing is converted.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jobgen.check.cel import engine
from jobgen.check.cel.steps import EvaluationBudget, Shares, Steps, estimate_steps, make_shares
from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, THAN_ALLOWED, CompileError, Failed
from jobgen.engine.store import keep
from jobgen.model import budget as run_budget
from jobgen.model.budget import RUN
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_CALL_COST
from jobgen.repo import ready

if TYPE_CHECKING:
    from jobgen.check.cel.type_checker import Scope

__all__ = ["Bound", "CompileError", "EvaluationBudget", "Expression", "Failed", "available", "compile_cel", "mentions"]

# The steps of loops are limited, so on data of this size no expression of the engine's own functions takes long.
_CHEAP_NATIVE = 40_000
# The same for expressions with functions in Python.
_CHEAP_SIZE = 10_000
# The same for functions that convert whole lists in each step of a loop.
_CHEAP_CONVERTED = 2_500
_CONVERTING = lazy_pattern(r"\.(?:isSorted|sum|min|max|indexOf|lastIndexOf)\s*\(")
_SHORT_EXPRESSION = 4_000

# Failures of the engine where the API server may have a value.
_DIFFERS = (NO_OVERLOAD, "duplicate key in map")

# How much of an expression that may cost too much is evaluated before it counts as too expensive.
_COUNTED_COST = MAX_CALL_COST // 10

# Before the bytes of an expression that the engine cannot run.
_INTERPRETED = b"interpreted:"


# What takes longer is not evaluated again to find its cause.
_SLOW_STEPS = 5_000


class Bound:
    """Variables with their values, for any number of expressions."""

    __slots__ = ("_parts", "budget", "is_slow", "native", "size", "values")

    def __init__(self, bindings: Mapping[str, Any], budget: EvaluationBudget | None = None) -> None:
        self.budget = budget
        self.native = engine.asked_of(bindings)
        self.values = bindings
        self.size = -1
        self._parts: dict[int, int] | None = None
        self.is_slow = False
        """True if an expression had to be evaluated step by step, because it may cost too much."""

    def spend(self, shares: Shares, evaluate: Callable[[], Any]) -> Any:
        """What an evaluation of some expressions returns; a failure if the budget is used up."""
        budget = self.budget
        if budget is None:
            return evaluate()
        failure = budget.find_failure()
        if failure:
            return Failed(failure)
        before = engine.WORK.steps
        if RUN.used > run_budget.MAX_RUN_STEPS:
            engine.WORK.last = before + max(budget.free, 0)
        try:
            result = evaluate()
        finally:
            is_ended, engine.WORK.last = engine.WORK.steps > engine.WORK.last, sys.maxsize
        counted = engine.WORK.steps - before
        self.is_slow |= counted > _SLOW_STEPS
        budget.spend(shares, counted)
        return Failed(budget.find_failure()) if is_ended else result

    def measure(self) -> int:
        """The size of the values: about the number of characters of their text."""
        if self.size < 0:
            try:
                # Version 2 writes a value that occurs twice twice. It takes a third of the time of `repr`.
                self.size = len(marshal.dumps(dict(self.values), 2))
            except ValueError:
                # The values are nested too deeply, or have a type that is not plain data.
                self.size = len(repr(self.values))
        return self.size

    def measure_parts(self) -> dict[int, int]:
        """The sizes of all mappings and lists in the values, by identity."""
        if self._parts is None:
            from jobgen.check.cel import cost

            self._parts = cost.measure_all(self.values)
        return self._parts


class Expression:
    """A compiled expression; call it with plain data."""

    __slots__ = ("_program", "_root", "cheap_size", "is_interpreted", "serialized", "shares", "text", "type_name")

    def __init__(
        self,
        text: str,
        program: engine.Native,
        serialized: bytes,
        steps: Steps,
        cheap_size: int,
        type_name: str = "dyn",
    ) -> None:
        self.text = text
        self._program = program
        self.is_interpreted = program is None
        self.serialized = serialized
        self._root: Any = None
        self.shares = make_shares(text, steps, calls_functions=engine.PREFIX.encode() in serialized)
        self.cheap_size = cheap_size
        """The size of data on which it cannot take too long; 0 if it takes too long on any data."""
        self.type_name = type_name
        """The type of its value, as far as the checker knows it."""

    def __call__(self, bindings: Mapping[str, Any] | Bound) -> Any:
        """The value for these variables, or why there is none."""
        bound = bindings if isinstance(bindings, Bound) else Bound(bindings)
        return bound.spend(self.shares, lambda: self._evaluate(bound))

    def _evaluate(self, bound: Bound) -> Any:
        # On small data only the constants in it can take too long, which is known once.
        if bound.measure() >= self.cheap_size and not self._is_affordable(bound):
            return self._count(bound)
        if self.is_interpreted:
            return self._interpret(bound, MAX_CALL_COST)
        result = engine.run(self._program, bound.native)
        if isinstance(result, Failed) and result.is_due_to(*_DIFFERS):
            # In Go, a null has no fields, a mapping no keys of other types, and the last of equal keys counts.
            return self._interpret(bound, MAX_CALL_COST)
        if not (isinstance(result, Failed) and result.is_due_to(engine.TOO_MANY_STEPS)):
            return result
        bound.is_slow = True
        return self._interpret(bound, MAX_CALL_COST) if self._is_affordable(bound) else self._count(bound)

    def _count(self, bound: Bound) -> Any:
        """Evaluate what may cost too much, but not for long: estimates of nested loops are too high by far at times."""
        bound.is_slow = True
        result = self._interpret(bound, _COUNTED_COST)
        if isinstance(result, Failed) and result.is_costly:
            return Failed(f"it can cost more {THAN_ALLOWED}: {MAX_CALL_COST}")
        return result

    def _interpret(self, bound: Bound, limit: int) -> Any:
        from jobgen.check.cel.interpreter import interpret

        return interpret(self._tree(), bound.values, limit)

    def _is_affordable(self, bound: Bound) -> bool:
        from jobgen.check.cel import cost

        return not cost.is_too_expensive(self._tree(), bound.values, bound.measure_parts())

    def _tree(self) -> Any:
        if self._root is None:
            self._root = _read_tree(self.serialized)
        return self._root


def available() -> str:
    """Why CEL cannot be evaluated on this machine, and what to do; empty if it can."""
    return engine.missing()


def mentions(text: str, name: str) -> bool:
    """Return True if an expression uses a name."""
    from jobgen.check.cel import checks

    return checks.mentions(text, name)


@lru_cache(maxsize=4096)
def compile_cel(
    text: str,
    names: tuple[str, ...],
    *,
    returns: str = "bool",
    absent: tuple[str, ...] = (),
    types: Scope | None = None,
) -> Expression | CompileError:
    """Compile an expression, or return why the API server would refuse it.

    `absent` are optional names without a value. With `types`, the names have types and their objects known fields.
    """
    # Imported late: a run without CEL does not need it.
    from jobgen.check.cel.rewrite import TABLE

    parts = describe_expression(text, names, returns, absent, types)
    known = ready.find_expression(parts)
    if known is None:
        errors: list[CompileError] = []

        def check() -> bytes | None:
            checked = check_expression(text, names, returns, absent, types)
            if isinstance(checked, CompileError):
                errors.append(checked)
                return None
            return checked

        known = keep("cel", parts, check)
        if known is None:
            return errors[0]
    least, more, size, kind, serialized = known.split(b":", 4)
    is_interpreted = serialized.startswith(_INTERPRETED)
    serialized = serialized.removeprefix(_INTERPRETED)
    try:
        program = None if is_interpreted else engine.program(serialized, TABLE)
        return Expression(text, program, serialized, Steps(int(least), int(more)), int(size), kind.decode())
    except RuntimeError:
        # The engine reads trees of a hundred levels at most, fewer than it checks.
        return CompileError(engine.TOO_DEEP)


def describe_expression(
    text: str,
    names: tuple[str, ...],
    returns: str = "bool",
    absent: tuple[str, ...] = (),
    types: Scope | None = None,
) -> list[bytes]:
    """Everything that a compiled expression is made from."""
    parts = (text, ",".join(names), returns, ",".join(absent), repr(types) if types else "")
    return [part.encode("utf-8", "surrogatepass") for part in parts]


def check_expression(
    text: str,
    names: tuple[str, ...],
    returns: str = "bool",
    absent: tuple[str, ...] = (),
    types: Scope | None = None,
) -> bytes | CompileError:
    """An expression as it is stored, or its error.

    Before its tree stand its steps, the size of data on which it cannot take long, and its type.
    """
    from jobgen.check.cel import checks, lists, rewrite, tree
    from jobgen.check.cel.cost import grows_too_much, repeats_data
    from jobgen.check.cel.type_checker import Scope, check, check_with_times

    fault = checks.refused(text)
    if fault is not None:
        return fault
    if types is not None:
        checked = check_with_times(text, types)
    else:
        variables = tuple((name, "optional_type<dyn>" if name in absent else "dyn") for name in names)
        checked = check(text, Scope(variables))
    if isinstance(checked, CompileError):
        return checked
    checked = checks.find_optionals(checked)
    fault = checks.fault(checked, text, returns)
    if fault is not None:
        return fault
    mark = b""
    if types is None:
        # The engine shares equal parts of a value, but compares and returns each of them.
        mark = _INTERPRETED if checks.needs_interpreter(checked) or repeats_data(checked.root) else b""
    elif grows_too_much(checked.root):
        return CompileError("its values could grow beyond what the API server allows")
    elif checks.has_optional_values(checked):
        return CompileError(f"an optional that is used as a value {OFFLINE}")
    if types is not None and types.shapes:
        checked = lists.with_shapes(checked, dict(types.shapes))
    is_ordered = types is None and returns in ("string", "any")
    rewritten = rewrite.rewrite(checked, absent, is_ordered=is_ordered)
    serialized = tree.write(rewritten)
    steps = estimate_steps(text, rewritten.root, is_interpreted=bool(mark))
    kind = checked.types.get(checked.root.id, "dyn").encode()
    return b"%d:%d:%d:%b:%b%b" % (*steps, find_cheap_size(text, serialized), kind, mark, serialized)


def find_cheap_size(text: str, serialized: bytes) -> int:
    """The size of data on which an expression cannot take too long; 0 if it takes too long on any data."""
    cheap = _CHEAP_SIZE if engine.PREFIX.encode() in serialized else _CHEAP_NATIVE
    if _CONVERTING.search(text):
        from jobgen.check.cel.cost import converts_in_loops

        cheap = _CHEAP_CONVERTED if converts_in_loops(_read_tree(serialized)) else cheap
    if len(serialized) > _SHORT_EXPRESSION:
        from jobgen.check.cel import cost

        return 0 if cost.is_too_expensive(_read_tree(serialized), {}, {}) else cheap
    return cheap


def _read_tree(serialized: bytes) -> Any:
    from jobgen.check.cel import tree

    return tree.read_root(serialized)
