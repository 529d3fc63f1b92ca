"""Read the exported state of a cluster: the objects in a folder of the repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Plain, text_of, untraced
from jobgen.model.finding import Finding, Problem
from jobgen.model.place import PathTo
from jobgen.model.placed import follow
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


def read_exported(layers: Layers, folder: str, findings: list[Finding]) -> Iterator[Mapping[str, Plain]]:
    """Read the objects of the exported state."""
    return map(untraced, read_located(layers, folder, findings))


def read_located(layers: Layers, folder: str, findings: list[Finding]) -> Iterator[Mapping[str, Any]]:
    """Read the objects of the exported state; those that decide about others have locations."""
    for file in layout.read_state(layers, folder):
        is_traced = any(kind in file.content for kind in _LOCATED_KINDS)
        for document in config.read_documents(file, findings, traced=is_traced, shared=True).documents:
            for obj in split_list(document.data):
                problem = _find_problem(obj)
                if problem:
                    findings.append(locate(follow(problem, partial(_follow, obj)), file.path))
                if isinstance(obj, dict) and obj is not document.data and "kind" not in obj:
                    # Only the List has the kind if the API server wrote it.
                    kind = text_of(document.data.get("kind")).removesuffix("List")
                    yield {**obj, "apiVersion": document.data.get("apiVersion"), "kind": kind}
                elif isinstance(obj, dict):
                    yield dict(obj)


def _follow(obj: Any, path: PathTo) -> Any:
    return path.follow(obj)


def _find_problem(obj: Any) -> Problem | None:
    """Find an item of the state that is not applied."""
    kind = text_of(obj.get("kind")) if isinstance(obj, dict) else ""
    if kind.endswith("List") and obj.get("items"):
        message = Sentence("the objects in this `{}` are not read; write the objects as the items of one List", kind)
        return Problem("unread-file", message, PathTo(("kind",)), category="meta")
    hard = as_mapping(as_mapping(untraced(obj).get("spec")).get("hard")) if kind == "ResourceQuota" else {}
    wrong = next((key for key, value in hard.items() if to_milli(value) is None), None)
    if wrong is None:
        return None
    message = Sentence("`{}` is `{}`, which is not a quantity, so the quota does not limit it", wrong, hard[wrong])
    return Problem(
        "unread-file",
        Sentence("{}; write an amount such as `8` or `16Gi`", message),
        PathTo(("spec", "hard", wrong)),
        category="meta",
    )
