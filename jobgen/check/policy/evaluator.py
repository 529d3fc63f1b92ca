"""Evaluates the policies of a repository on an object, as the API server of one cluster would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jobgen.check.cel import Bound, Expression, Failed, bind, compile_cel
from jobgen.check.cel.values import THAN_ALLOWED
from jobgen.check.original_messages import original_policy_message
from jobgen.check.policy.eval_context import AdmissionSubject, EvalContext
from jobgen.check.policy.expressions import NAMES
from jobgen.check.policy.match import MatchResources, Request, pluralize_kind
from jobgen.check.policy.params import MissingParams, ParamStore
from jobgen.check.policy.parse import Binding, Policy, Validation
from jobgen.check.rule_runner import report_exception
from jobgen.check.schema.admitted import Admission
from jobgen.k8s.kind_scopes import CLUSTER_SCOPED
from jobgen.model.data import Node, Plain, TracedScalar, location_of, untraced, value_of
from jobgen.model.finding import Problem, Severity, quoted_values
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    from jobgen.check.policy.mutate import MutatingPolicy

_MISSING_KEY = "no such key: "
"""How the message of an evaluation that reads a missing field starts."""

_NAMES = lazy_pattern(r"`[^`, ]*`(?:, `[^`, ]*`)+")
"""Values in backticks that a message lists."""


class SchemaSource(NamedTuple):
    """What the cluster knows about kinds."""

    find_admission: Callable[[Mapping[str, Node]], Admission]
    """Returns the conversion of an object to what the API server makes of it before it asks policies."""
    read_schema: Callable[[str, str], dict[str, Any] | None]
    """Returns the schema of a kind by its apiVersion and name."""


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
# Numbers in the place of a validation's, for what fails before the validations.
_CONDITIONS, _PARAMS = -1, -2
_OBJECT = frozenset(("object", "oldObject"))


class ClusterFacts(NamedTuple):
    """What is known about the cluster that objects are created in."""

    environment: str = ""
    operators: Mapping[str, str] = MappingProxyType({})
    plurals: Mapping[tuple[str, str], str] = MappingProxyType({})
    grants_permissions: bool = True
    """What `authorizer` answers."""


class Policies(NamedTuple):
    """The policies of a repository, each with its bindings, and the objects that they may read."""

    policies: tuple[tuple[Policy, tuple[Binding, ...]], ...] = ()
    param_store: ParamStore = ParamStore({}, {})
    mutating: tuple[tuple[MutatingPolicy, tuple[Binding, ...]], ...] = ()
    """The policies that change objects, by name, each with its bindings."""

    def find_problems(self, obj: Mapping[str, Node], facts: ClusterFacts) -> Iterator[Problem]:
        """What the policies find in one object; for many objects, use one PolicyEvaluator."""
        return PolicyEvaluator(self, facts).find_problems(obj)


class _Denial(NamedTuple):
    """A validation that an object does not pass, with the severity that the binding's actions give it."""

    severity: Severity
    context: EvalContext
    validation: Validation | None
    error: str


class MatchedPolicy(NamedTuple):
    """A policy that applies to a kind, with its bindings."""

    policy: Policy
    bindings: tuple[tuple[Binding, bool], ...]
    """Each with whether it matches every object of the kind."""
    matches_all: bool
    reads_object_only: bool
    version: str
    """The version to which objects are converted for the policy; empty if they are read as they are."""


class KindPolicies(NamedTuple):
    """The policies that apply to a kind."""

    policies: tuple[MatchedPolicy, ...]
    combined: Expression | None
    """True for an object that passes all the policies that read nothing but the object."""


class PolicyEvaluator:
    """The policies of one cluster; which of them apply to a kind is looked up once."""

    def __init__(self, policies: Policies, facts: ClusterFacts) -> None:
        self.policies = policies
        self.facts = facts
        self._by_kind: dict[tuple[str, str], KindPolicies] = {}

    def find_problems(
        self,
        obj: Mapping[str, Node],
        schemas: SchemaSource | None = None,
        names: frozenset[str] | None = None,
        subjects: list[AdmissionSubject] | None = None,
    ) -> Iterator[Problem]:
        """Everything that the policies deny or warn about when an object is created, as mutating policies left it.

        With names, only these policies are evaluated. Without schemas, objects are read as they are. The subject of the
        evaluation is added to `subjects`; one that is there is that of the same object without locations, and is used.
        """
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        key = (str(value_of(api_version)), str(value_of(kind)))
        matched = self._by_kind.get(key)
        if matched is None:
            matched = self._by_kind[key] = self.match_policies(*key)
        if not matched.policies:
            return
        if subjects:
            subject = subjects[0]._replace(source=obj, is_traced=has_locations(obj))
        else:
            subject = self.make_subject(obj, schemas.find_admission(obj) if schemas else None)
        if subjects is not None:
            subjects[:] = [subject]
        # The object is handed to the engine once, for all policies that read nothing else.
        bound = bind(_object_bindings(subject))
        combined = matched.combined if names is None else None
        passes_combined = combined is not None and combined.evaluate_fast(bound) is True
        for each in matched.policies:
            if names is not None and each.policy.name not in names:
                continue
            read = convert_subject(subject, each.version) if each.version else subject
            bound_read = bind(_object_bindings(read)) if each.version else bound
            if (passes_combined and each.reads_object_only) or _passes(each.policy, bound_read):
                continue
            if each.matches_all or each.policy.match.matches(subject.request):
                try:
                    yield from self._find_policy_problems(each, read, bound_read, schemas)
                except Exception as error:  # noqa: BLE001 -- a faulty policy must not hide what the others find
                    yield report_exception(f"the policy `{each.policy.name}`", error, obj)

    def match_policies(self, api_version: str, kind: str) -> KindPolicies:
        """The policies that apply to a kind."""
        group, _, version = api_version.rpartition("/")
        resource = self.name_resource(group, kind)
        found = tuple(
            MatchedPolicy(
                policy=policy,
                bindings=tuple((binding, binding.match == MatchResources()) for binding in bindings),
                matches_all=policy.match.matches_all,
                reads_object_only=not (other := find_other_version(policy, group, version, resource))
                and _reads_object_only(policy),
                version=other,
            )
            for policy, bindings in self.policies.policies
            if bindings and policy.validations and policy.match.matches_resource(group, version, resource)
        )
        return KindPolicies(found, _combine([each.policy for each in found if each.reads_object_only]))

    def name_resource(self, group: str, kind: str) -> str:
        """The name that rules have for a kind."""
        return self.facts.plurals.get((group, kind)) or pluralize_kind(kind)

    def make_subject(self, obj: Mapping[str, Node], admit: Admission | None) -> AdmissionSubject:
        """The request to create an object."""
        api_version, kind = str(value_of(obj.get("apiVersion"))), str(value_of(obj.get("kind")))
        is_traced = has_locations(obj)
        group, _, version = api_version.rpartition("/")
        # Without locations there is nothing to convert, and no copy is made.
        plain: Mapping[str, Plain] = untraced(obj) if is_traced else obj  # type: ignore[assignment]
        plain = admit(plain) if admit else plain
        found = plain.get("metadata")
        metadata: Mapping[str, Plain] = found if isinstance(found, dict) else {}
        namespace = "" if kind in CLUSTER_SCOPED else str(metadata.get("namespace") or "default")
        if namespace and metadata.get("namespace") != namespace:
            plain = {**plain, "metadata": {**metadata, "namespace": namespace}}
        labels = metadata.get("labels")
        request = Request(
            group=group,
            version=version,
            kind=kind,
            resource=self.name_resource(group, kind),
            namespace=namespace,
            name=_find_name(obj),
            labels=labels if isinstance(labels, dict) else {},
            namespace_labels=self.policies.param_store.labels(namespace),
        )
        return AdmissionSubject(obj, plain, request, is_traced)

    def _find_policy_problems(
        self, matched: MatchedPolicy, subject: AdmissionSubject, bound: Bound, schemas: SchemaSource | None
    ) -> Iterator[Problem]:
        """The problems of one policy; several params that lead to the same message are one problem."""
        known: set[tuple[str, int]] = set()
        for denial in self._find_denials(matched, subject, bound, schemas):
            for problem in _to_problems(denial, subject):
                if (problem.message, id(problem.node)) not in known:
                    known.add((problem.message, id(problem.node)))
                    yield problem

    def _find_denials(
        self, matched: MatchedPolicy, subject: AdmissionSubject, bound: Bound, schemas: SchemaSource | None
    ) -> list[_Denial]:
        """The validations that an object does not pass for some params, with the highest severity of the bindings."""
        found: dict[tuple[int, str], _Denial] = {}
        for binding, matches_all in matched.bindings:
            if not matches_all and not binding.match.matches(subject.request):
                continue
            for key, denial in self._evaluate_binding(matched.policy, binding, subject, bound, schemas):
                if key not in found or _RANK[denial.severity] < _RANK[found[key].severity]:
                    found[key] = denial
        highest: dict[int, int] = {}
        for (number, _), denial in found.items():
            highest[number] = min(_RANK[denial.severity], highest.get(number, _RANK[denial.severity]))
        ordered = sorted(found.items(), key=lambda item: (item[0][0], _RANK[item[1].severity]))
        # Without params, a binding says nothing that one with a higher severity does not.
        return [denial for (number, param), denial in ordered if param or _RANK[denial.severity] == highest[number]]

    def _evaluate_binding(
        self,
        policy: Policy,
        binding: Binding,
        subject: AdmissionSubject,
        bound: Bound,
        schemas: SchemaSource | None,
    ) -> Iterator[tuple[tuple[int, str], _Denial]]:
        params = self.policies.param_store.find_params(policy, binding, subject.request, self.facts.operators)
        if isinstance(params, MissingParams):
            # The API server denies such a request, whatever the binding's actions are.
            if not policy.ignores_errors:
                yield (_PARAMS, ""), _Denial(Severity.ERROR, EvalContext(policy, {}), None, params.message)
            return
        for param in params:
            admitted = schemas.find_admission(param)(param) if schemas and param is not None else param
            context = self.make_context(policy, subject, admitted, bound)
            for number, validation, error in _find_failures(context):
                if not (error and policy.ignores_errors):
                    yield (number, _identify(param)), _Denial(binding.severity, context, validation, error)

    def make_context(self, policy: Policy, subject: AdmissionSubject, param: Plain, bound: Bound) -> EvalContext:
        """The values that a policy's expressions read; the expensive ones only if they are read."""
        known, reads = _object_bindings(subject), policy.reads
        more: dict[str, Plain] = {}
        if "params" in reads:
            more["params"] = param
        if "request" in reads:
            more["request"] = subject.request.as_data()
        if "namespaceObject" in reads:
            name = subject.request.namespace
            more["namespaceObject"] = self.policies.param_store.namespace(name) if name else None
        if "authorizer" in reads:
            # Imported late: few policies ask for permissions.
            from jobgen.check.cel.permissions import make_authorizer

            more["authorizer"] = make_authorizer(allows=self.facts.grants_permissions)
        return EvalContext(policy, {**known, **more}) if more else EvalContext(policy, known, bound)


def has_locations(obj: Mapping[str, Node]) -> bool:
    """Whether the values of an object have locations."""
    return any(type(obj.get(field)) is TracedScalar for field in ("apiVersion", "kind"))


def find_other_version(policy: Policy, group: str, version: str, resource: str) -> str:
    """The version to which objects are converted for a policy; empty if they are read as they are."""
    found = policy.match.find_version(group, version, resource)
    return "" if found == version else found


def convert_subject(subject: AdmissionSubject, version: str) -> AdmissionSubject:
    """The object in another version, as the API server converts custom resources without a webhook."""
    group = subject.request.group
    obj = {**subject.object, "apiVersion": f"{group}/{version}" if group else version}
    return subject._replace(object=obj, request=subject.request._replace(converted=version))


def _identify(param: Mapping[str, Plain] | None) -> str:
    metadata = param.get("metadata") if param else None
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}" if isinstance(metadata, dict) else ""


def _find_name(obj: Mapping[str, Node]) -> str:
    """The name that an object has when it is sent: one that is generated is not in the request."""
    metadata = obj.get("metadata")
    return str(value_of(metadata.get("name")) or "") if isinstance(metadata, dict) else ""


def _reads_object_only(policy: Policy) -> bool:
    expressions = [*policy.conditions, *(validation.expression for validation in policy.validations)]
    return policy.param_kind is None and all(each.names <= _OBJECT and not each.variables for each in expressions)


def _combine(policies: list[Policy]) -> Expression | None:
    """One expression that is true if an object passes all policies, so that it is converted and walked once."""
    if len(policies) < 2:
        return None
    compiled = compile_cel(" && ".join(map(_to_expression, policies)), NAMES)
    return compiled if isinstance(compiled, Expression) else None


def _to_expression(policy: Policy) -> str:
    """A policy as one expression; if it is not true, the policy is evaluated in steps to find out why."""
    # A line break, because an expression may end in a comment.
    conditions, validations = (
        " && ".join(f"({each.inlined}\n)" for each in expressions)
        for expressions in (policy.conditions, [item.expression for item in policy.validations])
    )
    # A conditional and not `||`: an error in a condition must be an error of the whole.
    return f"({conditions} ? {validations} : true)" if conditions else f"({validations})"


def _object_bindings(subject: AdmissionSubject) -> dict[str, Plain]:
    return {"object": subject.object, "oldObject": None}


def _passes(policy: Policy, bound: Bound) -> bool:
    """Whether an object is known to pass a policy that reads the object only; most do."""
    if policy.param_kind is not None:
        return False
    for condition in policy.conditions:
        result = condition.evaluate_fast(bound) if condition.names <= _OBJECT else None
        if result is not True:
            return result is False
    return all(
        item.expression.reads <= _OBJECT and item.expression.evaluate_fast(bound) is True for item in policy.validations
    )


def _find_failures(context: EvalContext) -> Iterator[tuple[int, Validation | None, str]]:
    """The validations that are not true, by number; the match conditions, if they cannot be evaluated."""
    policy = context.policy
    applies = context.evaluate_conditions() if policy.conditions else True
    if isinstance(applies, Failed):
        yield _CONDITIONS, None, applies.message
    if applies is not True:
        return
    for number, validation in enumerate(policy.validations):
        result = context.evaluate(validation.expression)
        if isinstance(result, Failed):
            yield number, validation, result.message
        elif result is not True:
            yield number, validation, ""


def _to_problems(denial: _Denial, subject: AdmissionSubject) -> Iterator[Problem]:
    """A denial as problems: one for each part of the object that causes it."""
    severity, context, validation, error = denial
    name = context.policy.name
    # What takes too long is not evaluated again to find its cause.
    if not subject.is_traced or validation is None or THAN_ALLOWED in error or context.is_slow:
        causes: list[tuple[Node, Plain]] = [(_name_node(subject), subject.object)]
    else:
        from jobgen.check.policy.locate import locate_failures

        causes = list(locate_failures(subject, context, validation.expression))
    for node, obj in causes:
        evidence, at = None, None
        if error or validation is None:
            message = f"policy `{name}` could not be evaluated: {error}"
            at = _find_author(node, subject, error)
        else:
            # The message is about the whole object, as that of the API server; the evidence is about this part of it.
            message = context.message(validation)
            part = context.with_part(obj).message(validation) if len(causes) > 1 else message
            part = original_policy_message(name, part)
            message = _name_once(message)
            evidence = quoted_values(part) if part != message else None
        yield Problem(name, message, node, category="policy", severity=severity, evidence=evidence, at=at)


def _name_once(message: str) -> str:
    """Name each value of a list once; CEL cannot, and roles often share an image or the name of a container."""
    return _NAMES.sub(lambda found: ", ".join(dict.fromkeys(found[0].split(", "))), message)


def _find_author(node: Node, subject: AdmissionSubject, error: str) -> Node:
    """The name of the object, if a key is missing and the value beside it, which is not at fault, is of an overlay."""
    name = _name_node(subject)
    own, found = location_of(name), location_of(node)
    return name if _MISSING_KEY in error and own and found and own.file != found.file else None


def _name_node(subject: AdmissionSubject) -> Node:
    metadata = subject.source.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) and subject.is_traced else None
