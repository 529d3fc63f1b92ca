"""Links expressions to one program, from their checked trees.

A value that expressions read by name is bound as the macro `cel.bind` does: it is evaluated when it is first read, and
never again. Whether an expression is true, false, or fails is asked with `@not_strictly_false`, which is true for a
failure too.
"""

from __future__ import annotations

from functools import lru_cache

from jobgen.check.cel import Expression, compile_cel
from jobgen.check.cel.protobuf import written
from jobgen.check.cel.shared import NAMES, PARAMS, Shared, list_variables, name_expression
from jobgen.check.cel.tree import Fold, Ident, Node, Select, map_children, read_root, serialize, walk, wrap
from jobgen.model.named_tuple import NamedTuple

# A part that may take long on smaller data than this is evaluated by itself.
_MIN_CHEAP_SIZE = 10_000
_FALSE = b"\x10\x00"
_RESULT = "@result"


class _Part(NamedTuple):
    """An expression of a program: its tree, and the size of data on which it cannot take long."""

    tree: bytes
    cheap: int


def link(expressions: tuple[Shared, ...], *, is_verdict: bool) -> bytes:
    """A program as it is stored: the size of data on which it cannot take long, what it evaluates, and its tree."""
    parts = {
        place: part
        for place, expression in enumerate(expressions)
        if (part := _make_part(expression)) and (part.cheap >= _MIN_CHEAP_SIZE or not is_verdict)
    }
    if not parts:
        return b"0::"
    body = _list([_ask(part.tree) for part in parts.values()]) if is_verdict else parts[0].tree
    cheap = min(part.cheap for part in parts.values())
    for variable in reversed(list_variables(tuple(expressions[place] for place in parts))):
        part = _make_part(variable)
        assert part is not None, "what reads it has been made"
        body = _bind(name_expression(variable), part.tree, body)
        cheap = min(cheap, part.cheap)
    return b"%d:%b:%b" % (cheap, ",".join(map(str, parts)).encode(), wrap(body))


@lru_cache(maxsize=4096)
def _make_part(expression: Shared) -> _Part | None:
    """An expression with the names of its variables and params in a program; None if the engine cannot run it."""
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
    return _Part(serialize(renamed), compiled.cheap_size)


def _rename(node: Node, variables: dict[str, str], params: int) -> Node:
    if isinstance(node, Select) and not node.test and isinstance(node.operand, Ident):
        if node.operand.name == "variables" and node.field in variables:
            return Ident(node.id, variables[node.field])
    elif isinstance(node, Ident):
        return node._replace(name=f"{PARAMS}{params}") if node.name == "params" and params >= 0 else node
    return map_children(node, lambda child: _rename(child, variables, params))


def _bind(name: str, value: bytes, body: bytes) -> bytes:
    """`cel.bind(name, value, body)`, which evaluates the value when it is first read."""
    step, never = _identify(name), written(3, _FALSE)
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
