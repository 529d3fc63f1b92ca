"""Applies the mutating policies of one cluster to an object, as the API server does before it validates the object.

The API server collects the policies, bindings and params that match the object, applies them one after the other, and
then once more those whose `reinvocationPolicy` is `IfNeeded`. It has no fixed order; here it is that of the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jobgen.check.cel import EvaluationBudget
from jobgen.check.cel.values import LIMITS
from jobgen.check.policy.eval_context import AdmissionSubject, MissingParams
from jobgen.check.policy.evaluator import (
    PolicyEvaluator,
    SchemaSource,
    convert_subject,
    find_other_version,
)
from jobgen.check.policy.mutate import MutatingPolicy, apply_mutations
from jobgen.check.policy.parse import Binding
from jobgen.check.schema.admitted import before_creation
from jobgen.model.data import Plain, TracedScalar, text_of, untraced
from jobgen.model.finding import Problem, Severity
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.mutated import Change, Mutated, Removal, carry_over, is_same
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence


class _Invocation(NamedTuple):
    """A policy that applies to an object, with one of its params."""

    policy: MutatingPolicy
    binding: str
    param: Plain

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same if the policy is invoked again."""
        return self.policy.policy.name, self.binding, repr(self.param)


class Mutator:
    """The mutating policies of one cluster; which of them apply to a kind is looked up once."""

    def __init__(self, evaluator: PolicyEvaluator, schemas: SchemaSource) -> None:
        self._evaluator = evaluator
        self._schemas = schemas
        self._by_kind: dict[tuple[str, str], tuple[tuple[MutatingPolicy, tuple[Binding, ...]], ...]] = {}

    def mutate(self, obj: Mapping[str, Any]) -> Mutated:
        """Apply the policies to an object; values that they do not change keep their locations."""
        key = (text_of(obj.get("apiVersion")), text_of(obj.get("kind")))
        if key not in self._by_kind:
            group, _, version = key[0].rpartition("/")
            resource = self._evaluator.name_resource(group, key[1])
            self._by_kind[key] = tuple(
                (each, bindings)
                for each, bindings in self._evaluator.policies.mutating
                if bindings and each.policy.match.matches_resource(group, version, resource)
            )
        if not self._by_kind[key]:
            return Mutated(obj)
        is_traced = type(obj.get("kind")) is not str
        applied = self._apply(untraced(obj) if is_traced else obj, self._by_kind[key])
        changes = tuple(each for each in applied if each.error or not is_same(each.before, each.after))
        removals: list[Removal] = []
        made: Any = obj
        for change in changes:
            made = carry_over(made, change, removals, is_traced=is_traced)
        # No more than these are reported of an object.
        failures = tuple(islice((_to_problem(change) for change in changes if change.error), MAX_FINDINGS))
        return Mutated(made, failures, changes, tuple(removals))

    def _apply(
        self, obj: Mapping[str, Plain], matched: tuple[tuple[MutatingPolicy, tuple[Binding, ...]], ...]
    ) -> Iterator[Change]:
        admit = before_creation(self._schemas.find_admission(obj))
        subject = self._evaluator.make_subject(obj, admit)
        again: set[tuple[str, str, str]] = set()
        budget = EvaluationBudget({})
        for invocation in self._list_invocations(matched, subject):
            if isinstance(invocation, Change):
                yield invocation
                continue
            for change in self._invoke(invocation, subject, budget):
                subject = subject._replace(object=admit(change.after))
                # A policy whose conditions do not match, or fail, is not invoked.
                if invocation.policy.is_reinvoked and change.source is not invocation.policy.source:
                    again.add(invocation.key)
                yield change
        # Whether they match is decided again, for the object as it is now.
        subject = self._evaluator.make_subject(subject.object, admit)
        for invocation in self._list_invocations(matched, subject) if again else ():
            if not isinstance(invocation, Change) and invocation.key in again:
                for change in self._invoke(invocation, subject, budget):
                    subject = subject._replace(object=admit(change.after))
                    yield change

    def _list_invocations(
        self, matched: tuple[tuple[MutatingPolicy, tuple[Binding, ...]], ...], subject: AdmissionSubject
    ) -> list[_Invocation | Change]:
        """The policies that apply to an object before any of them changes it, and failures for missing params."""
        found: list[_Invocation | Change] = []
        store, operators = self._evaluator.policies.param_store, self._evaluator.facts.operators
        for policy, bindings in matched:
            matches = policy.policy.match.matches(subject.request)
            for binding in bindings if matches else ():
                if not binding.match.matches(subject.request):
                    continue
                params = store.find_params(policy.policy, binding, subject.request, operators)
                if not isinstance(params, MissingParams):
                    found += (_Invocation(policy, binding.name, param) for param in params)
                elif params.is_limit or not policy.policy.ignores_errors:
                    found.append(Change(policy.source, subject.object, subject.object, params.message))
        return found

    def _invoke(self, invocation: _Invocation, subject: AdmissionSubject, budget: EvaluationBudget) -> Iterator[Change]:
        policy, param = invocation.policy, invocation.param
        if budget.owners is not None:
            budget.owners[policy.policy.name] = policy.list_texts
        admitted = self._schemas.find_admission(param)(param) if isinstance(param, dict) else param
        request = subject.request
        version = find_other_version(policy.policy, request.group, request.version, request.resource)
        read = convert_subject(subject, version)
        context = self._evaluator.make_context(policy.policy, read, admitted, budget=budget)
        admit = before_creation(self._schemas.find_admission(read.object))
        for change in apply_mutations(policy, context, self._schemas.read_schema, admit):
            sent = {"apiVersion": subject.object.get("apiVersion")}
            error = "" if policy.policy.ignores_errors and change.error not in LIMITS else change.error
            yield change._replace(before={**change.before, **sent}, after={**change.after, **sent}, error=error)


def _to_problem(change: Change) -> Problem:
    """A mutation that failed, at its place in the policy."""
    policy, location = change.source
    message = Sentence("policy `{}` could not be applied: {}", policy, change.error)
    node = TracedScalar(policy, location) if location else None
    return Problem(policy, message, node, category="policy", severity=Severity.ERROR)
