"""Create the server with its features, and run it."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
from functools import partial
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.io_ import StdoutWriter
from pygls.protocol import LanguageServerProtocol

from jobgen.features.editor.server import actions, diagnostics, documents, rendered, requests
from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.positions import Texts
from jobgen.k8s.nodes import as_mapping

log = logging.getLogger("jobgen.lsp")
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Longer messages are skipped. A document that jobgen reads has at most 8 MiB."""
_MAX_HEADER_BYTES = 4096
_SKIPPED_AT_ONCE = 1024 * 1024
_CONTENT_LENGTH = re.compile(rb"content-length:\s*(\d{1,18})\s*", re.IGNORECASE)


async def serve_messages(server: JobgenServer, reading: BinaryIO, writing: BinaryIO) -> None:
    """Handle messages until the client ends."""
    server.protocol.set_writer(StdoutWriter(writing))
    loop = asyncio.get_running_loop()
    try:
        while (body := await loop.run_in_executor(server.thread_pool, read_body, reading)) is not None:
            try:
                handle_body(server.protocol, body)
            except Exception:
                log.exception("a message could not be handled")
    finally:
        await asyncio.gather(*(opened.worker.end() for opened in server.workspaces.values()))


def read_body(stream: BinaryIO) -> bytes | None:
    """Read the body of the next message; None at the end of the stream. Other lines of headers are skipped."""
    length: int | None = None
    while line := stream.readline(_MAX_HEADER_BYTES):
        if match := _CONTENT_LENGTH.fullmatch(line):
            length = int(match[1])
        elif length is None:
            if line.strip() and b":" not in line:
                log.warning("%r is not a message header, so it is skipped", line[:80])
        elif not line.strip() and length <= MAX_MESSAGE_BYTES:
            body = stream.read(length)
            return body if len(body) == length else None
        elif not line.strip():
            log.warning("a message of %d bytes is skipped; the limit is %d", length, MAX_MESSAGE_BYTES)
            while length > 0 and (skipped := stream.read(min(length, _SKIPPED_AT_ONCE))):
                length -= len(skipped)
            length = None
    return None


def handle_body(protocol: LanguageServerProtocol, body: bytes) -> None:
    """Handle one message. A request that is malformed is answered with an error."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        _refuse(protocol, None, types.ErrorCodes.ParseError, f"the message is not JSON: {error}")
        return
    if not isinstance(data, dict) or data.get("jsonrpc") != protocol.VERSION:
        _refuse(protocol, None, types.ErrorCodes.InvalidRequest, "the message is not an object of JSON-RPC 2.0")
        return
    number, method = data.get("id"), data.get("method")
    if number is not None and not isinstance(number, str | int):
        _refuse(protocol, None, types.ErrorCodes.InvalidRequest, f"`id` must be a string or an integer: {number!r:.80}")
    elif method is not None and not isinstance(method, str):
        _refuse(protocol, number, types.ErrorCodes.InvalidRequest, f"`method` must be a string: {method!r:.80}")
    elif wrong := _find_wrong_state(protocol, method):
        _refuse(protocol, number, *wrong)
    elif method == types.CANCEL_REQUEST and not isinstance(as_mapping(data.get("params")).get("id"), str | int):
        log.warning("`%s` has no `id` of a request", method)
    else:
        try:
            message = protocol.structure_message({"params": None, **data} if method else data)
        except JsonRpcException as error:
            cause = error.__cause__ or error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            text = f"`{method or 'response'}` has wrong values: {f'{type(cause).__name__}: {cause}'[:200]}"
            _refuse(protocol, number if method else None, types.ErrorCodes.InvalidParams, text)
            return
        protocol.handle_message(message)


def _find_wrong_state(protocol: LanguageServerProtocol, method: str | None) -> tuple[int, str] | None:
    is_initialized = protocol._workspace is not None  # noqa: SLF001 -- its property raises an exception
    if method is None:
        return None
    if not is_initialized and method not in (types.INITIALIZE, types.EXIT):
        return types.ErrorCodes.ServerNotInitialized, f"`{method}` came before `initialize`"
    if is_initialized and method == types.INITIALIZE:
        return types.ErrorCodes.InvalidRequest, "the server is initialized already"
    if protocol._shutdown and method != types.EXIT:  # noqa: SLF001 -- the server itself has no such property
        return types.ErrorCodes.InvalidRequest, f"`{method}` came after `shutdown`"
    return None


def _refuse(protocol: LanguageServerProtocol, number: Any, code: int, text: str) -> None:
    """Answer a request with an error. A notification has no number, and no answer unless it could not be read."""
    log.warning("%s", text)
    if number is not None or code in (types.ErrorCodes.ParseError, types.ErrorCodes.InvalidRequest):
        error = types.ResponseError(code, text)
        protocol._send_data(types.ResponseErrorMessage(jsonrpc=protocol.VERSION, id=number, error=error))  # noqa: SLF001


def create_server() -> JobgenServer:
    """Create the server with all its features."""
    server = JobgenServer()

    def initialize(params: types.InitializeParams) -> None:
        options = params.initialization_options
        server.options = options if isinstance(options, dict) else {}
        match params.capabilities.experimental:
            case {"commands": {"commands": list(names)}}:
                server.client_commands = frozenset(name for name in names if isinstance(name, str))
        known, kind = server.workspace, types.TextDocumentSyncKind.Incremental
        texts = Texts(known.root_uri, kind, list(known.folders.values()), known.position_encoding)
        server.protocol._workspace = texts  # noqa: SLF001 -- pygls has no other place to say which class it is

    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.SHUTDOWN)(partial(_stop, server))
    for module in (documents, diagnostics, actions, requests, rendered):
        module.register(server)
    return server


def _stop(server: JobgenServer, _: object) -> None:
    for opened in server.workspaces.values():
        opened.worker.stop()


def run_server(reading: BinaryIO, writing: BinaryIO) -> None:
    """Serve until the client ends."""
    # The command line disables it, because its other commands end soon.
    gc.enable()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    server = create_server()
    try:
        asyncio.run(serve_messages(server, reading, writing))
    except BrokenPipeError:
        log.warning("the client has closed the connection")
    finally:
        _stop(server, None)
