"""Where a field belongs that a mapping of jobgen's formats does not have: found in the schemas."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem
from jobgen.model.path import InvalidPathError, Step, format_dotted, parse_dotted
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import NO_FIX, ask_for, find_closest, list_alternatives, suggest_value
from jobgen.schema.foreign_words import JOB, MATCH, OVERLAY, PATCH, ROLE, to_camel_case
from jobgen.schema.types_of_release import contains, read_types
from jobgen.spec.overlay import name_field

_ROLES = "`roles.<role>`"


def find_place(title: str, key: str, schemas: Mapping[str, Any], framework: str) -> str:
    """Where a field belongs that the mapping with this title does not have; an empty string if that is unknown."""
    place = ""
    if title in (JOB, ROLE):
        spellings = (key, to_camel_case(key))
        found = (_find_in_job(title, each, schemas, name) for each in spellings for name in (framework, ""))
        place = next(filter(None, found), "")
    elif title == MATCH and key in ("merge", "manifest", "jsonPatch"):
        place = f"`{key}` beside `match`"
    elif title in (OVERLAY, PATCH):
        place = _find_in_overlay(title, key, schemas)
    return f"write {place}" if place else ""


def find_block(title: str, key: str, schemas: Mapping[str, Any], framework: str) -> str:
    """The one block of a job that has the field, for `runPolicy.backoffLimit`; empty if there is none or several."""
    places = _list_job_places(key, schemas, framework) if title == JOB else []
    blocks = [place.removesuffix(f".{key}") for place in places]
    return blocks[0] if len(blocks) == 1 and "." not in blocks[0] else ""


def _list_job_places(key: str, schemas: Mapping[str, Any], framework: str) -> list[str]:
    """The paths of fields of that name in a job; blocks of other frameworks are left out."""
    fields = _job_fields(schemas)
    others = {name for name in fields["properties"]["framework"].get("enum", ()) if framework and name != framework}
    places = [place for place in _list_places(fields, key) if place.partition(".")[0] not in others]
    # What concerns every platform is meant rather than what concerns one.
    platforms = fields["properties"]["platform"].get("enum", ())
    return [place for place in places if place.partition(".")[0] not in platforms] or places


def _find_in_job(title: str, key: str, schemas: Mapping[str, Any], framework: str) -> str:
    fields = _job_fields(schemas)
    if title == ROLE and key in fields["properties"]:
        return f"`{key}` of the job, next to `roles`"
    if key.endswith("ReplicaSpecs"):
        return f"{_ROLES}, or `manifest.spec.{key}`"
    places = _list_job_places(key, schemas, framework)
    if places:
        return _join(places) if len(places) <= 2 else ""
    if key in _pod_fields("PodSpec"):
        return f"`podTemplate.spec.{key}`"
    return f"`podTemplate.spec.containers[].{key}`" if key in _pod_fields("Container") else ""


def _find_in_overlay(title: str, key: str, schemas: Mapping[str, Any]) -> str:
    cluster = schemas["overlay_v1.json"]["properties"]["spec"]["properties"]["cluster"]
    if key in _job_fields(schemas)["properties"] and not (title == OVERLAY and key in cluster["properties"]):
        return f"`defaults.{key}`, or `merge.{key}` in `patches`" if title == OVERLAY else f"`merge.{key}`"
    places = _list_places({"properties": {"cluster": cluster}}, key)
    if title == OVERLAY and len(places) == 1:
        return _join(places)
    found = _find_in_job(JOB, key, schemas, "")
    return found.replace("`podTemplate", "`defaults.podTemplate").replace("`runPolicy", "`defaults.runPolicy")


def _job_fields(schemas: Mapping[str, Any]) -> Any:
    return schemas["trainingjob_v1.json"]["$defs"]["fields"]


def _join(places: list[str]) -> str:
    return list_alternatives(f"`{place}`" for place in places)


def _list_places(schema: Mapping[str, Any], key: str) -> list[str]:
    """The paths of all fields of that name below the first level of a schema."""
    return [path for path in dict.fromkeys(_iterate(schema, "")) if path.rpartition(".")[2] == key and "." in path]


def _iterate(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        here = f"{path}{name}"
        yield here
        # Roles have the fields of the job; sweeps and lists have fields of their own.
        if name not in ("roles", "matrix"):
            yield from _iterate(child, f"{here}.")
            extra = child.get("additionalProperties")
            for option in extra.get("anyOf", [extra]) if isinstance(extra, dict) else ():
                yield from _iterate(option, f"{here}.<name>.")


def is_pod_field(key: str) -> bool:
    """Return True if `spec` of a pod has a field of that name."""
    return key in _pod_fields("PodSpec")


@functools.cache
def _pod_fields(type_name: str) -> frozenset[str]:
    fields = read_types("core_v1")["types"][type_name]["properties"]
    return frozenset(name for name, field in fields.items() if contains(field, ""))


# The schema accepts any resource. Other resources have a domain, which is written in brackets.
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "gpu")


def find_lock_errors(document: Any, schemas: Mapping[str, Any]) -> Iterator[Problem]:
    """Report locked paths that are not a field of a job. Roles depend on the platform and are checked later."""
    job = schemas["trainingjob_v1.json"]
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
        yield Problem("unknown-field", Sentence("`{}` is not a field of a job", value_of(node)), node)
    for depth, step in enumerate(path):
        mappings = [option for option in options if _is_mapping(option)]
        known = sorted({name for option in mappings for name in option.get("properties", ())} - {"$patch"})
        found = [each for option in mappings for each in _child(option, step)]
        if depth and str(path[depth - 1]) in ("resources", "requests", "limits"):
            known = sorted({*known, *_RESOURCES})
            if step not in known and not any(part in str(step) for part in ("hugepages-", "/")):
                found = []
        if not found:
            yield _report(path, depth, node, known)
            return
        options = [option for each in found for option in _resolve(each, job)]
        # A mapping may have any fields.
        free = (option for option in options if not option.keys() & {"properties", "additionalProperties"})
        if {} in found or any(map(_is_mapping, free)):
            return


def _report(path: tuple[Step, ...], depth: int, node: Node, known: list[str]) -> Problem:
    written, step = value_of(node), path[depth]
    if not isinstance(step, str):
        message = Sentence(
            "`{}` names an item of a list; lock the whole list: `{}`", written, format_dotted(path[:depth])
        )
        return Problem("invalid-value", message, node)
    meant = find_closest(step, known)
    if depth == 0:
        rest = format_dotted(path[1:]) if len(path) > 1 else ""
        # A path of the document, or the first step of a path.
        whole = rest if step == "spec" and path[1] in known else f"{meant}.{rest}" if meant and rest else meant
        message = Sentence("`{}` is not a field of a job{}", written, ask_for(whole))
        fix_steps, safe = suggest_value(node, known) if len(path) == 1 else NO_FIX
        return Problem("unknown-field", message, node, fix_steps=fix_steps, safe=safe, meant=meant)
    holder = format_dotted(path[:depth])
    listed = f"; it has {', '.join(f'`{name}`' for name in known)}" if known else f"; lock `{holder}`"
    message = Sentence("`{}` locks nothing: `{}` has no field `{}`{}", written, holder, step, ask_for(meant) or listed)
    return Problem("unknown-field", message, node, meant=meant)


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


def _child(schema: Any, step: Step) -> list[Any]:
    if not isinstance(step, str):
        return []
    fields = schema.get("properties", {})
    other = schema.get("additionalProperties", {})
    return [fields[step]] if step in fields else [other] if isinstance(other, dict) else []
