"""MutatingAdmissionPolicies: parsed, and applied to an object as the API server sees it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from jobgen.check.cel import Bound, Failed
from jobgen.check.cel.admission_scope import CompiledMutation, compile_mutation
from jobgen.check.cel.together import NAMES
from jobgen.check.policy.eval_context import EvalContext
from jobgen.check.policy.expressions import PolicyExpression, find_variables, unwrap_optionals
from jobgen.check.policy.match import parse_match
from jobgen.check.policy.parse import GROUP, Binding, Policy, make_binding
from jobgen.check.schema.admitted import Admission, name_type
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.check.validation import validate_object
from jobgen.k8s.kinds import NEWEST_RELEASE
from jobgen.model.data import Plain, location_of, untraced, value_of
from jobgen.model.finding import Problem, Severity
from jobgen.model.limits import MAX_COPIED_NODES, MAX_DEPTH, MAX_NODES, MAX_OBJECT_LENGTH, Budget, BudgetExceededError
from jobgen.model.mutated import Change, Source
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


class PatchError(Exception):
    """A patch that the API server rejects; the text says why."""


class _FailedTest(Exception):  # noqa: N818 -- it is not an error
    """A `test` operation does not hold, so that the patch is not applied."""


def apply_json_patch(obj: Any, operations: Any) -> Any:
    """An object with the operations of a JSON patch applied in order; unchanged if one of its tests does not hold."""
    made = copy.deepcopy(obj)
    copied = Budget(MAX_COPIED_NODES)
    try:
        for operation in operations if isinstance(operations, list) else ():
            made = _apply_operation(made, operation, copied)
    except _FailedTest:
        return obj
    except RecursionError as error:
        raise PatchError(_TOO_DEEP) from error
    except BudgetExceededError as error:
        raise PatchError(f"its `copy` operations add more than {MAX_COPIED_NODES} values") from error
    return made


def _apply_operation(obj: Any, operation: Mapping[str, Any], copied: Budget) -> Any:
    kind, steps = operation.get("op"), _split(operation.get("path"))
    if kind in ("move", "copy"):
        source = _split(operation.get("from"))
        value = _get(obj, source)
        if kind == "copy":
            # Each copy may double the object.
            copied.spend(count_nodes(value, MAX_COPIED_NODES))
            return _set(obj, steps, copy.deepcopy(value), is_new=True)
        return _set(_remove(obj, source), steps, value, is_new=True)
    if kind == "test":
        parent = _get(obj, steps[:-1])
        # A missing key of a mapping is null.
        found = parent.get(steps[-1]) if steps and isinstance(parent, dict) else _get(obj, steps)
        if found != operation.get("value"):
            raise _FailedTest
        return obj
    if kind == "remove":
        return _remove(obj, steps)
    if kind not in ("add", "replace"):
        raise PatchError(f"`{kind}` is not an operation of a JSON patch")
    if kind == "replace":
        _get(obj, steps)
    return _set(obj, steps, copy.deepcopy(operation.get("value")), is_new=kind == "add")


def count_nodes(value: Any, most: int) -> int:
    """The number of values in a tree; counting stops beyond `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        value = waiting.pop()
        count += 1
        if isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return count


def _split(path: Any) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise PatchError(f"`{path}` is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _get(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, list):
            value = value[_to_index(value, step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            raise PatchError(f"there is no `{'/'.join(['', *steps])}`")
    return value


def _to_index(items: list[Any], step: str, *, is_new: bool = False) -> int:
    if is_new and step == "-":
        return len(items)
    if not step.isascii() or not step.isdigit() or int(step) >= len(items) + is_new:
        raise PatchError(f"there is no item `{step}`")
    return int(step)


def _set(obj: Any, steps: list[str], value: Any, *, is_new: bool) -> Any:
    if not steps:
        return value
    parent = _get(obj, steps[:-1])
    if isinstance(parent, list):
        index = _to_index(parent, steps[-1], is_new=is_new)
        parent[index : index if is_new else index + 1] = [value]
    elif isinstance(parent, dict):
        parent[steps[-1]] = value
    else:
        raise PatchError(f"`{'/'.join(['', *steps[:-1]])}` is neither a mapping nor a list")
    return obj


def _remove(obj: Any, steps: list[str]) -> Any:
    _get(obj, steps)
    parent = _get(obj, steps[:-1])
    del parent[_to_index(parent, steps[-1]) if isinstance(parent, list) else steps[-1]]
    return obj


def merge_configuration(
    obj: Any, configuration: Any, schema: Schema, types: Mapping[str, Schema], path: str = ""
) -> Any:
    """An object with a configuration applied to it, as a server-side apply does: lists with keys are merged by them."""
    schema = _resolve(schema, types)
    _check_type(configuration, schema, path)
    if isinstance(configuration, dict):
        if schema.get("x-kubernetes-map-type") == "atomic":
            raise PatchError(f"`{path}` is an atomic mapping, which an apply configuration cannot change; {_USE_PATCH}")
        made = dict(obj) if isinstance(obj, dict) else {}
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
    expected = schema.get("type")
    allowed = _TYPES.get(expected) if isinstance(expected, str) else None
    if allowed is None or value is None or schema.get("x-kubernetes-int-or-string"):
        return
    if not isinstance(value, allowed) or (isinstance(value, bool) and expected != "boolean"):
        raise PatchError(f"`{path}` must be of type `{expected}`")


def _resolve(schema: Schema, types: Mapping[str, Schema]) -> Schema:
    while "$ref" in schema:
        schema = types[str(schema["$ref"]).rpartition("/")[2]]
    return schema


def _merge_lists(
    items: list[Any], more: list[Any], schema: Schema, types: Mapping[str, Schema], path: str
) -> list[Any]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind == "set":
        return [*items, *(item for item in more if item not in items)]
    if kind != "map":
        raise PatchError(f"`{path}` is an atomic list, which an apply configuration cannot change; {_USE_PATCH}")
    item_schema = _resolve(schema.get("items", {}), types)
    made = list(items)
    places = {_identify(item, keys, item_schema): place for place, item in reversed(list(enumerate(items)))}
    for item in more:
        identity = _identify(item, keys, item_schema)
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
    compiled: CompiledMutation
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
        patches = [each.compiled.expression for each in self.mutations]
        return [*self.policy.list_texts(), *(each.text for each in patches)]


def _find_errors(document: Mapping[str, Any]) -> list[Problem]:
    kind = str(value_of(document["kind"]))
    shipped = find_shipped_schema(f"{GROUP}/v1", kind, Cluster())
    found = shipped.check({**document, "apiVersion": f"{GROUP}/v1"}) if shipped else []
    found = [problem for problem in found if problem.severity is Severity.ERROR]
    found = found or validate_object(document, NEWEST_RELEASE)
    return [problem._replace(rule="invalid-policy", category="policy") for problem in found]


def parse_mutating_policy(document: Mapping[str, Any], problems: list[Problem]) -> MutatingPolicy | None:
    """The policy of a document, or None with the problems that the API server would refuse it for."""
    found = _find_errors(document)
    problems += found
    if found:
        return None
    spec: Any = untraced(document["spec"])
    variables: dict[str, PolicyExpression | None] = {}
    for item in spec.get("variables") or ():
        variables[item["name"]] = PolicyExpression(item["expression"], variables, "any")
    conditions = [PolicyExpression(item["expression"], {}, "bool") for item in spec.get("matchConditions") or ()]
    node = document["metadata"]["name"]
    name = str(value_of(node))
    mutations: list[Mutation] = []
    for item, source in zip(spec.get("mutations") or (), document["spec"].get("mutations") or (), strict=True):
        field = "jsonPatch" if item["patchType"] == _JSON_PATCH else "applyConfiguration"
        text = item[field]["expression"]
        compiled = compile_mutation(unwrap_optionals(text, variables), NAMES)
        written = source[field]["expression"]
        if not isinstance(compiled, CompiledMutation):
            message = f"the policy is not evaluated: {compiled.message}"
            problems.append(
                Problem("policy-not-evaluated", message, written, category="policy", severity=Severity.WARNING)
            )
            return None
        place = Source(name, location_of(written))
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
    return MutatingPolicy(policy, tuple(mutations), is_reinvoked, Source(name, location_of(node)))


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
    for mutation in policy.mutations if applies else ():
        try:
            made = _apply(mutation, context.with_object(obj), find_schema)
            yield Change(mutation.source, obj, made)
            obj = admit(made)
        except PatchError as error:
            yield Change(mutation.source, obj, obj, str(error))


def _apply(mutation: Mutation, context: EvalContext, find_schema: FindSchema) -> Any:
    obj: Any = context.bindings["object"]
    values = {name: context.evaluate(context.policy.variables[name]) for name in mutation.variables}
    known = {name: value for name, value in values.items() if not isinstance(value, Failed)}
    patch = mutation.compiled.expression(Bound({**context.bindings, "variables": known}, context.budget))
    if isinstance(patch, Failed):
        # A variable that failed is left out: only an expression that really reads it fails too.
        failed = next((value for value in values.values() if isinstance(value, Failed)), patch)
        raise PatchError(failed.message)
    if mutation.compiled.mismatch:
        raise PatchError(mutation.compiled.mismatch)
    patch = _to_json(patch)
    is_json = mutation.patch_type == _JSON_PATCH
    made = apply_json_patch(obj, patch) if is_json else _apply_configuration(obj, patch, find_schema)
    if not isinstance(made, dict):
        raise PatchError("the result is not an object")
    check_size(made)
    for field in ("apiVersion", "kind"):
        if made.get(field) != obj.get(field):
            raise PatchError(f"`{field}` cannot be changed")
    return made


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _to_json(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_to_json(child) for child in value]
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
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
    return merge_configuration(obj, configuration, schema, types)
