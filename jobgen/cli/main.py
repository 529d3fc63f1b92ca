"""The process: run the command line, print the result and exit."""

from __future__ import annotations

import errno
import gc
import os
import sys

from jobgen.cli.help_texts import asks_for_help, find_help
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.terminal import find_error_terminal, finish, finish_printed

_SHELL_PATTERN = frozenset("*?[~$%")
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EPIPE, errno.EDQUOT, errno.EFBIG, errno.EIO)
# A path of the user that the system does not accept.
_PATH_ERRORS = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP, errno.ENOENT, errno.EROFS)
_MAX_SHOWN = 80


def main() -> None:
    """Run the command line and end the process."""
    # A run creates no reference cycles, and looking for them takes a tenth of its time.
    gc.disable()
    shell = os.environ.get("_JOBGEN_COMPLETE")
    if shell is not None:
        from jobgen.cli.completion.complete import complete

        os._exit(complete(shell, sys.argv[1:]))
    if not asks_for_help(sys.argv[1:]):
        from jobgen.cli.interrupt import handle_signals

        handle_signals()
    code = run(sys.argv[1:])
    # Skip interpreter teardown; it costs as much as a small lint.
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run a command, print its result, and return its exit code; an internal error is one line and exit code 4."""
    try:
        result = _run_command(arguments)
        return _finish(arguments, result) if isinstance(result, Result) else finish_printed(result)
    except KeyboardInterrupt as error:
        from jobgen.cli.interrupt import find_exit_code

        return find_exit_code(error)
    except Exception as error:
        if "--traceback" in arguments:
            raise
        if isinstance(error, OSError) and error.errno in _OUTPUT_ERRORS:
            # click prints help itself.
            return finish(error_result(ExitCode.INTERNAL_ERROR, f"the output cannot be written: {error.strerror}"))
        if isinstance(error, OSError) and error.filename is not None and error.errno in _PATH_ERRORS:
            message = f"`{_shorten(str(error.filename))}`: {error.strerror}"
            return _finish(arguments, error_result(ExitCode.USAGE, message))
        message = f"internal error: {type(error).__name__}: {error} (show the traceback with --traceback)"
        return _finish(arguments, error_result(ExitCode.INTERNAL_ERROR, message))


def _finish(arguments: list[str], result: Result) -> int:
    """Print a result; an error ends with the page that helps."""
    if result.code > ExitCode.ERRORS:
        from jobgen.cli.pages import add_page

        result = add_page(arguments, result)
    return finish(result)


def _shorten(path: str) -> str:
    return path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}…"


def _run_command(arguments: list[str]) -> Result | int:
    try:
        os.getcwd()
    except OSError:
        return error_result(ExitCode.USAGE, "the current folder does not exist")
    terminal = find_error_terminal()
    if terminal is not None:
        from jobgen.cli.progress import can_show, show_progress

        if can_show(arguments, os.environ):
            with show_progress(terminal):
                return _start_command(arguments)
    return _start_command(arguments)


def _start_command(arguments: list[str]) -> Result | int:
    help_text = find_help(arguments, os.environ)
    if help_text is not None:
        return Result(ExitCode.OK, help_text)
    if arguments[:1] == ["lint"]:
        format_, paths = split_format(arguments[1:])
        if are_plain_paths(paths) and is_format(format_):
            from pathlib import Path

            from jobgen import cache
            from jobgen.cli.run_lint import run_lint

            cache.enable(cache.find_default_folder(), cache.installation_fingerprint(), Path())
            return run_lint(Path(), tuple(paths), format_=format_)
    from jobgen.cli.app import run_command

    return run_command(arguments)


# `jobgen lint` with a format and paths only, as hooks and editors run it, does not need click.


def split_format(words: list[str]) -> tuple[str, list[str]]:
    """Split the arguments of a lint into its format, if they begin with one, and the rest."""
    name, equals, value = words[0].partition("=") if words else ("", "", "")
    if name != "--format" or not (equals or len(words) > 1):
        return "text", words
    return (value, words[1:]) if equals else (words[1], words[2:])


def is_format(name: str) -> bool:
    """Whether there is a format with this name; click reports any other."""
    if name == "text":
        return True
    from jobgen.report.formats import AUTO, format_names

    return name in (*format_names(), AUTO)


def are_plain_paths(words: list[str]) -> bool:
    """Whether all words are paths."""
    # On Windows, click expands patterns.
    return not any(not word or word[0] == "-" or _SHELL_PATTERN.intersection(word) for word in words)
