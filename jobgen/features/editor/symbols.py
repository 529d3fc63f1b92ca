"""Symbols of a document, for the outline of an editor: jobs, roles, containers, patches, rules of policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from jobgen.features.editor.cursor import read_trees
from jobgen.features.editor.values import to_real_file
from jobgen.features.editor.workspace import Workspace, load_ready
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import Location, TracedKey, TracedList, TracedScalar, location_of, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.yamlio.read import read

_MAX_SYMBOLS = 5000
"""An outline with more is not read, and some editors become slow."""
_MAX_LABEL = 60
MAX_FOUND = 500
_POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


class SymbolKind(Enum):
    """What a symbol is, with the name of the symbol that an editor shows."""

    DOCUMENT = "Object"
    JOB = "Class"
    ROLE = "Method"
    CONTAINER = "Field"
    OVERLAY = "Namespace"
    PATCH = "Event"
    KIND = "Interface"
    POLICY = "Function"
    RULE = "Boolean"
    FIELD = "Property"


class Symbol(NamedTuple):
    """A part of a document: the location of all of it, and that of its name."""

    name: str
    kind: SymbolKind
    detail: str
    location: Location
    selection: Location
    children: tuple[Symbol, ...] = ()


def list_symbols(text: str, file: str) -> tuple[Symbol, ...]:
    """Return the symbols of a file."""
    found: list[Symbol] = []
    for tree in read_trees(text, file):
        if isinstance(tree, dict) and tree and len(found) < _MAX_SYMBOLS:
            found += _list_document(tree, file)
    return tuple(found)


def _list_document(tree: dict[str, Any], file: str) -> Iterator[Symbol]:
    kind, spec, place = _text(tree.get("kind")), tree.get("spec"), location_of(tree)
    items = tree.get("items")
    if kind.endswith("List") and isinstance(items, list):
        for item in items[:_MAX_SYMBOLS]:
            yield from _list_document(item, file) if isinstance(item, dict) and item else ()
        return
    if place is None:
        return
    if kind in _PARTS:
        symbol, list_parts = _PARTS[kind]
        children = list_parts(spec)
    elif file.startswith("schemas/"):
        symbol, children = SymbolKind.KIND, _list_parts_of_kind(tree)
    else:
        symbol = SymbolKind.DOCUMENT
        children = _list_containers(spec) if kind else _list_keys(tree, SymbolKind.FIELD)
    named = as_mapping(tree.get("metadata")).get("name")
    name = _text(named) or (file.split("/")[1] if symbol is SymbolKind.OVERLAY and file.count("/") > 1 else "")
    label = name or kind or file.rpartition("/")[2] or "document"
    framework = _text(as_mapping(spec).get("framework")) if kind == "TrainingJob" else ""
    detail = f"{kind} {framework}".strip() if name else ""
    selection = named.location if isinstance(named, TracedScalar) else place
    yield _make(label, symbol, detail, place, tree, selection)._replace(children=tuple(children))


def _list_parts_of_kind(tree: Any) -> Iterator[Symbol]:
    for symbol in _list_keys(tree, SymbolKind.FIELD):
        if symbol.name in ("frameworks", "roles"):
            below = SymbolKind.ROLE if symbol.name == "roles" else SymbolKind.FIELD
            yield symbol._replace(detail="", children=tuple(_list_keys(tree[symbol.name], below)))


def _list_parts_of_job(spec: Any) -> Iterator[Symbol]:
    for field in ("initContainers", "sidecars"):
        yield from _list_named(as_mapping(spec).get(field), SymbolKind.CONTAINER, field)
    # Roles have containers of their own, but no roles.
    roles = as_mapping(as_mapping(spec).get("roles"))
    for symbol in _list_keys(roles, SymbolKind.ROLE):
        own = {key: value for key, value in as_mapping(roles[symbol.name]).items() if key != "roles"}
        yield symbol._replace(children=tuple(_list_parts_of_job(own)))


def _list_parts_of_overlay(spec: Any) -> Iterator[Symbol]:
    for key, value in as_mapping(spec).items():
        if not isinstance(key, TracedKey):
            continue
        if key == "patches" and isinstance(value, list):
            for number, patch in enumerate(value):
                place = location_of(patch)
                if place is not None:
                    yield _make(f"patch {number + 1}", SymbolKind.PATCH, _label_match(patch), place, patch)
        else:
            yield _make(str(key), SymbolKind.FIELD, _text(value), key.location, value)


def _label_match(patch: Any) -> str:
    parts = []
    for key, value in as_mapping(as_mapping(patch).get("match")).items():
        values = value.items() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        shown = ", ".join(f"{each[0]}={_text(each[1])}" if isinstance(each, tuple) else _text(each) for each in values)
        parts.append(f"{key} {shown}")
    label = "; ".join(parts) or "all jobs"
    return label if len(label) <= _MAX_LABEL else f"{label[:_MAX_LABEL]}…"


def _list_rules(spec: Any) -> Iterator[Symbol]:
    fields = as_mapping(spec)
    yield from _list_named(fields.get("variables"), SymbolKind.FIELD, "variable")
    for item in as_list(fields.get("validations")):
        place, own = location_of(item), as_mapping(item)
        label = _text(own.get("message") or own.get("expression"))
        if place is not None and label:
            yield _make(label.strip()[:_MAX_LABEL], SymbolKind.RULE, "validation", place, item)


_PARTS: dict[str, tuple[SymbolKind, Callable[[Any], Iterator[Symbol]]]] = {
    "TrainingJob": (SymbolKind.JOB, _list_parts_of_job),
    "Overlay": (SymbolKind.OVERLAY, _list_parts_of_overlay),
    "ValidatingAdmissionPolicy": (SymbolKind.POLICY, _list_rules),
}


def _list_containers(spec: Any) -> Iterator[Symbol]:
    """Yield the containers of a manifest, below their roles if it has any."""
    pending: list[Any] = [spec]
    count = 0
    while pending and count < _MAX_SYMBOLS:
        for key, value in as_mapping(pending.pop(0)).items():
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
    for item in as_list(node):
        named, place = as_mapping(item).get("name"), location_of(item)
        if place is not None and isinstance(named, TracedScalar) and _text(named):
            yield _make(_text(named), kind, detail, place, item, named.location)


def _list_keys(node: Any, kind: SymbolKind) -> Iterator[Symbol]:
    for key, value in as_mapping(node).items():
        if isinstance(key, TracedKey) and key:
            yield _make(str(key), kind, _text(value)[:_MAX_LABEL], key.location, value)


def _make(
    name: str, kind: SymbolKind, detail: str, start: Location, node: Any, selection: Location | None = None
) -> Symbol:
    """Make a symbol that extends from a location to the end of a node."""
    named = selection or start
    end = max((start.end_line, start.end_column), (named.end_line, named.end_column))
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending += (*each.keys(), *each.values())
        elif isinstance(each, list):
            pending += each
        # Aliases lead elsewhere, but never beyond their own line.
        if isinstance(each, (TracedScalar, TracedKey, TracedList)):
            end = max(end, (each.location.end_line, each.location.end_column))
    is_inside = (start.line, start.column) <= (named.line, named.column)
    whole = start._replace(end_line=end[0], end_column=end[1])
    return Symbol(name, kind, detail, whole, named if is_inside else start)


def _text(node: Any) -> str:
    value = value_of(node)
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def list_policies(root: Path) -> Iterator[tuple[str, Location]]:
    """Yield the policies of a repository and those that come with jobgen, each with the location of its name."""
    for file in (
        *layout.read_own_policies(layout.own_layers(root)),
        *layout.read_shipped_policies(layout.own_layers(root)),
    ):
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


def find_symbols(workspace: Workspace, query: str) -> list[Symbol]:
    """Return what matches a query, the best first: names that start with it, contain it, or have its letters."""
    found = [Symbol(*each, each[-1]) for each in _list_all(workspace)]
    wanted = query[:100].casefold()
    ranked = [(rank, each) for each in found if (rank := _rank(each.name.casefold(), wanted)) is not None]
    ranked.sort(key=lambda pair: (pair[0], len(pair[1].name), pair[1].name, pair[1].location))
    return [each for _, each in ranked[:MAX_FOUND]]


def _list_all(workspace: Workspace) -> Iterator[tuple[str, SymbolKind, str, Location]]:
    for file in workspace.index.values():
        sweeps: set[int] = set()
        for job in file.jobs:
            if not job.sweep or job.position not in sweeps:
                sweeps.add(job.position)
                detail = "sweep" if job.sweep else f"{job.kind} {job.framework}".strip()
                yield job.sweep or job.name, SymbolKind.JOB, detail, job.location
    ready = load_ready(workspace)
    if ready is None:
        return
    with workspace.reading():
        project = ready.layers.tracer.traced_project()
        for name, overlay in project.overlays.items():
            location = location_of(overlay.specs[0]) if overlay.specs else None
            if location is not None:
                yield name, SymbolKind.OVERLAY, "overlay", Location(location.file)
        for kind in project.kinds:
            location = location_of(kind.kind)
            if location is not None:
                yield kind.name, SymbolKind.KIND, str(value_of(kind.api_version)), to_real_file(location)
        for name, place in list_policies(workspace.root):
            yield name, SymbolKind.POLICY, "policy", to_real_file(place)


def _rank(name: str, query: str) -> int | None:
    """Return how well a name matches, 0 is best; None if it does not."""
    at = name.find(query)
    if at >= 0:
        return 0 if at == 0 else 1
    letters = iter(name)
    return 2 if all(letter in letters for letter in query) else None
