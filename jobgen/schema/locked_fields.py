"""Finds paths in `locked` of an overlay that lock nothing, because no job can have such a field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem
from jobgen.model.path import InvalidPathError, Step, format_dotted, parse_dotted
from jobgen.model.suggest import did_you_mean
from jobgen.spec.locks import name_field

_JOB = "trainingjob_v1.json"
# The schema accepts any resource. Other resources have a domain, which is written in brackets.
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "gpu")
_FREE_RESOURCE = ("hugepages-", "/")
_RESOURCE_BLOCKS = ("resources", "requests", "limits")


def find_lock_errors(document: Any, schemas: Mapping[str, Any]) -> Iterator[Problem]:
    """Report locked paths that are not a field of a job. Roles depend on the platform and are checked later."""
    job = schemas[_JOB]
    for entry in document["spec"].get("locked", ()):
        node = name_field(entry)
        try:
            path = parse_dotted(value_of(node))
        except InvalidPathError as error:
            yield Problem("invalid-value", str(error), node)
            continue
        if path != ("namespace",):
            yield from _check_path(path, node, job)


def _check_path(path: tuple[Step, ...], node: Node, job: Any) -> Iterator[Problem]:
    options = _resolve({"$ref": "#/$defs/fields"}, job)
    if not path:
        yield Problem("unknown-field", f"`{value_of(node)}` is not a field of a job", node)
    for depth, step in enumerate(path):
        mappings = [option for option in options if _is_mapping(option)]
        known = sorted({name for option in mappings for name in option.get("properties", ())} - {"$patch"})
        found = [each for option in mappings for each in _child(option, step)]
        if depth and str(path[depth - 1]) in _RESOURCE_BLOCKS and not _is_resource(step, known):
            known, found = sorted({*known, *_RESOURCES}), []
        if not found:
            yield _report(path, depth, node, known)
            return
        if {} in found:
            return
        options = [option for each in found for option in _resolve(each, job)]
        if any(_is_free(option) for option in options):
            return


def _report(path: tuple[Step, ...], depth: int, node: Node, known: list[str]) -> Problem:
    written, step = value_of(node), path[depth]
    if not isinstance(step, str):
        message = f"`{written}` names an item of a list; lock the whole list: `{format_dotted(path[:depth])}`"
        return Problem("invalid-value", message, node)
    if depth == 0:
        return Problem("unknown-field", f"`{written}` is not a field of a job{did_you_mean(step, known)}", node)
    holder = format_dotted(path[:depth])
    hint = did_you_mean(step, known) or (
        f"; it has {', '.join(f'`{name}`' for name in known)}" if known else f"; lock `{holder}`"
    )
    return Problem("unknown-field", f"`{written}` locks nothing: `{holder}` has no field `{step}`{hint}", node)


def _resolve(schema: Any, job: Any) -> list[Any]:
    """The alternatives of a schema, without references."""
    if "$ref" in schema:
        target = job
        for name in schema["$ref"].partition("#")[2].split("/")[1:]:
            target = target[name]
        return _resolve(target, job)
    return [each for option in schema.get("anyOf", ()) for each in _resolve(option, job)] or [schema]


def _is_mapping(schema: Any) -> bool:
    return "object" in schema.get("type", "object") and "enum" not in schema


def _is_free(schema: Any) -> bool:
    """Whether a mapping may have any fields."""
    return _is_mapping(schema) and not schema.keys() & {"properties", "additionalProperties"}


def _child(schema: Any, step: Step) -> list[Any]:
    if not isinstance(step, str):
        return []
    fields = schema.get("properties", {})
    other = schema.get("additionalProperties", {})
    return [fields[step]] if step in fields else [other] if isinstance(other, dict) else []


def _is_resource(step: Step, known: list[str]) -> bool:
    name = str(step)
    return name in known or name in _RESOURCES or any(part in name for part in _FREE_RESOURCE)
