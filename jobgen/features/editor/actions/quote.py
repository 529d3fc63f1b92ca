"""Offer to quote a scalar that YAML reads as something else than the text that was written: `0755`, `yes`, `1.10`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from jobgen.features.editor.actions.fix import fix_findings
from jobgen.features.editor.actions.offer import REWRITE, ActionRequest, Offer
from jobgen.features.editor.actions.verify import read_editable
from jobgen.features.editor.cursor import read_text
from jobgen.model.data import Node, TracedKey, TracedScalar
from jobgen.model.finding import Fix, TextEdit

_MAX_OFFERS = 10
"""How many scalars are offered for a selection, at most."""


def list_quotes(request: ActionRequest) -> Iterator[Offer]:
    """Offer to quote the selected scalars, except for those that a fix quotes."""
    content = read_editable(request.workspace, request.file)
    if isinstance(content, str) or request.file.endswith(".json"):
        return
    fixes = [finding.fix for finding in request.findings if finding.fix]
    fixed = {(edit.op, edit.location) for fix in fixes for edit in fix.edits}
    offered = 0
    for document in read_text(content.decode("utf-8", "replace"), request.file).documents:
        for edit in _list_edits(document.data):
            if offered < _MAX_OFFERS and request.is_selected(edit.location) and (edit.op, edit.location) not in fixed:
                offered += 1
                make = partial(fix_findings, request.workspace, (), Fix((edit,), safe=False))
                name = f"quote {edit.location.line}:{edit.location.column}"
                yield Offer(name, "Quote this scalar", REWRITE, make)


def _list_edits(tree: Node) -> Iterator[TextEdit]:
    """Yield the edits that quote the keys and values that are read as another text."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(key, TracedKey) and key.written:
                yield TextEdit("rename", key.location, key.written)
            yield from _list_edits(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _list_edits(value)
    elif isinstance(tree, TracedScalar) and tree.written:
        yield TextEdit("quote", tree.location)
