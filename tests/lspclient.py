"""A client of the language server that can also send what no client should."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from jobgenprocess import name_program
from lsprotocol import types
from pytest_lsp import LanguageClient

REAL = (sys.executable, "-P", "-m", "jobgen")
"""The program of users: for tests of its process, and of those that it starts."""
# The server asks for reports about changed files, and says when lenses and hints are old.
_REQUESTS = (
    types.CLIENT_REGISTER_CAPABILITY,
    types.WORKSPACE_CODE_LENS_REFRESH,
    types.WORKSPACE_INLAY_HINT_REFRESH,
)


def answer_requests(client: LanguageClient) -> None:
    """Answer what the server asks a client of pytest-lsp, which has no answers of its own."""
    for method in _REQUESTS:
        client.feature(method)(lambda params: None)


@contextmanager
def opened(client: LanguageClient, uri: str, text: str) -> Iterator[types.TextDocumentIdentifier]:
    """Open a document, and close it at the end, so that tests can share a server."""
    document = types.TextDocumentIdentifier(uri)
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", 1, text)))
    try:
        yield document
    finally:
        client.text_document_did_close(types.DidCloseTextDocumentParams(document))


async def wait_for(is_done: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(60):
        while not is_done():  # noqa: ASYNC110 -- a server in another process sends no event
            await asyncio.sleep(0.02)


class Client:
    """A language server in its own process, and what it sent."""

    def __init__(
        self,
        folders: list[Path],
        capabilities: dict[str, Any] | None = None,
        *,
        log: Path,
        program: Sequence[str] = (),
    ) -> None:
        self.log = log
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            [*(program or name_program()), "lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.diagnostics: dict[str, list[dict[str, Any]]] = {}
        self.published: list[str] = []
        self.asked: list[str] = []
        self.versions: dict[str, int] = {}
        self._answers: dict[Any, dict[str, Any]] = {}
        self._requests = 0
        self._arrived: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.folders = [{"uri": each.as_uri(), "name": each.name} for each in folders]
        self.capabilities = capabilities or {}

    def __enter__(self) -> Self:
        """Initialize the server."""
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "capabilities": self.capabilities,
                "rootUri": None,
                "workspaceFolders": self.folders,
            },
        )
        self.notify("initialized", {})
        return self

    def __exit__(self, *_: object) -> None:
        """End the server, if it lives."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(10)
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self._log.close()

    def _read(self) -> None:
        while True:
            length = 0
            while (line := self.process.stdout.readline()).strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not line:
                self._arrived.put(None)
                return
            self._arrived.put(json.loads(self.process.stdout.read(length)))

    def send_bytes(self, content: bytes) -> None:
        """Send bytes as they are."""
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Send a message."""
        body = json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any, timeout: float = 300) -> dict[str, Any]:
        """Send a request, and return the answer."""
        self._requests += 1
        self.send({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        number = self._requests
        self.wait(lambda: number in self._answers, timeout)
        return self._answers.pop(number)

    def answer_without_id(self, timeout: float = 300) -> dict[str, Any]:
        """Return the error that the server sent about a message without a number."""
        self.wait(lambda: None in self._answers, timeout)
        return self._answers.pop(None)

    def wait(self, is_done: Any, timeout: float = 300) -> None:
        """Take messages until something holds."""
        end = time.monotonic() + timeout
        while not is_done():
            self._take(end)

    def _take(self, end: float) -> None:
        try:
            message = self._arrived.get(timeout=max(end - time.monotonic(), 0.001))
        except queue.Empty:
            raise TimeoutError(self.log.read_text()[-2000:]) from None
        if message is None:
            raise EOFError(self.log.read_text()[-2000:])
        if "method" not in message:
            self._answers[message.get("id")] = message
        elif "id" in message:
            self.asked.append(message["method"])
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        elif message["method"] == "textDocument/publishDiagnostics":
            params = message["params"]
            self.published.append(params["uri"])
            self.diagnostics[params["uri"]] = params["diagnostics"]
            self.versions[params["uri"]] = params.get("version")

    def settle(self, seconds: float) -> None:
        """Take messages for some time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self._take(end)
            except TimeoutError:
                return

    def codes(self, uri: str) -> list[str]:
        """The rules of the findings that a document shows."""
        return [each["code"] for each in self.diagnostics.get(uri, ())]

    def open(self, uri: str, text: str, version: int = 1) -> None:
        """Open a document."""
        item = {"uri": uri, "languageId": "yaml", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, text: str, version: int) -> None:
        """Replace the text of a document."""
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
        self.notify("textDocument/didChange", params)

    def save(self, uri: str) -> None:
        """Say that a document has been saved."""
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def close(self, uri: str) -> None:
        """Close a document."""
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def stop(self) -> int:
        """Shut the server down, and return its exit code."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(60)

    def list_children(self) -> list[int]:
        """The processes that the server has started."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(each) for each in found.stdout.split()]

    def wait_children(self, timeout: float = 300) -> None:
        """Wait until the server has started its background process."""
        end = time.monotonic() + timeout
        while not self.list_children():
            self._check_time(end)

    def wait_log(self, text: str, times: int, timeout: float = 300) -> None:
        """Wait until the log has a text so many times."""
        end = time.monotonic() + timeout
        while self.log.read_text().count(text) < times:
            self._check_time(end)

    def _check_time(self, end: float) -> None:
        time.sleep(0.05)
        if time.monotonic() > end:
            raise TimeoutError(self.log.read_text()[-2000:])
