"""What is wrong with an object besides its values of wrong types: what is found in both copies without these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jobgen.model.data import Plain, location_of
from jobgen.model.finding import FaultKey, Problem
from jobgen.model.mend import Copy
from jobgen.model.place import At, Place, find_gathered, find_original, identify, node_at


def find_independent(
    tree: Mapping[str, Plain], faults: Iterable[Problem], find: Callable[[Any], Sequence[Problem]]
) -> list[Problem]:
    """Return the problems of a tree that do not depend on its faulty values, and that are not at one of them."""
    # Places and nodes with locations can be told apart.
    wrong = {identify(fault.node): fault for fault in faults if type(fault.node) is At or location_of(fault.node)}
    if not wrong or id(tree) in wrong:
        return []
    left_out, filled = Copy(tree, wrong, fill=False), Copy(tree, wrong, fill=True)
    known = {_identify(_restore(filled, problem)) for problem in find(filled.tree)}
    found = (_restore(left_out, problem) for problem in find(left_out.tree))
    starts = {_find_start(fault.node) for fault in wrong.values()}
    return [each for each in found if _identify(each) in known and _find_start(each.at, each.node) not in starts]


def _find_start(*places: Place) -> object:
    """Return what identifies where the first of some places begins, if it is known: a mapping begins at its key."""
    for place in places:
        node = node_at(place)
        if isinstance(node, dict) and node:
            place = At(node, next(iter(node)), is_key=True)  # noqa: PLW2901
            node = place.key
        if start := location_of(node):
            return start
        if type(place) is At or isinstance(node, list):
            return identify(place)
    return None


def _identify(problem: Problem) -> tuple[FaultKey, object]:
    return problem.fault, identify(problem.node)


def _restore(copy: Copy, problem: Problem) -> Problem:
    """Return a problem of the copy with nodes and places of the original tree."""
    related = tuple((_find_original(copy, node), text) for node, text in problem.related)
    steps = tuple(step._replace(node=_find_original(copy, step.node)) for step in problem.fix_steps)
    node, at = _find_original(copy, problem.node), _find_original(copy, problem.at)
    return problem._replace(node=node, at=at, related=related, fix_steps=steps)


def _find_original(copy: Copy, place: Place) -> Place:
    """Return a place of the original tree for one of the copy."""
    place = find_gathered(place)
    if type(place) is not At:
        node: Plain = find_original(place)
        return copy.originals[id(node)][0] if id(node) in copy.originals else node
    holder = find_original(place.holder)
    if id(holder) not in copy.originals:
        return place
    key = copy.keys[id(holder)].get(place.key, place.key)
    return place._replace(holder=copy.originals[id(holder)][0], key=key)
