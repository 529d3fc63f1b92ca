"""The frameworks that jobs can name: those that the kind descriptions of the catalog declare, and the fields they have.

The JSON Schemas in schemas/jobgen.dev/ name no framework. `add_frameworks` completes them, so a kind description with a
new framework is all that a new framework needs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from jobgen.model.data import untraced, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import Kind


class FrameworkField(NamedTuple):
    """A field of a framework's block in a job; without types, it takes any value."""

    name: str
    types: tuple[str, ...] = ()
    description: str = ""
    example: str = ""
    """As JSON, so that frameworks can be keys of a cache."""
    default: str = ""
    """As JSON."""


class FrameworkBlock(NamedTuple):
    """A framework, and the fields that its block in a job can have: `slotsPerWorker` for `mpi.slotsPerWorker`.

    Platforms have blocks, too: `volcano.minAvailable` concerns jobs on Volcano only.
    """

    name: str
    fields: tuple[FrameworkField, ...] = ()
    roles: tuple[str, ...] = ()
    is_platform: bool = False


LAUNCHER_BLOCKS = frozenset(("accelerate",))
"""Blocks of launchers: programs that start the command of a job of some framework."""
Frameworks = tuple[FrameworkBlock, ...]
"""The frameworks of a catalog, by name."""


@lru_cache(maxsize=16)
def collect_frameworks(kinds: tuple[Kind, ...]) -> Frameworks:
    """Collect the frameworks that kinds declare; a run that reads no jobs does not need them."""
    roles: dict[str, dict[str, None]] = {}
    fields: dict[str, FrameworkField] = {}
    for kind in kinds:
        for name, framework in kind.frameworks.items():
            roles.setdefault(name, {}).update(dict.fromkeys(framework.roles))
        for path, mapping in kind.fields.items():
            if "." in path:
                example, default = _to_json(mapping.example), _to_json(find_default(kind, path))
                _add_field(fields, FrameworkField(path, mapping.types, mapping.description, example, default))
    used = {kind.platform for kind in kinds if any(path.startswith(f"{kind.platform}.") for path in kind.fields)}
    used |= {name for name in LAUNCHER_BLOCKS if any(path.startswith(f"{name}.") for path in fields)}
    blocks = _build_blocks(roles, fields, used - roles.keys())
    return tuple(block._replace(roles=tuple(roles.get(block.name, ()))) for block in blocks)


def find_default(kind: Kind, path: str) -> Any:
    """The value that a kind or its operator gives to a field of a framework that is not set; None without one."""
    framework, *steps = path.split(".")
    value: Any = kind.frameworks[framework].defaults.get(framework) if framework in kind.frameworks else None
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return kind.fields[path].default if value is None else untraced(value)


def _to_json(value: Any) -> str:
    return "" if value is None else json.dumps(value)


def declared_frameworks(description: Mapping[str, Any]) -> Frameworks:
    """The frameworks that one kind description declares, before it is known to be valid."""
    names, paths = (description.get(key) for key in ("frameworks", "fields"))
    fields: dict[str, FrameworkField] = {}
    for path in paths if isinstance(paths, dict) else ():
        _add_field(fields, FrameworkField(str(path)))
    listed = [str(name) for name in names] if isinstance(names, dict) else []
    platform = str(value_of(description.get("platform")))
    has_block = platform not in listed and any(path.startswith(f"{platform}.") for path in fields)
    return _build_blocks(listed, fields, [platform] if has_block else ())


def _add_field(fields: dict[str, FrameworkField], field: FrameworkField) -> None:
    """Add what a kind says about a field to what others say; the first that says something counts."""
    known = fields.get(field.name, field)
    types = tuple(dict.fromkeys((*known.types, *field.types)))
    rest = (one or other for one, other in zip(known[2:], field[2:], strict=True))
    fields[field.name] = FrameworkField(field.name, types, *rest)


def _build_blocks(
    names: Iterable[str], fields: Mapping[str, FrameworkField], platforms: Collection[str] = ()
) -> Frameworks:
    """A block for each framework and platform; of `mpi.a.b`, the block has `a`."""
    blocks: dict[str, dict[str, FrameworkField]] = {name: {} for name in sorted((*names, *platforms))}
    for path, field in sorted(fields.items()):
        framework, _, name = path.partition(".")
        top, _, rest = name.partition(".")
        if framework in blocks and top and top not in blocks[framework]:
            blocks[framework][top] = FrameworkField(top, ("object",)) if rest else field._replace(name=top)
    return tuple(
        FrameworkBlock(name, tuple(block.values()), is_platform=name in platforms) for name, block in blocks.items()
    )


def add_frameworks(schemas: Mapping[str, Any], frameworks: Frameworks) -> dict[str, Any]:
    """The JSON Schemas of jobgen's own formats, by file, completed with the frameworks of a catalog."""
    names = [framework.name for framework in frameworks if not framework.is_platform]
    completed = dict(schemas)
    job = completed["trainingjob_v1.json"]
    fields = job["$defs"]["fields"]
    framework = {key: value for key, value in fields["properties"]["framework"].items() if key != "type"}
    # A kind decides which of these roles, or which others, a job may have.
    roles = {
        name: {
            "description": f"A role of jobs of {', '.join(each.name for each in frameworks if name in each.roles)}.",
            "anyOf": [{"type": "null"}, {"$ref": "#/$defs/role"}],
            "examples": [{}, {"replicas": 2}],
        }
        for name in sorted({role for each in frameworks for role in each.roles if role != "*"})
    }
    properties = {
        **fields["properties"],
        "framework": {**framework, "enum": [*names, None], "examples": names},
        "roles": {**fields["properties"]["roles"], "properties": roles},
        **{block.name: _block_schema(block) for block in frameworks},
    }
    definitions = {**job["$defs"], "fields": {**fields, "properties": properties}}
    completed["trainingjob_v1.json"] = {**job, "$defs": definitions}
    overlay = completed["overlay_v1.json"]
    match = overlay["$defs"]["match"]
    matched = {**match["properties"]["frameworks"], "items": {"enum": names}, "examples": [names[:1]]}
    properties = {**match["properties"], "frameworks": matched}
    definitions = {**overlay["$defs"], "match": {**match, "properties": properties}}
    completed["overlay_v1.json"] = {**overlay, "$defs": definitions}
    return completed


_NOUNS = dict.fromkeys(LAUNCHER_BLOCKS, "launcher ")


def _block_schema(block: FrameworkBlock) -> dict[str, Any]:
    shown = next((field for field in block.fields if field.example), None)
    return {
        "description": f"Settings of {_NOUNS.get(block.name, 'platform ' * block.is_platform)}{block.name} only.",
        "type": ["object", "null"],
        "title": f"`{block.name}`",
        "properties": {field.name: _field_schema(field) for field in block.fields},
        "additionalProperties": False,
        "examples": [{shown.name: json.loads(shown.example)} if shown else {}],
    }


def _field_schema(field: FrameworkField) -> dict[str, Any]:
    return {
        **({"description": field.description} if field.description else {}),
        **({"type": [*field.types, "null"]} if field.types else {}),
        **({"default": json.loads(field.default)} if field.default else {}),
        **({"examples": [json.loads(field.example)]} if field.example else {}),
    }
