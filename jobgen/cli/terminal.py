"""The terminal: its width, a progress bar, and everything that is printed."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TextIO

from jobgen.cli.result import ExitCode, Result

_BAR_WIDTH = 30


def terminal_width() -> int | None:
    """Return the columns of the standard output; None if it is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def finish(result: Result) -> int:
    """Print a result and return its exit code.

    The encoding is always UTF-8, so that the same input gives the same bytes everywhere.
    """
    try:
        _write(sys.stdout, result.out.encode("utf-8", "surrogateescape"))
        _write(sys.stderr, result.err.encode("utf-8", "backslashreplace"))
    except OSError as error:
        # Buffered output cannot be written either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            with suppress(OSError):
                _write(sys.stderr, f"jobgen: the output cannot be written: {error.strerror}\n".encode())
            return ExitCode.INTERNAL_ERROR
    return int(result.code)


def _write(stream: TextIO | None, content: bytes) -> None:
    # A stream that was closed before the process started is None.
    if stream is not None and content:
        stream.flush()
        stream.buffer.write(content)
        stream.flush()


class Progress:
    """A progress bar that appears after one second."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done."""
        now = time.monotonic()
        if now - self.started > 1 and now - self.shown > 0.1 and sys.stderr.isatty():
            self.shown = now
            filled = min(done * _BAR_WIDTH // max(total, 1), _BAR_WIDTH)
            bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
            _write(sys.stderr, f"\r{bar} {done} objects".encode())

    def clear(self) -> None:
        """Remove the bar."""
        if self.shown:
            _write(sys.stderr, b"\r\033[K")
