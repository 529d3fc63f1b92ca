"""Find what a file holds besides the objects that replace it: these objects would be deleted with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.rendering.build import split_list
from jobgen.reports.escape import visible
from jobgen.spec.kinds import Kind
from jobgen.yamlio.read import read

_SPEC = "TrainingJob"


def refuse_dropping(files: Mapping[Path, str], kinds: Sequence[Kind], directory: Path) -> Result | None:
    """Return an error if writing the files would delete other objects, else None."""
    for path, text in files.items():
        dropped = find_dropped(path, text, kinds)
        if dropped:
            shown = visible(os.path.relpath(path, directory).replace(os.sep, "/"))
            listed = ", ".join(map(visible, dropped))
            message = f"`{shown}` also holds {listed}, which would be deleted; nothing was written"
            return error_result(ExitCode.ERRORS, f"{message}; move them to a file of their own, or use another folder")
    return None


def find_dropped(path: Path, text: str, kinds: Sequence[Kind]) -> list[str]:
    """Return the objects of a file that a new text of this file does not hold, each with its line.

    A job may have become a job of another kind; another object is the same one if its kind and its name are.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return []
    old = read(content, str(path))
    if old.findings:
        return ["something that cannot be read"]
    jobs = {_SPEC, *(kind.name for kind in kinds if kind.frameworks)}
    new = {
        _identify(each, jobs)
        for document in read(text.encode("utf-8", "surrogateescape"), "").documents
        for each in _list_objects(document.data)
    }
    return [
        f"{each.get('kind') or 'an object'} `{_get_name(each)}` (line {document.location.line})"
        for document in old.documents
        for each in _list_objects(document.data)
        if _identify(each, jobs) not in new
    ]


def _list_objects(data: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a document; an item of a List is one of them."""
    if isinstance(data, dict) and data:
        yield from (each for each in split_list(data) if isinstance(each, dict))


def _identify(data: Mapping[str, Any], jobs: set[str]) -> tuple[str, str]:
    kind = str(data.get("kind"))
    return _SPEC if kind in jobs else kind, _get_name(data)


def _get_name(data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""
