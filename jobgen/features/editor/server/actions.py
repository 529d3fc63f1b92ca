"""Code actions: offers for a range of a document, and the edits of the one that the user takes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from lsprotocol import types

from jobgen.features.editor.list_offers import list_offers
from jobgen.features.editor.offers import (
    KINDS,
    ActionRequest,
    Change,
    Offer,
    is_new,
    list_replacements,
    read_editable,
)
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.features.editor.server.diagnostics import to_diagnostics
from jobgen.features.editor.server.positions import LineMap, are_numbers_of_positions
from jobgen.model.data import Location
from jobgen.model.finding import Finding
from jobgen.reports.escape import visible

log = logging.getLogger("jobgen.lsp")
_NOTE = "jobgen"
"""The name of the annotation of a change that the user has to confirm."""


def to_workspace_edit(server: JobgenServer, opened: OpenWorkspace, change: Change) -> types.WorkspaceEdit | None:
    """Return a change as the smallest edits of its documents; None if the client cannot make it."""
    workspace = server.client_capabilities.workspace
    client = (workspace.workspace_edit if workspace else None) or types.WorkspaceEditClientCapabilities()
    can_create = client.document_changes and types.ResourceOperationKind.Create in (client.resource_operations or ())
    note = _NOTE if change.note and client.document_changes and client.change_annotation_support else ""
    documents: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    plain: dict[str, list[types.TextEdit]] = {}
    for file, new in change.files.items():
        is_created = is_new(opened.workspace, file)
        old = b"" if is_created else read_editable(opened.workspace, file)
        if isinstance(old, str) or (is_created and not can_create):
            return None
        uri = server.find_uri(opened, file)
        if is_created:
            documents.append(types.CreateFile(uri, annotation_id=note or None))
        before = old.decode("utf-8", "surrogatepass")
        lines = LineMap(before, server.workspace.position_codec)
        edits = [
            types.TextEdit(types.Range(lines.position(each.start), lines.position(each.end)), each.text)
            for each in list_replacements(before, new.decode())
        ]
        document = server.find_document(uri)
        version = document.version if document else None
        noted = [types.AnnotatedTextEdit(note, each.range, each.new_text) if note else each for each in edits]
        documents.append(types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), noted))
        plain[uri] = edits
    if not client.document_changes:
        return types.WorkspaceEdit(changes=plain)
    annotation = types.ChangeAnnotation("jobgen", needs_confirmation=True, description=change.note)
    return types.WorkspaceEdit(document_changes=documents, change_annotations={note: annotation} if note else None)


def register(server: JobgenServer) -> None:
    """Answer requests for code actions."""
    options = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(partial(_make_actions, server))
    server.feature(types.CODE_ACTION_RESOLVE)(partial(_resolve, server))


def _make_actions(server: JobgenServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Return the actions; with their edits if the client asks only once."""
    uri, context, known = params.text_document.uri, params.context, server.client_capabilities.text_document
    client = known.code_action if known else None
    document = server.find_document(uri)
    # Without literals, a client takes only commands.
    if client is None or not client.code_action_literal_support or document is None:
        return []
    is_invoked = context.trigger_kind != types.CodeActionTriggerKind.Automatic
    found = _find_offers(server, uri, params.range, context.only or (), is_invoked=is_invoked)
    if found is None:
        return []
    opened, offers = found
    start, end = params.range.start, params.range.end
    range_ = [start.line, start.character, end.line, end.character]
    resolved = client.resolve_support.properties if client.data_support and client.resolve_support else ()
    actions: list[types.CodeAction] = []
    for offer in offers:
        own = to_diagnostics(server, opened, uri, offer.findings)
        action = types.CodeAction(
            title=visible(offer.title),
            kind=offer.kind,
            diagnostics=[each for each in context.diagnostics if any(_is_same(each, other) for other in own)] or None,
            is_preferred=True if offer.is_preferred else None,
            data={"uri": uri, "version": document.version, "range": range_, "kind": offer.kind, "id": offer.id},
        )
        if "edit" not in resolved:
            change = offer.make()
            action.edit = to_workspace_edit(server, opened, change) if isinstance(change, Change) else None
        if "edit" in resolved or action.edit:
            actions.append(action)
    return actions


def _is_same(one: types.Diagnostic, other: types.Diagnostic) -> bool:
    return (one.code, one.range.start) == (other.code, other.range.start)


def _find_offers(
    server: JobgenServer, uri: str, range_: types.Range, only: Sequence[str], *, is_invoked: bool
) -> tuple[OpenWorkspace, list[Offer]] | None:
    found, document = server.find_workspace(uri), server.find_document(uri)
    if found is None or document is None:
        return None
    opened, file = found
    inside = server.workspace.position_codec.range_from_client_units(document.lines, range_)
    start, end = inside.start, inside.end
    selected = Location(file, start.line + 1, start.character + 1, end.line + 1, end.character + 1)
    findings = opened.workspace.lint_file(file)

    def is_current(finding: Finding) -> bool:
        edits = finding.fix.edits if finding.fix else ()
        return all(map(opened.is_current, {finding.location.file, *(edit.location.file for edit in edits)}))

    # What the background process found in another version of a file may be somewhere else by now.
    valid = findings._replace(shared=tuple(filter(is_current, findings.shared))).all
    return opened, list_offers(ActionRequest(opened.workspace, file, selected, valid, is_invoked), only)


def _resolve(server: JobgenServer, action: types.CodeAction) -> types.CodeAction:
    """Give an action its edit. One that was offered for another version of the document gets none."""
    try:
        action.edit = _make_edit(server, action.data)
    except Exception:
        log.exception("the code action %r could not be made", action.title)
    return action


def _make_edit(server: JobgenServer, data: Any) -> types.WorkspaceEdit | None:
    range_ = _read_range(data)
    document = server.find_document(data["uri"]) if range_ else None
    if range_ is None or document is None or document.version != data["version"]:
        return None
    found = _find_offers(server, data["uri"], range_, (data["kind"],), is_invoked=True)
    offer = next((each for each in found[1] if each.id == data["id"]), None) if found else None
    if found is None or offer is None:
        return None
    change = offer.make()
    edit = to_workspace_edit(server, found[0], change) if isinstance(change, Change) else None
    if edit is None:
        reason = change if isinstance(change, str) else "the editor cannot create files"
        message = visible(f"{offer.title}: nothing was changed, because {reason}")
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))
    return edit


def _read_range(data: Any) -> types.Range | None:
    """Return the range of an action; None if a client sends other data than it was given."""
    match data:
        case {"uri": str(), "version": _, "range": [*numbers], "kind": str(), "id": str()}:
            match numbers:
                case [int(first), int(column), int(last), int(end)] if are_numbers_of_positions(*numbers):
                    return types.Range(types.Position(first, column), types.Position(last, end))
    return None
