"""Remove fields that a cluster or jobgen wrote to exported manifests; they do not describe the job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.data import Node, Plain, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import Step, format_dotted
from jobgen.render.by_kind import TOTAL_ANNOTATION
from jobgen.render.runs import JOB_ANNOTATION, SOURCE_ANNOTATION

_SERVER_FIELDS = (
    ("status",),
    *(
        ("metadata", name)
        for name in """creationTimestamp deletionGracePeriodSeconds deletionTimestamp generation managedFields
        resourceVersion selfLink uid""".split()
    ),
    ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
    # Rendering writes these again, for the new job and its new file.
    *(("metadata", "annotations", name) for name in (JOB_ANNOTATION, SOURCE_ANNOTATION, TOTAL_ANNOTATION)),
)
_PLACEHOLDER = lazy_pattern(r"\{\{|\$\{?\w|\{%|<%")


_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name")
_JOB_FIELDS = (
    ("spec", "selector"),
    *((*path, "metadata", "labels", label) for path in ((), ("spec", "template")) for label in _JOB_LABELS),
)
"""What the API server sets in a Job, unless it has `manualSelector: true`."""


def _list_server_fields(manifest: Any) -> tuple[tuple[str, ...], ...]:
    if manifest.get("apiVersion") != "batch/v1" or manifest.get("kind") != "Job":
        return _SERVER_FIELDS
    spec = manifest.get("spec")
    is_stored = (
        isinstance(spec, dict) and isinstance(spec.get("selector"), dict) and spec.get("manualSelector") is not True
    )
    return (*_SERVER_FIELDS, *_JOB_FIELDS) if is_stored else _SERVER_FIELDS


def remove_server_fields(manifest: dict[str, Plain]) -> tuple[dict[str, Plain], list[str]]:
    """The manifest without server fields and nulls, and the paths of what was removed."""
    removed: list[str] = []
    clean: Any = manifest
    for path in _list_server_fields(manifest):
        clean = _remove(clean, path, path, removed)
    return _remove_nulls(clean, (), removed), removed


def _remove(node: Any, path: tuple[str, ...], full_path: tuple[str, ...], removed: list[str]) -> Any:
    if not isinstance(node, dict) or path[0] not in node:
        return node
    if len(path) == 1:
        removed.append(format_dotted(full_path))
        return {key: value for key, value in node.items() if key != path[0]}
    below = _remove(node[path[0]], path[1:], full_path, removed)
    # A mapping that held only server fields is removed, too.
    is_emptied = not below and node[path[0]]
    return {key: below if key == path[0] else value for key, value in node.items() if key != path[0] or not is_emptied}


def _remove_nulls(node: Any, path: tuple[Step, ...], removed: list[str]) -> Any:
    """Remove keys with null, which Kubernetes treats as absent, and creation times of pod templates."""
    if isinstance(node, dict):
        removed += (f"{format_dotted((*path, key))} (null)" for key, value in node.items() if value is None)
        return {
            key: _remove_nulls(value, (*path, key), removed)
            for key, value in node.items()
            if value is not None and not _is_template_time(key, path, removed)
        }
    if isinstance(node, list):
        return [_remove_nulls(item, (*path, index), removed) for index, item in enumerate(node)]
    return node


def _is_template_time(key: str, path: tuple[Step, ...], removed: list[str]) -> bool:
    """Whether it is the creation time that exports have in pod templates."""
    found = key == "creationTimestamp" and path[-1:] == ("metadata",) and len(path) > 1
    removed += [format_dotted((*path, key))] if found else []
    return found


def find_placeholders(nodes: Iterable[Node]) -> Iterator[Node]:
    """The strings that contain a placeholder of a template language."""
    return (node for node in nodes if isinstance(value_of(node), str) and _PLACEHOLDER.search(value_of(node)))
