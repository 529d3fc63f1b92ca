"""The terminal: its width, and everything that is printed."""

from __future__ import annotations

import errno
import os
import sys

from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.model.limits import MAX_STDIN_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def terminal_width() -> int | None:
    """Return the columns of the standard output; None if it is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def is_narrower_than(columns: int) -> bool:
    """Whether the standard output is a terminal with fewer columns, or closed; without the imports of the width."""
    try:
        return sys.stdout is None or (
            sys.stdout.isatty() and os.get_terminal_size(sys.stdout.fileno()).columns < columns
        )
    except OSError:
        return True


def has_color() -> bool:
    """Whether the user wants colors: NO_COLOR and FORCE_COLOR decide it, else a terminal has them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal_width() is not None and os.environ.get("TERM") != "dumb")


def find_error_terminal() -> int | None:
    """Return the descriptor of the standard error; None if it is not a terminal."""
    return sys.stderr.fileno() if sys.stderr is not None and sys.stderr.isatty() else None


def finish(result: Result) -> int:
    """Print a result and return its exit code.

    The encoding is always UTF-8, so that the same input gives the same bytes everywhere.
    """
    code, err = result.code, result.err
    try:
        if not (result.paged and terminal_width() is not None and _show_paged(result.out)):
            _write_output(result.out.encode("utf-8", "surrogateescape"))
    except OSError as error:
        # Buffered output cannot be written either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = ExitCode.INTERNAL_ERROR
        # Who closes a pipe has read enough, and needs no message.
        if not isinstance(error, BrokenPipeError):
            err += error_result(code, f"the output cannot be written: {error.strerror}").err
    try:
        _write(sys.stderr, err.encode("utf-8", "backslashreplace"))
    except OSError:
        return ExitCode.INTERNAL_ERROR
    return code


def finish_printed(code: int) -> int:
    """Return the exit code of help or a version that click has printed; its text is lost if the output is closed."""
    return code if sys.stdout is not None else finish(Result(ExitCode.OK, "\n"))


def read_stdin() -> bytes:
    """Read the standard input.

    Raises:
        UsageError: It is closed, cannot be read, or is too large.

    """
    from jobgen.api.errors import UsageError

    if sys.stdin is None:
        raise UsageError("standard input is closed; pipe or redirect something to it")
    try:
        content = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from error
    if len(content) > MAX_STDIN_BYTES:
        raise UsageError(f"standard input is larger than {MAX_STDIN_BYTES >> 20} MiB; write it to several files")
    return content


def _show_paged(text: str) -> bool:
    from jobgen.cli.pager import show_paged

    return show_paged(text, os.environ)


def _write_output(content: bytes) -> None:
    if content and sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    _write(sys.stdout, content)


def _write(stream: TextIO | None, content: bytes) -> None:
    # A stream that was closed before the process started is None.
    if stream is not None and content:
        stream.flush()
        stream.buffer.write(content)
        stream.flush()
