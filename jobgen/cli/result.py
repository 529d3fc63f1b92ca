"""The result of a command: exit code, standard output and standard error; and the files that it writes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from jobgen.api.errors import JobgenError, NotFoundError, OperationError, ToolError, UsageError
from jobgen.repo.atomic import make_folder, replace_files, sync_folders
from jobgen.reports.escape import visible
from jobgen.reports.summary import format_findings


class ExitCode:
    """Exit codes, the same for every command."""

    OK = 0
    ERRORS = 1
    USAGE = 2
    NOTHING_TO_DO = 3
    INTERNAL_ERROR = 4


_ERROR_CODES: dict[type[JobgenError], int] = {
    UsageError: ExitCode.USAGE,
    NotFoundError: ExitCode.NOTHING_TO_DO,
    OperationError: ExitCode.INTERNAL_ERROR,
    ToolError: ExitCode.INTERNAL_ERROR,
}


class Result(NamedTuple):
    """What a command returns instead of printing and exiting."""

    code: int
    out: str = ""
    err: str = ""
    pager: Callable[[str, Mapping[str, str]], bool] | None = None
    """Shows the output, if it goes to a terminal; returns False if it did not."""


def error_result(code: int, message: str, err: str = "") -> Result:
    """Return the result of a command that ends early; the reason is its last line."""
    return Result(code, err=f"{err}jobgen: {visible(message)}\n")


def to_result(error: JobgenError) -> Result:
    """Return the result of a command that an error ended."""
    return error_result(_ERROR_CODES[type(error)], str(error), format_findings(error.findings))


def write_new_files(files: Mapping[Path, str], home: Path, *, force: bool) -> Result | None:
    """Write all files; return an error if one exists or cannot be written, else None."""
    existing = [path for path in files if os.path.lexists(path)]
    if existing and not force:
        message = f"`{existing[0]}` exists; nothing was written; replace it with `--force`"
        return error_result(ExitCode.ERRORS, message)
    return write_files(files, home)


def write_files(files: Mapping[Path, str], home: Path) -> Result | None:
    """Write all files within a folder; return an error if one cannot be written, else None."""
    folders: list[str] = []
    try:
        for path in files:
            folders += make_folder(path.parent, home)
        contents = {path: content.encode("utf-8", "surrogateescape") for path, content in files.items()}
        folders += replace_files(contents, home)
    except OSError as error:
        message = f"`{error.filename}`: {error.strerror}; not all files were written"
        # A link out of the repository is a mistake in the repository, not a fault of the disk.
        return error_result(ExitCode.ERRORS if error.errno == errno.ELOOP else ExitCode.INTERNAL_ERROR, message)
    finally:
        sync_folders(folders)
    return None
