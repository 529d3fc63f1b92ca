"""Problems on their lines: where a node was written, what it replaced there, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.data import (
    Change,
    Data,
    Edit,
    Finding,
    Fix,
    Items,
    Key,
    Leaf,
    Mark,
    Problem,
    Related,
    bare,
    mark_of,
    plain,
)
from jobgen.spec.sweeps import MATRIX


def place(problem: Problem, file: str, fallback: Mark | None = None) -> Finding:
    """A problem of a traced walk, on the line of the node that is to blame."""
    related = [Related(mark, text) for node, text in problem.related if (mark := mark_of(node))]
    related += _replaced(problem.node)
    mark = mark_of(problem.node) or fallback or Mark(file)
    return Finding(
        problem.rule,
        problem.category,
        problem.severity,
        problem.message,
        mark,
        related=tuple(related),
        fix=_fix(problem),
    )


def _fix(problem: Problem) -> Fix | None:
    """What would mend a problem, if all of it was written so, in one file that can be changed."""
    if not all(_is_written(change) for change in problem.mend):
        return None
    edits = tuple(
        Edit(op, node.mark, _bare(plain(value)), str(key), _bare(bare(node))) for op, node, value, key in problem.mend
    )
    # Of a change in two files one half could be done without the other.
    return Fix(edits, problem.safe) if len({edit.mark.file for edit in edits}) == 1 else None


def _bare(value: Data) -> Data:
    """A key as the string that it is."""
    return str(value) if isinstance(value, Key) else value


def _is_written(change: Change) -> bool:
    """Whether the node of a change stands in its file as it stands in the object."""
    node = change.node
    if not isinstance(node, (Leaf, Key)) or node.mark.file.startswith("schemas/"):
        return False
    if change.op == "remove" and isinstance(node, Leaf) and not change.key:
        # By its value alone an entry is not known: that of a JSON patch is called `value`.
        return False
    if change.op == "add" and node.layer not in ("", "manifest"):
        # What stands beside a field of a rendered object may stand elsewhere in its spec.
        return False
    text, width = bare(node), node.mark.end_column - node.mark.column
    return node.mark.end_line == node.mark.line and (
        not isinstance(text, str) or width in (len(text), len(text) + len("''"))
    )


def _replaced(node: Data) -> Iterator[Related]:
    """The layers beneath a value: what it replaced, the last word first."""
    while isinstance(node, (Leaf, Items)):
        over, node = node, node.under
        if isinstance(node, Leaf) and node.layer == MATRIX:
            yield Related(node.mark, f"`{node.value}` is the value in the matrix")
        # What a kind says where nobody else does is not news.
        elif isinstance(node, (Leaf, Items)) and not node.layer.startswith("kind "):
            value = f"`{node.value}`" if isinstance(node, Leaf) else "a list"
            yield Related(node.mark, f"{over.layer} replaced {value} of {node.layer}")
