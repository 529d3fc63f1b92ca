"""Start the background process of a workspace, send it requests, and take its answers."""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobgen.editor.background import HEAD_BYTES, Request, decode_length, encode_frame
from jobgen.editor.snapshot import Snapshot

log = logging.getLogger("jobgen.lsp")
_MAX_STARTS = 5


class Worker:
    """The background process of a workspace. A process that ends is started again, a few times."""

    def __init__(self, root: Path, take: Callable[[Snapshot], None]) -> None:
        self._root = root
        self._take = take
        self.number = 0
        """The number of the newest request."""
        self._starts = 0
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: asyncio.TimerHandle | None = None
        self._is_stopped = False

    def request(self, drafts: Mapping[str, bytes], delay: float = 0) -> None:
        """Ask for a lint of everything, after a pause in which no other request arrives."""
        self.number += 1
        if self._waiting:
            self._waiting.cancel()
        request = Request(self.number, dict(drafts))
        loop = asyncio.get_running_loop()
        self._waiting = loop.call_later(delay, lambda: self._start(self._send(request)))

    def stop(self) -> None:
        """End the process."""
        self._is_stopped = True
        if self._waiting:
            self._waiting.cancel()
        if self._process and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, request: Request) -> None:
        if self._process is None or self._process.returncode is not None:
            if self._is_stopped or self._starts >= _MAX_STARTS:
                return
            self._starts += 1
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "jobgen", "lsp", "--background", str(self._root)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            self._start(self._receive(self._process))
        if self._process.stdin:
            with suppress(ConnectionError):
                self._process.stdin.write(encode_frame(request))
                await self._process.stdin.drain()

    async def _receive(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with suppress(asyncio.IncompleteReadError):
            while True:
                head = await process.stdout.readexactly(HEAD_BYTES)
                content = await process.stdout.readexactly(decode_length(head))
                snapshot: Snapshot = pickle.loads(content)  # noqa: S301 -- written by our own process
                self._take(snapshot)
        await process.wait()
        if not self._is_stopped:
            log.warning("the background process of %s has ended with code %s", self._root, process.returncode)
