"""The names that a repository shows: its environments, teams, jobs and policies.

They complete command lines. So nothing is rendered or reported, what is broken has no name, and only settings, lists,
JSON and overlays that extend others are parsed; other names are found in the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from jobgen.model.lazy_re import lazy_pattern, may_mention
from jobgen.model.limits import MAX_WALKED_FILES
from jobgen.repo import layout
from jobgen.repo.files import MANIFEST_SUFFIXES, FileEntry, read_file
from jobgen.repo.walk import walk_files

_DOCUMENTS = lazy_pattern(r"^---", re.MULTILINE)
_KIND = lazy_pattern(r"""^kind[ ]*:[ ]*["']?(\w+)""", re.MULTILINE)
_LIST = lazy_pattern(r"""^["']?kind["']?[ ]*:[ ]*["']?\w*List\b""", re.MULTILINE)
_METADATA = lazy_pattern(r"^metadata[ ]*:[ \t]*(?:(\{)|(?:#.*)?\n(?:[ ]*(?:#.*)?\n)*([ ]+))", re.MULTILINE)
_INNER = lazy_pattern(r"\{[^{}]*\}")
_NAME = (
    r"""["']?name["']?[ ]*:[ ]*(?P<quote>["']?)(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,252})(?P=quote)[ ]*(?:[,}#\n]|\Z)"""
)
_FLOW_NAME = lazy_pattern(rf"(?:[{{,]|^)\s*{_NAME}")
_NEXT_KEY = lazy_pattern(r"^(?=[^\s#])", re.MULTILINE)


def list_environments(root: Path) -> list[str]:
    """The environments: those of the settings, or else the folders of overlays/ that no other overlay extends."""
    listed = _read_settings(root).get("environments")
    if isinstance(listed, list):
        return sorted({name for name in listed if isinstance(name, str)})
    found: set[str] = set()
    extended: set[str] = set()
    for entry in walk_files(root, "overlays", MANIFEST_SUFFIXES):
        parts = entry.path.split("/")
        if len(parts) > 2:
            found.add(parts[1])
            content = read_file(entry).content
            # Few files extend other overlays.
            for document in _read_documents(content) if may_mention(content, b"extends") else ():
                spec = document.get("spec")
                names = spec.get("extends") if isinstance(spec, dict) else None
                listed = names if isinstance(names, list) else []
                extended |= {name for name in listed if isinstance(name, str)} - {parts[1]}
    return sorted(found - extended or found)


def list_teams(root: Path) -> list[str]:
    """The teams that have a file, and those of the settings."""
    paths = (entry.path for entry in walk_files(root, "teams", MANIFEST_SUFFIXES))
    listed = _read_settings(root).get("teams")
    written = map(str, listed) if isinstance(listed, dict) else ()
    return sorted({*(os.path.basename(path).rpartition(".")[0] for path in paths), *written})


def list_jobs(root: Path) -> list[str]:
    """The names in the text of the files in jobs/."""
    return sorted({name for kind, name in _find_names(layout.find_jobs(root)) if kind not in ("Overlay", "Team")})


def list_policies(root: Path) -> list[str]:
    """The names of the repository's own policies."""
    named = _find_names(walk_files(root, layout.POLICIES, MANIFEST_SUFFIXES))
    return sorted({name for kind, name in named if kind.endswith("AdmissionPolicy")})


def _find_names(entries: Iterable[FileEntry]) -> Iterator[tuple[str, str]]:
    for entry in islice(entries, MAX_WALKED_FILES):
        content = read_file(entry).content
        text = content.decode("utf-8", "replace").replace("\r\n", "\n")
        if entry.path.endswith(".json") or _LIST.search(text):
            yield from (pair for document in _read_documents(content) for pair in _list_objects(document))
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
    inner = document[found.end() : found.end() + 4000]
    if found[1]:
        name = _FLOW_NAME.search(_INNER.sub("", inner).partition("}")[0])
    else:
        indent = found[2]
        name = re.search(f"(?m:^){indent}{_NAME}", _NEXT_KEY.split(indent + inner, maxsplit=1)[0])
    return name["name"] if name else ""


def _list_objects(document: Any) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of an object, or of the items of a list."""
    items = document.get("items")
    is_list = isinstance(items, list) and str(document.get("kind")).endswith("List")
    for each in items if is_list else [document]:
        metadata = each.get("metadata") if isinstance(each, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if isinstance(name, str) and name:
            yield str(each.get("kind")), name


def _read_settings(root: Path) -> dict[str, Any]:
    """The settings; empty if there are none, or they are broken."""
    file = layout.read_settings(layout.own_layers(root))
    return next(_read_documents(file.content), {}) if file else {}


def _read_documents(content: bytes) -> Iterator[dict[str, Any]]:
    """Read the mappings of a file exactly, which takes longer than a search in its text."""
    from jobgen.yamlio.read import read

    return (document.data for document in read(content, "").documents if isinstance(document.data, dict))
