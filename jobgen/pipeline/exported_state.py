"""Read the exported state of a cluster: the objects in a folder of the repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, value_of
from jobgen.model.finding import Finding
from jobgen.pipeline import config
from jobgen.render.build import split_list
from jobgen.repo import layout
from jobgen.repo.commit import Folder

_LOCATED_KINDS = (b"Namespace", b"LimitRange", b"ResourceQuota", b"Runtime")
"""Kinds whose objects findings point at."""


def read_exported(root: Folder, folder: str, findings: list[Finding]) -> Iterator[Mapping[str, Node]]:
    """Read the objects of the exported state; those that decide about others have locations."""
    for file in layout.read_state(root, folder):
        is_traced = any(kind in file.content for kind in _LOCATED_KINDS)
        for document in config.read_documents(file, findings, traced=is_traced, shared=True).documents:
            for obj in split_list(document.data):
                if isinstance(obj, dict):
                    yield _complete_item(obj, document.data)


def _complete_item(obj: Any, document: Any) -> Mapping[str, Node]:
    """Return an item of a List with its kind, which only the List has if the API server wrote it."""
    if obj is document or "kind" in obj:
        return dict(obj)
    kind = str(value_of(document.get("kind"))).removesuffix("List")
    return {**obj, "apiVersion": document.get("apiVersion"), "kind": kind}
