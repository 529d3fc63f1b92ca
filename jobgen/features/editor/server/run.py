"""Create the server with its features, and run it."""

from __future__ import annotations

import asyncio
import gc
import logging
from functools import partial
from typing import BinaryIO

from lsprotocol import types

from jobgen.features.editor.server import (
    actions,
    completion,
    diagnostics,
    documents,
    folders,
    hover,
    inlay_hints,
    lenses,
    navigation,
    rendered,
    symbols,
)
from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.messages import serve_messages
from jobgen.features.editor.server.text import Texts

log = logging.getLogger("jobgen.lsp")

FEATURES = (
    *(folders, documents, diagnostics, completion, symbols, navigation),
    *(hover, actions, inlay_hints, lenses, rendered),
)
"""The modules that answer requests. Each has a function `register`."""


def create_server() -> JobgenServer:
    """Create the server with all its features."""
    server = JobgenServer()
    server.feature(types.INITIALIZE)(partial(_initialize, server))
    server.feature(types.SHUTDOWN)(partial(_stop, server))
    for module in FEATURES:
        module.register(server)
    return server


def _initialize(server: JobgenServer, params: types.InitializeParams) -> None:
    """Use our own texts, and what the editor says about itself."""
    options = params.initialization_options
    server.options = options if isinstance(options, dict) else {}
    match params.capabilities.experimental:
        case {"commands": {"commands": list(names)}}:
            server.client_commands = frozenset(name for name in names if isinstance(name, str))
    known = server.workspace
    texts = Texts(
        known.root_uri,
        types.TextDocumentSyncKind.Incremental,
        list(known.folders.values()),
        known.position_encoding,
    )
    server.protocol._workspace = texts  # noqa: SLF001 -- pygls has no other place to say which class it is


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
