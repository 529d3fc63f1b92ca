"""MutatingAdmissionPolicies: parsed, and applied to an object as the API server sees it."""

from __future__ import annotations

import base64
import copy
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from jobgen.check.cel import Bound, Expression, Failed
from jobgen.check.cel.admission_scope import LITERAL, TYPE_FIELD, compile_mutation
from jobgen.check.cel.interpreter import Optional
from jobgen.check.cel.lists import same
from jobgen.check.cel.together import NAMES
from jobgen.check.cel.values import tag_of
from jobgen.check.policy.eval_context import EvalContext
from jobgen.check.policy.expressions import PolicyExpression, find_variables, unwrap_optionals
from jobgen.check.policy.match import parse_match
from jobgen.check.policy.parse import GROUP, Binding, Policy, find_errors, make_binding
from jobgen.check.schema.admitted import Admission, name_type
from jobgen.check.schema.cel_types import OBJECT_META
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.model.budget import Budget, BudgetExceededError, Work
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_COPIED_NODES, MAX_DEPTH, MAX_NODES, MAX_OBJECT_LENGTH
from jobgen.model.mutated import Change, Source
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import NO_ORIGINS, Origins
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.schema.types_of_release import Types
from jobgen.spec.overlay import Cluster

Schema = Mapping[str, Any]

_TOO_DEEP = f"the object would be nested more than {MAX_DEPTH} levels deep"
_USE_PATCH = "use a JSON patch"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


_ATOMIC = {"x-kubernetes-map-type": "atomic"}
# From api/openapi-spec/swagger.json of Kubernetes 1.36.
_ATOMIC_TYPES = frozenset(
    """ConfigMapKeySelector CrossVersionObjectReference EndpointAddress EndpointPort FileKeySelector LabelSelector
    LocalObjectReference NodeSelector NodeSelectorTerm ObjectFieldSelector ObjectReference OwnerReference
    ResourceFieldSelector RoleRef ScopeSelector SecretKeySelector SecretReference ServiceBackendPort Subject
    TopologySelectorTerm TypedLocalObjectReference""".split()
)
_ATOMIC_FIELDS = {
    "core_v1.PodSpec": "nodeSelector",
    "core_v1.ReplicationControllerSpec": "selector",
    "core_v1.ServiceSpec": "selector",
}
_LIST_TYPES: Mapping[str, Schema] = {
    "finalizers": {"x-kubernetes-list-type": "set"},
    "ownerReferences": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
}
_METADATA = {
    **OBJECT_META,
    "properties": {name: {**field, **_LIST_TYPES.get(name, {})} for name, field in OBJECT_META["properties"].items()},
}
_INDEX = lazy_pattern(r"[+-]?[0-9]+", re.ASCII)


class PatchError(Exception):
    """A patch that the API server rejects; the text says why."""


class _FailedTest(Exception):  # noqa: N818 -- it is not an error
    """A `test` operation does not hold, so that the patch is not applied."""


def apply_json_patch(obj: Any, operations: Any) -> Any:
    """An object with the operations of a JSON patch applied in order; unchanged if one of its tests does not hold."""
    made = copy.deepcopy(obj)
    copied = Budget(MAX_COPIED_NODES, Work.POLICIES)
    try:
        for operation in operations if isinstance(operations, list) else ():
            if str(operation.get("path")).count("/") > MAX_DEPTH:
                raise PatchError(_TOO_DEEP)
            made = _apply_operation(made, operation, copied)
    except _FailedTest:
        return obj
    except RecursionError as error:
        raise PatchError(_TOO_DEEP) from error
    except BudgetExceededError as error:
        raise PatchError(f"its `copy` operations add more than {MAX_COPIED_NODES} values") from error
    return made


def _apply_operation(  # noqa: C901 -- a case for each operation
    obj: Any, operation: Mapping[str, Any], copied: Budget
) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    value = copy.deepcopy(operation.get("value"))
    if path == "" and kind in ("replace", "test"):
        if kind == "test" and not same(obj, value):
            raise _FailedTest
        return value if kind == "replace" else obj
    if kind in ("move", "copy"):
        holder, key = _find_holder(obj, operation.get("from"))
        value = _get(holder, key)
        if kind == "copy":
            # Each copy may double the object.
            copied.spend(count_nodes(value, MAX_COPIED_NODES))
            value = copy.deepcopy(value)
        else:
            _remove(holder, key, operation.get("from"))
    elif kind not in ("add", "remove", "replace", "test"):
        raise PatchError(f"`{kind}` is not an operation of a JSON patch")
    holder, key = _find_holder(obj, path)
    if kind == "test":
        if not same(_get(holder, key), value):
            raise _FailedTest
    elif kind == "remove":
        _remove(holder, key, path)
    elif isinstance(holder, dict):
        # Also if it replaces a key that is missing.
        holder[key] = value
    elif kind == "replace":
        holder[_to_index(key, len(holder))] = value
    else:
        holder.insert(len(holder) if key == "-" else _to_index(key, len(holder) + 1), value)
    return obj


def count_nodes(value: Any, most: int) -> int:
    """The number of values in a tree; counting stops beyond `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        value = waiting.pop()
        count += 1
        if isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return count


def _find_holder(obj: Any, path: Any) -> tuple[Any, str]:
    """The mapping or list that a path leads into, and its last step; what is before the first `/` is ignored."""
    if not isinstance(path, str) or "/" not in path:
        raise PatchError(f"`{path}` is not a JSON pointer")
    *steps, last = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])
    for step in steps:
        obj = _get(obj, step) if isinstance(obj, (dict, list)) else None
    if not isinstance(obj, (dict, list)):
        raise PatchError(f"there is no `{path}`")
    return obj, last


def _get(holder: Any, key: str) -> Any:
    """A value; a missing key of a mapping is null."""
    return holder.get(key) if isinstance(holder, dict) else holder[_to_index(key, len(holder))]


def _to_index(step: str, size: int) -> int:
    """The index that a step stands for; a negative one counts from the end."""
    if not _INDEX.fullmatch(step) or not -size <= int(step) < size:
        raise PatchError(f"there is no item `{step}`")
    return int(step) % size


def _remove(holder: Any, key: str, path: Any) -> None:
    if isinstance(holder, list):
        del holder[_to_index(key, len(holder))]
    elif key in holder:
        del holder[key]
    else:
        raise PatchError(f"there is no `{path}`")


def merge_configuration(
    obj: Any, configuration: Any, schema: Schema, types: Mapping[str, Schema], path: str = ""
) -> Any:
    """An object with a configuration applied to it, as a server-side apply does: lists with keys are merged by them."""
    schema = _resolve(schema, types)
    _check_type(configuration, schema, path)
    if isinstance(configuration, dict):
        made = dict(obj) if isinstance(obj, dict) and not _is_atomic(schema) else {}
        for name, value in configuration.items():
            child = f"{path}.{name}" if path else name
            known = schema.get("properties", {}).get(name)
            extra = schema.get("additionalProperties")
            found = known if isinstance(known, dict) else extra
            if found is False and not schema.get("x-kubernetes-preserve-unknown-fields"):
                raise PatchError(f"there is no field `{child}`")
            field = found if isinstance(found, dict) else {}
            made[name] = merge_configuration(made.get(name), value, field, types, child)
        return made
    if isinstance(configuration, list):
        return _merge_lists(obj if isinstance(obj, list) else [], configuration, schema, types, path)
    return configuration


def check_atomics(configuration: Any, schema: Schema, types: Mapping[str, Schema], path: str = "") -> None:
    """Raise a PatchError if a configuration sets an atomic list or mapping; the API server does not look into maps."""
    schema = _resolve(schema, types)
    if isinstance(configuration, (dict, list)) and _is_atomic(schema):
        kind = "mapping" if isinstance(configuration, dict) else "list"
        raise PatchError(f"`{path}` is an atomic {kind}, which an apply configuration cannot change; {_USE_PATCH}")
    if isinstance(configuration, dict):
        for name, field in schema.get("properties", {}).items():
            if name in configuration:
                check_atomics(configuration[name], field, types, f"{path}.{name}" if path else name)
    for place, item in enumerate(configuration) if isinstance(configuration, list) else ():
        check_atomics(item, schema.get("items", {}), types, f"{path}[{place}]")


def _is_atomic(schema: Schema) -> bool:
    if "x-kubernetes-map-type" in schema:
        return bool(schema["x-kubernetes-map-type"] == "atomic")
    return "items" in schema and schema.get("x-kubernetes-list-type", "atomic") == "atomic"


def check_size(obj: Any) -> None:
    """Raise a PatchError for an object that is too large or too deep to be checked."""
    if count_nodes(obj, MAX_NODES) > MAX_NODES:
        raise PatchError(f"the object would have more than {MAX_NODES} values")
    level, length = [obj], 0
    for _ in range(MAX_DEPTH):
        length += sum(len(each) for each in level if isinstance(each, str))
        length += sum(len(name) for each in level if isinstance(each, dict) for name in each)
        if length > MAX_OBJECT_LENGTH:
            raise PatchError(f"the object would have more than {MAX_OBJECT_LENGTH} characters")
        level = [
            child
            for each in level
            if isinstance(each, (dict, list))
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise PatchError(_TOO_DEEP)


def _check_type(value: Any, schema: Schema, path: str) -> None:
    found = schema.get("type")
    expected = [str(each) for each in (found if isinstance(found, list) else [found]) if each != "null"]
    if value is None:
        raise PatchError(f"`{path}` cannot be null; remove it with a JSON patch")
    if schema.get("x-kubernetes-int-or-string") or not all(each in _TYPES for each in expected):
        return
    allowed = tuple(kind for each in expected for kind in _TYPES[each])
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise PatchError(f"`{path}` must be of type `{expected[0]}`")


def _resolve(schema: Schema, types: Mapping[str, Schema]) -> Schema:
    """The schema that a reference names, with the marks of atomic mappings, which schemas of releases leave out."""
    name = ""
    while "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        schema = types[name]
    if name.rpartition(".")[2] in _ATOMIC_TYPES:
        return {**schema, **_ATOMIC}
    field = _ATOMIC_FIELDS.get(name)
    if field is None or field not in schema.get("properties", {}):
        return schema
    return {**schema, "properties": {**schema["properties"], field: {**schema["properties"][field], **_ATOMIC}}}


def _merge_lists(
    items: list[Any], more: list[Any], schema: Schema, types: Mapping[str, Schema], path: str
) -> list[Any]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind == "set":
        for place, item in enumerate(more):
            _check_type(item, _resolve(schema.get("items", {}), types), f"{path}[{place}]")
        if any(more.count(item) > 1 for item in more):
            raise PatchError(f"`{path}` has an item twice")
        return [*items, *(item for item in more if item not in items)]
    if kind != "map":
        item_schema = schema.get("items", {})
        return [
            merge_configuration(None, item, item_schema, types, f"{path}[{place}]") for place, item in enumerate(more)
        ]
    item_schema = _resolve(schema.get("items", {}), types)
    made = list(items)
    places = {_identify(item, keys, item_schema): place for place, item in reversed(list(enumerate(items)))}
    identities = [_identify(item, keys, item_schema) for item in more]
    if len(set(identities)) < len(identities):
        raise PatchError(f"`{path}` has two items with the same {' and '.join(f'`{key}`' for key in keys)}")
    for item, identity in zip(more, identities, strict=True):
        place = places.setdefault(identity, len(made))
        before = made[place] if place < len(made) else None
        made[place : place + 1] = [merge_configuration(before, item, item_schema, types, f"{path}[{place}]")]
    return made


def _identify(item: Any, keys: Any, schema: Schema) -> str:
    """The keys of an item; one that is missing has its default."""
    if not isinstance(item, dict):
        return repr(item)
    fields = schema.get("properties", {})
    return repr([item.get(key, fields.get(key, {}).get("default")) for key in keys])


_JSON_PATCH = "JSONPatch"
FindSchema = Callable[[str, str], dict[str, Any] | None]


class Mutation(NamedTuple):
    """One patch of a policy."""

    patch_type: str
    expression: Expression
    source: Source
    variables: tuple[str, ...]


class MutatingPolicy(NamedTuple):
    """A policy without validations, and its patches."""

    policy: Policy
    mutations: tuple[Mutation, ...]
    is_reinvoked: bool
    source: Source
    """Where it is named, for what fails before its patches."""

    def list_texts(self) -> list[str]:
        """The texts of its expressions."""
        return [*self.policy.list_texts(), *(each.expression.text for each in self.mutations)]


def _find_errors(document: Mapping[str, Any], release: Release = NEWEST_RELEASE) -> list[Problem]:
    kind = str(document["kind"])
    shipped = find_shipped_schema(f"{GROUP}/v1", kind, Cluster())
    found = shipped.check({**document, "apiVersion": f"{GROUP}/v1"}) if shipped else []
    found = [problem for problem in found if problem.severity is Severity.ERROR]
    return [each._replace(rule="invalid-policy", category="policy") for each in found] or find_errors(document, release)


def parse_mutating_policy(
    document: Mapping[str, Any],
    problems: list[Problem],
    release: Release = NEWEST_RELEASE,
    origins: Origins = NO_ORIGINS,
) -> MutatingPolicy | None:
    """The policy of a document, or None with the problems that the API server would refuse it for."""
    found = _find_errors(document, release)
    problems += found
    if found:
        return None
    spec: Any = document["spec"]
    variables: dict[str, PolicyExpression | None] = {}
    for item in spec.get("variables") or ():
        variables[item["name"]] = PolicyExpression(item["expression"], variables, "any")
    conditions = [PolicyExpression(item["expression"], {}, "bool") for item in spec.get("matchConditions") or ()]
    name = str(document["metadata"]["name"])
    mutations: list[Mutation] = []
    for item in spec.get("mutations") or ():
        field = "jsonPatch" if item["patchType"] == _JSON_PATCH else "applyConfiguration"
        text = item[field]["expression"]
        compiled = compile_mutation(unwrap_optionals(text, variables), NAMES)
        written = At(item[field], "expression")
        if not isinstance(compiled, Expression):
            message = Sentence("the policy is not evaluated: {}", compiled.message)
            problems.append(
                Problem("policy-not-evaluated", message, written, category="policy", severity=Severity.WARNING)
            )
            return None
        place = Source(name, origins.find_location(written))
        mutations.append(Mutation(item["patchType"], compiled, place, find_variables(text)))
    kind = spec.get("paramKind")
    policy = Policy(
        name=name,
        match=parse_match(spec.get("matchConstraints") or {}),
        conditions=tuple(conditions),
        variables={name: each for name, each in variables.items() if each},
        validations=(),
        ignores_errors=spec.get("failurePolicy") == "Ignore",
        param_kind=(kind["apiVersion"], kind["kind"]) if kind else None,
        reads_all=True,
    )
    is_reinvoked = spec.get("reinvocationPolicy") == "IfNeeded"
    return MutatingPolicy(
        policy, tuple(mutations), is_reinvoked, Source(name, origins.find_location(At(document["metadata"], "name")))
    )


def parse_mutating_binding(document: Mapping[str, Any], problems: list[Problem]) -> Binding | None:
    """The binding of a document, or None with the problems that the API server would refuse it for."""
    found = _find_errors(document)
    problems += found
    return None if found else make_binding(document, Severity.ERROR)


def apply_mutations(
    policy: MutatingPolicy, context: EvalContext, find_schema: FindSchema, admit: Admission
) -> Iterator[Change]:
    """What each mutation of a policy makes of an object; nothing if its conditions do not match.

    A mutation that fails leaves the object as it is, and the next ones are applied. `admit` fills in the defaults of
    what a mutation added, which the next one may read.
    """
    obj: Any = context.bindings["object"]
    applies = context.evaluate_conditions()
    if isinstance(applies, Failed):
        yield Change(policy.source, obj, obj, applies.message)
        return
    schema = find_schema(str(obj.get("apiVersion")), str(obj.get("kind")))
    is_decoded = schema is None or isinstance(schema.get("$defs"), Types)
    for mutation in policy.mutations if applies else ():
        try:
            made = _apply(mutation, context.with_object(obj), find_schema)
            admitted = admit(made)
            yield Change(mutation.source, obj, made if is_decoded else _drop_unknown(made, admitted))
            obj = admitted
        except PatchError as error:
            yield Change(mutation.source, obj, obj, str(error))


def _drop_unknown(made: Any, admitted: Any) -> Any:
    """An object without the fields that the API server drops, as those that a CRD does not describe."""
    if isinstance(made, dict) and isinstance(admitted, dict):
        return {
            name: _drop_unknown(child, admitted.get(name))
            for name, child in made.items()
            if name in admitted or child in (None, "", [], {}) or name == "status"
        }
    if isinstance(made, list) and isinstance(admitted, list) and len(made) == len(admitted):
        return [_drop_unknown(*pair) for pair in zip(made, admitted, strict=True)]
    return made


def _apply(mutation: Mutation, context: EvalContext, find_schema: FindSchema) -> Any:
    obj: Any = context.bindings["object"]
    values = {name: context.evaluate(context.policy.variables[name]) for name in mutation.variables}
    known = {name: value for name, value in values.items() if not isinstance(value, Failed)}
    patch = mutation.expression(Bound({**context.bindings, "variables": known}, context.budget))
    if isinstance(patch, Failed):
        # A variable that failed is left out: only an expression that really reads it fails too.
        failed = next((value for value in values.values() if isinstance(value, Failed)), patch)
        raise PatchError(failed.message)
    is_json = mutation.patch_type == _JSON_PATCH
    for value in (each.get("value") for each in patch) if is_json else (patch,):
        _check_type_names(value, value.get(TYPE_FIELD) if isinstance(value, dict) else None)
    patch = _to_json(patch, is_patch=is_json)
    made = apply_json_patch(obj, patch) if is_json else _apply_configuration(obj, patch, find_schema)
    if not isinstance(made, dict):
        raise PatchError("the result is not an object")
    check_size(made)
    head = {field: obj.get(field) for field in ("apiVersion", "kind")}
    for field, value in head.items():
        if made.get(field) not in (None, value):
            raise PatchError(f"`{field}` cannot be changed")
    return {**made, **head}


def _check_type_names(value: Any, expected: str | None) -> None:
    """Raise a PatchError for `Object.x{}` in the field `spec`; mappings and lists in between have no names."""
    if expected is None or not isinstance(value, (dict, list)):
        return
    found = value.get(TYPE_FIELD) if isinstance(value, dict) else None
    if found == LITERAL:
        raise PatchError(f"a literal in another one cannot be applied; write `{expected}{{…}}`")
    if found not in (None, expected):
        raise PatchError(f"`{found}` is not the type of this field; use `{expected}`")
    for name, child in value.items() if isinstance(value, dict) else ((None, child) for child in value):
        _check_type_names(child, f"{expected}.{name}" if found else expected)


def _to_json(value: Any, *, is_patch: bool) -> Any:
    """A value as JSON; the values of a JSON patch are written as protocol buffers are."""
    if is_patch and isinstance(value, Optional):
        return _to_json(value.values[0], is_patch=True) if value.values else None
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise PatchError("it sets a mapping with keys that are not text; convert them with `string()`")
        return {name: _to_json(child, is_patch=is_patch) for name, child in value.items() if name != TYPE_FIELD}
    if isinstance(value, list):
        return [_to_json(child, is_patch=is_patch) for child in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else value
    if is_patch and isinstance(value, bytes) and not tag_of(value):
        return base64.b64encode(value).decode()
    if is_patch and isinstance(value, timedelta):
        return f"{value / timedelta(seconds=1):.9f}".rstrip("0").rstrip(".") + "s"
    if is_patch and isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise PatchError("it sets a value that cannot be written as JSON; convert it with `string()`")


def _apply_configuration(obj: Mapping[str, Plain], configuration: Any, find_schema: FindSchema) -> Any:
    api_version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    schema = find_schema(api_version, kind)
    if schema is None:
        raise PatchError("the schema of this kind is not known, so an apply configuration cannot be merged")
    types = schema.get("$defs", {})
    if isinstance(types, Types) and not types.in_crd:
        # Objects that Go decodes have no keys of lists, which the same types have in a CRD.
        types = Types(types.release, in_crd=True)
        schema = types[name_type(api_version, kind)]
    schema = {**schema, "properties": {**schema.get("properties", {}), "metadata": _METADATA}}
    given = {name: value for name, value in configuration.items() if name not in ("apiVersion", "kind")}
    made = merge_configuration(obj, given, schema, types)
    check_atomics(given, schema, types)
    return made
