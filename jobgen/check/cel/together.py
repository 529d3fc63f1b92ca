"""Several expressions as one program: what they share is evaluated once, and none of them hides what the others say.

What decides about an expression is everything that it reads: variables are part of it, so variables with the same text
are one, also of several policies. `link.py` makes the programs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jobgen.check.cel import Bound, Expression, compile_cel, engine
from jobgen.check.cel.protobuf import read_path
from jobgen.check.cel.shared import NAMES, Shared, list_variables, name_expression
from jobgen.check.cel.values import Failed
from jobgen.engine.store import keep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo import ready

MAX_VARIABLES = 12
"""How many variables a program has at most: each is a level of its tree, and the engine reads a hundred levels."""
_MAX_EXPRESSIONS = 24
_REWRITTEN = 1_000_000
_STRUCTURE = lazy_pattern(r"(?:LIST<|MAP<STRING, )*DYN>*")


class Program:
    """Expressions that are evaluated together."""

    __slots__ = ("_cheap", "_native", "expressions")

    def __init__(self, expressions: tuple[Shared, ...], native: engine.Native, cheap: int) -> None:
        self.expressions = expressions
        self._native = native
        self._cheap = cheap

    def evaluate(self, bound: Bound) -> Any:
        """The value of the program; a failure says nothing about it."""
        if bound.measure() >= self._cheap:
            return Failed(engine.TOO_MANY_STEPS)
        return engine.run(self._native, bound.native)


def evaluate_all(expressions: tuple[Shared, ...], bound: Bound) -> dict[Shared, bool]:
    """Which of some expressions are true and which are false; one that fails, or may take long, is left out."""
    found: dict[Shared, bool] = {}
    for program in _load_all(expressions):
        results = program.evaluate(bound)
        if not isinstance(results, Failed):
            for expression, (may_be_true, may_be_false) in zip(program.expressions, results, strict=True):
                if may_be_true is not may_be_false:
                    found[expression] = may_be_true
    return found


def load_value(expression: Shared) -> Program | None:
    """A program for the value of one expression; None if it cannot be put together."""
    return _load((expression,), is_verdict=False)


@lru_cache(maxsize=1024)
def _load_all(expressions: tuple[Shared, ...]) -> list[Program]:
    programs = (_load(group, is_verdict=True) for group in list_groups(expressions))
    return [program for program in programs if program]


def list_groups(expressions: tuple[Shared, ...]) -> list[tuple[Shared, ...]]:
    """The expressions that one program evaluates, for each program."""
    groups: list[list[Shared]] = []
    known: set[Shared] = set()
    for expression in dict.fromkeys(expressions):
        reads = list_variables((expression,))
        if not groups or len(groups[-1]) == _MAX_EXPRESSIONS or len(known.union(reads)) > MAX_VARIABLES:
            groups.append([])
            known = set()
        groups[-1].append(expression)
        known.update(reads)
    return [tuple(group) for group in groups]


def _link(expressions: tuple[Shared, ...], *, is_verdict: bool) -> bytes:
    # Imported late: the programs of shipped policies are ready.
    from jobgen.check.cel.link import link

    return link(expressions, is_verdict=is_verdict)


def _load(expressions: tuple[Shared, ...], *, is_verdict: bool) -> Program | None:
    # Imported late: a run without CEL does not need it.
    from jobgen.check.cel.functions import TABLE

    description = describe_program(expressions, is_verdict=is_verdict)
    known = ready.find_expression(description)
    if known is None:
        known = keep("cel", description, lambda: _link(expressions, is_verdict=is_verdict))
    assert known is not None
    cheap, places, serialized = known.split(b":", 2)
    if not serialized:
        return None
    kept = tuple(expressions[int(place)] for place in places.split(b","))
    try:
        return Program(kept, engine.program(serialized, TABLE), int(cheap))
    except RuntimeError:
        # The engine reads trees of a hundred levels at most.
        return None


def describe_program(expressions: tuple[Shared, ...], *, is_verdict: bool) -> list[bytes]:
    """Everything that a program is made from."""
    return [
        b"verdicts" if is_verdict else b"value",
        *(name_expression(expression).encode() for expression in expressions),
    ]


@lru_cache(maxsize=4096)
@lru_cache(maxsize=1024)
def is_structure(variable: Shared) -> bool:
    """Whether the type checker knows no more of a variable than that it holds data of the object.

    What it knows of others decides which functions are called with them, so these are part of the expressions.
    """
    compiled = compile_cel(variable.text, NAMES, returns=variable.returns)
    if not isinstance(compiled, Expression) or compiled.is_interpreted:
        return False
    return read_path(compiled.serialized, 2, 4, 2) < _REWRITTEN and bool(_STRUCTURE.fullmatch(compiled.type_name))
