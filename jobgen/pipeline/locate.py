"""Problems on their lines: where a node was written, what it replaced there, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.data import Data, Location, TracedKey, TracedList, TracedScalar, location_of, untraced, value_of
from jobgen.model.finding import Finding, Fix, FixStep, Problem, Related, TextEdit
from jobgen.spec.sweeps import MATRIX


def locate(problem: Problem, file: str, fallback: Location | None = None) -> Finding:
    """A problem of a traced walk, on the line of the node that is to blame."""
    related = [Related(location, text) for node, text in problem.related if (location := location_of(node))]
    related += _replaced(problem.node)
    location = location_of(problem.node) or fallback or Location(file)
    return Finding(
        problem.rule,
        problem.category,
        problem.severity,
        problem.message,
        location,
        related=tuple(related),
        evidence=problem.evidence,
        fix=_fix(problem),
    )


def _fix(problem: Problem) -> Fix | None:
    """What would mend a problem, if all of it was written so, in one file that can be changed."""
    if not all(_is_written(change) for change in problem.fix_steps):
        return None
    edits = tuple(
        TextEdit(op, node.location, _bare(untraced(value)), str(key), _bare(value_of(node)))
        for op, node, value, key in problem.fix_steps
        if isinstance(node, (TracedScalar, TracedKey))
    )
    # Of a change in two files one half could be done without the other.
    return Fix(edits, problem.safe) if len({edit.location.file for edit in edits}) == 1 else None


def _bare(value: Data) -> Data:
    """A key as the string that it is."""
    return str(value) if isinstance(value, TracedKey) else value


def _is_written(change: FixStep) -> bool:
    """Whether the node of a change stands in its file as it stands in the object."""
    node = change.node
    if not isinstance(node, (TracedScalar, TracedKey)) or node.location.file.startswith("schemas/"):
        return False
    if change.op == "remove" and isinstance(node, TracedScalar) and not change.key:
        # By its value alone an entry is not known: that of a JSON patch is called `value`.
        return False
    if change.op == "add" and node.layer not in ("", "manifest"):
        # What stands beside a field of a rendered object may stand elsewhere in its spec.
        return False
    text, width = value_of(node), node.location.end_column - node.location.column
    return node.location.end_line == node.location.line and (
        not isinstance(text, str) or width in (len(text), len(text) + len("''"))
    )


def _replaced(node: Data) -> Iterator[Related]:
    """The layers beneath a value: what it replaced, the last word first."""
    while isinstance(node, (TracedScalar, TracedList)):
        over, node = node, node.overridden
        if isinstance(node, TracedScalar) and node.layer == MATRIX:
            yield Related(node.location, f"`{node.value}` is the value in the matrix")
        # What a kind says where nobody else does is not news.
        elif isinstance(node, (TracedScalar, TracedList)) and not node.layer.startswith("kind "):
            value = f"`{node.value}`" if isinstance(node, TracedScalar) else "a list"
            yield Related(node.location, f"{over.layer} replaced {value} of {node.layer}")
