"""The terminal: what stands on standard input, how wide it is, and all that is printed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from jobgen.cli.commands import ExitCode, Result

_BAR = 30
_WIDTH = 120


def run_lint(
    directory: Path, paths: Sequence[str], envs: Sequence[str] = (), format_: str = "text", **options: Any
) -> Result:
    """`jobgen lint`, in words for who is going to read them."""
    from jobgen.cli.commands.lint import Terminal, lint_paths
    from jobgen.report import formats

    stdin = (sys.stdin.buffer.read() if sys.stdin else b"") if "-" in paths else None
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    color = on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    terminal = Terminal(_columns() if on_terminal else _WIDTH, color)
    chosen = formats.resolve(format_, os.environ)
    result = lint_paths(directory, paths, envs, format_=chosen, stdin=stdin, terminal=terminal, **options)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    return _summed_up(result, summary) if chosen == "github" and summary else result


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _summed_up(result: Result, file: str) -> Result:
    """The result, once its summary stands where GitHub looks for it; whoever waits for a verdict gets it anyway."""
    from jobgen.report.formats import github

    try:
        with open(file, "a", encoding="utf-8") as stream:
            stream.write(github.summary(result.report) if result.report else "")
    except OSError as fault:
        return result._replace(err=f"{result.err}jobgen: the summary cannot be written: {fault.strerror}\n")
    return result


def finish(result: Result) -> int:
    """Print a result, in UTF-8 whatever the terminal says: the same input gives the same bytes everywhere."""
    try:
        _write(sys.stdout, result.out.encode("utf-8", "surrogateescape"))
        _write(sys.stderr, result.err.encode("utf-8", "backslashreplace"))
    except OSError as error:
        # What is still buffered cannot be written either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            with suppress(OSError):
                _write(sys.stderr, f"jobgen: the output cannot be written: {error.strerror}\n".encode())
            return ExitCode.INTERNAL_ERROR
    return int(result.code)


def _write(stream: TextIO | None, said: bytes) -> None:
    # A stream that was closed before we started is None.
    if stream is not None and said:
        stream.flush()
        stream.buffer.write(said)
        stream.flush()


class Progress:
    """A bar on the terminal, once a second has passed."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done."""
        now = time.monotonic()
        if now - self.started > 1 and now - self.shown > 0.1 and sys.stderr.isatty():
            self.shown = now
            filled = min(done * _BAR // max(total, 1), _BAR)
            bar = "█" * filled + "░" * (_BAR - filled)
            _write(sys.stderr, f"\r{bar} {done} objects".encode())

    def clear(self) -> None:
        """Take the bar away again."""
        if self.shown:
            _write(sys.stderr, b"\r\033[K")
