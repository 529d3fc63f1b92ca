"""Start the background process of a workspace, send it requests, and take its answers."""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobgen.features.editor.background import HEAD_BYTES, Request, decode_length, encode_frame
from jobgen.features.editor.decisions import DecisionsAnswer
from jobgen.features.editor.snapshot import Snapshot

log = logging.getLogger("jobgen.lsp")
MAX_STARTS = 5
"""How often the process is started within a minute."""
_STARTS_WITHIN = 60.0
_END_SECONDS = 2.0


class Worker:
    """The background process of a workspace. A process that ends is started again, and gets the newest request."""

    def __init__(self, root: Path, take: Callable[[Snapshot | DecisionsAnswer], None]) -> None:
        self.number = 0
        """The number of the newest request."""
        self.watches = False
        """Whether the process looks for changed files, because the editor does not report them."""
        self._root = root
        self._take = take
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()
        self._waiting: asyncio.TimerHandle | None = None
        self._next: Request | None = None
        """The request that is sent after the one that is being sent."""
        self._unanswered: Request | None = None
        """The newest request, until it is answered."""
        self._is_stopped = False

    def request(self, drafts: Mapping[str, bytes], delay: float = 0) -> None:
        """Ask for a lint of everything, after a pause in which no other request arrives."""
        self.number += 1
        self._unanswered = Request(self.number, dict(drafts), self.watches)
        self._send_later(self._unanswered, delay)

    def stop(self) -> None:
        """End the process."""
        self._is_stopped = True
        if self._waiting:
            self._waiting.cancel()
        if self._process and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def end(self) -> None:
        """End the process, and wait until it has ended: the loop must not close before its pipes."""
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_END_SECONDS)
            await asyncio.sleep(0)

    def _send_later(self, request: Request, delay: float) -> None:
        if self._waiting:
            self._waiting.cancel()
        if not self._is_stopped:
            self._waiting = asyncio.get_running_loop().call_later(delay, lambda: self._start(self._send(request)))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.warning("the background process of %s: %r", self._root, error)

    async def _send(self, request: Request) -> None:
        """Send a request. While another one is being sent, only the newest waits: a process may read nothing."""
        self._next = request
        if self._sending.locked():
            return
        async with self._sending:
            while self._next and not self._is_stopped:
                request, self._next = self._next, None
                await self._send_now(request)

    async def _send_now(self, request: Request) -> None:
        if self._process is None or self._process.returncode is not None:
            if wait := self._find_pause():
                self._send_later(request, wait)
                return
            self._process = await self._start_process()
        if self._process.stdin:
            # If it has just ended, the request is sent to the next one.
            with suppress(ConnectionError):
                self._process.stdin.write(encode_frame(request))
                await self._process.stdin.drain()

    def _find_pause(self) -> float:
        """Return how long to wait before the process is started again; 0 if it has not been started often."""
        if len(self._starts) < MAX_STARTS:
            return 0
        return max(0.0, self._starts[0] + _STARTS_WITHIN - time.monotonic())

    async def _start_process(self) -> asyncio.subprocess.Process:
        self._starts.append(time.monotonic())
        # The current folder is often the workspace, whose modules must not be imported (-P).
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "jobgen", "lsp", "--background", str(self._root)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._start(self._receive(process))
        return process

    async def _receive(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while True:
                head = await process.stdout.readexactly(HEAD_BYTES)
                content = await process.stdout.readexactly(decode_length(head))
                self._use(pickle.loads(content))  # noqa: S301 -- written by our own process
        except asyncio.IncompleteReadError:
            pass
        except Exception:
            log.exception("an answer of the background process of %s could not be used", self._root)
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        if not self._is_stopped:
            self._restart(process.returncode)

    def _use(self, answer: Snapshot | DecisionsAnswer) -> None:
        if self._unanswered and answer.number >= self._unanswered.number:
            self._unanswered = None
        if not self._is_stopped:
            self._take(answer)

    def _restart(self, code: int | None) -> None:
        """Say that the process has ended, and send the request that it has not answered to a new one."""
        log.warning("the background process of %s has ended with code %s", self._root, code)
        pause = self._find_pause()
        if pause:
            log.warning("it has ended %d times within a minute; it is started again in %d s", MAX_STARTS, pause)
        if self._unanswered:
            self._send_later(self._unanswered, pause)
