"""Evaluates the policies of a repository on an object, as the API server of one cluster would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from jobgen.check.cel import EvaluationBudget, Failed
from jobgen.check.policy.eval_context import (
    AdmissionSubject,
    Cause,
    EvalContext,
    MissingParams,
    ParamStore,
    SharedEvaluation,
)
from jobgen.check.policy.match import MatchResources, Request, pluralize_kind
from jobgen.check.policy.parse import Binding, Policy, Validation
from jobgen.check.rule_runner import report_exception
from jobgen.check.schema.admitted import Admission
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.model.data import Plain
from jobgen.model.digest import blake2b
from jobgen.model.finding import FaultKey, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place, identify
from jobgen.model.sentence import values_of

if TYPE_CHECKING:
    from jobgen.check.cel.together import Shared
    from jobgen.check.policy.mutate import MutatingPolicy

_NAMES = lazy_pattern(r"`[^`, ]*`(?:, `[^`, ]*`)+")
"""Values in backticks that a message lists."""


class SchemaSource(NamedTuple):
    """What the cluster knows about kinds."""

    find_admission: Callable[[Mapping[str, Plain]], Admission]
    """Returns the conversion of an object to what the API server makes of it before it asks policies."""
    read_schema: Callable[[str, str], dict[str, Any] | None]


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
# Numbers in the place of a validation's, for what fails before the validations.
_CONDITIONS, _PARAMS, _ANNOTATIONS = -1, -2, -3
_T = TypeVar("_T")


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


class _Denial(NamedTuple):
    """A validation that an object does not pass, with the severity that the binding's actions give it."""

    severity: Severity
    context: EvalContext
    validation: Validation | None
    error: Failed | None


class MatchedPolicy(NamedTuple):
    """A policy that applies to a kind, with its bindings."""

    policy: Policy
    bindings: tuple[tuple[Binding, bool], ...]
    """Each with whether it matches every object of the kind."""
    matches_all: bool
    version: str
    """The version to which objects are converted for the policy; empty if they are read as they are."""


_Invocation = tuple[Severity, str, EvalContext]
"""A policy that is evaluated on an object: the severity of a binding, one of its params, and what can be read."""


class PolicyEvaluator:
    """The policies of one cluster; which of them apply to a kind is looked up once."""

    def __init__(self, policies: Policies, facts: ClusterFacts) -> None:
        self.policies = policies
        self.facts = facts
        self._by_kind: dict[tuple[str, str], tuple[MatchedPolicy, ...]] = {}

    @cached_property
    def reads_pods(self) -> bool:
        """True if any policy applies to pods."""
        return bool(self.match_policies("v1", "Pod"))

    def find_problems(self, obj: Mapping[str, Plain], schemas: SchemaSource | None = None) -> Iterator[Problem]:
        """Everything that the policies deny or warn about when an object is created, as mutating policies left it.

        Without schemas, objects are read as they are.
        """
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        key = (str(api_version), str(kind))
        matched = self._by_kind.get(key)
        if matched is None:
            matched = self._by_kind[key] = self.match_policies(*key)
        if not matched:
            return
        subject = self.make_subject(obj, schemas.find_admission(obj) if schemas else None)
        for each, denials in self._evaluate(matched, subject, schemas):
            if isinstance(denials, Problem):
                yield denials
            elif denials:
                try:
                    yield from _find_policy_problems(denials, convert_subject(subject, each.version))
                except Exception as error:  # noqa: BLE001 -- a faulty policy must not hide what the others find
                    yield _report(each, error, subject)

    def _evaluate(
        self, matched: Sequence[MatchedPolicy], subject: AdmissionSubject, schemas: SchemaSource | None
    ) -> list[tuple[MatchedPolicy, list[_Denial] | Problem]]:
        """What policies deny; their expressions are evaluated together."""
        policies = [each for each in matched if each.matches_all or each.policy.match.matches(subject.request)]
        shared = _share_evaluations(policies, subject)
        plans = [_attempt(each, subject, partial(self._plan, each, shared[each.version], schemas)) for each in policies]
        return [
            (each, plan if isinstance(plan, Problem) else _attempt(each, subject, partial(_find_denials, *plan)))
            for each, plan in zip(policies, plans, strict=True)
        ]

    def list_expressions(self, obj: Mapping[str, Plain]) -> list[tuple[Shared, ...]]:
        """The expressions that are evaluated together on an object, for each version in which it is read."""
        subject = self.make_subject(obj, None)
        policies = self.match_policies(str(obj["apiVersion"]), str(obj["kind"]))
        shared = _share_evaluations(policies, subject)
        for each in policies:
            self._plan(each, shared[each.version], None)
        return [evaluation.expressions for evaluation in shared.values()]

    def match_policies(self, api_version: str, kind: str) -> tuple[MatchedPolicy, ...]:
        """The policies that apply to a kind."""
        group, _, version = api_version.rpartition("/")
        resource = self.name_resource(group, kind)
        return tuple(
            MatchedPolicy(
                policy=policy,
                bindings=tuple((binding, binding.match == MatchResources()) for binding in bindings),
                matches_all=policy.match.matches_all,
                version=find_other_version(policy, group, version, resource),
            )
            for policy, bindings in self.policies.policies
            if bindings
            and (policy.validations or policy.annotations)
            and policy.match.matches_resource(group, version, resource)
        )

    def name_resource(self, group: str, kind: str) -> str:
        """The name that rules have for a kind."""
        return self.facts.plurals.get((group, kind)) or pluralize_kind(kind)

    def make_subject(self, obj: Mapping[str, Plain], admit: Admission | None) -> AdmissionSubject:
        """The request to create an object."""
        api_version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
        group, _, version = api_version.rpartition("/")
        plain = admit(obj) if admit else obj
        found = plain.get("metadata")
        metadata: Mapping[str, Plain] = found if isinstance(found, dict) else {}
        namespace = "" if kind in CLUSTER_SCOPED else str(metadata.get("namespace") or "default")
        if namespace and metadata.get("namespace") != namespace:
            plain = {**plain, "metadata": {**metadata, "namespace": namespace}}
        labels, sent = metadata.get("labels"), obj.get("metadata")
        request = Request(
            group=group,
            version=version,
            kind=kind,
            resource=self.name_resource(group, kind),
            namespace=namespace,
            # One that is generated is not in the request.
            name=str(sent.get("name") or "") if isinstance(sent, dict) else "",
            labels=labels if isinstance(labels, dict) else {},
            namespace_labels=self.policies.param_store.labels(namespace),
        )
        return AdmissionSubject(obj, plain, request)

    def _plan(
        self, matched: MatchedPolicy, shared: SharedEvaluation, schemas: SchemaSource | None
    ) -> tuple[list[_Invocation], _Denial | None]:
        """What is evaluated of a policy, together with the others, and what is denied because params are missing."""
        policy, subject = matched.policy, shared.subject
        invocations: list[_Invocation] = []
        refused: _Denial | None = None
        for binding, matches_all in matched.bindings:
            if not matches_all and not binding.match.matches(subject.request):
                continue
            params = self.policies.param_store.find_params(policy, binding, subject.request, self.facts.operators)
            if isinstance(params, MissingParams):
                # The API server denies such a request, whatever the binding's actions are.
                if (params.is_limit or not policy.ignores_errors) and refused is None:
                    refused = _Denial(Severity.ERROR, EvalContext(policy, {}), None, Failed(params.message))
                continue
            for param in params:
                admitted = schemas.find_admission(param)(param) if schemas and param is not None else param
                context = self.make_context(policy, subject, admitted, shared)
                metadata = param.get("metadata") if param else None
                identity = ""
                if isinstance(metadata, dict):
                    identity = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
                invocations.append((binding.severity, identity, context))
        return invocations, refused

    def make_context(
        self,
        policy: Policy,
        subject: AdmissionSubject,
        param: Plain,
        shared: SharedEvaluation | None = None,
        budget: EvaluationBudget | None = None,
    ) -> EvalContext:
        """The values that a policy's expressions read; the expensive ones only if they are read."""
        reads = policy.reads
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
        return EvalContext(policy, {"object": subject.object, "oldObject": None, **more}, shared, budget)


def find_other_version(policy: Policy, group: str, version: str, resource: str) -> str:
    """The version to which objects are converted for a policy; empty if they are read as they are."""
    found = policy.match.find_version(group, version, resource)
    return "" if found == version else found


def convert_subject(subject: AdmissionSubject, version: str) -> AdmissionSubject:
    """The object in another version, if one is given, as the API server converts custom resources without a webhook."""
    if not version:
        return subject
    group = subject.request.group
    obj = {**subject.object, "apiVersion": f"{group}/{version}" if group else version}
    return subject._replace(object=obj, request=subject.request._replace(converted=version))


def _share_evaluations(policies: Iterable[MatchedPolicy], subject: AdmissionSubject) -> dict[str, SharedEvaluation]:
    versions = dict.fromkeys(each.version for each in policies)
    budget = EvaluationBudget({})
    return {version: SharedEvaluation(convert_subject(subject, version), budget) for version in versions}


def _attempt(matched: MatchedPolicy, subject: AdmissionSubject, find: Callable[[], _T]) -> _T | Problem:
    """What is found about a policy; a faulty policy must not hide what the others find."""
    try:
        return find()
    except Exception as error:  # noqa: BLE001 -- it is reported
        return _report(matched, error, subject)


def _report(matched: MatchedPolicy, error: Exception, subject: AdmissionSubject) -> Problem:
    return report_exception(f"the policy `{matched.policy.name}`", error, subject.source)


def _find_denials(invocations: list[_Invocation], refused: _Denial | None) -> list[_Denial]:
    """The validations that an object does not pass for some params, with the highest severity of the bindings."""
    found: dict[tuple[int, str], _Denial] = {(_PARAMS, ""): refused} if refused else {}
    for severity, param, context in invocations:
        for number, validation, error in () if context.passes() else _find_failures(context):
            key = (number, param)
            # Such an error denies the request, whatever the binding's actions are.
            severity = Severity.ERROR if number <= _ANNOTATIONS else severity  # noqa: PLW2901
            # A limit of the API server counts as an error there; what is a limit of ours may be refused there.
            is_ignored = error is not None and not error.is_limit and context.policy.ignores_errors
            if not is_ignored and (key not in found or _RANK[severity] < _RANK[found[key].severity]):
                found[key] = _Denial(severity, context, validation, error)
    if not found:
        return []
    highest: dict[int, int] = {}
    for (number, _), denial in found.items():
        highest[number] = min(_RANK[denial.severity], highest.get(number, _RANK[denial.severity]))
    ordered = sorted(found.items(), key=lambda item: (item[0][0], _RANK[item[1].severity]))
    # Without params, a binding says nothing that one with a higher severity does not.
    return [denial for (number, param), denial in ordered if param or _RANK[denial.severity] == highest[number]]


def _find_policy_problems(denials: list[_Denial], subject: AdmissionSubject) -> Iterator[Problem]:
    """The problems of one policy; several params that lead to the same message are one problem."""
    known: set[tuple[FaultKey, object]] = set()
    for denial in denials:
        for problem in _to_problems(denial, subject):
            if (problem.fault, identify(problem.node)) not in known:
                known.add((problem.fault, identify(problem.node)))
                yield problem


def _find_failures(context: EvalContext) -> Iterator[tuple[int, Validation | None, Failed | None]]:
    """The validations that are not true, by number; match conditions and annotations that cannot be evaluated."""
    policy = context.policy
    applies = context.evaluate_conditions() if policy.conditions else True
    if isinstance(applies, Failed):
        yield _CONDITIONS, None, applies
    if applies is not True:
        return
    for number, validation in enumerate(policy.validations):
        result = context.evaluate(validation.expression)
        if isinstance(result, Failed):
            yield number, validation, result
        elif result is not True:
            yield number, validation, None
    for number, annotation in enumerate(policy.annotations):
        result = context.evaluate(annotation)
        if isinstance(result, Failed):
            yield _ANNOTATIONS - number, None, result


def _to_problems(denial: _Denial, subject: AdmissionSubject) -> Iterator[Problem]:
    """A denial as problems: one for each part of the object that causes it."""
    # Imported late: most objects pass.
    from jobgen.check.policy.locate import finish_denial, finish_failure, list_numbers, locate_failures, name_object

    severity, context, validation, error = denial
    name, owner = context.policy.name, name_object(subject.source)
    numbers: Sequence[Place] = ()
    # What takes too long is not evaluated again to find its cause.
    is_limit = error is not None and error.is_limit
    is_slow = context.is_slow or is_limit or bool(context.shared and context.shared.is_slow)
    if validation is None or (error and error.is_costly) or is_slow:
        causes = [Cause(owner, owner)]
    else:
        causes = list(locate_failures(subject, context, validation.expression))
        numbers = list_numbers(subject, validation.expression, causes)
    if error is not None or validation is None:
        message = f"policy `{name}` could not be evaluated: {error.message if error else ''}"
        if is_limit and context.shared:
            message += f"; simplify the {context.shared.budget.name_costliest()}, which took the most"
        is_missing = error is not None and error.is_due_to("no such key: ")
        for cause in causes:
            finish = partial(finish_failure, cause.is_of_metadata, is_missing)
            around = ((owner, ""), (cause.part, ""))
            problem = Problem(name, message, cause.place, around, "policy", severity, finish=finish)
            yield problem._replace(cause="not evaluated")
        return
    # The message is about the whole object, as that of the API server; the evidence is about a part of it.
    removals = (frozenset(), *(cause.others for cause in causes if len(causes) > 1))
    whole, *parts = context.write_messages(validation, removals)
    # CEL cannot name each value of a list once, and roles often share an image or the name of a container.
    message = _NAMES.sub(lambda found: ", ".join(dict.fromkeys(found[0].split(", "))), whole)
    for cause, part in zip(causes, parts or (whole,), strict=True):
        evidence = values_of(part) if part != message else None
        value = _digest_cause(cause.value)
        if value is not None:
            # The message may be the same for a worse value.
            evidence = (*(values_of(message) if evidence is None else evidence), value)
        related = ((owner, ""), (cause.part, ""), *((number, "") for number in numbers))
        finish = partial(finish_denial, cause.is_of_metadata)
        yield Problem(name, message, cause.place, related, "policy", severity, evidence=evidence, finish=finish)


def _digest_cause(plain: Plain) -> str | None:
    """Return the digest of a value that a policy denies: a scalar, or a mapping of scalars; None for larger parts."""
    values = plain.values() if isinstance(plain, dict) else (plain,)
    if plain is None or any(isinstance(each, (dict, list)) for each in values):
        return None
    # It may be a secret.
    return blake2b(json.dumps(plain, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
