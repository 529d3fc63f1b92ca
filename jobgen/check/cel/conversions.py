"""Find expressions in which loops convert whole lists to Python again and again."""

from __future__ import annotations

from jobgen.check.cel.engine import PREFIX
from jobgen.check.cel.tree import Call, Const, Fold, Ident, Node, Sequence, children

_CONVERTING = frozenset(f"{PREFIX}{name}" for name in ("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"))
_NUMBERS = frozenset(("int", "uint", "double", "size", f"{PREFIX}sum"))
_IN_ORDER = f"{PREFIX}@inOrder"


def converts_in_loops(node: Node, *, is_repeated: bool = False) -> bool:
    """Whether a list that a loop has not just built may be converted in each step of a loop.

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
    """Whether a loop is over a literal with one item, as a variable of a policy is."""
    range_ = fold.range
    if isinstance(range_, Call) and range_.name == _IN_ORDER and isinstance(range_.args[0], Sequence):
        range_ = range_.args[0].items[0]
    return isinstance(range_, Sequence) and len(range_.items) <= 1


def _builds_numbers(node: Node) -> bool:
    """Whether a value is a list of numbers that a loop builds."""
    gathered = find_gathered(node) if isinstance(node, Fold) else None
    return gathered is not None and _is_number(gathered)


def _is_number(node: Node) -> bool:
    if isinstance(node, Call) and node.name == "_?_:_":
        return all(map(_is_number, node.args[1:]))
    return isinstance(node, Const) or (isinstance(node, Call) and node.name in _NUMBERS)
