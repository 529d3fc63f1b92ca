"""The files that are shipped with jobgen: schemas, policies, examples and the starter."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo import ready
from jobgen.repo.files import File

_SCHEMA_NAME = lazy_pattern(r"(?:[a-z0-9][a-z0-9.-]{0,252}/){0,2}[a-z0-9_]{1,128}\.json")
PACKS_FOLDER = "policies/packs/"
"""Where packs of policies are: a folder for each."""
BUILT_IN = "built-in:"
"""The beginning of the path of a file that comes with jobgen, where a repository does not have it."""


@cache
def find_shipped(name: str) -> Path:
    """A folder that is shipped with jobgen: inside the wheel, or next to the package in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "data" / name
    return inside if inside.is_dir() else package.parent / name


@cache
def read_data(name: str) -> Any:
    """Return the content of a YAML file in `jobgen/data/`, which must not be changed."""
    from jobgen.yamlio.read import read

    [document] = read((find_shipped("examples").parent / name).read_bytes(), name).documents
    return document.data


def mark_built_in(file: File) -> File:
    """Return a shipped file with a path that shows that the repository does not have it."""
    return file._replace(path=f"{BUILT_IN}{file.path}")


def read_ready(file: File) -> list[dict[str, Any]] | None:
    """The documents of a shipped file, if they are ready; they must not be changed."""
    return ready.find_documents(file.content) if file.path.startswith(BUILT_IN) else None


def read_shipped_schema(name: str) -> bytes | None:
    """Read a file of the shipped schemas; the name may be derived from a manifest, so it is untrusted."""
    if not _SCHEMA_NAME.fullmatch(name):
        return None
    try:
        return (find_shipped("schemas") / name).read_bytes()
    except OSError:
        return None


def list_shipped_schemas(folder: str) -> list[str]:
    """List the files of a folder of the shipped schemas."""
    return sorted(entry.name for entry in os.scandir(find_shipped("schemas") / folder))


@cache
def read_shipped_kinds() -> tuple[File, ...]:
    """Read the shipped kind descriptions once: they do not change while jobgen runs."""
    home = find_shipped("schemas")
    folders = [name for name in list_shipped_schemas("") if not name.endswith((".json", ".yaml"))]
    names = [f"{folder}/{name}" for folder in folders for name in list_shipped_schemas(folder)]
    kinds = (name for name in names if name.endswith(".yaml"))
    return tuple(mark_built_in(File(f"schemas/{name}", (home / name).read_bytes())) for name in kinds)


def read_types() -> bytes:
    """Read the types that kind descriptions share."""
    return (find_shipped("schemas") / "types.yaml").read_bytes()
