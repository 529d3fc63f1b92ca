"""Write new files; existing ones are replaced only on request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from jobgen.repo.atomic import make_folder, replace_file


def write_new_files(files: Mapping[Path, str], home: Path, *, force: bool) -> str:
    """Write all files; return an error if one exists or cannot be written, else an empty text."""
    existing = [path for path in files if os.path.lexists(path)]
    if existing and not force:
        return f"`{existing[0]}` exists; nothing was written; replace it with `--force`"
    return write_files(files, home)


def write_files(files: Mapping[Path, str], home: Path) -> str:
    """Write all files within a folder; return an error if one cannot be written, else an empty text."""
    try:
        for path, content in files.items():
            make_folder(path.parent, home)
            replace_file(path, content.encode("utf-8", "surrogateescape"), home)
    except OSError as error:
        return f"`{error.filename}`: {error.strerror}; not all files were written"
    return ""
