"""Show rendered documents: read-only documents of the editor that follow the edits of a job and its overlays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from lsprotocol import types

from jobgen.features.editor import rendered
from jobgen.features.editor.definition import find_definitions, find_references, list_rendered_environments
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace, TimeLimitError, guard
from jobgen.features.editor.server.positions import are_numbers_of_positions, to_location
from jobgen.features.editor.server.requests import SHOW_RENDERED, find_context, find_position
from jobgen.repo import git

_Result = TypeVar("_Result")


def run_apart(function: Callable[[], _Result]) -> asyncio.Future[_Result]:
    """Call a function in a thread that does not keep the process from ending, as those of the loop do."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def finish(set_: Callable[..., None], value: object) -> None:
        if not future.done():
            set_(value)

    def run() -> None:
        # The loop may have ended by now.
        with suppress(RuntimeError):
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 -- for the one who waits
                loop.call_soon_threadsafe(finish, future.set_exception, error)
            else:
                loop.call_soon_threadsafe(finish, future.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return future


RENDERED = "jobgen/rendered"
"""A request with `uri`, `position`, `environment` and `diff`; the answer has `uri` and `text`."""
MAX_GIT_SECONDS = 20
"""How long an answer waits for Git, which may stall: on a network, for example."""
_MAX_FOLLOWED = 20
"""Rendered documents that are kept up to date, the newest first. Editors do not say when one is closed."""


class _Shown:
    """The rendered documents that the editor has asked for."""

    def __init__(self, server: JobgenServer) -> None:
        self._server = server
        self._followed: dict[str, str] = {}
        """The text that was sent last, by URI."""
        self._bases: dict[rendered.RenderedDocument, asyncio.Future[rendered.BaseText]] = {}
        self._refreshing: set[asyncio.Task[None]] = set()

    async def _read(self, uri: str) -> str | None:
        shown = rendered.from_uri(uri)
        found = self._server.find_workspace(shown.uri) if shown else None
        if shown is None or found is None:
            return None
        opened, file = found
        try:
            text = self._server.limit(
                rendered.render_document, opened.workspace, file, shown.document, shown.environment
            )
        except TimeLimitError:
            return "# the job takes too long to render; use `jobgen render`\n"
        if not shown.is_diff:
            return text
        key = shown._replace(name="")
        if key not in self._bases:
            # It reads a commit, which takes longer than an answer may.
            render = partial(rendered.render_base, opened.workspace.root, file, shown.document, shown.environment)
            self._bases[key] = run_apart(render)
        try:
            # Others may wait for the base too, so a request that is cancelled must not cancel it.
            base = await asyncio.wait_for(asyncio.shield(self._bases[key]), MAX_GIT_SECONDS)
            return rendered.write_diff(base, text)
        except TimeoutError:
            return rendered.explain_no_base(git.GitError(f"Git takes longer than {MAX_GIT_SECONDS} s"))
        except git.GitError as error:
            self._bases.pop(key, None)
            return rendered.explain_no_base(error)

    async def follow(self, uri: str) -> str | None:
        """Return the text of a rendered document, and keep it up to date."""
        text = await self._read(uri)
        if text is not None:
            self._followed.pop(uri, None)
            self._followed[uri] = text
            for old in list(self._followed)[:-_MAX_FOLLOWED]:
                del self._followed[old]
        return text

    async def open(self, wanted: rendered.RenderedDocument) -> dict[str, str] | None:
        """Return the URI and the text of a rendered document, and keep it up to date."""
        # The base is read again, since there may be another commit.
        self._bases.clear()
        uri = rendered.to_uri(wanted)
        text = await self.follow(uri)
        return None if text is None else {"uri": uri, "text": text}

    async def _refresh(self) -> None:
        for uri, before in list(self._followed.items()):
            text = await self._read(uri)
            if text is not None and text != before:
                self._followed[uri] = text
                self._server.workspace_text_document_content_refresh(types.TextDocumentContentRefreshParams(uri))

    def refresh_soon(self, _: OpenWorkspace) -> None:
        """Ask the editor to read the documents again that have changed, if it asks servers for documents at all."""
        if not self._refreshing and supports_content(self._server):
            task = asyncio.get_running_loop().create_task(guard("refresh", self._refresh)())
            self._refreshing.add(task)
            task.add_done_callback(self._refreshing.discard)


def register(server: JobgenServer) -> None:
    """Answer requests for definitions, references and rendered documents."""
    shown = _Shown(server)

    async def read_content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        text = await shown.follow(params.uri)
        return types.TextDocumentContentResult("# this document is not known any more\n" if text is None else text)

    async def answer_rendered(params: Any) -> dict[str, str] | None:
        wanted = _find_wanted(server, params)
        return await shown.open(wanted) if wanted else None

    server.feature(types.TEXT_DOCUMENT_DEFINITION)(partial(_find_definitions, server))
    server.feature(types.TEXT_DOCUMENT_REFERENCES)(partial(_find_references, server))
    server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)(read_content)
    server.feature(RENDERED)(answer_rendered)
    server.command(SHOW_RENDERED)(partial(_show, server, shown))
    server.edit_listeners.append(shown.refresh_soon)
    server.listeners.append(shown.refresh_soon)


def provide_content(server: JobgenServer) -> None:
    """Say that the server has the content of rendered documents, if the editor asks servers for content."""
    if supports_content(server):
        options = types.TextDocumentContentRegistrationOptions([rendered.SCHEME])
        wanted = types.Registration("jobgen-rendered", types.WORKSPACE_TEXT_DOCUMENT_CONTENT, options)
        server.client_register_capability(types.RegistrationParams([wanted]))


def supports_content(server: JobgenServer) -> bool:
    """Return True if the editor asks servers for the content of documents that are not files."""
    workspace = server.client_capabilities.workspace
    content = workspace.text_document_content if workspace else None
    return content is not None and bool(content.dynamic_registration)


async def _show(server: JobgenServer, shown: _Shown, *arguments: Any) -> dict[str, str] | None:
    """Open the rendered document, if the editor can; the result has its URI and text."""
    wanted = _find_wanted(server, arguments[0] if arguments else None)
    if wanted is None:
        message = "there is no job at this position"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))
        return None
    answer = await shown.open(wanted)
    window = server.client_capabilities.window
    can_show = window is not None and window.show_document is not None and window.show_document.support
    if answer is not None and can_show and supports_content(server):
        server.window_show_document(types.ShowDocumentParams(answer["uri"], take_focus=True))
    return answer


def _find_wanted(server: JobgenServer, values: Any) -> rendered.RenderedDocument | None:
    """Return the rendered document of the job at a position; None if the values name none."""
    match _to_plain(values):
        case {"uri": str(uri), **others}:
            pass
        case _:
            return None
    match others.get("position"):
        case {"line": int(line), "character": int(character)} if are_numbers_of_positions(line, character):
            position = types.Position(line, character)
        case _:
            position = types.Position(0, 0)
    found = server.limit(find_position, server, uri, position)
    if found is None or not found[0].opened.workspace.is_job(found[0].file):
        return None
    requested, cursor = found
    environment = others.get("environment")
    known = requested.opened.workspace.index.get(requested.file)
    names = [job.name for job in known.jobs if job.position == cursor.document] if known else []
    chosen = environment if isinstance(environment, str) else ""
    title = names[0] if names else requested.file.rpartition("/")[2].partition(".")[0]
    return rendered.RenderedDocument(uri, cursor.document, chosen, others.get("diff") is True, title)


def _to_plain(values: Any) -> Any:
    """Return parameters as mappings: pygls reads those of unknown requests as named tuples."""
    found = values._asdict() if hasattr(values, "_asdict") else values
    return {key: _to_plain(value) for key, value in found.items()} if isinstance(found, dict) else found


def _find_definitions(server: JobgenServer, params: types.DefinitionParams) -> list[types.Location] | None:
    found = find_context(server, params.text_document.uri, params.position)
    if found is None:
        return None
    requested, context = found
    places = [to_location(server, requested.opened, place) for place in find_definitions(context)]
    if places or not supports_content(server):
        return places
    # The objects of a job that are not in the repository have a rendered document for each environment.
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    shown = rendered.RenderedDocument(requested.uri, context.cursor.document, name=context.name)
    environments = list_rendered_environments(context)
    return [types.Location(rendered.to_uri(shown._replace(environment=each)), start) for each in environments]


def _find_references(server: JobgenServer, params: types.ReferenceParams) -> list[types.Location] | None:
    found = find_context(server, params.text_document.uri, params.position)
    if found is None:
        return None
    requested, context = found
    return [to_location(server, requested.opened, place) for place in find_references(context)]
