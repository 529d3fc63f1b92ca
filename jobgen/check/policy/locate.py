"""Finds the parts of an object that make a policy's expression fail, by evaluating it without them.

A finding is reported on the smallest such part, or on the value in it that the expression reads. For example, without
the container that fails `containers.all(c, c.image.startsWith('x'))` the object passes, and without the image of that
container the expression cannot be evaluated. If no part makes the object pass, the finding is reported on what the
expression names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from jobgen.check.cel import Failed
from jobgen.check.policy.eval_context import AdmissionSubject, EvalContext
from jobgen.check.policy.expressions import PolicyExpression
from jobgen.model.data import Node, Plain, TracedKey, TracedScalar, location_of

Path = tuple[str | int, ...]
Evaluate = Callable[[Plain], str | bool]
"""Returns how a tree fails, or something false if it passes."""

MAX_EVALUATIONS = 200
"""How often the expression is evaluated at most to find one part."""
_MAX_PARTS = 10


class Trials:
    """A tree, and how it fails without some of its parts; each is evaluated once."""

    def __init__(self, tree: Plain, evaluate: Evaluate) -> None:
        self.tree = tree
        self.evaluate = evaluate
        self._known: dict[frozenset[Path], str | bool] = {}

    def evaluate_without(self, removed: frozenset[Path]) -> str | bool:
        """How the tree fails without some parts, or something false if it passes."""
        if removed not in self._known:
            self._known[removed] = self.evaluate(remove_parts(self.tree, removed))
        return self._known[removed]

    def count_other_failures_as_passing(self) -> Trials:
        """The same trials, in which only a tree that fails in the way of the whole tree fails."""
        whole = self.evaluate_without(frozenset())
        other = Trials(self.tree, lambda tree: self.evaluate(tree) == whole)
        other._known = {removed: found == whole for removed, found in self._known.items()}
        return other


def locate_failures(
    subject: AdmissionSubject, context: EvalContext, expression: PolicyExpression
) -> Iterator[tuple[Node, Plain]]:
    """The nodes that make an expression fail, each with the object as it is without the others."""
    trials = Trials(subject.object, partial(_find_failure, context, expression))
    paths = list(find_failing_parts(trials))
    if not paths:
        yield _find_named_node(subject, context, expression, trials), subject.object
    for path in paths:
        others = frozenset(paths) - {path}
        if not trials.evaluate_without(others):
            others = frozenset()
        value = find_read_value(trials, path, others)
        yield _find_reported_node(subject.source, value), remove_parts(subject.object, others)


def _find_failure(context: EvalContext, expression: PolicyExpression, tree: Plain) -> str:
    """How an expression fails for an object; empty if it is true."""
    result = context.with_part(tree).evaluate(expression)
    if isinstance(result, Failed):
        return f"failed: {result.message}"
    return "" if result is True else "false"


def _find_named_node(
    subject: AdmissionSubject, context: EvalContext, expression: PolicyExpression, trials: Trials
) -> Node:
    """The node that an expression reads, or where it looks for a missing one, if no removal makes the object pass."""
    path = find_first_failing_part(trials.count_other_failures_as_passing())
    if path and not isinstance(_get(subject.object, path), (dict, list)):
        return _find_reported_node(subject.source, path)
    named = _find_named_paths(context, expression, set())
    if not named and not path:
        return _find_reported_node(subject.source, ("kind",))
    existing = next((found for found in map(partial(_existing_prefix, subject.object), named) if found), ())
    return _find_reported_node(subject.source, existing or path)


def _find_named_paths(context: EvalContext, expression: PolicyExpression, seen: set[str]) -> list[Path]:
    """The fields that an expression names, itself or through variables."""
    found: list[Path] = list(expression.paths())
    for name in expression.variables:
        if name not in seen:
            seen.add(name)
            found += _find_named_paths(context, context.policy.variables[name], seen)
    return found


def _existing_prefix(tree: Plain, path: Path) -> Path:
    """The part of a path that exists in the tree."""
    for length, step in enumerate(path):
        if not isinstance(tree, dict) or step not in tree:
            return path[:length]
        tree = tree[step]
    return path


def _get(tree: Plain, path: Path) -> Plain:
    for step in path:
        tree = tree[step]  # type: ignore[index]
    return tree


def _find_reported_node(source: Mapping[str, Node], path: Path) -> Node:
    """The node at a path; the object's name, if there is none."""
    try:
        node = node_at(source, path)
    except (KeyError, IndexError, TypeError):
        node = None
    metadata = source.get("metadata")
    name = metadata.get("name", metadata) if isinstance(metadata, dict) else source
    if node is None or path in ((), ("metadata",)):
        return name
    if not isinstance(node, dict):
        return node
    written = _find_written_node(node)
    # Labels of a team or an overlay are not at fault if the job has none.
    return name if path[0] == "metadata" and _is_of_other_file(written, name) else written


def _find_written_node(mapping: Node) -> Node:
    """The first node in a mapping that does not come from the kind description, which the author did not write."""
    for node in _traced_nodes(mapping):
        if not node.layer.startswith("kind "):
            return node
    return mapping


def _is_of_other_file(node: Node, name: Node) -> bool:
    one, other = location_of(node), location_of(name)
    return bool(one and other and one.file != other.file)


def _traced_nodes(tree: Node) -> Iterator[TracedKey | TracedScalar]:
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


def node_at(tree: Node, path: Path) -> Node:
    """The node to report for a path: the scalar there, or the key of the mapping or list there."""
    key: Node = None
    for step in path:
        key = next((each for each in tree if each == step), None) if isinstance(tree, dict) else None
        tree = tree[step]  # type: ignore[index]
    return key if isinstance(key, TracedKey) and type(tree) is not TracedScalar else tree


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


def remove_parts(tree: Plain, removed: frozenset[Path]) -> Plain:
    """The tree without some of its parts; subtrees that keep all their parts are shared."""
    if not removed:
        return tree
    below: dict[str | int, set[Path]] = {}
    for path in removed:
        below.setdefault(path[0], set()).add(path[1:])
    left = {
        step: remove_parts(child, frozenset(below[step])) if step in below else child
        for step, child in _children(tree)
        if () not in below.get(step, ())
    }
    return {str(step): child for step, child in left.items()} if isinstance(tree, dict) else list(left.values())


def _children(tree: Plain) -> list[tuple[str | int, Plain]]:
    if isinstance(tree, dict):
        return list(tree.items())
    return list(enumerate(tree)) if isinstance(tree, list) else []


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
                if found and not self._steps(found):
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
        return [step for step, _ in _children(_get(self.trials.tree, path))]
