"""The background process: it lints the whole workspace while the server answers.

It runs in its own process so that a lint of ten thousand jobs never delays an answer. Requests and answers are frames:
four bytes for the length, then pickled data. Both ends are jobgen, so nothing that others wrote is unpickled.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from jobgen.features.editor.decisions import DecisionsAnswer
from jobgen.features.editor.lint_workspace import Snapshot, WorkspaceLinter

log = logging.getLogger("jobgen.lsp")
_LENGTH = struct.Struct(">I")
HEAD_BYTES = _LENGTH.size
"""The length of what comes before the data of a frame."""

_MIN_PAUSE = 1.0
"""The seconds between two searches for changed files."""
_PAUSE_FACTOR = 50
"""A search takes at most one fiftieth of a core, in repositories of any size."""

_MIN_QUIET = 0.3
"""The seconds without a request before Kueue's decisions are simulated; at least as long as the last time took."""

_GC_THRESHOLD = 50_000
"""A lint creates many objects that reference counts remove."""


class Request(NamedTuple):
    """A request to lint a workspace with the contents of open documents."""

    number: int
    drafts: Mapping[str, bytes]
    """By real path."""
    watches: bool = False
    """True to look for changed files when there is nothing else to do."""


class SupersededError(Exception):
    """A newer request has arrived, so the result of this one is not wanted any more."""


def encode_frame(value: object) -> bytes:
    """Return a value as one frame."""
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(content)) + content


def decode_length(head: bytes) -> int:
    """Return the length of the frame that follows its first four bytes."""
    length: int = _LENGTH.unpack(head)[0]
    return length


def read_frame(stream: BinaryIO) -> Any:
    """Read one frame; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(stream.read(decode_length(head)))  # noqa: S301 -- written by the other end, which is jobgen


class _Inbox:
    """The newest request. Older ones that have not been answered are dropped."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._newest: Request | None = None
        self.is_closed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while (request := read_frame(self._stream)) is not None:
                with self._changed:
                    self._newest = request
                    self._changed.notify()
        except Exception as error:  # noqa: BLE001 -- pickle raises any; no other frame can be found
            log.warning("a request of the server could not be read: %r", error)
        with self._changed:
            self.is_closed = True
            self._changed.notify()

    def take(self, timeout: float | None = None) -> Request | None:
        """Wait for a request; None if there is none in time, or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self.is_closed, timeout)
            request, self._newest = self._newest, None
            return request if not self.is_closed else None

    def check(self, *_: object) -> None:
        """Raise a SupersededError if there is a newer request, or if the server or this process has ended."""
        is_orphan = os.getpid() != self._pid and os.getppid() != self._pid
        if self._newest is not None or self.is_closed or is_orphan:
            raise SupersededError


def serve(root: Path, reading: BinaryIO, writing: BinaryIO) -> None:
    """Answer requests until the stream ends."""
    # The command line disables it, because its other commands end soon.
    gc.enable()
    gc.set_threshold(_GC_THRESHOLD)
    inbox = _Inbox(reading)
    linter = WorkspaceLinter(root)
    last: Request | None = None
    pause, quiet = _MIN_PAUSE, _MIN_QUIET
    while not inbox.is_closed:
        is_undecided = last is not None and linter.has_undecided
        request = inbox.take(quiet if is_undecided else pause if last and last.watches else None)
        if request is None and last is not None and is_undecided:
            began = time.monotonic()
            _answer(linter, last, inbox, writing, is_decision=True)
            quiet = max(_MIN_QUIET, time.monotonic() - began)
            continue
        if request is None:
            began = time.process_time()
            is_changed = not inbox.is_closed and linter.has_changed_files()
            pause = max(_MIN_PAUSE, (time.process_time() - began) * _PAUSE_FACTOR)
            request = last if is_changed else None
        if request is not None:
            is_first = last is None
            last = request
            _answer(linter, request, inbox, writing)
            if is_first:
                # The results of all files stay, so a search for garbage need not look at them again and again.
                gc.freeze()


def _answer(
    linter: WorkspaceLinter, request: Request, inbox: _Inbox, writing: BinaryIO, *, is_decision: bool = False
) -> None:
    answer: Snapshot | DecisionsAnswer
    try:
        if is_decision:
            answer = DecisionsAnswer(request.number, linter.decide(request.drafts, inbox.check))
        else:
            answer = linter.lint(request.drafts, inbox.check)._replace(number=request.number)
    except SupersededError:
        return
    except Exception as error:  # noqa: BLE001 -- the server must live, and say what failed
        reason = f"`{type(error).__name__}`: {error}; please report this bug in jobgen"
        failed = Snapshot(request.number, error=reason, has_failed=True)
        answer = DecisionsAnswer(error=reason) if is_decision else failed
    # If the server has ended, the next request says so.
    with suppress(BrokenPipeError):
        writing.write(encode_frame(answer))
        writing.flush()
