"""Estimate how much larger than its data the values of an expression can become, to limit memory.

The API server counts cost while it runs, and stops; the engine counts steps of loops, but not what they pile up.
"""

from __future__ import annotations

from jobgen.check.cel.tree import Call, Const, Fold, Ident, Node, Select, Sequence, Struct, children

_DATA = 100
_MOST = 100_000_000


def grows_too_much(root: Node) -> bool:
    """Whether values can become a million times as large as the data."""
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
            return _folded(node, known)
        case Call():
            return _called(node, known)
        case Sequence() | Struct():
            return min(sum(_size(child, known) for child in children(node)), 2 * _MOST)


def _folded(fold: Fold, known: dict[str, int]) -> int:
    """The items of a range are together as large as the range, so one step represents all."""
    size = _size(fold.range, known)
    inner = {**known, fold.variable: size, fold.second_variable: size, fold.result_name: 0}
    gathered = _size(fold.start, known) + _size(fold.step, inner)
    return _size(fold.result, {**known, fold.result_name: gathered})


def _called(call: Call, known: dict[str, int]) -> int:
    sizes = [_size(child, known) for child in children(call)]
    if call.name in ("replace", "join") and len(sizes) > 1:
        size = sizes[0] * max(sizes[-1], sizes[min(2, len(sizes) - 1)], 1)
    else:
        size = sum(sizes) if call.name in ("_+_", "format") else max(sizes, default=1)
    return min(size, 2 * _MOST)
