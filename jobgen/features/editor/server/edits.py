"""Changes of files as edits of the protocol: the smallest ones, for the versions that they were made from."""

from __future__ import annotations

from lsprotocol import types

from jobgen.features.editor.actions.offer import Change
from jobgen.features.editor.actions.text_changes import LineMap, list_replacements
from jobgen.features.editor.actions.verify import is_new, read_editable
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.model.named_tuple import NamedTuple

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
