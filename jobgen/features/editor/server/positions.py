"""Ranges of files as an editor counts them: from 0, in the units of the client (UTF-16 unless it asks for others)."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path

from jobgen.features.editor.actions.text_changes import split_lines
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.model.data import Location
from jobgen.model.limits import MAX_BYTES

_NUMBERS = range(2**31)
_MARK = "\ufeff"
"""The byte order mark at the beginning of a file; locations do not count it."""


def are_numbers_of_positions(*numbers: int) -> bool:
    """Whether positions of the protocol can have these lines and characters."""
    return all(number in _NUMBERS for number in numbers)


def to_range(server: JobgenServer, uri: str, location: Location) -> types.Range:
    """Return the range of a location in a document. Without an end it is one character."""
    start = types.Position(max(location.line - 1, 0), max(location.column - 1, 0))
    end_line = max(location.end_line or location.line, location.line)
    end_column = location.end_column or (location.column + 1 if end_line == location.line else 1)
    found = types.Range(start, types.Position(end_line - 1, max(end_column - 1, 0)))
    lines = _find_lines(server, uri)
    if lines and lines[0].startswith(_MARK):
        # Most editors remove it when they open a file; if this one keeps it, columns of the first line count it.
        for position in (found.start, found.end):
            position.character += position.line == 0
    return server.workspace.position_codec.range_to_client_units(lines, found) if lines else found


def _find_lines(server: JobgenServer, uri: str) -> Sequence[str]:
    """Return the lines of a document, or of a file that is not open; none if all units count the same in it."""
    document = server.find_document(uri)
    if document is not None:
        return document.lines
    path = to_fs_path(uri) or ""
    try:
        found = os.lstat(path)
        # A pipe would never end, and a link may lead out of the repository.
        is_readable = stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES
        return _read_lines(path, found.st_mtime_ns, found.st_size) if is_readable else ()
    except OSError:
        return ()


@lru_cache(maxsize=4)
def _read_lines(path: str, _changed: int, _size: int) -> Sequence[str]:
    """Return the lines of a file. The findings of a file are converted one after the other, so few files are kept."""
    content = Path(path).read_bytes()
    return () if content.isascii() else split_lines(content.decode("utf-8", "replace").removeprefix(_MARK))


def to_location(server: JobgenServer, opened: OpenWorkspace, location: Location) -> types.Location:
    """Return a location of a workspace as the editor needs it."""
    uri = server.find_uri(opened, location.file)
    return types.Location(uri, to_range(server, uri, location))
