"""Code actions: offers for a range of a document, and the edits of the one that the user takes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from lsprotocol import types

from jobgen.features.editor.actions.list_offers import list_offers
from jobgen.features.editor.actions.offers import KINDS, ActionRequest, Change, LineMap, Offer, list_replacements
from jobgen.features.editor.actions.verify import is_new, read_editable
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.features.editor.server.diagnostics import to_diagnostics
from jobgen.features.editor.server.positions import are_numbers_of_positions
from jobgen.model.data import Location
from jobgen.model.finding import Finding
from jobgen.reports.escape import visible

_NOTE = "jobgen"
"""The name of the annotation of a change that the user has to confirm."""


class ClientCapabilities(NamedTuple):
    """What a client can do."""

    literals: bool
    """Whether it takes actions with edits, and not only commands."""
    resolves: bool
    """Whether it asks for the edit of an action when the user takes it."""
    versions: bool
    """Whether it takes edits for a version of a document."""
    notes: bool
    """Whether it asks the user to confirm an edit."""
    creates: bool
    """Whether it creates files."""


def to_workspace_edit(server: JobgenServer, opened: OpenWorkspace, change: Change) -> types.WorkspaceEdit | None:
    """Return a change as the smallest edits of its documents; None if the client cannot make it."""
    client = read_capabilities(server)
    note = _NOTE if change.note and client.notes else ""
    documents: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    plain: dict[str, list[types.TextEdit]] = {}
    for file, new in change.files.items():
        is_created = is_new(opened.workspace, file)
        old = b"" if is_created else read_editable(opened.workspace, file)
        if isinstance(old, str) or (is_created and not client.creates):
            return None
        uri = server.find_uri(opened, file)
        if is_created:
            documents.append(types.CreateFile(uri, annotation_id=note or None))
        edits = _list_edits(server, old.decode("utf-8", "surrogatepass"), new.decode())
        document = server.find_document(uri)
        version = document.version if document else None
        noted = [types.AnnotatedTextEdit(note, each.range, each.new_text) if note else each for each in edits]
        documents.append(types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), noted))
        plain[uri] = edits
    if not client.versions:
        return types.WorkspaceEdit(changes=plain)
    annotation = types.ChangeAnnotation("jobgen", needs_confirmation=True, description=change.note)
    return types.WorkspaceEdit(document_changes=documents, change_annotations={note: annotation} if note else None)


def _list_edits(server: JobgenServer, old: str, new: str) -> list[types.TextEdit]:
    encoding = server.workspace.position_encoding
    lines = LineMap(old, "utf-8" if encoding == "utf-8" else "utf-32" if encoding == "utf-32" else "utf-16")
    edits: list[types.TextEdit] = []
    for each in list_replacements(old, new):
        start, end = types.Position(*lines.position(each.start)), types.Position(*lines.position(each.end))
        edits.append(types.TextEdit(types.Range(start, end), each.text))
    return edits


def read_capabilities(server: JobgenServer) -> ClientCapabilities:
    """Return what the client can do."""
    known = server.client_capabilities
    actions = known.text_document.code_action if known.text_document else None
    edits = known.workspace.workspace_edit if known.workspace else None
    resolved = actions.resolve_support.properties if actions and actions.resolve_support else ()
    operations = (edits.resource_operations if edits else None) or ()
    return ClientCapabilities(
        literals=bool(actions and actions.code_action_literal_support),
        resolves=bool(actions and actions.data_support and "edit" in resolved),
        versions=bool(edits and edits.document_changes),
        notes=bool(edits and edits.document_changes and edits.change_annotation_support),
        creates=bool(edits and edits.document_changes and types.ResourceOperationKind.Create in operations),
    )


log = logging.getLogger("jobgen.lsp")


def register(server: JobgenServer) -> None:
    """Answer requests for code actions."""
    options = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(partial(_list_actions, server))
    server.feature(types.CODE_ACTION_RESOLVE)(partial(_resolve, server))


def _list_actions(server: JobgenServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    client = read_capabilities(server)
    document = server.find_document(uri)
    if not client.literals or document is None:
        return []
    return _make_actions(server, params, document.version, is_complete=not client.resolves)


def _make_actions(
    server: JobgenServer, params: types.CodeActionParams, version: int | None, *, is_complete: bool
) -> list[types.CodeAction]:
    """Return the actions; with their edits if they have to be complete, because the client asks only once."""
    uri, context = params.text_document.uri, params.context
    is_invoked = context.trigger_kind != types.CodeActionTriggerKind.Automatic
    found = _find_offers(server, uri, params.range, context.only or (), is_invoked=is_invoked)
    if found is None:
        return []
    opened, offers = found
    data = {"uri": uri, "version": version, "range": _to_data(params.range)}
    actions = [_to_action(server, opened, uri, offer, data, context.diagnostics) for offer in offers]
    if not is_complete:
        return actions
    for action, offer in zip(actions, offers, strict=True):
        change = offer.make()
        action.edit = to_workspace_edit(server, opened, change) if isinstance(change, Change) else None
    return [action for action in actions if action.edit]


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
    # What the background process found in another version of a file may be somewhere else by now.
    shared = tuple(each for each in findings.shared if all(map(opened.is_current, _list_files(each))))
    valid = findings._replace(shared=shared).all
    return opened, list_offers(ActionRequest(opened.workspace, file, selected, valid, is_invoked), only)


def _list_files(finding: Finding) -> set[str]:
    """Return the file of a finding, and those that its fix edits."""
    return {finding.location.file, *(edit.location.file for edit in (finding.fix.edits if finding.fix else ()))}


def _to_action(
    server: JobgenServer,
    opened: OpenWorkspace,
    uri: str,
    offer: Offer,
    data: dict[str, Any],
    shown: Sequence[types.Diagnostic],
) -> types.CodeAction:
    own = to_diagnostics(server, opened, uri, offer.findings)
    wanted = {(each.code, each.range.start.line, each.range.start.character) for each in own}
    fixed = [each for each in shown if (each.code, each.range.start.line, each.range.start.character) in wanted]
    return types.CodeAction(
        title=visible(offer.title),
        kind=offer.kind,
        diagnostics=fixed or None,
        is_preferred=True if offer.is_preferred else None,
        data={**data, "kind": offer.kind, "id": offer.id},
    )


def _resolve(server: JobgenServer, action: types.CodeAction) -> types.CodeAction:
    """Give an action its edit. One that was offered for another version of the document gets none."""
    try:
        action.edit = _make_edit(server, action.data)
    except Exception:
        log.exception("the code action %r could not be made", action.title)
    return action


def _make_edit(server: JobgenServer, given: Any) -> types.WorkspaceEdit | None:
    data = _read_data(given)
    document = server.find_document(data.uri) if data else None
    if data is None or document is None or document.version != data.version:
        return None
    found = _find_offers(server, data.uri, data.range, (data.kind,), is_invoked=True)
    offer = next((each for each in found[1] if each.id == data.id), None) if found else None
    if found is None or offer is None:
        return None
    change = offer.make()
    edit = to_workspace_edit(server, found[0], change) if isinstance(change, Change) else None
    if edit is None:
        reason = change if isinstance(change, str) else "the editor cannot create files"
        message = visible(f"{offer.title}: nothing was changed, because {reason}")
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))
    return edit


class _Data(NamedTuple):
    """What an action needs to be found again."""

    uri: str
    version: Any
    range: types.Range
    kind: str
    id: str


def _to_data(range_: types.Range) -> list[int]:
    return [range_.start.line, range_.start.character, range_.end.line, range_.end.character]


def _read_data(data: Any) -> _Data | None:
    """Return the data of an action; None if a client sends other data than it was given."""
    match data:
        case {
            "uri": str(uri),
            "version": version,
            "range": [int(first), int(column), int(last), int(end)],
            "kind": str(kind),
            "id": str(name),
        } if are_numbers_of_positions(first, column, last, end):
            return _Data(
                uri, version, types.Range(types.Position(first, column), types.Position(last, end)), kind, name
            )
    return None
