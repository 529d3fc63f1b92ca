"""New files for people to look at: those that are there already are not touched, unless that is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from jobgen.repo.atomic import make_folder, replace_file


def place(files: Mapping[Path, str], home: Path, *, force: bool) -> str:
    """Write all files; if one is in the way or the disk fails, the reason."""
    there = [path for path in files if os.path.lexists(path)]
    if there and not force:
        return f"`{there[0]}` is there already, and nothing was written; `--force` replaces it"
    return put(files, home)


def put(files: Mapping[Path, str], home: Path) -> str:
    """Write all files, none of them out of the repository; if the disk fails, the reason."""
    try:
        for path, content in files.items():
            make_folder(path.parent, home)
            replace_file(path, content.encode("utf-8", "surrogateescape"), home)
    except OSError as error:
        return f"`{error.filename}`: {error.strerror}; not all files were written"
    return ""
