"""Turn problems into findings: the location of the node, the values it overrides, and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen.model.data import (
    Location,
    Node,
    TracedKey,
    TracedList,
    TracedMapping,
    TracedScalar,
    location_of,
    untraced,
    value_of,
)
from jobgen.model.finding import Finding, Fix, FixStep, Problem, Related, SetByPatch, TextEdit
from jobgen.model.mutated import POLICY_LAYER
from jobgen.model.place import node_at
from jobgen.repo.files import VARIABLE_LAYER
from jobgen.repo.shipped import BUILT_IN
from jobgen.spec.sweeps import MATRIX


def locate(problem: Problem, file: str, fallback: Location | None = None) -> Finding:
    """The finding of a problem, at the location of its node."""
    compared = [
        (location, _name_patch(node, text) if type(text) is SetByPatch else text)
        for node, text in problem.related
        if (location := location_of(node))
    ]
    related = [Related(location, text) for location, text in compared if text]
    # The layer of a mapping is the one of its first key.
    node = next(iter(problem.node), None) if isinstance(problem.node, dict) and problem.node else problem.node
    layer = node.layer if isinstance(node, (TracedScalar, TracedKey, TracedList, TracedMapping)) else ""
    location = problem.location
    if layer.startswith(POLICY_LAYER) and location:
        text = f"policy `{layer.removeprefix(POLICY_LAYER)}` sets it when the object is created"
        related.append(Related(location, text))
    shown = node if problem.at is None else next(iter(problem.at), None) if isinstance(problem.at, dict) else None
    related += _list_overridden(shown)
    location = location or fallback or Location(file)
    own = next((at for at, text in compared if not text and at.file == file != location.file), None)
    if own and problem.inside is None:
        # The author of a job reads the line of the job, although an overlay has the value that does not fit.
        related = [Related(location, "the other value is set here"), *(each for each in related if each[0] != own)]
        location = own
    return Finding(
        problem.rule,
        problem.category,
        problem.severity,
        str(problem.sentence),
        location,
        related=tuple(related),
        # A key would hold the text of its file, with which a finding cannot be sent to another process.
        evidence=None if problem.evidence is None else tuple(map(str, problem.evidence)),
        cause=problem.cause,
        meant=problem.meant,
        fix=_build_fix(problem),
    )


def _name_patch(node: Node, text: str) -> str:
    """Return what a value is if a patch sets it; a value that no patch sets is compared only."""
    layer = node.layer if isinstance(node, TracedScalar) else ""
    return f"{text}, set by {layer}" if layer.startswith("patch of ") else ""


def _build_fix(problem: Problem) -> Fix | None:
    """The fix of a problem, if its nodes are written literally in one file that can be changed."""
    steps = [step._replace(node=node_at(step.node)) for step in problem.fix_steps]
    if not all(map(_is_written, steps)):
        return None
    edits = tuple(
        TextEdit(op, node.location, _to_plain(untraced(value)), str(key), _to_plain(value_of(node)))
        for op, node, value, key in steps
        if isinstance(node, (TracedScalar, TracedKey))
    )
    # A fix in two files could be applied by half.
    return Fix(edits, problem.safe) if len({edit.location.file for edit in edits}) == 1 else None


def _to_plain(value: Any) -> Any:
    """A key without its location."""
    return str(value) if isinstance(value, TracedKey) else value


def _is_written(change: FixStep) -> bool:
    """Return True if the node of a fix step is written in its file as it is in the object."""
    node = change.node
    if not isinstance(node, (TracedScalar, TracedKey)) or node.location.file.startswith((BUILT_IN, "schemas/")):
        return False
    if node.layer.startswith((POLICY_LAYER, VARIABLE_LAYER)):
        # The file has an expression there.
        return False
    if change.op == "remove" and isinstance(node, TracedScalar) and not change.key:
        # The value alone does not identify an entry: in a JSON patch the key is `value`.
        return False
    if change.op == "add" and node.layer not in ("", "manifest"):
        # Fields next to each other in a rendered object may be elsewhere in the spec.
        return False
    text, width = node.written or value_of(node), node.location.end_column - node.location.column
    return node.location.end_line == node.location.line and (
        not isinstance(text, str) or width in (len(text), len(text) + len("''"))
    )


def _list_overridden(node: Node) -> Iterator[Related]:
    """The values that a value overrides, from the last layer to the first, or the values that a key comes from."""
    if type(node) is TracedKey:
        node = TracedScalar(None, node.location, overridden=node.overridden)
    while isinstance(node, (TracedScalar, TracedList)):
        over, node = node, node.overridden
        if isinstance(node, TracedScalar) and node.layer == MATRIX:
            yield Related(node.location, f"`{node.value}` is the value in the matrix")
        elif isinstance(node, TracedScalar) and node.layer == VARIABLE_LAYER:
            yield Related(node.location, f"`{node.value}` is set here")
        # Defaults of a kind are not worth reporting.
        elif isinstance(node, (TracedScalar, TracedList)) and not node.layer.startswith("kind "):
            text = str(node.value) if isinstance(node, TracedScalar) else ""
            shown = text if len(text) <= 200 else f"{text[:200]}…"
            value = f"`{shown}`" if isinstance(node, TracedScalar) else "a list"
            yield Related(node.location, f"{over.layer} overrides {value} of {node.layer}")
