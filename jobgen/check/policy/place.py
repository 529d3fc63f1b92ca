"""Where a policy's finding stands: on the value at fault, found by trying."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from jobgen.check.cel import Failed
from jobgen.check.policy.code import PolicyExpression
from jobgen.check.policy.eval_context import AdmissionSubject, EvalContext
from jobgen.check.policy.minimize import Path, culprit, culprits, node_at, without
from jobgen.model.data import Data


def places(subject: AdmissionSubject, scene: EvalContext, code: PolicyExpression) -> Iterator[tuple[Data, Data]]:
    """The nodes that make an expression fail, each with the object as it is without the others."""
    paths = list(culprits(subject.object, partial(_verdict, scene, code)))
    if not paths:
        yield _without_culprit(subject, scene, code), subject.object
    for path in paths:
        alone = without(subject.object, frozenset(paths) - {path})
        yield _written(subject.made, path), alone if _verdict(scene, code, alone) else subject.object


def _verdict(scene: EvalContext, code: PolicyExpression, tree: Data) -> str:
    """Nothing if the expression holds; else how it does not."""
    result = scene.of(tree).run(code)
    if isinstance(result, Failed):
        return f"failed: {result.message}"
    return "" if result is True else "false"


def _without_culprit(subject: AdmissionSubject, scene: EvalContext, code: PolicyExpression) -> Data:
    """Where no removal makes the object pass: what the expression reads, or where it looks for what is not there."""
    before = _verdict(scene, code, subject.object)
    path = culprit(subject.object, lambda tree: _verdict(scene, code, tree) == before)
    if path and not isinstance(_value(subject.object, path), (dict, list)):
        return _written(subject.made, path)
    named = _named(scene, code, set())
    if not named and not path:
        return _written(subject.made, ("kind",))
    missing = next((way for way in map(partial(_existing, subject.object), named) if way), ())
    return _written(subject.made, missing or path)


def _named(scene: EvalContext, code: PolicyExpression, seen: set[str]) -> list[Path]:
    """The fields that an expression names, itself or through variables."""
    found: list[Path] = list(code.paths())
    for name in code.variables:
        if name not in seen:
            seen.add(name)
            found += _named(scene, scene.policy.variables[name], seen)
    return found


def _existing(tree: Data, path: Path) -> Path:
    """As much of a way as there is."""
    for length, step in enumerate(path):
        if not isinstance(tree, dict) or step not in tree:
            return path[:length]
        tree = tree[step]
    return path


def _value(tree: Data, path: Path) -> Data:
    for step in path:
        tree = tree[step]
    return tree


def _written(made: Data, path: Path) -> Data:
    """The node at a path; the job's name, where there is none."""
    try:
        node = node_at(made, path)
    except (KeyError, IndexError, TypeError):
        node = None
    if node is None or path in ((), ("metadata",)):
        metadata = made.get("metadata")
        return metadata.get("name", metadata) if isinstance(metadata, dict) else made
    return node
