"""What the policies say of an object: the guard of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.check.cel import Bound, Expression, Failed, bind, compile_cel
from jobgen.check.policy.code import NAMES
from jobgen.check.policy.eval_context import AdmissionSubject, EvalContext
from jobgen.check.policy.match import MatchResources, Request, plural
from jobgen.check.policy.params import Missing, ParamStore
from jobgen.check.policy.parse import Binding, Policy, Validation
from jobgen.check.policy.place import places
from jobgen.model.data import Data, TracedScalar, untraced, value_of
from jobgen.model.finding import Problem, Severity

_WITHOUT_NAMESPACE = frozenset(
    """ClusterQueue ClusterRole ClusterRoleBinding ClusterTrainingRuntime Namespace PersistentVolume PriorityClass
    ResourceFlavor StorageClass ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding""".split()
)
_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_CONDITIONS, _PARAMS = -1, -2
_OBJECT = frozenset(("object", "oldObject"))


class Facts(NamedTuple):
    """What is known of the cluster that objects are meant for."""

    environment: str = ""
    operators: Mapping[str, str] = MappingProxyType({})
    plurals: Mapping[tuple[str, str], str] = MappingProxyType({})


class Policies(NamedTuple):
    """The policies of a repository with the bindings that use them, and what they may read."""

    policies: tuple[tuple[Policy, tuple[Binding, ...]], ...] = ()
    param_store: ParamStore = ParamStore({}, {})

    def problems(self, made: Data, facts: Facts) -> Iterator[Problem]:
        """What the policies say of one object; whoever has many keeps a Guard."""
        return PolicyEvaluator(self, facts).problems(made)


class _Violation(NamedTuple):
    """A validation that an object does not pass, and the binding's word on how grave that is."""

    severity: Severity
    scene: EvalContext
    validation: Validation | None
    error: str


class MatchedPolicy(NamedTuple):
    """A policy that means a kind, and its bindings; which of them mean every object of it."""

    policy: Policy
    bindings: tuple[tuple[Binding, bool], ...]
    takes_all: bool
    plain: bool
    """Whether it reads the object alone, so that it can be asked together with others."""


class _Concerned(NamedTuple):
    """The policies that mean a kind, and one expression that holds if an object passes all the plain ones."""

    policies: tuple[MatchedPolicy, ...]
    together: Expression | None


class PolicyEvaluator:
    """The policies at the door of one cluster; which of them mean a kind is looked up once."""

    def __init__(self, policies: Policies, facts: Facts) -> None:
        self.policies = policies
        self.facts = facts
        self._by_kind: dict[tuple[str, str], _Concerned] = {}

    def problems(self, made: Data) -> Iterator[Problem]:
        """Everything that the policies have against the creation of an object."""
        api_version, kind = made.get("apiVersion"), made.get("kind")
        key = (str(value_of(api_version)), str(value_of(kind)))
        matched = self._concerned(*key)
        if not matched.policies:
            return
        traced = type(kind) is TracedScalar or type(api_version) is TracedScalar
        yield from self._found(made, key, matched, traced=traced)

    def _found(self, made: Data, key: tuple[str, str], matched: _Concerned, *, traced: bool) -> Iterator[Problem]:
        subject = self._subject(made, *key, traced=traced)
        # An object is handed to the engine once, for all policies that read nothing else.
        bound = bind(_seen(subject))
        together = matched.together is not None and matched.together(bound) is True
        for concern in matched.policies:
            if (together and concern.plain) or _passes(concern.policy, bound):
                continue
            if concern.takes_all or concern.policy.match.takes(subject.request):
                for violation in self._violations(concern, subject, bound):
                    yield from _told(violation, subject)

    def _concerned(self, api_version: str, kind: str) -> _Concerned:
        key = (api_version, kind)
        if key not in self._by_kind:
            self._by_kind[key] = self._sorted_out(api_version, kind)
        return self._by_kind[key]

    def _sorted_out(self, api_version: str, kind: str) -> _Concerned:
        group, _, version = api_version.rpartition("/")
        resource = self._resource(group, kind)
        found = tuple(
            MatchedPolicy(
                policy=policy,
                bindings=tuple((binding, binding.match == MatchResources()) for binding in bindings),
                takes_all=policy.match.takes_all,
                plain=_is_plain(policy),
            )
            for policy, bindings in self.policies.policies
            if bindings and policy.validations and policy.match.means(group, version, resource)
        )
        return _Concerned(found, _together(concern.policy for concern in found if concern.plain))

    def _resource(self, group: str, kind: str) -> str:
        return self.facts.plurals.get((group, kind)) or plural(kind)

    def _subject(self, made: Data, api_version: str, kind: str, *, traced: bool) -> AdmissionSubject:
        group, _, version = api_version.rpartition("/")
        shown = untraced(made) if traced else made
        metadata = shown.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace = "" if kind in _WITHOUT_NAMESPACE else str(metadata.get("namespace") or "default")
        if namespace and metadata.get("namespace") != namespace:
            shown = {**shown, "metadata": {**metadata, "namespace": namespace}}
        labels = metadata.get("labels")
        request = Request(
            group=group,
            version=version,
            kind=kind,
            resource=self._resource(group, kind),
            namespace=namespace,
            name=str(metadata.get("name", "")),
            labels=labels if isinstance(labels, dict) else {},
            namespace_labels=self.policies.param_store.labels(namespace),
        )
        return AdmissionSubject(made, shown, request, traced)

    def _violations(self, concern: MatchedPolicy, subject: AdmissionSubject, bound: Bound) -> list[_Violation]:
        """What a policy has against an object, the gravest word of its bindings for each validation."""
        found: dict[int, _Violation] = {}
        for binding, takes_all in concern.bindings:
            if not takes_all and not binding.match.takes(subject.request):
                continue
            for number, violation in self._by_binding(concern.policy, binding, subject, bound):
                if number not in found or _RANK[violation.severity] < _RANK[found[number].severity]:
                    found[number] = violation
        return [found[number] for number in sorted(found)]

    def _by_binding(
        self, policy: Policy, binding: Binding, subject: AdmissionSubject, bound: Bound
    ) -> Iterator[tuple[int, _Violation]]:
        params = self.policies.param_store.params_of(policy, binding, subject.request, self.facts.operators)
        if isinstance(params, Missing):
            # The API server denies such a request, whatever the binding's actions are.
            if not policy.ignores_errors:
                yield _PARAMS, _Violation(Severity.ERROR, EvalContext(policy, {}), None, params.message)
            return
        for param in params:
            scene = self._scene(policy, subject, param, bound)
            for number, validation, error in _failures(scene):
                if not (error and policy.ignores_errors):
                    yield number, _Violation(binding.severity, scene, validation, error)

    def _scene(self, policy: Policy, subject: AdmissionSubject, param: Data, bound: Bound) -> EvalContext:
        """What a policy's expressions see; what costs something is made where it is read."""
        known = _seen(subject)
        more: dict[str, Data] = {}
        if "params" in policy.reads:
            more["params"] = param
        if "request" in policy.reads:
            more["request"] = subject.request.as_data()
        if "namespaceObject" in policy.reads:
            name = subject.request.namespace
            more["namespaceObject"] = self.policies.param_store.namespace(name) if name else None
        return EvalContext(policy, {**known, **more}) if more else EvalContext(policy, known, bound)


def _is_plain(policy: Policy) -> bool:
    codes = [*policy.conditions, *(validation.code for validation in policy.validations)]
    return policy.param_kind is None and all(code.names <= _OBJECT and not code.variables for code in codes)


def _together(policies: Iterable[Policy]) -> Expression | None:
    """All policies as one expression: an object that passes is handed over and walked once."""
    parts = [_as_one(policy) for policy in policies]
    if len(parts) < 2:
        return None
    compiled = compile_cel(" && ".join(parts), NAMES)
    return compiled if isinstance(compiled, Expression) else None


def _as_one(policy: Policy) -> str:
    """A policy as one expression, which holds or not; where it fails, the long way tells what of it."""
    # A line break, because an expression may end in a comment.
    conditions, validations = (
        " && ".join(f"({code.whole}\n)" for code in codes)
        for codes in (policy.conditions, [item.code for item in policy.validations])
    )
    # A conditional and not `||`: the error of a condition is one of the whole.
    return f"({conditions} ? {validations} : true)" if conditions else f"({validations})"


def _seen(subject: AdmissionSubject) -> dict[str, Data]:
    return {"object": subject.object, "oldObject": None}


def _passes(policy: Policy, bound: Bound) -> bool:
    """Whether an object passes without further ado, as most do; if not, the long way tells why."""
    if policy.param_kind is not None:
        return False
    for code in policy.conditions:
        result = code.run(bound) if code.names <= _OBJECT else None
        if result is not True:
            return result is False
    return all(item.code.names <= _OBJECT and item.code.run(bound) is True for item in policy.validations)


def _failures(scene: EvalContext) -> Iterator[tuple[int, Validation | None, str]]:
    """The validations that do not hold, by number; the match conditions, if they cannot be evaluated."""
    policy = scene.policy
    applies = scene.applies() if policy.conditions else True
    if isinstance(applies, Failed):
        yield _CONDITIONS, None, applies.message
    if applies is not True:
        return
    for number, validation in enumerate(policy.validations):
        result = scene.run(validation.code)
        if isinstance(result, Failed):
            yield number, validation, result.message
        elif result is not True:
            yield number, validation, ""


def _told(violation: _Violation, subject: AdmissionSubject) -> Iterator[Problem]:
    """A violation as problems: one for each part of the object that is to blame."""
    severity, scene, validation, error = violation
    name = scene.policy.name
    if not subject.traced or validation is None:
        nodes = [(_name_of(subject), subject.object)]
    else:
        nodes = list(places(subject, scene, validation.code))
    for node, tree in nodes:
        if error or validation is None:
            message = f"policy `{name}` could not be evaluated: {error}"
        else:
            message = scene.of(tree).message(validation)
        yield Problem(name, message, node, category="policy", severity=severity)


def _name_of(subject: AdmissionSubject) -> Data:
    metadata = subject.made.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) and subject.traced else None
