"""The frameworks that jobs can name: those that the kind descriptions of the catalog declare, and the fields they have.

The JSON Schemas in schemas/jobgen.dev/ name no framework. `add_frameworks` completes them, so a kind description with a
new framework is all that a new framework needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jobgen.spec.kinds import Kind


class FrameworkField(NamedTuple):
    """A field of a framework's block in a job; without types, it takes any value."""

    name: str
    types: tuple[str, ...] = ()
    description: str = ""


class FrameworkBlock(NamedTuple):
    """A framework, and the fields that its block in a job can have: `slotsPerWorker` for `mpi.slotsPerWorker`."""

    name: str
    fields: tuple[FrameworkField, ...] = ()


Frameworks = tuple[FrameworkBlock, ...]
"""The frameworks of a catalog, by name."""


def collect_frameworks(kinds: Iterable[Kind]) -> Frameworks:
    """Collect the frameworks that kinds declare."""
    names: set[str] = set()
    fields: dict[str, FrameworkField] = {}
    for kind in kinds:
        names.update(kind.frameworks)
        for path, mapping in kind.fields.items():
            _add_field(fields, path, mapping.types, mapping.description)
    return _build_blocks(names, fields)


def declared_frameworks(description: Mapping[str, Any]) -> Frameworks:
    """The frameworks that one kind description declares, before it is known to be valid."""
    names, paths = (description.get(key) for key in ("frameworks", "fields"))
    fields: dict[str, FrameworkField] = {}
    for path in paths if isinstance(paths, dict) else ():
        _add_field(fields, str(path), (), "")
    return _build_blocks(map(str, names if isinstance(names, dict) else ()), fields)


def _add_field(fields: dict[str, FrameworkField], path: str, types: tuple[str, ...], description: str) -> None:
    known = fields.get(path, FrameworkField(path))
    merged = tuple(dict.fromkeys((*known.types, *types)))
    fields[path] = FrameworkField(path, merged, known.description or description)


def _build_blocks(names: Iterable[str], fields: Mapping[str, FrameworkField]) -> Frameworks:
    """A block for each framework; of `mpi.a.b`, the block has `a`."""
    blocks: dict[str, dict[str, FrameworkField]] = {name: {} for name in sorted(names)}
    for path, field in sorted(fields.items()):
        framework, _, name = path.partition(".")
        top, _, rest = name.partition(".")
        if framework in blocks and top and top not in blocks[framework]:
            blocks[framework][top] = FrameworkField(top, ("object",)) if rest else field._replace(name=top)
    return tuple(FrameworkBlock(name, tuple(block.values())) for name, block in blocks.items())


def add_frameworks(schemas: Mapping[str, Any], frameworks: Frameworks) -> dict[str, Any]:
    """The JSON Schemas of jobgen's own formats, by file, completed with the frameworks of a catalog."""
    names = [framework.name for framework in frameworks]
    completed = dict(schemas)
    job = completed["trainingjob_v1.json"]
    fields = job["$defs"]["fields"]
    framework = {key: value for key, value in fields["properties"]["framework"].items() if key != "type"}
    blocks = {block.name: _block_schema(block) for block in frameworks}
    properties = {**fields["properties"], "framework": {**framework, "enum": [*names, None]}, **blocks}
    completed["trainingjob_v1.json"] = {
        **job,
        "$defs": {**job["$defs"], "fields": {**fields, "properties": properties}},
    }
    overlay = completed["overlay_v1.json"]
    match = overlay["$defs"]["match"]
    matched = {**match["properties"]["frameworks"], "items": {"enum": names}}
    properties = {**match["properties"], "frameworks": matched}
    completed["overlay_v1.json"] = {
        **overlay,
        "$defs": {**overlay["$defs"], "match": {**match, "properties": properties}},
    }
    return completed


def _block_schema(block: FrameworkBlock) -> dict[str, Any]:
    return {
        "description": f"Settings of {block.name} only.",
        "type": ["object", "null"],
        "title": f"`{block.name}`",
        "properties": {field.name: _field_schema(field) for field in block.fields},
        "additionalProperties": False,
    }


def _field_schema(field: FrameworkField) -> dict[str, Any]:
    described = {"description": field.description} if field.description else {}
    types = {"type": [*field.types, "null"]} if field.types else {}
    return {**described, **types}
