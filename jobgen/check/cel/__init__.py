"""CEL as the API server of Kubernetes 1.36 evaluates it in policies and CRDs, offline.

Data must be plain: exact dicts, lists, strings, numbers, booleans and None, because nothing is converted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jobgen.check.cel import engine, tree
from jobgen.check.cel.values import RUN_USED_UP, USED_UP, CompileError, Failed
from jobgen.engine.store import keep
from jobgen.model.limits import FREE_STEPS, MAX_CALL_COST, MAX_OBJECT_STEPS, MAX_RUN_STEPS
from jobgen.repo import ready

if TYPE_CHECKING:
    from jobgen.check.cel.interpreter import Evaluate
    from jobgen.check.cel.type_checker import Scope

__all__ = ["Bound", "CompileError", "EvaluationBudget", "Expression", "Failed", "available", "compile_cel", "mentions"]

# What takes longer is not evaluated again to find its cause.
_SLOW_STEPS = 20_000


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

    def limit_call(self) -> int:
        """The steps that the next expression may take: if the run has none left, those that are free on this object."""
        return max(self.free, 0) if RUN_STEPS.used > MAX_RUN_STEPS else MAX_CALL_COST

    def spend(self, text: str, steps: int) -> None:
        """Note the steps of an expression."""
        self.rest -= steps
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

    __slots__ = ("budget", "is_slow", "values")

    def __init__(self, bindings: Mapping[str, Any], budget: EvaluationBudget | None = None) -> None:
        self.budget = budget
        self.values = bindings
        self.is_slow = False
        """True if an expression took many steps."""


class Expression:
    """A compiled expression; call it with plain data."""

    __slots__ = ("_evaluate", "serialized", "text")

    def __init__(self, text: str, serialized: bytes) -> None:
        self.text = text
        self.serialized = serialized
        self._evaluate: Evaluate | None = None

    def __call__(self, bindings: Mapping[str, Any] | Bound) -> Any:
        """The value for these variables, or why there is none."""
        # Imported late: a run without CEL does not need it.
        from jobgen.check.cel.interpreter import interpret, prepare

        bound = bindings if isinstance(bindings, Bound) else Bound(bindings)
        budget, limit = bound.budget, MAX_CALL_COST
        if budget:
            failure = budget.find_failure()
            if failure:
                return Failed(failure)
            limit = min(limit, budget.limit_call())
        if self._evaluate is None:
            self._evaluate = prepare(tree.read_root(self.serialized))
        result, steps = interpret(self._evaluate, bound.values, limit)
        bound.is_slow |= steps > _SLOW_STEPS
        if budget:
            budget.spend(self.text, steps)
            if steps > limit and limit < MAX_CALL_COST:
                return Failed(budget.find_failure() or result.message)
        return result


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

    It returns a type, "any" value, or a "value" that may be an optional. `absent` are optional names without a value.
    With `types`, the names have types and their objects known fields.
    """
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
    return Expression(text, known)


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
    """The tree of an expression as it is stored, or its error."""
    from jobgen.check.cel import checks, lists, rewrite
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
    if types is not None and types.shapes:
        checked = lists.with_shapes(checked, dict(types.shapes))
    return tree.write(rewrite.rewrite(checked, absent))
