"""Problems of objects with locations, and places of plain objects that are no part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jobgen.model import placed
from jobgen.model.data import location_of
from jobgen.model.finding import Problem
from jobgen.model.origins import Origins
from jobgen.model.place import PathTo, Places, node_at
from jobgen.model.placed import finish, read_places, with_nodes


def resolve(problem: Problem) -> Problem | None:
    """The problem of an object with locations, with its nodes."""
    return finish(with_nodes(problem))


def check_located(check: Callable[[Any], Iterable[Problem]], located: Any) -> list[Problem]:
    """The problems that a check finds in an object without its locations, with the nodes that have them."""
    origins = Origins([located])
    problems = map(finish, read_places(check(origins.objects[0]), origins.follow))
    return [problem for problem in problems if problem is not None]


def place_problem(problem: Problem, places: Places) -> Problem | None:
    """A problem with paths; None if something that it names is nowhere in the object."""
    return None if lost_places(problem, places) else placed._place_problem(problem, places, ())


def lost_places(problem: Problem, places: Places) -> list[Any]:
    """What a problem names that is nowhere in the object, and not in another file either."""
    named = (each for each in _list_nodes(problem) if each is not None and type(each) is not PathTo)
    return [each for each in named if places.find(each) is None and location_of(node_at(each)) is None]


def _list_nodes(problem: Problem) -> Iterator[Any]:
    yield from (problem.node, problem.at)
    yield from (node for node, _ in problem.related)
    yield from (step.node for step in problem.fix_steps)
