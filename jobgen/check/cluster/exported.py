"""Read the exported state of a cluster: the objects in a folder of the repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.repo.layout import Layers

_LOCATED_KINDS = (
    *(b"ClusterQueue", b"Cohort", b"ResourceFlavor"),
    *(b"Namespace", b"LimitRange", b"ResourceQuota", b"Runtime"),
)
"""Kinds whose objects findings point at."""


def read_exported(layers: Layers, folder: str, findings: list[Finding]) -> Iterator[Mapping[str, Node]]:
    """Read the objects of the exported state; those that decide about others have locations."""
    for file in layout.read_state(layers, folder):
        is_traced = any(kind in file.content for kind in _LOCATED_KINDS)
        for document in config.read_documents(file, findings, traced=is_traced, shared=True).documents:
            for obj in split_list(document.data):
                problem = _find_problem(obj)
                if problem:
                    findings.append(locate(problem, file.path))
                if isinstance(obj, dict) and obj is not document.data and "kind" not in obj:
                    # Only the List has the kind if the API server wrote it.
                    kind = str(value_of(document.data.get("kind"))).removesuffix("List")
                    yield {**obj, "apiVersion": document.data.get("apiVersion"), "kind": kind}
                elif isinstance(obj, dict):
                    yield dict(obj)


def _find_problem(obj: Any) -> Problem | None:
    """Find an item of the state that is not applied."""
    kind = str(value_of(obj.get("kind")) or "") if isinstance(obj, dict) else ""
    if kind.endswith("List") and obj.get("items"):
        message = Sentence("the objects in this `{}` are not read; write the objects as the items of one List", kind)
        return Problem("unread-file", message, obj.get("kind"), category="meta")
    hard = as_mapping(as_mapping(obj.get("spec")).get("hard")) if kind == "ResourceQuota" else {}
    wrong = next((key for key, value in hard.items() if to_milli(value) is None), None)
    if wrong is None:
        return None
    message = Sentence(
        "`{}` is `{}`, which is not a quantity, so the quota does not limit it", wrong, value_of(hard[wrong])
    )
    return Problem(
        "unread-file", Sentence("{}; write an amount such as `8` or `16Gi`", message), hard[wrong], category="meta"
    )
