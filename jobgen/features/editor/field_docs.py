"""The documentation of a field: its type, its default, its values and what it means, from the schema of its format."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jobgen.features.editor.completion.candidates import find_forms, list_known_values, read_document
from jobgen.features.editor.completion.manifests import describe_framework, describe_kind
from jobgen.features.editor.completion.names import Known
from jobgen.features.editor.completion.schema_nodes import (
    Field,
    SchemaNode,
    Value,
    list_fields,
    list_forms,
    list_types,
    list_values,
    walk_path,
)
from jobgen.features.editor.context import Context
from jobgen.features.editor.cursor import Cursor, Part, Path, get_path, read_text
from jobgen.features.editor.markdown import code, escape_text
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import API_VERSION, Location, TracedScalar, value_of
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.write import to_inline_yaml

_MAX_VALUES = 12
_MAX_EXAMPLE = 60
_TYPE_WORDS = {"array": "list", "object": "mapping"}


def describe_field(context: Context) -> Iterator[str]:
    """Yield the documentation of the field at a position: of a key, or of the key before a value."""
    cursor = _enter_list(context.cursor)
    path = list(cursor.path)
    while path and isinstance(path[-1], int):
        path.pop()
    if not path or cursor.part is Part.COMMENT or path[-1] == "<<":
        return
    known = collect_known(context)
    document = read_document(cursor, context.file, known)
    fields = list_fields(find_forms(path[:-1], document, known))
    field = next((each for each in fields if each.name == path[-1]), None)
    if field is not None:
        yield from _describe(field, tuple(path))
    elif forms := find_forms(path, document, known):
        # A key that users choose, such as the name of a variable.
        yield _join_facts(str(path[-1]), [_name_types(forms)])


def collect_known(context: Context) -> Known:
    """Return the kinds and clusters of a workspace; those of the newest releases while the settings have errors."""
    root = pathlib.Path(context.workspace.root)
    project = context.ready.run.project if context.ready else config.load(root)
    clusters = context.ready.clusters if context.ready else (Cluster(),)
    return Known(root, project.kinds, project.frameworks, clusters)


def _enter_list(cursor: Cursor) -> Cursor:
    """Return the cursor in the object of a List that it is in."""
    match cursor.path:
        case ("items", int() as number, *rest) if str(value_of(get_path(cursor.tree, ("kind",)))).endswith("List"):
            return cursor._replace(path=tuple(rest), tree=get_path(cursor.tree, ("items", number)))
        case _:
            return cursor


def _describe(field: Field, path: Path) -> Iterator[str]:
    forms = (field.node, *list_forms(field.node))
    facts = [_name_types(forms), "required" if field.is_required else ""]
    default = next((form.schema["default"] for form in forms if "default" in form.schema), None)
    facts.append(f"default {code(to_inline_yaml(default))}" if default is not None else "")
    if any(form.schema.get("deprecated") is True for form in forms):
        facts.append("deprecated")
    yield _join_facts(field.name, facts)
    if field.description:
        yield escape_text(" ".join(field.description.split()))
    values = [value.text for value in _list_values(forms, path)] if field.types != ("boolean",) else []
    # Any field of a job may be `null`, which removes what a lower layer sets.
    values = [value for value in values if value != "null"]
    if len(values) > 1:
        more = " …" if len(values) > _MAX_VALUES else ""
        yield f"One of {', '.join(map(code, values[:_MAX_VALUES]))}{more}"
    example = _find_example(field.name, forms)
    if example and not values:
        yield f"Example: {code(example)}"


def _list_values(forms: Sequence[SchemaNode], path: Path) -> Iterator[Value]:
    """Yield the values of a field, or of the items of a list."""
    items = walk_path(forms, (0,))
    yield from list_values(forms)
    yield from list_known_values(path, forms)
    yield from list_values(items)
    yield from list_known_values((*path, 0), items)


def _name_types(forms: Sequence[SchemaNode]) -> str:
    """Return the types of forms: `string`, `list of string`."""
    names = []
    for name in list_types(forms):
        items = [item for form in forms for item in walk_path([form], (0,))] if name == "array" else []
        below = " or ".join(_TYPE_WORDS.get(each, each) for each in list_types(items))
        names.append(_TYPE_WORDS.get(name, name) + (f" of {below}" if below else ""))
    return " or ".join(names)


def _join_facts(name: str, facts: Sequence[str]) -> str:
    known = ", ".join(filter(None, facts))
    return f"**{code(name)}**" + (f": {known}" if known else "")


def _find_example(name: str, forms: Sequence[SchemaNode]) -> str:
    for form in forms:
        examples = form.schema.get("examples")
        for example in examples if isinstance(examples, list) else ():
            text = to_inline_yaml({name: example})[1:-1]
            if len(text) <= _MAX_EXAMPLE:
                return text
    return ""


class Deprecation(NamedTuple):
    """A value that is deprecated."""

    location: Location
    hint: str
    """Since when, and what to use instead."""


def list_deprecated(text: str, file: str, known: Known) -> Iterator[Deprecation]:
    """Yield the deprecated values of a file: kinds and versions of manifests, and frameworks of jobs."""
    for document in read_text(text, file).documents:
        for data in split_list(document.data) if isinstance(document.data, dict) else ():
            yield from _check_object(data, known)


def _check_object(data: Any, known: Known) -> Iterator[Deprecation]:
    """Yield what is deprecated in an object; it may have any form."""
    fields = as_mapping(data)
    version, kind = fields.get("apiVersion"), fields.get("kind")
    if as_text(version) == API_VERSION:
        framework = as_mapping(fields.get("spec")).get("framework")
        if isinstance(framework, TracedScalar):
            reason = describe_framework(as_text(framework), known.kinds, known.clusters)
            yield from [Deprecation(framework.location, reason)] if reason else []
        return
    reason = describe_kind(as_text(version), as_text(kind), known.kinds, known.clusters)
    # The version is at fault if another one of the kind is served, which the reason then names.
    node = version if "use `" in reason else kind
    if reason and isinstance(node, TracedScalar):
        yield Deprecation(node.location, reason)
