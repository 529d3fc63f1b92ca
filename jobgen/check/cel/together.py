"""Several expressions as one program: what they share is evaluated once, and none of them hides what the others say.

What decides about an expression is everything that it reads: variables are part of it, so variables with the same text
are one, also of several policies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jobgen.check.cel import Bound, Expression, compile_cel, engine
from jobgen.check.cel.steps import Shares, join_shares
from jobgen.check.cel.tree import (
    Fold,
    Ident,
    Node,
    Select,
    map_children,
    read_path,
    read_root,
    serialize,
    walk,
    wrap,
    written,
)
from jobgen.check.cel.values import Failed
from jobgen.engine.store import keep
from jobgen.model.digest import blake2b
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import ready

NAMES = ("object", "oldObject", "request", "namespaceObject", "params", "variables", "authorizer")
"""The variables that expressions of policies can read; which of them depends on the policy and the field."""

PARAMS = "params_"
"""Before the number of params, for a program that reads those of several bindings."""


class Shared(NamedTuple):
    """An expression of a policy, and those of the variables that it reads as `variables.<name>`."""

    text: str
    returns: str
    variables: tuple[tuple[str, Shared], ...] = ()
    params: int = -1
    """The number of its params in a program; with -1, they are `params`."""


def list_variables(expressions: tuple[Shared, ...]) -> dict[Shared, None]:
    """The variables that expressions read, themselves and through others, each after those that it reads."""
    found: dict[Shared, None] = {}
    for expression in expressions:
        values = tuple(value for _, value in expression.variables)
        found |= list_variables(values) | dict.fromkeys(values)
    return found


@lru_cache(maxsize=4096)
def name_expression(expression: Shared) -> str:
    """The name of an expression in programs, which is made from everything that it is made from."""
    digest = blake2b(digest_size=16)
    variables = [(name, name_expression(value)) for name, value in expression.variables]
    parts = (expression.text, expression.returns, variables, expression.params)
    digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    return f"@{digest.hexdigest()}"


MAX_VARIABLES = 12
"""How many variables a program has at most: each is a level of its tree, and the engine reads a hundred levels."""
_MAX_EXPRESSIONS = 24
_REWRITTEN = 1_000_000
_STRUCTURE = lazy_pattern(r"(?:list<|map<string, )*dyn>*")


class Program(NamedTuple):
    """Expressions that are evaluated together, and the size of data on which that cannot take long."""

    expressions: tuple[Shared, ...]
    native: engine.Native
    cheap: int
    shares: Shares
    """Those of the expressions and their variables."""

    def evaluate(self, bound: Bound, run: Callable[[engine.Native, engine.Native], Any] = engine.run) -> Any:
        """The value of the program; a failure says nothing about it."""
        if bound.measure() >= self.cheap:
            return Failed(engine.TOO_MANY_STEPS)
        return bound.spend(self.shares, lambda: run(self.native, bound.native))


def evaluate_all(expressions: tuple[Shared, ...], bound: Bound) -> dict[Shared, bool]:
    """Which of some expressions are true and which are false; one that fails, or may take long, is left out."""
    found: dict[Shared, bool] = {}
    for program in _load_all(expressions):
        results = program.evaluate(bound, engine.run_verdicts)
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


def _load(expressions: tuple[Shared, ...], *, is_verdict: bool) -> Program | None:
    # Imported late: a run without CEL does not need it.
    from jobgen.check.cel.rewrite import TABLE

    description = describe_program(expressions, is_verdict=is_verdict)
    known = ready.find_expression(description)
    if known is None:
        known = keep("cel", description, lambda: link(expressions, is_verdict=is_verdict))
    assert known is not None
    cheap, places, serialized = known.split(b":", 2)
    if not serialized:
        return None
    kept = tuple(expressions[int(place)] for place in places.split(b","))
    compiled = (compile_cel(each.text, NAMES, returns=each.returns) for each in (*kept, *list_variables(kept)))
    shares = join_shares([each.shares for each in compiled if isinstance(each, Expression)])
    try:
        return Program(kept, engine.program(serialized, TABLE), int(cheap), shares)
    except RuntimeError:
        # The engine reads trees of a hundred levels at most.
        return None


def describe_program(expressions: tuple[Shared, ...], *, is_verdict: bool) -> list[bytes]:
    """Everything that a program is made from."""
    return [b"verdicts" if is_verdict else b"value", *(name_expression(each).encode() for each in expressions)]


@lru_cache(maxsize=4096)
def is_structure(variable: Shared) -> bool:
    """Return True if the type checker knows no more of a variable than that it holds data of the object.

    What it knows of others decides which functions are called with them, so these are part of the expressions.
    """
    compiled = compile_cel(variable.text, NAMES, returns=variable.returns)
    if not isinstance(compiled, Expression) or compiled.is_interpreted:
        return False
    return read_path(compiled.serialized, 2, 4, 2) < _REWRITTEN and bool(_STRUCTURE.fullmatch(compiled.type_name))


# A part that may take long on smaller data than this is evaluated by itself.
_MIN_CHEAP_SIZE = 10_000
_RESULT = "@result"


def link(expressions: tuple[Shared, ...], *, is_verdict: bool) -> bytes:
    """A program as it is stored: the size of data on which it cannot take long, what it evaluates, and its tree."""
    parts = {
        place: part
        for place, expression in enumerate(expressions)
        if (part := _make_part(expression)) and (part[1] >= _MIN_CHEAP_SIZE or not is_verdict)
    }
    if not parts:
        return b"0::"
    body = _list([_ask(tree) for tree, _ in parts.values()]) if is_verdict else parts[0][0]
    cheap = min(size for _, size in parts.values())
    for variable in reversed(list_variables(tuple(expressions[place] for place in parts))):
        part = _make_part(variable)
        assert part is not None, "what reads it has been made"
        body = _bind(name_expression(variable), part[0], body)
        cheap = min(cheap, part[1])
    return b"%d:%b:%b" % (cheap, ",".join(map(str, parts)).encode(), wrap(body))


@lru_cache(maxsize=4096)
def _make_part(expression: Shared) -> tuple[bytes, int] | None:
    """The tree of an expression in a program, and the size of data on which it cannot take long.

    None if the engine cannot run it. Its variables and params have the names that they have in programs.
    """
    compiled = compile_cel(expression.text, NAMES, returns=expression.returns)
    if not isinstance(compiled, Expression) or compiled.is_interpreted:
        return None
    root = read_root(compiled.serialized)
    if any(isinstance(node, Fold) and {node.variable, node.second_variable} & set(NAMES) for node in walk(root)):
        return None
    parts = [_make_part(value) for _, value in expression.variables]
    renamed = _rename(root, {name: name_expression(value) for name, value in expression.variables}, expression.params)
    if None in parts or any(isinstance(node, Ident) and node.name == "variables" for node in walk(renamed)):
        return None
    return serialize(renamed), compiled.cheap_size


def _rename(node: Node, variables: dict[str, str], params: int) -> Node:
    if isinstance(node, Select) and not node.test and isinstance(node.operand, Ident):
        if node.operand.name == "variables" and node.field in variables:
            return Ident(node.id, variables[node.field])
    elif isinstance(node, Ident):
        return node._replace(name=f"{PARAMS}{params}") if node.name == "params" and params >= 0 else node
    return map_children(node, lambda child: _rename(child, variables, params))


def _bind(name: str, value: bytes, body: bytes) -> bytes:
    """`cel.bind(name, value, body)`, which evaluates the value when it is first read."""
    step, never = _identify(name), written(3, b"\x10\x00")
    parts: tuple[str | bytes, ...] = ("#unused", _list([]), name, value, never, step, body)
    return written(9, b"".join(written(number, part) for number, part in enumerate(parts, 1)))


def _ask(tree: bytes) -> bytes:
    """The list of whether an expression may be true, and whether it may be false: both, if it fails."""
    result = _identify(_RESULT)
    asked = [_call("@not_strictly_false", each) for each in (result, _call("!_", result))]
    return _bind(_RESULT, tree, _list(asked))


def _list(items: list[bytes]) -> bytes:
    return written(7, b"".join(written(1, item) for item in items))


def _call(name: str, argument: bytes) -> bytes:
    return written(6, written(2, name) + written(3, argument))


def _identify(name: str) -> bytes:
    return written(4, written(1, name))
