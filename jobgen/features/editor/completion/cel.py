"""Completion in the expressions of policies: variables, fields of objects, functions and macros."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from jobgen.check.cel.admission_scope import list_typed_fields
from jobgen.features.editor.completion.items import Item, ItemKind, Rank
from jobgen.features.editor.completion.names import Known
from jobgen.features.editor.completion.schemas import (
    SchemaNode,
    find_object_schema,
    list_fields,
    list_kinds,
    list_types,
    walk_path,
)
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import text_of
from jobgen.model.lazy_re import lazy_pattern, possessive_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.repo.shipped import find_shipped


class CelFunction(NamedTuple):
    """A function or macro."""

    receiver: str
    """The type of the value before the dot: `string`, `list`, `map`, or another; empty without one."""
    name: str
    example: str
    summary: str


@cache
def list_functions() -> tuple[CelFunction, ...]:
    """Return all functions and macros."""
    from jobgen.check.cel.signatures import FORMATS

    lines = (find_shipped("examples").parent / "cel_functions.txt").read_text("utf-8").splitlines()
    rows = (line.split("|") for line in lines)
    found = [CelFunction(*(part.strip() for part in row)) for row in rows]
    formats = [
        CelFunction("", f"format.{name}", f"format.{name}().validate('a').hasValue()", f"The format `{name}`.")
        for name in FORMATS
    ]
    return (*found, *formats)


EXPRESSIONS = frozenset(("expression", "messageExpression", "valueExpression"))
"""The fields of a policy that hold an expression."""

_STRING = possessive_pattern(r"""'(?:[^'\\\n]++|\\.)*+'|"(?:[^"\\\n]++|\\.)*+\"""")
_WORD = lazy_pattern(r"[A-Za-z_]\w*\Z")
_NUMBER = lazy_pattern(r"(?<!\w)\d+\Z")
_SEGMENT = lazy_pattern(r"(?:\.\??)?([A-Za-z_]\w*)((?:\[\??[^\[\]]*\])*)\Z")
_MACRO = lazy_pattern(r"\.(?:all|exists|exists_one|filter|map)\(\s*([A-Za-z_]\w*)\s*,")
_VARIABLES = {
    "object": "The object of the request; null if it is deleted.",
    "oldObject": "The object before the change; null if it is created.",
    "request": "The request: its operation, user, name and namespace.",
    "namespaceObject": "The namespace of the object; null if it has none.",
    "authorizer": "Permissions of the user, as `cluster.authorizer` states them.",
    "params": "The object that the binding names in `paramRef`.",
    "variables": "The variables of this policy.",
}
_TYPED = {"request": "AdmissionRequest", "namespaceObject": "Namespace"}
_MAX_KINDS = 20
"""Of more kinds that a policy matches, these have their fields offered."""
_METHODS = {"array": "list", "object": "map", "string": "string"}


class Policy(NamedTuple):
    """What the expressions of a policy can use."""

    object: Sequence[SchemaNode] = ()
    """The schemas of the objects that it matches; empty if none is known."""
    params: Sequence[SchemaNode] | None = None
    """The schema of its parameters; None without parameters."""
    variables: tuple[str, ...] = ()


def read_policy(document: Mapping[str, Any], known: Known) -> Policy:
    """Read what the expressions of a policy can use; it may be half typed."""
    spec = as_mapping(document.get("spec"))
    rules = [as_mapping(rule) for rule in as_list(as_mapping(spec.get("matchConstraints")).get("resourceRules"))]
    resources = [
        tuple(text_of(part) for part in parts)
        for rule in rules
        for parts in product(*(as_list(rule.get(key)) for key in ("apiGroups", "apiVersions", "resources")))
    ]
    kinds = {
        (kind.api_version, kind.plural): kind.name for kind in reversed([*list_kinds(known.kinds, known.clusters)])
    }
    found: list[SchemaNode] = []
    for group, version, resource in resources[:_MAX_KINDS]:
        api_version = f"{group}/{version}" if group else version
        if name := kinds.get((api_version, resource)):
            found += find_object_schema(known.root, api_version, name, known.clusters)
    kind = as_mapping(spec.get("paramKind"))
    named = text_of(kind.get("apiVersion")), text_of(kind.get("kind"))
    params = find_object_schema(known.root, *named, known.clusters) if kind else None
    names = (text_of(as_mapping(each).get("name")) for each in as_list(spec.get("variables")))
    return Policy(found, params, tuple(filter(None, names)))


def complete_expression(before: str, policy: Policy) -> tuple[int, list[Item]]:
    """Return what an expression can go on with, and how many characters before the cursor that replaces."""
    masked = _STRING.sub(lambda found: "'" + "_" * (len(found[0]) - 2) + "'", before)
    if masked.count("'") % 2 or masked.count('"') % 2:
        return 0, []
    word = _WORD.search(masked)
    typed = len(word[0]) if word else 0
    head = masked[: len(masked) - typed]
    if head.endswith((".", ".?")):
        start = before[: len(head)].removesuffix("?").removesuffix(".")
        found = [] if _NUMBER.search(start) else [*_list_members(start, policy)]
    else:
        found = [] if head[-1:].isdigit() else [*_list_names(head, policy)]
    return typed, list({item.label: item for item in reversed(found)}.values())[::-1]


def _list_names(before: str, policy: Policy) -> Iterator[Item]:
    for name, _ in reversed(list(_find_bound(before))):
        yield Item(name, ItemKind.VARIABLE, "", "variable", "The item or key of this macro.", Rank.REQUIRED)
    for name, summary in _VARIABLES.items():
        if (name != "params" or policy.params is not None) and (name != "variables" or policy.variables):
            yield Item(name, ItemKind.VARIABLE, "", "variable", summary, Rank.COMMON)
    for function in list_functions():
        if not function.receiver and "." not in function.name:
            yield _make_function(function)
    for name in dict.fromkeys(each.name.partition(".")[0] for each in list_functions() if "." in each.name):
        yield Item(name, ItemKind.VARIABLE, "", "library", "", Rank.OTHER)


def _make_function(function: CelFunction) -> Item:
    label = function.name.rpartition(".")[2]
    has_arguments = f"{function.name}()" not in function.example
    insert = f"{label}($1)" if has_arguments else f"{label}()"
    documentation = f"{function.summary}\n\n```cel\n{function.example}\n```"
    return Item(label, ItemKind.FUNCTION, insert, function.receiver, documentation, Rank.OTHER, is_snippet=True)


def _list_members(receiver: str, policy: Policy) -> Iterator[Item]:
    path = _read_path(receiver)
    if path and path[0] == "variables" and len(path) == 1:
        yield from (Item(name, ItemKind.VARIABLE, "", "variable of the policy") for name in policy.variables)
        return
    libraries = [each for each in list_functions() if len(path) == 1 and each.name.startswith(f"{path[0]}.")]
    if libraries:
        yield from map(_make_function, libraries)
        return
    forms = _find_forms(path, receiver, policy) if path else ()
    for field in list_fields(forms):
        detail = " or ".join(field.types)
        # A field with another name than a word is written in brackets, which needs the dot to be removed.
        if field.name.isidentifier():
            rank = Rank.REQUIRED if field.is_required else Rank.COMMON
            yield Item(field.name, ItemKind.FIELD, "", detail, field.description, rank)
    if path == ("authorizer",):
        wanted = ["Authorizer"]
    elif receiver.endswith(("'", '"', "}")):
        wanted = ["map" if receiver.endswith("}") else "string"]
    else:
        known = [_METHODS[kind] for kind in list_types(forms) if kind in _METHODS]
        # A mapping with fields is not a map. If the type is not known, it may have any function.
        wanted = [name for name in known if name != "map" or not [*list_fields(forms)]]
        wanted = wanted or (["object"] if known else [])
    for function in list_functions():
        if function.receiver and (function.receiver in wanted or not wanted):
            yield _make_function(function)


def _read_path(text: str) -> tuple[Step, ...]:
    """Return the fields and indexes at the end of an expression, such as `object.spec.containers[0]`; empty if none."""
    steps: list[Step] = []
    while found := _SEGMENT.search(text):
        indexes = [index.strip() for index in re.findall(r"\[\??([^\[\]]*)\]", found[2])]
        # The name of a variable stands for any key.
        keys = (index[1:-1] if index[:1] in ("'", '"') else 0 if index.isdigit() else index for index in indexes)
        steps[:0] = [found[1], *keys]
        text = text[: found.start()]
        if not found[0].startswith("."):
            return () if text.endswith((")", "]", "'", '"')) else tuple(steps)
    return ()


def _walk(forms: Sequence[SchemaNode], path: Iterable[Step]) -> Sequence[SchemaNode]:
    """Return the schema at a path; the items of lists have no names, so any key leads to them."""
    for step in path:
        below = walk_path(forms, (step,))
        forms = below or walk_path([form for form in forms if "array" in list_types([form])], (0,))
    return forms


def _find_forms(path: Sequence[Step], before: str, policy: Policy, depth: int = 0) -> Sequence[SchemaNode]:
    """Return the schema of the value at a path, which begins with a variable."""
    first = path[0]
    bound = dict(_find_bound(before))
    if first in bound and depth < 8:
        receiver = _read_path(bound[str(first)])
        forms = _find_forms(receiver, bound[str(first)], policy, depth + 1) if receiver else ()
        return _walk(forms, (0, *path[1:]))
    if first in _TYPED:
        return _walk(_read_typed(_TYPED[str(first)]), path[1:])
    roots = {"object": policy.object, "oldObject": policy.object, "params": policy.params or ()}
    return _walk(roots.get(str(first), ()), path[1:])


def _find_bound(before: str) -> Iterator[tuple[str, str]]:
    """Yield the variables of the macros around the end of an expression, each with what is before the macro."""
    for found in _MACRO.finditer(before):
        rest = before[found.end() :]
        if rest.count("(") >= rest.count(")"):
            yield found[1], before[: found.start()]


@cache
def _read_typed(name: str) -> tuple[SchemaNode, ...]:
    group = "kubernetes."
    types: dict[str, dict[str, Any]] = {}
    for owner, field, kind in list_typed_fields():
        properties = types.setdefault(owner.removeprefix(group), {"type": "object", "properties": {}})["properties"]
        properties[field] = _write_type(kind, group)

    def resolve(ref: str) -> SchemaNode | None:
        return SchemaNode(types[ref], resolve) if ref in types else None

    return (SchemaNode(types[name], resolve),)


def _write_type(kind: str, group: str) -> dict[str, Any]:
    if kind.startswith(group):
        return {"$ref": kind.removeprefix(group)}
    if kind.startswith("list<"):
        return {"type": "array", "items": _write_type(kind[5:-1], group)}
    if kind.startswith("map<"):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    return {"type": {"int": "integer", "bool": "boolean"}.get(kind, "string")} if kind != "dyn" else {}
