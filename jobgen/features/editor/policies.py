"""The policies of a workspace, and where they are written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, location_of, value_of
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.yamlio.read import read

_POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


def list_policies(root: Path) -> Iterator[tuple[str, Location]]:
    """Yield the policies of a repository and those that come with jobgen, each with the location of its name."""
    for file in (*layout.read_own_policies(root), *layout.read_shipped_policies(root)):
        yield from _list_policies(file)


@lru_cache(maxsize=256)
def _list_policies(file: File) -> tuple[tuple[str, Location], ...]:
    if not any(kind.encode() in file.content for kind in _POLICIES):
        return ()
    found = []
    for document in read(file.content, file.path, traced=True).documents:
        name = as_mapping(document.data.get("metadata")).get("name")
        location = location_of(name)
        if value_of(document.data.get("kind")) in _POLICIES and location is not None:
            found.append((str(value_of(name)), location))
    return tuple(found)
