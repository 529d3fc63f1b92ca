"""Code lenses, or inlay hints for editors without them, and the command that lists the jobs of a patch or overlay."""

from __future__ import annotations

from functools import partial
from typing import Any

from lsprotocol import types

from jobgen.features.editor.lenses import Lens, list_lenses
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.features.editor.server.positions import to_location, to_range
from jobgen.features.editor.server.requested import RequestedDocument, find_document

SHOW_REFERENCES = "jobgen.showReferences"
"""A command of the editor: it has the arguments URI, position and locations. VS Code needs its own types for them."""
LIST_JOBS = "jobgen.listJobs"
"""The same as a command of the server, for editors that have no such command."""
SHOW_RENDERED = "jobgen.showRendered"
_MAX_LISTED = 1000
_MAX_NAMED = 10


def register(server: JobgenServer) -> None:
    """Answer requests for code lenses."""
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(partial(_list_code_lenses, server))
    server.command(LIST_JOBS)(partial(_list_jobs, server))
    server.listeners.append(partial(_refresh, server))


def _list_code_lenses(server: JobgenServer, params: types.CodeLensParams) -> list[types.CodeLens] | None:
    requested = find_document(server, params.text_document.uri)
    if requested is None or _uses_hints(server):
        return None
    return [
        types.CodeLens(to_range(server, requested.uri, lens.location), _to_command(server, requested, lens))
        for lens in list_lenses(requested.opened.workspace, requested.file, requested.opened.find_decisions())
    ]


def list_lens_hints(server: JobgenServer, requested: RequestedDocument) -> list[types.InlayHint]:
    """Return the lenses as inlay hints at the ends of their lines, if the editor has no lenses."""
    if not _uses_hints(server):
        return []
    lines = requested.text.split("\n")
    texts: dict[int, list[str]] = {}
    for lens in list_lenses(requested.opened.workspace, requested.file, requested.opened.find_decisions()):
        texts.setdefault(max(lens.location.line - 1, 0), []).append(lens.text)
    found: list[types.InlayHint] = []
    for line, several in texts.items():
        if line < len(lines):
            end = server.workspace.position_codec.client_num_units(lines[line].rstrip("\r"))
            found.append(types.InlayHint(types.Position(line, end), "; ".join(several), padding_left=True))
    return found


def _uses_hints(server: JobgenServer) -> bool:
    """Whether to show inlay hints instead of lenses: the setting says so, or the editor has no lenses."""
    options = server.options.get("inlayHints")
    document = server.client_capabilities.text_document
    has_lenses = document is not None and document.code_lens is not None
    has_hints = document is not None and document.inlay_hint is not None
    return options if isinstance(options, bool) else has_hints and not has_lenses


def _to_command(server: JobgenServer, requested: RequestedDocument, lens: Lens) -> types.Command:
    start = to_range(server, requested.uri, lens.location).start
    if lens.environment is not None:
        argument = {"uri": requested.uri, "position": _to_data(start), "environment": lens.environment}
        return types.Command(title=lens.text, command=SHOW_RENDERED, arguments=[argument])
    places = [to_location(server, requested.opened, place) for place in lens.jobs[:_MAX_LISTED]]
    listed = [{"uri": each.uri, "range": _to_data(each.range)} for each in places]
    if not listed:
        return types.Command(title=lens.text, command="")
    name = SHOW_REFERENCES if SHOW_REFERENCES in server.client_commands else LIST_JOBS
    return types.Command(title=lens.text, command=name, arguments=[requested.uri, _to_data(start), listed])


def _to_data(value: types.Position | types.Range) -> dict[str, Any]:
    if isinstance(value, types.Range):
        return {"start": _to_data(value.start), "end": _to_data(value.end)}
    return {"line": value.line, "character": value.character}


def _list_jobs(server: JobgenServer, *arguments: Any) -> Any:
    """Show the only job of a lens, or a message with the files of several; the result has all of them."""
    places = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], list) else []
    uris = [place["uri"] for place in places if isinstance(place, dict) and isinstance(place.get("uri"), str)]
    if len(uris) == 1:
        server.window_show_document(types.ShowDocumentParams(uris[0], take_focus=True))
    elif uris:
        more = f" and {len(uris) - _MAX_NAMED} more" if len(uris) > _MAX_NAMED else ""
        names = ", ".join(uri.rpartition("/")[2] for uri in uris[:_MAX_NAMED])
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"{names}{more}"))
    return places


def _refresh(server: JobgenServer, _: OpenWorkspace) -> None:
    """Ask the editor for lenses again: other files decide how many jobs a patch matches."""
    workspace = server.client_capabilities.workspace
    if _uses_hints(server):
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            server.workspace_inlay_hint_refresh(None)
    elif workspace and workspace.code_lens and workspace.code_lens.refresh_support:
        server.workspace_code_lens_refresh(None)
