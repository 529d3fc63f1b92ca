"""Read the exported state of a cluster: the objects in a folder of the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.quantity import to_milli
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.root import SETTINGS

_LOCATED_KINDS = (
    *(b"ClusterQueue", b"Cohort", b"ResourceFlavor"),
    *(b"Namespace", b"LimitRange", b"ResourceQuota", b"Runtime"),
)
"""Kinds whose objects findings point at."""


def read_exported(root: Folder, folder: str, findings: list[Finding]) -> Iterator[Mapping[str, Node]]:
    """Read the objects of the exported state; those that decide about others have locations."""
    for file in layout.read_state(root, folder):
        is_traced = any(kind in file.content for kind in _LOCATED_KINDS)
        for document in config.read_documents(file, findings, traced=is_traced, shared=True).documents:
            for obj in split_list(document.data):
                problem = _find_problem(obj)
                if problem:
                    findings.append(locate(problem, file.path))
                if isinstance(obj, dict):
                    yield _complete_item(obj, document.data)


def _find_problem(obj: Any) -> Problem | None:
    """Find an item of the state that is not applied."""
    kind = str(value_of(obj.get("kind")) or "") if isinstance(obj, dict) else ""
    if kind.endswith("List") and obj.get("items"):
        message = f"the objects in this `{kind}` are not read; write the objects as the items of one List"
        return Problem("unread-file", message, obj.get("kind"), category="meta")
    hard = as_mapping(as_mapping(obj.get("spec")).get("hard")) if kind == "ResourceQuota" else {}
    wrong = next((key for key, value in hard.items() if to_milli(value) is None), None)
    if wrong is None:
        return None
    message = f"`{wrong}` is `{value_of(hard[wrong])}`, which is not a quantity, so the quota does not limit it"
    return Problem("unread-file", f"{message}; write an amount such as `8` or `16Gi`", hard[wrong], category="meta")


def report_folder(project: config.ProjectConfig, folder: str, message: str) -> Finding:
    """Report `cluster.state` without objects, where the settings or an overlay name it; `project` has locations."""
    specs = [spec for overlay in project.overlays.values() for spec in overlay.specs]
    blocks = [as_mapping(spec.get("cluster")) for spec in specs] + [as_mapping(project.settings.get("cluster"))]
    named = [block["state"] for block in blocks if str(value_of(block.get("state"))).strip("/") == folder]
    return locate(Problem("unreadable-file", message, named[0] if named else None, category="yaml"), SETTINGS)


def report_missing_folder(project: config.ProjectConfig, folder: str) -> Finding:
    """Report a `cluster.state` that does not exist."""
    message = f"there is no folder `{folder}` in the repository; export the state of the cluster to it"
    return report_folder(project, folder, message)


def has_manifests(root: Folder, folder: str) -> bool:
    """Return True if the exported state has a document, be it a List without items."""
    files = layout.read_state(root, folder)
    return any(config.read_documents(file, [], traced=False, shared=True).documents for file in files)


def find_duplicates(objects: Iterable[Mapping[str, Node]], path: str) -> Iterator[Finding]:
    """Report objects of the state that are there twice and differ."""
    from jobgen.check.cluster.state import name_object

    seen: dict[tuple[str, str, str], Mapping[str, Node]] = {}
    for obj in objects:
        kind, namespace, name = identity = name_object(obj)
        if name and untraced(seen.setdefault(identity, obj)) != untraced(obj):
            where = f" in namespace `{namespace}`" if namespace else ""
            message = f"the exported state has another {kind} `{name}`{where}; remove one of them"
            yield locate(Problem("unread-file", message, obj.get("kind"), category="meta"), path)


def _complete_item(obj: Any, document: Any) -> Mapping[str, Node]:
    """Return an item of a List with its kind, which only the List has if the API server wrote it."""
    if obj is document or "kind" in obj:
        return dict(obj)
    kind = str(value_of(document.get("kind"))).removesuffix("List")
    return {**obj, "apiVersion": document.get("apiVersion"), "kind": kind}
