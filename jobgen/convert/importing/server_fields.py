"""What a cluster, or jobgen, wrote into objects that people export; it says nothing of the job, so it is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobgen.model.data import Data, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import Step, format_dotted
from jobgen.render.by_kind import TOTAL_ANNOTATION
from jobgen.render.runs import JOB_ANNOTATION, SOURCE_ANNOTATION

# Fields of the object that the API server, the operator or jobgen writes.
_SERVER = (
    ("status",),
    *(
        ("metadata", name)
        for name in """creationTimestamp deletionGracePeriodSeconds deletionTimestamp generation managedFields
        resourceVersion selfLink uid""".split()
    ),
    ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
    # What a render writes it will write again, of the new job and its new file.
    *(("metadata", "annotations", name) for name in (JOB_ANNOTATION, SOURCE_ANNOTATION, TOTAL_ANNOTATION)),
)


def without_server_fields(manifest: dict[str, Data]) -> tuple[dict[str, Data], list[str]]:
    """The manifest as somebody could have written it, and the paths of what was dropped."""
    dropped: list[str] = []
    clean = manifest
    for path in _SERVER:
        clean = _without(clean, path, path, dropped)
    return _without_nulls(clean, (), dropped), dropped


def _without(node: Data, path: tuple[str, ...], whole: tuple[str, ...], dropped: list[str]) -> Data:
    if not isinstance(node, dict) or path[0] not in node:
        return node
    if len(path) == 1:
        dropped.append(format_dotted(whole))
        return {key: value for key, value in node.items() if key != path[0]}
    below = _without(node[path[0]], path[1:], whole, dropped)
    # A map that held nothing else was there for the server's sake.
    emptied = not below and node[path[0]]
    return {key: below if key == path[0] else value for key, value in node.items() if key != path[0] or not emptied}


def _without_nulls(node: Data, path: tuple[Step, ...], dropped: list[str]) -> Data:
    """Maps without keys that say nothing: exporters write them, and Kubernetes takes them for absent."""
    if isinstance(node, dict):
        dropped += (f"{format_dotted((*path, key))} (null)" for key, value in node.items() if value is None)
        return {
            key: _without_nulls(value, (*path, key), dropped)
            for key, value in node.items()
            if value is not None and not _is_template_time(key, path, dropped)
        }
    if isinstance(node, list):
        return [_without_nulls(item, (*path, index), dropped) for index, item in enumerate(node)]
    return node


def _is_template_time(key: str, path: tuple[Step, ...], dropped: list[str]) -> bool:
    """Whether it is the creation time that exporters put into pod templates."""
    found = key == "creationTimestamp" and path[-1:] == ("metadata",) and len(path) > 1
    dropped += [format_dotted((*path, key))] if found else []
    return found


_PLACEHOLDER = lazy_pattern(r"\{\{|\$\{?\w|\{%|<%")


def template_text(nodes: Iterable[Data]) -> Iterator[Data]:
    """Scalars that some other generator is to fill in."""
    return (node for node in nodes if isinstance(value_of(node), str) and _PLACEHOLDER.search(value_of(node)))
