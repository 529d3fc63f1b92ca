"""The schema of a kind whose operator has an unknown release: it accepts what any of several releases accepts.

A value that this schema refuses is refused by every one of these releases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from jobgen.schema.history import RANGE, Schema, contains
from jobgen.spec.kinds import parse_version

_OPEN = "x-kubernetes-preserve-unknown-fields"
_ANYTHING: Schema = {_OPEN: True}
_CHILDREN = ("items", "additionalProperties")
# A keyword of a pair means nothing, or something else, without the other one.
_PAIRS = (
    ("minimum", "exclusiveMinimum"),
    ("maximum", "exclusiveMaximum"),
    ("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
)
# Where releases differ in one of these, the forms of a value have nothing in common.
_FORMS = ("$ref", "type", "x-kubernetes-int-or-string")


def select_possible_releases(custom: Mapping[str, Any], declared: str) -> list[str]:
    """Return the releases of a file that a cluster may have: all, or the one that is declared.

    Of a declared release that the file does not have, it is the release before it and the release after it.
    """
    known: list[str] = custom["releases"]
    if not declared:
        return [release for release in known if contains(custom["schema"], release)]
    at = parse_version(declared)
    same = [release for release in known if parse_version(release)[:2] == at[:2]]
    if same:
        return [release for release in same if parse_version(release) <= at][-1:] or same[:1]
    around = [pair for pair in pairwise(known) if parse_version(pair[0]) < at < parse_version(pair[1])]
    return list(around[0]) if around else known[:1] if at < parse_version(known[0]) else known[-1:]


def select_any(node: Schema, releases: Sequence[str]) -> Schema:
    """Return the schema that accepts what one of the releases accepts, from a schema with the history of all."""
    own = {word: value for word, value in node.items() if word not in (*RANGE, *_CHILDREN, "releases", "properties")}
    entries = node.get("releases", ())
    variants = [_select_words(own, entries, release) for release in releases] if entries else [own]
    selected = unite(list({json.dumps(variant): variant for variant in variants}.values()))
    selected = {**selected, **{word: select_any(node[word], releases) for word in _CHILDREN if word in node}}
    if "properties" in node:
        is_open = [bool(variant.get(_OPEN)) for variant in variants] * (1 if entries else len(releases))
        selected["properties"] = dict(_select_fields(node["properties"], dict(zip(releases, is_open, strict=True))))
    return selected


def _select_fields(fields: Mapping[str, Schema], is_open: Mapping[str, bool]) -> Iterator[tuple[str, Schema]]:
    """The fields of all releases; an open release accepts any value of a field that it does not list."""
    for name, child in fields.items():
        having = [release for release in is_open if contains(child, release)]
        if any(is_open[release] for release in is_open if release not in having):
            yield name, _ANYTHING
        elif having:
            yield name, select_any(child, having)


def _select_words(own: Schema, entries: Sequence[Schema], release: str) -> Schema:
    """The keywords of a node in a release, without the fields and items that all releases have."""
    words = dict(own)
    for entry in entries:
        if contains(entry, release):
            words |= {word: value for word, value in entry.items() if word not in RANGE}
    return words


def unite(schemas: Sequence[Schema]) -> Schema:
    """Return a schema that accepts every value that one of the schemas accepts."""
    first = schemas[0]
    if all(schema == first for schema in schemas):
        return first
    if any(schema.get(word) != first.get(word) for word in _FORMS for schema in schemas):
        return _ANYTHING
    united = {word: value for word, value in first.items() if all(schema.get(word) == value for schema in schemas)}
    for pair in _PAIRS:
        if any(schema.get(word) != first.get(word) for word in pair for schema in schemas):
            united = {word: value for word, value in united.items() if word not in pair}
    for word in ("nullable", _OPEN):
        if any(schema.get(word) for schema in schemas):
            united[word] = True
    if all("enum" in schema for schema in schemas):
        united["enum"] = [
            value for at, schema in enumerate(schemas) for value in schema["enum"] if _is_new(value, schemas[:at])
        ]
    shared = set[str].intersection(*(set(schema.get("required", ())) for schema in schemas))
    united |= {"required": sorted(shared)} if shared else {}
    return united | _unite_children(schemas)


def _is_new(value: Any, earlier: Sequence[Schema]) -> bool:
    return not any(value in schema["enum"] for schema in earlier)


def _unite_children(schemas: Sequence[Schema]) -> Schema:
    """The parts of a united schema that are schemas; a mapping whose fields one release does not list has any."""
    united: Schema = {}
    for word in _CHILDREN:
        children = [schema[word] for schema in schemas if isinstance(schema.get(word), dict)]
        if len(children) == len(schemas):
            united[word] = unite(children)
        elif children:
            united |= _ANYTHING
    listed = [schema["properties"] for schema in schemas if "properties" in schema]
    if len(listed) == len(schemas):
        opened = [schema["properties"] for schema in schemas if schema.get(_OPEN)]
        united["properties"] = {
            name: unite([fields[name] for fields in listed if name in fields])
            if all(name in fields for fields in opened)
            else _ANYTHING
            for name in sorted({name for fields in listed for name in fields})
        }
    elif listed:
        united |= _ANYTHING
    return united
