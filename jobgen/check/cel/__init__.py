"""CEL as the API server of Kubernetes 1.36 evaluates it in policies and CRDs, offline.

Data must be plain: exact dicts, lists, strings, numbers, booleans and None, because nothing is converted.
"""

from __future__ import annotations

import marshal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jobgen.check.cel import engine
from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, RUN_USED_UP, THAN_ALLOWED, USED_UP, CompileError, Failed
from jobgen.engine.store import keep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import FREE_STEPS, MAX_CALL_COST, MAX_OBJECT_STEPS, MAX_RUN_STEPS
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


# What a loop over data may take besides the steps that are counted, which only the limit of one object knows.
_LOOP_STEPS, _OTHER_STEPS = 1000, 50
# The most that counts of loops over data that are crossed: few are over long lists, and a policy may have 200 params.
_CROSSED_STEPS = 8_000
_KNOWN_NAMES = ("object", "params", "variables", "self")
_LOOP = lazy_pattern(r"\.\s*(?:all|exists\w*|filter|map|sortBy|transform\w*)\s*\(")
# What takes longer is not evaluated again to find its cause.
_SLOW_STEPS = 5_000


# The engine evaluates so many nodes of a tree in the time of a step in Python.
_NODES_PER_STEP = 16
# The steps of loops that the engine takes at most.
_ENGINE_LOOPS = 10_000


class Excess:
    """The steps on one object that count for the run, and the policy or rule that took the most before them."""

    __slots__ = ("costliest", "is_whole", "steps")

    def __init__(self, costliest: str) -> None:
        self.costliest = costliest
        self.steps = 0
        self.is_whole = True
        """False if the run had no steps left for the rest of the object."""


class RunSteps:
    """The steps that count for the run of this process. Each process has the limit of the whole run.

    So whether a run takes more does not depend on its processes: those that stop early have taken more already.
    """

    def __init__(self) -> None:
        self.used = 0
        self._excesses: list[Excess] = []

    def reset(self) -> None:
        """Start a run."""
        self.used = 0
        self._excesses.clear()

    def begin_excess(self, costliest: str) -> Excess:
        """Note that an object takes more than what is free."""
        excess = Excess(costliest)
        self._excesses.append(excess)
        return excess

    def take_excesses(self) -> list[Excess]:
        """What was noted since the last call."""
        taken, self._excesses = self._excesses, []
        return taken


RUN_STEPS = RunSteps()


class EvaluationBudget:
    """The steps that the expressions for one object may still take, and those that each has taken."""

    __slots__ = ("_excess", "_weight", "free", "is_reported", "owners", "rest", "used")

    def __init__(self, owners: dict[str, Callable[[], Iterable[str]]] | None = None, weight: int = 1) -> None:
        self.owners = owners
        """The names of policies, each with a function for its expressions; None for rules, which have no names."""
        self._weight = weight
        """How much a step counts for the run."""
        self.reset()

    def reset(self) -> None:
        """Restore all steps, for the next object."""
        self.rest = MAX_OBJECT_STEPS
        self.free = FREE_STEPS // self._weight
        self.used: Counter[str] = Counter()
        """The steps that were counted, of each expression."""
        self.is_reported = False
        self._excess: Excess | None = None

    def find_failure(self) -> str:
        """Why nothing more is evaluated; empty if there are steps left."""
        if self.rest < 0:
            return USED_UP
        if self._excess and RUN_STEPS.used > MAX_RUN_STEPS:
            self._excess.is_whole = False
            return RUN_USED_UP
        return ""

    def spend(self, text: str, steps: int, more: int) -> None:
        """Note the steps of an expression, and more that it may have taken."""
        self.rest -= steps + more
        self.used[text] += steps
        self.free -= steps
        if self.free < 0:
            self._excess = self._excess or RUN_STEPS.begin_excess(self.name_costliest())
            self._excess.steps += steps * self._weight
            RUN_STEPS.used += steps * self._weight

    def name_costliest(self) -> str:
        """The policy or rule whose expressions took the most steps."""
        if self.owners is None:
            return f"rule `{' '.join(max(self.used, key=self.used.__getitem__).split())}`"
        used = {name: sum(self.used[text] for text in {*list_texts()}) for name, list_texts in self.owners.items()}
        return f"policy `{max(used, key=used.__getitem__)}`"


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

    def spend(self, expressions: Sequence[Expression], evaluate: Callable[[], Any]) -> Any:
        """What an evaluation of some expressions returns; a failure if the budget is used up."""
        budget = self.budget
        if budget is None:
            return evaluate()
        failure = budget.find_failure()
        if failure:
            return Failed(failure)
        before = engine.WORK.steps
        if RUN_STEPS.used > MAX_RUN_STEPS:
            engine.WORK.last = before + max(budget.free, 0)
        try:
            result = evaluate()
        finally:
            is_ended, engine.WORK.last = engine.WORK.steps > engine.WORK.last, sys.maxsize
        counted = engine.WORK.steps - before
        self.is_slow |= counted > _SLOW_STEPS
        # Nothing says which of several expressions took the steps in Python: those do that loop, and call functions.
        weights = [each.weight for each in expressions] if len(expressions) > 1 else [1]
        whole = sum(weights)
        for each, weight in zip(expressions, weights, strict=True):
            more = each.loop_steps if each.has_loops else _OTHER_STEPS
            budget.spend(each.text, -(-counted * weight // whole) + each.least_steps, more)
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

    __slots__ = (
        "_calls",
        "_cheap",
        "_has_loops",
        "_least",
        "_loop_steps",
        "_program",
        "_root",
        "is_interpreted",
        "serialized",
        "text",
        "type_name",
    )

    def __init__(
        self, text: str, program: engine.Native, serialized: bytes, cheap: int = -1, type_name: str = "dyn"
    ) -> None:
        self.text = text
        self._program = program
        self.is_interpreted = program is None
        self.serialized = serialized
        self._root: Any = None
        self._cheap = cheap
        self.type_name = type_name
        """The type of its value, as far as the checker knows it."""
        self._least = self._loop_steps = -1
        self._calls = engine.PREFIX.encode() in serialized
        self._has_loops: bool | None = None

    def __call__(self, bindings: Mapping[str, Any] | Bound) -> Any:
        """The value for these variables, or why there is none."""
        bound = bindings if isinstance(bindings, Bound) else Bound(bindings)
        return bound.spend((self,), lambda: self._evaluate(bound))

    def _evaluate(self, bound: Bound) -> Any:
        # On small data only the constants in it can take too long, which is known once.
        if bound.measure() >= self.cheap_size and not self._is_affordable(bound):
            return self._count(bound)
        if self.is_interpreted:
            return self._interpret(bound, MAX_CALL_COST)
        result = engine.run(self._program, bound.native)
        if isinstance(result, Failed) and any(each in result.message for each in _DIFFERS):
            # In Go, a null has no fields, a mapping no keys of other types, and the last of equal keys counts.
            return self._interpret(bound, MAX_CALL_COST)
        if not (isinstance(result, Failed) and engine.TOO_MANY_STEPS in result.message):
            return result
        bound.is_slow = True
        return self._interpret(bound, MAX_CALL_COST) if self._is_affordable(bound) else self._count(bound)

    def _count(self, bound: Bound) -> Any:
        """Evaluate what may cost too much, but not for long: estimates of nested loops are too high by far at times."""
        bound.is_slow = True
        result = self._interpret(bound, _COUNTED_COST)
        if isinstance(result, Failed) and THAN_ALLOWED in result.message:
            return Failed(f"it can cost more {THAN_ALLOWED}: {MAX_CALL_COST}")
        return result

    def _interpret(self, bound: Bound, limit: int) -> Any:
        from jobgen.check.cel.interpreter import interpret

        return interpret(self._tree(), bound.values, limit)

    def _is_affordable(self, bound: Bound) -> bool:
        from jobgen.check.cel import cost

        return not cost.is_too_expensive(self._tree(), bound.values, bound.measure_parts())

    @property
    def cheap_size(self) -> int:
        """The size of data on which it cannot take too long; 0 if it takes too long on any data."""
        if self._cheap < 0:
            self._cheap = _find_cheap_size(self.text, self.serialized)
        return self._cheap

    @property
    def has_loops(self) -> bool:
        """Return True if it may have loops."""
        if self._has_loops is None:
            self._has_loops = bool(_LOOP.search(self.text))
        return self._has_loops

    @property
    def loop_steps(self) -> int:
        """The steps that its loops may take besides: many, if the items of one are combined with those of another."""
        if self._loop_steps < 0:
            from jobgen.check.cel.cost import count_crossed_nodes

            crossed = count_crossed_nodes(self._tree()) * _ENGINE_LOOPS // _NODES_PER_STEP
            self._loop_steps = min(max(crossed, _LOOP_STEPS), _CROSSED_STEPS)
        return self._loop_steps

    @property
    def weight(self) -> int:
        """How many of the steps in Python it takes, compared with other expressions."""
        return (1 + self.least_steps) * (100 if self._calls else 1)

    @property
    def least_steps(self) -> int:
        """The steps that it takes on any data: those of loops over constants."""
        if not self.has_loops or self.is_interpreted:
            return 0
        if self._least < 0:
            from jobgen.check.cel.cost import estimate_unknown

            self._least = int(estimate_unknown(self._tree(), _KNOWN_NAMES)) // _NODES_PER_STEP
        return self._least

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
    size, kind, serialized = known.split(b":", 2)
    if serialized.startswith(_INTERPRETED):
        return Expression(text, None, serialized.removeprefix(_INTERPRETED), int(size), kind.decode())
    try:
        return Expression(text, engine.program(serialized, TABLE), serialized, int(size), kind.decode())
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
    """An expression as it is stored, the size of data on which it cannot take long before its tree; or its error."""
    from jobgen.check.cel import checks, lists, rewrite, tree
    from jobgen.check.cel.cost import grows_too_much
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
        mark = _INTERPRETED if checks.needs_interpreter(checked) else b""
    elif grows_too_much(checked.root):
        return CompileError("its values could grow beyond what the API server allows")
    elif checks.has_optional_values(checked):
        return CompileError(f"an optional that is used as a value {OFFLINE}")
    if types is not None and types.shapes:
        checked = lists.with_shapes(checked, dict(types.shapes))
    is_ordered = types is None and returns in ("string", "any")
    serialized = tree.write(rewrite.rewrite(checked, absent, is_ordered=is_ordered))
    kind = checked.types.get(checked.root.id, "dyn").encode()
    return b"%d:%b:%b%b" % (_find_cheap_size(text, serialized), kind, mark, serialized)


def _find_cheap_size(text: str, serialized: bytes) -> int:
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
