"""Finds the parts of an object that make a policy's expression fail, by evaluating it without them.

A finding is reported on the smallest such part, or on the value in it that the expression reads. For example, without
the container that fails `containers.all(c, c.image.startsWith('x'))` the object passes, and without the image of that
container the expression cannot be evaluated. If no part makes the object pass, the finding is reported on what the
expression names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from jobgen.check.cel import Failed
from jobgen.check.policy.eval_context import AdmissionSubject, Cause, EvalContext, Path, list_children, remove_parts
from jobgen.check.policy.expressions import PolicyExpression
from jobgen.model.data import Plain, TracedKey, TracedScalar, location_of
from jobgen.model.finding import Problem
from jobgen.model.place import At, Place, find_at, identify

Evaluate = Callable[[Plain], str | bool]
"""Returns how a tree fails, or something false if it passes."""

MAX_EVALUATIONS = 200
"""How often the expression is evaluated at most to find one part."""
_MAX_PARTS = 10


_Parts = list[tuple[Path, frozenset[Path]]]
"""Values at fault, each with the other parts that make a tree fail."""


class Trials:
    """A tree, and how it fails without some of its parts; each is evaluated once."""

    def __init__(self, tree: Plain, evaluate: Evaluate, read: Plain = None) -> None:
        self.tree = tree
        self.read = read or tree
        """What the evaluation can read of the tree."""
        self.evaluate = evaluate
        self._known: dict[frozenset[Path], str | bool] = {}

    def evaluate_without(self, removed: frozenset[Path]) -> str | bool:
        """How the tree fails without some parts, or something false if it passes."""
        if removed not in self._known:
            self._known[removed] = self.evaluate(remove_parts(self.read, removed))
        return self._known[removed]

    def count_other_failures_as_passing(self) -> Trials:
        """The same trials, in which only a tree that fails in the way of the whole tree fails."""
        whole = self.evaluate_without(frozenset())
        other = Trials(self.tree, lambda tree: self.evaluate(tree) == whole, self.read)
        other._known = {removed: found == whole for removed, found in self._known.items()}
        return other


def locate_failures(subject: AdmissionSubject, context: EvalContext, expression: PolicyExpression) -> Iterator[Cause]:
    """The parts of an object that make an expression fail."""
    read = expression.project(subject.object)

    def find_failure(tree: Plain) -> str:
        result = context.with_object(tree).evaluate(expression)
        if isinstance(result, Failed):
            return f"failed: {result.message}"
        return "" if result is True else "false"

    trials = Trials(subject.object, find_failure, read)
    values = {**context.bindings, "object": read, "": list(_list_emptied(read, subject.object, ()))}
    parts, fallback = expression.find_once(values, partial(_find_causes, trials))
    if not parts:
        yield _find_cause(subject.source, _find_named_path(subject, context, expression, fallback))
    for path, others in parts:
        yield _find_cause(subject.source, path, others, _get(subject.object, path))


_MOST_PATCHED = 3
_MOST_NUMBERS = 50
"""The numbers that an expression reads of which a patch may have set some."""


def list_numbers(subject: AdmissionSubject, expression: PolicyExpression, causes: Iterable[Cause]) -> list[At]:
    """The places of the numbers that an expression reads, without those that are reported."""
    reported = {identify(cause.place) for cause in causes}
    read = _list_read(expression.project(subject.object), subject.source)
    return [place for place in islice(read, _MOST_NUMBERS) if identify(place) not in reported]


def _list_read(read: Plain, source: Plain) -> Iterator[At]:
    """Yield the places of the numbers of a tree that are in what is read of it."""
    for step, child in list_children(read):
        if (isinstance(source, dict) and step in source) or (isinstance(source, list) and int(step) < len(source)):
            value: Plain = source[step]  # type: ignore[index]
            if type(value) is int:
                yield At(source, step)
            yield from _list_read(child, value)


def finish_denial(is_of_metadata: bool, problem: Problem, is_spec: bool) -> Problem:
    """Report what somebody wrote of a part that a policy denies, and the numbers that patches set beside it.

    One number may be wrong, although another is reported. The related nodes are the name of the object and the whole
    part, and then the numbers that the policy reads.
    """
    (name, _), (part, _), *numbers = problem.related
    patched = (
        (number, f"{number.value} is set by the {number.layer}")
        for number, _ in numbers
        if type(number) is TracedScalar and number.layer.startswith("patch of ") and number is not problem.node
    )
    node = _find_written(problem.node, part, name, is_of_metadata=is_of_metadata)
    return problem._replace(node=node, related=tuple(islice(patched, _MOST_PATCHED)))


def finish_failure(is_of_metadata: bool, is_missing: bool, problem: Problem, is_spec: bool) -> Problem:
    """Report what somebody wrote of a part with which a policy cannot be evaluated.

    If a key is missing, the value beside it is not at fault; if it is of an overlay, the object is named.
    """
    (name, _), (part, _) = problem.related
    node = _find_written(problem.node, part, name, is_of_metadata=is_of_metadata)
    own, found = location_of(name) if is_missing else None, location_of(node)
    return problem._replace(node=node, at=name if own and found and own.file != found.file else None, related=())


def _find_written(node: Place, part: Place, name: Place, *, is_of_metadata: bool) -> Place:
    """Return what is reported of a part: its key, or the first value in it that is not of the kind description."""
    part = part if type(node) is str else node
    # Without a name, the metadata stands for the object.
    if not isinstance(part, dict) or (isinstance(name, dict) and location_of(part) == location_of(name)):
        return part
    written = next((each for each in _traced_nodes(part) if not each.layer.startswith("kind ")), part)
    one, other = location_of(written), location_of(name)
    # Labels of a team or an overlay are not at fault if the job has none.
    return name if is_of_metadata and one and other and one.file != other.file else written


def _find_causes(trials: Trials) -> tuple[_Parts, Path]:
    """Search for what makes a tree fail; the answer follows from what the expression reads.

    If there is nothing, it is what the expression reads: without it, the tree fails in another way.
    """
    paths = list(find_failing_parts(trials))
    parts: _Parts = []
    if not paths:
        return parts, find_first_failing_part(trials.count_other_failures_as_passing())
    for path in paths:
        others = frozenset(paths) - {path}
        if not trials.evaluate_without(others):
            others = frozenset()
        parts.append((find_read_value(trials, path, others), others))
    return parts, ()


def _list_emptied(read: Plain, tree: Plain, path: Path) -> Iterator[Path]:
    """The mappings and lists of which nothing is read: a search tells them from those in which nothing is."""
    if not read and list_children(tree):
        yield path
    for step, child in list_children(read):
        yield from _list_emptied(child, _get(tree, (step,)), (*path, step))


def _find_named_path(subject: AdmissionSubject, context: EvalContext, expression: PolicyExpression, path: Path) -> Path:
    """The path that an expression reads, or where it looks for a missing one, if no removal makes the object pass."""
    if path and not isinstance(_get(subject.object, path), (dict, list)):
        return path
    named = _find_named_paths(context, expression, set())
    if not named and not path:
        return ("kind",)
    return next((found for found in map(partial(_existing_prefix, subject.object), named) if found), ()) or path


def _find_named_paths(context: EvalContext, expression: PolicyExpression, seen: set[str]) -> list[Path]:
    found: list[Path] = list(expression.paths())
    for name in expression.variables:
        if name not in seen:
            seen.add(name)
            found += _find_named_paths(context, context.policy.variables[name], seen)
    return found


def _existing_prefix(tree: Plain, path: Path) -> Path:
    for length, step in enumerate(path):
        if not isinstance(tree, dict) or step not in tree:
            return path[:length]
        tree = tree[step]
    return path


def _get(tree: Plain, path: Path) -> Plain:
    for step in path:
        tree = tree[step]  # type: ignore[index]
    return tree


def name_object(source: Mapping[str, Plain]) -> Place:
    """The place of the name of an object."""
    metadata = source.get("metadata")
    return find_at(metadata, "name") or metadata or source if isinstance(metadata, dict) else source


def _find_cause(
    source: Mapping[str, Plain], path: Path, others: frozenset[Path] = frozenset(), value: Plain = None
) -> Cause:
    """What is reported for a path: the scalar there, or the key of the mapping or list there; else the name."""
    part = find_place(source, path) if path not in ((), ("metadata",)) else None
    if part is None:
        name = name_object(source)
        return Cause(name, name, others=others, value=value)
    is_key = isinstance(part.holder, dict) and isinstance(part.node, (dict, list))
    place = At(part.holder, part.key, is_key=True) if is_key else part
    return Cause(place, part, path[0] == "metadata", others, value)


def find_place(tree: Plain, path: Path) -> At | None:
    """The place of the node at a path; None if there is none."""
    found: At | None = None
    for step in path:
        holder = tree if found is None else found.node
        is_there = step in holder if isinstance(holder, dict) else isinstance(holder, list) and -1 < step < len(holder)  # type: ignore[operator]
        if not is_there:
            return None
        found = At(holder, step)
    return found


def _traced_nodes(tree: Any) -> Iterator[TracedKey | TracedScalar]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(value, (dict, list)):
                yield from _traced_nodes(value)
            elif isinstance(value, TracedScalar):
                yield value
            elif isinstance(key, TracedKey):
                yield key
    elif isinstance(tree, list):
        for item in tree:
            yield from _traced_nodes(item)
    elif isinstance(tree, TracedScalar):
        yield tree


def find_failing_parts(trials: Trials, max_evaluations: int = MAX_EVALUATIONS) -> Iterator[Path]:
    """The parts that make a tree fail, one after the other, until what is left passes."""
    removed: frozenset[Path] = frozenset()
    for _ in range(_MAX_PARTS):
        failure = trials.evaluate_without(removed)
        search = _Search(trials, failure, max_evaluations)
        path = search.find_smallest(removed, (), is_decisive=False) if failure else ()
        if not path:
            return
        yield path
        removed |= {path}


def find_first_failing_part(trials: Trials, max_evaluations: int = MAX_EVALUATIONS) -> Path:
    """The smallest part without which the tree passes; empty if there is none but the whole."""
    return next(find_failing_parts(trials, max_evaluations), ())


def find_read_value(
    trials: Trials, path: Path, removed: frozenset[Path], max_evaluations: int = MAX_EVALUATIONS
) -> Path:
    """The first value in a failing part that the expression reads; the part itself, if it reads none of them.

    Without a value that it reads, the expression fails in another way.
    """
    search = _Search(trials, trials.evaluate_without(removed), max_evaluations)
    return search.find_read_value(removed, path) or path


class _Search:
    """One search for a failing part; it ends when its evaluations are used up."""

    def __init__(self, trials: Trials, failure: str | bool, evaluations: int) -> None:
        self.trials = trials
        self.failure = failure
        self.evaluations = evaluations

    def find_smallest(self, removed: frozenset[Path], path: Path, *, is_decisive: bool) -> Path:
        """The first scalar at or below a path without which the tree passes; else the first such mapping or list.

        Without a part that is only read, the tree fails in another way; the cause may be inside that part.
        """
        steps = [step for step in self._steps(path) if (*path, step) not in removed]
        best: Path = ()
        for step in steps:
            failure = self._evaluate_without(removed | {(*path, step)})
            if failure != self.failure:
                found = self.find_smallest(removed, (*path, step), is_decisive=not failure)
                if found and not list_children(_get(self.trials.tree, found)):
                    return found
                best = best or found
        return best or self._find_independent(removed, path, steps) or (path if is_decisive else ())

    def find_read_value(self, removed: frozenset[Path], path: Path) -> Path:
        """The first scalar below a path without which the tree fails in another way."""
        for step in self._steps(path):
            child = (*path, step)
            if child not in removed and self._evaluate_without(removed | {child}) not in (self.failure, "", False):
                return self.find_read_value(removed, child) or child
        return ()

    def _find_independent(self, removed: frozenset[Path], path: Path, steps: list[str | int]) -> Path:
        """If several parts fail independently, no single removal helps: the first that fails without the others."""
        for step in steps if len(steps) > 1 else ():
            rest = removed | {(*path, other) for other in steps if other != step}
            if self.evaluations > 0 and self._evaluate_without(rest) == self.failure:
                failure = self._evaluate_without(rest | {(*path, step)})
                if failure != self.failure:
                    found = self.find_smallest(rest, (*path, step), is_decisive=not failure)
                    if found:
                        return found
        return ()

    def _evaluate_without(self, removed: frozenset[Path]) -> str | bool:
        self.evaluations -= 1
        return self.trials.evaluate_without(removed) if self.evaluations >= 0 else self.failure

    def _steps(self, path: Path) -> list[str | int]:
        return [step for step, _ in list_children(_get(self.trials.read, path))]
