"""Write new files; existing ones are replaced only on request."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.repo.atomic import make_folder, replace_files, sync_folders


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
