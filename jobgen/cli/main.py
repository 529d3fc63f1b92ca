"""The process of the command line: it runs a command, prints the result, and ends. `group.py` has the commands."""

from __future__ import annotations

import errno
import gc
import os
import sys
import warnings
from contextlib import nullcontext

from jobgen.api.errors import JobgenError
from jobgen.cli.interrupt import find_exit_code, handle_signals
from jobgen.cli.result import (
    ExitCode,
    Result,
    can_show,
    error_result,
    find_error_terminal,
    finish,
    finish_printed,
    show_progress,
    to_result,
)
from jobgen.cli.stored_help import find_help
from jobgen.model.budget import OverBudgetError

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EPIPE, errno.EDQUOT, errno.EFBIG, errno.EIO)
# A path of the user that the system does not accept.
_PATH_ERRORS = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP, errno.ENOENT, errno.EROFS)
_MAX_SHOWN = 80


def main() -> None:
    """Run the command line and end the process."""
    # A run creates no reference cycles, and looking for them takes a tenth of its time.
    gc.disable()
    shell = os.environ.get("_JOBGEN_COMPLETE")
    if shell is None:
        handle_signals()
        code = run(sys.argv[1:])
    else:
        from jobgen.cli.complete import complete
        from jobgen.cli.group import cli

        code = complete(cli, shell, sys.argv[1:])
    # Skip interpreter teardown; it costs as much as a small lint.
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run a command, print its result, and return its exit code; an internal error is one line and exit code 4."""
    warnings.showwarning = _show_warning
    try:
        terminal = find_error_terminal()
        is_shown = terminal is not None and can_show(arguments, os.environ)
        with show_progress(terminal) if terminal is not None and is_shown else nullcontext():
            result = _parse_and_run(arguments)
        return _finish(arguments, result) if isinstance(result, Result) else finish_printed(result)
    except KeyboardInterrupt as error:
        return find_exit_code(error)
    except OverBudgetError as error:
        return _finish(arguments, error_result(ExitCode.INTERNAL_ERROR, str(error)))
    except Exception as error:
        if "--traceback" in arguments:
            raise
        if isinstance(error, OSError) and error.errno in _OUTPUT_ERRORS:
            # click prints help itself.
            return finish(error_result(ExitCode.INTERNAL_ERROR, f"the output cannot be written: {error.strerror}"))
        if isinstance(error, OSError) and error.filename is not None and error.errno in _PATH_ERRORS:
            path = str(error.filename)
            shown = path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}…"
            return _finish(arguments, error_result(ExitCode.USAGE, f"`{shown}`: {error.strerror}"))
        message = f"internal error: {type(error).__name__}: {error} (show the traceback with --traceback)"
        return _finish(arguments, error_result(ExitCode.INTERNAL_ERROR, message))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning of a run to the standard error, as Git does."""
    finish(error_result(ExitCode.OK, f"warning: {message}"))


def _finish(arguments: list[str], result: Result) -> int:
    """Print a result; an error ends with the page that helps."""
    if result.code > ExitCode.ERRORS:
        from jobgen.cli.pages import add_page

        result = add_page(arguments, result)
    return finish(result)


def _parse_and_run(arguments: list[str]) -> Result | int:
    """Run a command; where click prints help or a version, return an exit code."""
    try:
        os.getcwd()
    except OSError:
        return error_result(ExitCode.USAGE, "the current folder does not exist; change to another one")
    try:
        return find_help(arguments) or _run_plain(arguments) or _run_with_click(arguments)
    except JobgenError as error:
        return to_result(error)


def _run_plain(arguments: list[str]) -> Result | None:
    """Run a command with plain arguments; None if click has to parse them."""
    from jobgen.cli.plain_arguments import parse_plain
    from jobgen.repo.ready import find_arguments

    parsed = parse_plain(arguments, find_arguments())
    if parsed is None:
        return None
    from importlib import import_module
    from pathlib import Path

    from jobgen import cache

    directory = Path(parsed.directory)
    if not parsed.no_cache:
        cache.enable_default(directory)
    result: Result = import_module(parsed.module).run_command(directory, **parsed.values)
    return result


def _run_with_click(arguments: list[str]) -> Result | int:
    from jobgen.cli.group import parse_and_run

    return parse_and_run(arguments)
