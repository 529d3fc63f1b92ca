"""Problems with places in an object: as a check names them, as paths, and with the nodes of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, TracedKey, TracedScalar, location_of
from jobgen.model.finding import Problem
from jobgen.model.place import At, PathTo, Places, Steps, node_at
from jobgen.model.sentence import replace_words

_KIND = PathTo(("kind",))
"""What is reported if a check names something that is in no place of the object; tests show that none does."""


def place_problems(problems: Iterable[Problem], obj: Mapping[str, Node], around: Steps = ()) -> list[Problem]:
    """Return the problems of an object with paths in place of nodes; the object is at a path in another one."""
    found = list(problems)
    if not found:
        return found
    places = Places(obj)
    return [_place_problem(problem, places, around) for problem in found]


def _place_problem(problem: Problem, places: Places, around: Steps) -> Problem:
    def find(node: Any) -> PathTo | Node:
        if type(node) is PathTo:
            return node
        path = places.find(node)
        if path is None:
            return _keep_located(node)
        return PathTo((*around, *path.steps), path.is_key) if around else path

    placed = _replace_nodes(problem, find)
    if placed.node is not None or problem.node is None:
        return placed
    return placed._replace(node=_KIND._replace(steps=(*around, *_KIND.steps)))


def _keep_located(node: Any) -> Node:
    """Return a node of another object, such as a quota that is read with locations; None if it has no location."""
    return None if location_of(node_at(node)) is None else node_at(node)


def with_nodes(problem: Problem) -> Problem:
    """Return a problem with the nodes of the places that a check named."""
    if not any(type(node) is At for node in _list_nodes(problem)):
        return problem
    return _show_as_written(_replace_nodes(problem, node_at))


def follow(problem: Problem, find: Callable[[PathTo], Any]) -> Problem:
    """Return a problem with the nodes that `find` returns for its paths."""
    return _show_as_written(_replace_nodes(problem, lambda node: find(node) if type(node) is PathTo else node))


def replace_places(problems: Iterable[Problem], replace: Callable[[Any], Any]) -> list[Problem]:
    """Return problems with what `replace` returns for their places."""
    return [_replace_nodes(problem, replace) for problem in problems]


def read_places(problems: Iterable[Problem], find: Callable[[Any], Any]) -> list[Problem]:
    """Return problems with the nodes that `find` returns for their places."""
    return [_show_as_written(_replace_nodes(problem, lambda place: node_at(find(place)))) for problem in problems]


def _show_as_written(problem: Problem) -> Problem:
    """Return a problem with the text that the file has for a key or value in its message, if YAML reads another."""
    node, shown = problem.node, problem.shown
    written = node.written if shown and isinstance(node, (TracedScalar, TracedKey)) else ""
    if not written:
        return problem
    if isinstance(node, TracedKey):
        return problem._replace(sentence=replace_words(problem.sentence, shown, f"`{written}`"))
    words = replace_words(problem.sentence, f" is {shown}", f" is `{written}`, which YAML reads as {shown}")
    return problem._replace(sentence=words)


def finish(problem: Problem, *, is_spec: bool = False) -> Problem | None:
    """Return a problem whose nodes have locations with all that can be said of it; None if nothing is wrong."""
    say_more = problem.finish
    return problem if say_more is None else say_more(problem._replace(finish=None), is_spec)


def _list_nodes(problem: Problem) -> Iterator[Any]:
    yield problem.node
    yield problem.at
    yield from (node for node, _ in problem.related)
    yield from (step.node for step in problem.fix_steps)


def _replace_nodes(problem: Problem, replace: Callable[[Any], Any]) -> Problem:
    node, at, related, steps = problem.node, problem.at, problem.related, problem.fix_steps
    return problem._replace(
        node=node if node is None else replace(node),
        at=at if at is None else replace(at),
        related=tuple([(replace(other), text) for other, text in related]) if related else (),
        fix_steps=tuple([step._replace(node=replace(step.node)) for step in steps]) if steps else (),
    )
