"""The names that a repository shows without being parsed: its environments, teams, jobs and policies.

They complete command lines. So nothing is rendered or reported, and what is broken has no name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_WALKED_FILES
from jobgen.repo import layout
from jobgen.repo.files import MANIFEST_SUFFIXES, FileEntry, read_file
from jobgen.repo.walk import walk_files

_DOCUMENTS = lazy_pattern(r"^---", re.MULTILINE)
_KIND = lazy_pattern(r"""^kind[ ]*:[ ]*["']?(\w+)""", re.MULTILINE)
_METADATA = lazy_pattern(r"^metadata[ ]*:[ \t]*(?:(\{)|(?:#.*)?\n(?:[ ]*(?:#.*)?\n)*([ ]+))", re.MULTILINE)
_INNER = lazy_pattern(r"\{[^{}]*\}")
_NAME = (
    r"""["']?name["']?[ ]*:[ ]*(?P<quote>["']?)(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,252})(?P=quote)[ ]*(?:[,}#\n]|\Z)"""
)
_FLOW_NAME = lazy_pattern(rf"(?:[{{,]|^)\s*{_NAME}")
_NEXT_KEY = lazy_pattern(r"^(?=[^\s#])", re.MULTILINE)
_MAX_METADATA = 4000
"""How many characters of the metadata are searched."""
_NO_JOBS = ("Overlay", "Team")


def list_environments(root: Path) -> list[str]:
    """The environments: folders of overlays/ with a file."""
    paths = (entry.path.split("/") for entry in walk_files(root, "overlays", MANIFEST_SUFFIXES))
    return sorted({parts[1] for parts in paths if len(parts) > 2})


def list_teams(root: Path) -> list[str]:
    """The teams that have a file."""
    paths = (entry.path for entry in walk_files(root, "teams", MANIFEST_SUFFIXES))
    return sorted({os.path.basename(path).rpartition(".")[0] for path in paths})


def list_jobs(root: Path) -> list[str]:
    """The names in the text of the files in jobs/."""
    return sorted({name for kind, name in _find_names(layout.find_jobs(root)) if kind not in _NO_JOBS})


def list_policies(root: Path) -> list[str]:
    """The names of the repository's own policies."""
    named = _find_names(walk_files(root, layout.POLICIES, MANIFEST_SUFFIXES))
    return sorted({name for kind, name in named if kind.endswith("AdmissionPolicy")})


def _find_names(entries: Iterable[FileEntry]) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of each document."""
    for entry in islice(entries, MAX_WALKED_FILES):
        text = read_file(entry).content.decode("utf-8", "replace").replace("\r\n", "\n")
        if entry.path.endswith(".json"):
            yield from _find_json_name(text)
            continue
        for document in _DOCUMENTS.split(text):
            kind, name = _KIND.search(document), _find_name(document)
            if kind and name:
                yield kind[1], name


def _find_name(document: str) -> str:
    """The `name` that is directly in `metadata`, in the block or in the flow style; empty without one."""
    found = _METADATA.search(document)
    if found is None:
        return ""
    inner = document[found.end() : found.end() + _MAX_METADATA]
    if found[1]:
        name = _FLOW_NAME.search(_INNER.sub("", inner).partition("}")[0])
    else:
        indent = found[2]
        name = re.search(f"(?m:^){indent}{_NAME}", _NEXT_KEY.split(indent + inner, maxsplit=1)[0])
    return name["name"] if name else ""


def _find_json_name(text: str) -> Iterator[tuple[str, str]]:
    try:
        data = json.loads(text)
        yield str(data["kind"]), str(data["metadata"]["name"])
    except (ValueError, RecursionError, LookupError, TypeError):
        return
