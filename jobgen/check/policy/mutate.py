"""MutatingAdmissionPolicies: parsed, and applied to an object before validating policies read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.check.cel import Expression, Failed, bind
from jobgen.check.cel.mutations import compile_mutation
from jobgen.check.policy.eval_context import EvalContext
from jobgen.check.policy.expressions import NAMES, PolicyExpression
from jobgen.check.policy.match import parse_match
from jobgen.check.policy.parse import GROUP, Binding, ParamRef, Policy, parse_param_ref
from jobgen.check.policy.patches import PatchError, apply_json_patch, merge_configuration
from jobgen.check.schema.builtin_defaults import name_type
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.check.schema.types_of_release import Types
from jobgen.check.validation import validate_object
from jobgen.k8s.releases import NEWEST_RELEASE
from jobgen.model.data import Node, Plain, untraced, value_of
from jobgen.model.finding import Problem, Severity
from jobgen.spec.overlay import Cluster

MUTATING, MUTATING_BINDING = "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"
_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_JSON_PATCH = "JSONPatch"
FindSchema = Callable[[str, str], dict[str, Any] | None]


class Mutation(NamedTuple):
    """One patch of a policy."""

    patch_type: str
    expression: Expression


class MutatingPolicy(NamedTuple):
    """A policy without validations, its patches, and its bindings."""

    policy: Policy
    mutations: tuple[Mutation, ...]
    is_reinvoked: bool


class Change(NamedTuple):
    """What one policy made of an object, or why it failed."""

    policy: str
    before: Mapping[str, Plain]
    after: Mapping[str, Plain]
    error: str = ""


def is_mutating(document: Mapping[str, Node]) -> bool:
    """Whether a document is a mutating policy or its binding."""
    group, _, version = str(value_of(document.get("apiVersion"))).rpartition("/")
    return group == GROUP and version in _VERSIONS and value_of(document.get("kind")) in (MUTATING, MUTATING_BINDING)


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
    mutations: list[Mutation] = []
    for item, source in zip(spec.get("mutations") or (), document["spec"].get("mutations") or (), strict=True):
        field = "jsonPatch" if item["patchType"] == _JSON_PATCH else "applyConfiguration"
        compiled = compile_mutation(item[field]["expression"], NAMES)
        if not isinstance(compiled, Expression):
            message = f"the policy is not evaluated: {compiled.message}"
            node = source[field]["expression"]
            problems.append(
                Problem("policy-not-evaluated", message, node, category="policy", severity=Severity.WARNING)
            )
            return None
        mutations.append(Mutation(item["patchType"], compiled))
    kind = spec.get("paramKind")
    policy = Policy(
        name=str(value_of(document["metadata"]["name"])),
        match=parse_match(spec.get("matchConstraints") or {}),
        conditions=tuple(conditions),
        variables={name: each for name, each in variables.items() if each},
        validations=(),
        ignores_errors=spec.get("failurePolicy") == "Ignore",
        param_kind=(kind["apiVersion"], kind["kind"]) if kind else None,
        reads=frozenset(NAMES),
    )
    return MutatingPolicy(policy, tuple(mutations), spec.get("reinvocationPolicy") == "IfNeeded")


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
    policy: MutatingPolicy, obj: Mapping[str, Plain], bindings: Mapping[str, Plain], find_schema: FindSchema
) -> Change | None:
    """What a policy makes of an object; None if its conditions do not match."""
    context = EvalContext(policy.policy, {**bindings, "object": obj})
    applies = context.evaluate_conditions()
    if isinstance(applies, Failed):
        return Change(policy.policy.name, obj, obj, applies.message)
    if not applies:
        return None
    made: Any = obj
    for mutation in policy.mutations:
        values = {**bindings, "object": made, "variables": _read_variables(context.with_object(made))}
        patch = mutation.expression(bind(values))
        if isinstance(patch, Failed):
            return Change(policy.policy.name, obj, made, patch.message)
        try:
            made = _apply(mutation, made, patch, find_schema)
        except PatchError as error:
            return Change(policy.policy.name, obj, made, str(error))
    return Change(policy.policy.name, obj, made)


def _read_variables(context: EvalContext) -> dict[str, Any]:
    values = {name: context.evaluate(expression) for name, expression in context.policy.variables.items()}
    return {name: value for name, value in values.items() if not isinstance(value, Failed)}


def _apply(mutation: Mutation, obj: Mapping[str, Plain], patch: Any, find_schema: FindSchema) -> Any:
    if mutation.patch_type == _JSON_PATCH:
        return apply_json_patch(obj, patch)
    api_version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    schema = find_schema(api_version, kind)
    if schema is None:
        raise PatchError("the schema of this kind is not known, so an apply configuration cannot be merged")
    types = schema.get("$defs", {})
    if isinstance(types, Types) and not types.in_crd:
        # Objects that Go decodes have no keys of lists, which the same types have in a CRD.
        types = Types(types.release, in_crd=True)
        schema = types[name_type(api_version, kind)]
    return merge_configuration(obj, patch, schema, types)


def list_changed_paths(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The JSON pointers of the values that differ, each with both values; None if there is none."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            step = str(name).replace("~", "~0").replace("/", "~1")
            yield from list_changed_paths(before.get(name), after.get(name), f"{path}/{step}")
    elif _are_lists(before, after):
        for index in range(max(len(before), len(after))):
            old, new = (items[index] if index < len(items) else None for items in (before, after))
            yield from list_changed_paths(old, new, f"{path}/{index}")
    elif before != after:
        yield path, before, after


def _are_lists(*values: Sequence[Any]) -> bool:
    return all(isinstance(value, list) for value in values)
