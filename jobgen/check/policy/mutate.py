"""MutatingAdmissionPolicies: parsed, and applied to an object as the API server sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobgen.check.cel import Failed, bind
from jobgen.check.cel.mutations import CompiledMutation, compile_mutation
from jobgen.check.cel.shared import NAMES
from jobgen.check.policy.eval_context import EvalContext
from jobgen.check.policy.expressions import PolicyExpression, find_variables, unwrap_optionals
from jobgen.check.policy.match import parse_match
from jobgen.check.policy.parse import GROUP, Binding, ParamRef, Policy, parse_param_ref
from jobgen.check.policy.patches import PatchError, apply_json_patch, check_size, merge_configuration
from jobgen.check.schema.admitted import Admission
from jobgen.check.schema.builtin_defaults import name_type
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.check.validation import validate_object
from jobgen.k8s.releases import NEWEST_RELEASE
from jobgen.model.data import Plain, location_of, untraced, value_of
from jobgen.model.finding import Problem, Severity
from jobgen.model.mutated import Change, Source
from jobgen.model.named_tuple import NamedTuple
from jobgen.schema.types_of_release import Types
from jobgen.spec.overlay import Cluster

_JSON_PATCH = "JSONPatch"
FindSchema = Callable[[str, str], dict[str, Any] | None]


class Mutation(NamedTuple):
    """One patch of a policy."""

    patch_type: str
    compiled: CompiledMutation
    source: Source
    variables: tuple[str, ...]
    """The variables that the expression reads."""


class MutatingPolicy(NamedTuple):
    """A policy without validations, and its patches."""

    policy: Policy
    mutations: tuple[Mutation, ...]
    is_reinvoked: bool
    source: Source
    """Where it is named, for what fails before its patches."""


def _find_errors(document: Mapping[str, Any]) -> list[Problem]:
    """Why the API server refuses a document."""
    kind = str(value_of(document["kind"]))
    shipped = find_shipped_schema(f"{GROUP}/v1", kind, Cluster())
    found = shipped.check({**document, "apiVersion": f"{GROUP}/v1"}) if shipped else []
    found = [problem for problem in found if problem.severity is Severity.ERROR] or validate_object(
        document, NEWEST_RELEASE
    )
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
    if found:
        return None
    spec: Any = untraced(document["spec"])
    param: ParamRef | None = parse_param_ref(spec["paramRef"]) if spec.get("paramRef") else None
    return Binding(
        name=str(value_of(document["metadata"]["name"])),
        policy=spec["policyName"],
        severity=Severity.ERROR,
        match=parse_match(spec.get("matchResources") or {}),
        params=param,
    )


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
    patch = _evaluate(mutation, context)
    made = (
        apply_json_patch(obj, patch)
        if mutation.patch_type == _JSON_PATCH
        else _apply_configuration(obj, patch, find_schema)
    )
    if not isinstance(made, dict):
        raise PatchError("the result is not an object")
    check_size(made)
    for field in ("apiVersion", "kind"):
        if made.get(field) != obj.get(field):
            raise PatchError(f"`{field}` cannot be changed")
    return made


def _evaluate(mutation: Mutation, context: EvalContext) -> Any:
    """The patch of a mutation as JSON has it."""
    values = {name: context.evaluate(context.policy.variables[name]) for name in mutation.variables}
    known = {name: value for name, value in values.items() if not isinstance(value, Failed)}
    patch = mutation.compiled.expression(bind({**context.bindings, "variables": known}))
    if isinstance(patch, Failed):
        # A variable that failed is left out: only an expression that really reads it fails too.
        failed = next((value for value in values.values() if isinstance(value, Failed)), patch)
        raise PatchError(failed.message)
    if mutation.compiled.mismatch:
        raise PatchError(mutation.compiled.mismatch)
    return _to_json(patch)


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
