"""The result of a command: exit code, standard output and standard error; and the files that it writes."""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import contextmanager, suppress

from jobgen.model.named_tuple import NamedTuple

# Help is shown without the rest of jobgen, so the functions below import what they need.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import TextIO

    from jobgen.api.errors import JobgenError


class ExitCode:
    """Exit codes, the same for every command."""

    OK = 0
    ERRORS = 1
    USAGE = 2
    NOTHING_TO_DO = 3
    INTERNAL_ERROR = 4


class Result(NamedTuple):
    """What a command returns instead of printing and exiting."""

    code: int
    out: str = ""
    err: str = ""
    pager: Callable[[str, Mapping[str, str]], bool] | None = None
    """Shows the output, if it goes to a terminal; returns False if it did not."""


def error_result(code: int, message: str, err: str = "") -> Result:
    """Return the result of a command that ends early; the reason is its last line."""
    from jobgen.reports.escape import visible

    return Result(code, err=f"{err}jobgen: {visible(message)}\n")


def to_result(error: JobgenError) -> Result:
    """Return the result of a command that an error ended."""
    from jobgen.api.errors import NotFoundError, UsageError
    from jobgen.reports.entries import format_findings

    code = ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.INTERNAL_ERROR
    code = ExitCode.NOTHING_TO_DO if isinstance(error, NotFoundError) else code
    return error_result(code, str(error), format_findings(error.findings))


def write_new_files(files: Mapping[Path, str], home: Path, *, force: bool) -> Result | None:
    """Write all files; return an error if one exists or cannot be written, else None."""
    existing = [path for path in files if os.path.lexists(path)]
    if existing and not force:
        message = f"`{existing[0]}` exists; nothing was written; replace it with `--force`"
        return error_result(ExitCode.ERRORS, message)
    return write_files(files, home)


def write_files(files: Mapping[Path, str], home: Path) -> Result | None:
    """Write all files within a folder; return an error if one cannot be written, else None."""
    from jobgen.repo.atomic import advise, make_folder, replace_files, sync_folders

    folders: list[str] = []
    try:
        for path in files:
            folders += make_folder(path.parent, home)
        contents = {path: content.encode("utf-8", "surrogateescape") for path, content in files.items()}
        folders += replace_files(contents, home)
    except OSError as error:
        message = f"`{error.filename}`: {error.strerror}; not all files were written{advise(error)}"
        # A link out of the repository is a mistake in the repository, not a fault of the disk.
        return error_result(ExitCode.ERRORS if error.errno == errno.ELOOP else ExitCode.INTERNAL_ERROR, message)
    finally:
        sync_folders(folders)
    return None


# The terminal: its width, everything that is printed, and the progress of long runs.

_COLUMNS = 80
"""The width of an output that is not a terminal."""
_DELAY = 2.0
"""Shorter runs show nothing."""
_MIN_DONE = 0.02
"""The part of the work after which the rest can be estimated."""
_COMMANDS = frozenset(("lint", "render", "diff", "report", "test"))


def terminal_width() -> int | None:
    """Return the columns of the standard output; None if it is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return find_columns()


def find_columns() -> int:
    """Return the width that the user wants, as `shutil.get_terminal_size` finds it for click."""
    named = os.environ.get("COLUMNS", "")
    with suppress(ValueError):
        if int(named) > 0:
            return int(named)
    with suppress(ValueError, OSError):
        if sys.__stdout__ is not None:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS
    return _COLUMNS


def has_color(when: str = "auto") -> bool:
    """Return True if the user wants colors: NO_COLOR and FORCE_COLOR decide it, else a terminal has them."""
    if when != "auto":
        return when == "always"
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
        if not (result.pager and terminal_width() is not None and result.pager(result.out, os.environ)):
            if result.out and sys.stdout is None:
                raise OSError(errno.EBADF, "standard output is closed")  # noqa: TRY301 -- handled as one of the system
            _write(sys.stdout, result.out.encode("utf-8", "surrogateescape"))
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
    """Read the standard input, or raise a UsageError if it is closed, cannot be read, or is too large."""
    from jobgen.api.errors import UsageError
    from jobgen.model.limits import MAX_STDIN_BYTES

    if sys.stdin is None:
        raise UsageError("standard input is closed; pipe or redirect something to it")
    try:
        content = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from error
    if len(content) > MAX_STDIN_BYTES:
        raise UsageError(f"standard input is larger than {MAX_STDIN_BYTES >> 20} MiB; write it to several files")
    return content


def _write(stream: TextIO | None, content: bytes) -> None:
    # A stream that was closed before the process started is None.
    if stream is not None and content:
        stream.flush()
        stream.buffer.write(content)
        stream.flush()


def can_show(arguments: list[str], environ: Mapping[str, str]) -> bool:
    """Return True if a command may take long, and the user of a terminal expects to see its progress."""
    # A run that is watched prints its result between two others.
    if _COMMANDS.isdisjoint(arguments) or "--watch" in arguments:
        return False
    return environ.get("TERM", "dumb") != "dumb" and not environ.get("NO_COLOR") and not environ.get("CI")


@contextmanager
def show_progress(terminal: int) -> Iterator[None]:
    """Show the progress of all runs on a terminal, and leave an empty line behind."""
    from jobgen.model import progress

    line = ProgressLine(terminal)
    progress.observe(line.update)
    try:
        yield
    finally:
        progress.observe(None)
        line.erase()


class ProgressLine:
    """The line of the terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._started = time.monotonic()
        self._shown = 0.0
        self._phase = self._started
        self._last = 0

    def update(self, done: int, total: int, what: str) -> None:
        """Show how much is done, and how long the rest takes."""
        now = time.monotonic()
        if done < self._last:
            # Some commands process the files more than once.
            self._phase = now
        self._last = done
        is_last = done >= total
        if now - self._started < _DELAY or (now - self._shown < 0.1 and not is_last):
            return
        self._shown = now
        parts = [f"{done:,} of {total:,} {what}"]
        if is_last:
            # What comes after the files, such as rules about several jobs, is not counted.
            parts.append("finishing")
        elif done > total * _MIN_DONE:
            left = (now - self._phase) / done * (total - done)
            parts.append(f"about {left:.0f} s left" if left < 100 else f"about {left / 60:.0f} min left")
        width = _COLUMNS
        with suppress(OSError):
            width = os.get_terminal_size(self._terminal).columns or width
        self._write("\r" + ", ".join(parts)[: width - 1] + "\033[K")

    def erase(self) -> None:
        """Remove the line, if it was shown."""
        if self._shown:
            self._write("\r\033[K")

    def _write(self, text: str) -> None:
        # A terminal that is gone does not end the run.
        with suppress(OSError):
            os.write(self._terminal, text.encode())
