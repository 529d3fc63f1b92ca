"""Symbols of a document, for the outline of an editor: jobs, roles, containers, patches, rules of policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jobgen.features.editor.cursor import read_trees
from jobgen.features.editor.index import FileIndex
from jobgen.features.editor.values import to_real_file
from jobgen.features.editor.workspace import Workspace, load_ready
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, TracedKey, TracedList, TracedScalar, location_of, value_of
from jobgen.rendering.config import ProjectConfig
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.yamlio.read import read

_MAX_SYMBOLS = 5000
"""An outline with more is not read, and some editors become slow."""
_MAX_LABEL = 60


class SymbolKind(Enum):
    """What a symbol is."""

    DOCUMENT = "document"
    JOB = "job"
    ROLE = "role"
    CONTAINER = "container"
    OVERLAY = "overlay"
    PATCH = "patch"
    KIND = "kind"
    POLICY = "policy"
    RULE = "rule"
    FIELD = "field"


class Symbol(NamedTuple):
    """A part of a document."""

    name: str
    kind: SymbolKind
    detail: str
    location: Location
    """All of it."""
    selection: Location
    """Its name."""
    children: tuple[Symbol, ...] = ()


def list_symbols(text: str, file: str) -> tuple[Symbol, ...]:
    """Return the symbols of a file."""
    found: list[Symbol] = []
    for tree in read_trees(text, file):
        if isinstance(tree, dict) and tree and len(found) < _MAX_SYMBOLS:
            found += _list_document(tree, file)
    return tuple(found)


def _list_document(tree: dict[str, Any], file: str) -> Iterator[Symbol]:
    kind = _text(tree.get("kind"))
    items = tree.get("items")
    if kind.endswith("List") and isinstance(items, list):
        for item in items[:_MAX_SYMBOLS]:
            yield from _list_document(item, file) if isinstance(item, dict) and item else ()
        return
    place = location_of(tree)
    if place is None:
        return
    metadata = tree.get("metadata")
    named = metadata.get("name") if isinstance(metadata, dict) else None
    symbol, children = _describe(kind, tree, file)
    name = _text(named) or (file.split("/")[1] if symbol is SymbolKind.OVERLAY and file.count("/") > 1 else "")
    selection = named.location if isinstance(named, TracedScalar) else place
    label = name or kind or file.rpartition("/")[2] or "document"
    detail = _describe_detail(kind, tree) if name else ""
    yield _make(label, symbol, detail, place, selection, tree, children)


def _describe(kind: str, tree: dict[str, Any], file: str) -> tuple[SymbolKind, tuple[Symbol, ...]]:
    spec = tree.get("spec")
    if kind == "TrainingJob":
        return SymbolKind.JOB, tuple(_list_parts_of_job(spec))
    if kind == "Overlay":
        return SymbolKind.OVERLAY, tuple(_list_parts_of_overlay(spec))
    if kind == "ValidatingAdmissionPolicy":
        return SymbolKind.POLICY, tuple(_list_rules(spec))
    if file.startswith("schemas/"):
        return SymbolKind.KIND, tuple(_list_fields(tree, ("frameworks", "roles")))
    if not kind:
        return SymbolKind.DOCUMENT, tuple(_list_keys(tree, SymbolKind.FIELD))
    return SymbolKind.DOCUMENT, tuple(_list_containers(spec))


def _describe_detail(kind: str, tree: dict[str, Any]) -> str:
    spec = tree.get("spec")
    framework = _text(spec.get("framework")) if isinstance(spec, dict) else ""
    return f"{kind} {framework}".strip() if kind == "TrainingJob" else kind


def _list_parts_of_job(spec: Any) -> Iterator[Symbol]:
    fields = spec if isinstance(spec, dict) else {}
    for field in ("initContainers", "sidecars"):
        yield from _list_named(fields.get(field), SymbolKind.CONTAINER, field)
    roles: Any = fields.get("roles")
    for symbol in _list_keys(roles, SymbolKind.ROLE):
        own = roles[symbol.name]
        parts = own if isinstance(own, dict) else {}
        below = (
            each
            for field in ("initContainers", "sidecars")
            for each in _list_named(parts.get(field), SymbolKind.CONTAINER, field)
        )
        yield symbol._replace(children=tuple(below))


def _list_parts_of_overlay(spec: Any) -> Iterator[Symbol]:
    for key, value in spec.items() if isinstance(spec, dict) else ():
        if not isinstance(key, TracedKey):
            continue
        if key == "patches" and isinstance(value, list):
            for number, patch in enumerate(value):
                place = location_of(patch)
                if place is not None:
                    yield _make(f"patch {number + 1}", SymbolKind.PATCH, _label_match(patch), place, place, patch)
        else:
            yield _make(str(key), SymbolKind.FIELD, _text(value), key.location, key.location, value)


def _label_match(patch: Any) -> str:
    match = patch.get("match") if isinstance(patch, dict) else None
    parts = []
    for key, value in match.items() if isinstance(match, dict) else ():
        values = value.items() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        shown = ", ".join(f"{each[0]}={_text(each[1])}" if isinstance(each, tuple) else _text(each) for each in values)
        parts.append(f"{key} {shown}")
    label = "; ".join(parts) or "all jobs"
    return label if len(label) <= _MAX_LABEL else f"{label[:_MAX_LABEL]}…"


def _list_rules(spec: Any) -> Iterator[Symbol]:
    fields = spec if isinstance(spec, dict) else {}
    yield from _list_named(fields.get("variables"), SymbolKind.FIELD, "variable")
    validations = fields.get("validations")
    for item in validations if isinstance(validations, list) else ():
        place = location_of(item)
        label = _text(item.get("message") or item.get("expression")) if isinstance(item, dict) else ""
        if place is not None and label:
            yield _make(label.strip()[:_MAX_LABEL], SymbolKind.RULE, "validation", place, place, item)


def _list_containers(spec: Any) -> Iterator[Symbol]:
    """Yield the containers of a manifest, below their roles if it has any."""
    pending: list[Any] = [spec]
    count = 0
    while pending and count < _MAX_SYMBOLS:
        node = pending.pop(0)
        for key, value in node.items() if isinstance(node, dict) else ():
            count += 1
            if key in ("containers", "initContainers"):
                yield from _list_named(value, SymbolKind.CONTAINER, str(key))
            elif isinstance(value, dict) and str(key).endswith("ReplicaSpecs"):
                for role in _list_keys(value, SymbolKind.ROLE):
                    yield role._replace(children=tuple(_list_containers(value[role.name])))
            elif isinstance(value, dict):
                pending.append(value)
            elif isinstance(value, list):
                pending += value


def _list_named(node: Any, kind: SymbolKind, detail: str) -> Iterator[Symbol]:
    """Yield the items of a list by their names, or the entries of a mapping."""
    if isinstance(node, dict):
        yield from (symbol._replace(detail=detail) for symbol in _list_keys(node, kind))
    for item in node if isinstance(node, list) else ():
        named = item.get("name") if isinstance(item, dict) else None
        place = location_of(item)
        if place is not None and isinstance(named, TracedScalar) and _text(named):
            yield _make(_text(named), kind, detail, place, named.location, item)


def _list_fields(tree: dict[str, Any], fields: tuple[str, ...]) -> Iterator[Symbol]:
    for key, value in tree.items():
        if key in fields and isinstance(key, TracedKey):
            children = tuple(_list_keys(value, SymbolKind.ROLE if key == "roles" else SymbolKind.FIELD))
            yield _make(str(key), SymbolKind.FIELD, "", key.location, key.location, value, children)


def _list_keys(node: Any, kind: SymbolKind) -> Iterator[Symbol]:
    for key, value in node.items() if isinstance(node, dict) else ():
        if isinstance(key, TracedKey) and key:
            yield _make(str(key), kind, _text(value)[:_MAX_LABEL], key.location, key.location, value)


def _make(
    name: str,
    kind: SymbolKind,
    detail: str,
    start: Location,
    selection: Location,
    node: Any,
    children: tuple[Symbol, ...] = (),
) -> Symbol:
    """Make a symbol that extends from a location to the end of a node."""
    end = max(_find_end(node), (start.end_line, start.end_column), (selection.end_line, selection.end_column))
    is_inside = (start.line, start.column) <= (selection.line, selection.column)
    whole = start._replace(end_line=end[0], end_column=end[1])
    return Symbol(name, kind, detail, whole, selection if is_inside else start, children)


def _find_end(node: Any) -> tuple[int, int]:
    """Return the line and column at which a node ends. Aliases lead elsewhere, but never beyond their own line."""
    end = (0, 0)
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending += each.keys()
            pending += each.values()
        elif isinstance(each, list):
            pending += each
        if isinstance(each, (TracedScalar, TracedKey, TracedList)):
            end = max(end, (each.location.end_line, each.location.end_column))
    return end


def _text(node: Any) -> str:
    value = value_of(node)
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


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


MAX_FOUND = 500
_MAX_QUERY = 100


class Named(NamedTuple):
    """Something with a name, and where it is."""

    name: str
    kind: SymbolKind
    detail: str
    location: Location


def find_symbols(workspace: Workspace, query: str) -> list[Named]:
    """Return what matches a query, the best first: names that start with it, contain it, or have its letters."""
    found = list(_list_jobs(workspace.index))
    ready = load_ready(workspace)
    if ready is not None:
        with workspace.reading():
            found += _list_layers(ready.prepared.tracer.traced_project())
            found += (
                Named(name, SymbolKind.POLICY, "policy", to_real_file(location))
                for name, location in list_policies(workspace.root)
            )
    return _select(found, query[:_MAX_QUERY])


def _list_jobs(index: Mapping[str, FileIndex]) -> Iterator[Named]:
    for file in index.values():
        sweeps: set[int] = set()
        for job in file.jobs:
            if not job.sweep:
                detail = f"{job.kind} {job.framework}".strip()
                yield Named(job.name, SymbolKind.JOB, detail, job.location)
            elif job.position not in sweeps:
                sweeps.add(job.position)
                yield Named(job.sweep, SymbolKind.JOB, "sweep", job.location)


def _list_layers(project: ProjectConfig) -> Iterator[Named]:
    for name, overlay in project.overlays.items():
        for spec in overlay.specs[:1]:
            location = location_of(spec)
            if location is not None:
                yield Named(name, SymbolKind.OVERLAY, "overlay", Location(location.file))
    for kind in project.kinds:
        location = location_of(kind.kind)
        if location is not None:
            yield Named(kind.name, SymbolKind.KIND, str(value_of(kind.api_version)), to_real_file(location))


def _select(found: Iterable[Named], query: str) -> list[Named]:
    wanted = query.casefold()
    ranked = [(rank, each) for each in found if (rank := _rank(each.name.casefold(), wanted)) is not None]
    ranked.sort(key=lambda pair: (pair[0], len(pair[1].name), pair[1].name, pair[1].location))
    return [each for _, each in ranked[:MAX_FOUND]]


def _rank(name: str, query: str) -> int | None:
    """Return how well a name matches, 0 is best; None if it does not."""
    at = name.find(query)
    if at >= 0:
        return 0 if at == 0 else 1
    letters = iter(name)
    return 2 if all(letter in letters for letter in query) else None
