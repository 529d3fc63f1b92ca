"""ValidatingAdmissionPolicies evaluated offline, as the API server would when an object is created."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobgen.check.cel import available
from jobgen.check.policy.evaluator import Facts, Policies, PolicyEvaluator
from jobgen.check.policy.params import store_params
from jobgen.check.policy.parse import BINDING, Binding, Policy, is_policy, parse_binding, parse_policy
from jobgen.model.data import Data, TracedList, untraced, value_of
from jobgen.model.finding import Problem, Severity
from jobgen.model.suggest import did_you_mean

__all__ = ["Facts", "Policies", "PolicyEvaluator", "compile_policies"]


def compile_policies(documents: Iterable[Data], proven: Iterable[Data] = ()) -> tuple[Policies, list[Problem]]:
    """Policies and their bindings, compiled; what is neither is a param or a namespace.

    Documents that are `proven`, as those that travel with jobgen are by its tests, are compiled when they are needed.
    """
    own = [_without_nulls(document) for document in documents]
    missing = available()
    if missing:
        # Whoever has policies of their own relies on them; those that travel with jobgen can be done without.
        severity = Severity.ERROR if own else Severity.WARNING
        return Policies(), [Problem("policy-not-evaluated", missing, category="policy", severity=severity)]
    problems: list[Problem] = []
    policies: dict[str, tuple[Policy | None, Data]] = {}
    bindings: list[tuple[Binding, Data]] = []
    others: list[Data] = []
    for document, is_proven in (*((item, True) for item in proven), *((item, False) for item in own)):
        if not is_policy(document):
            others.append(untraced(document))
        elif value_of(document["kind"]) == BINDING:
            binding = parse_binding(document, problems)
            bindings += [(binding, document)] if binding else []
        else:
            _add_policy(document, parse_policy(document, problems, proven=is_proven), policies, problems)
    problems += _unbound(policies, bindings)
    used = [
        (policy, tuple(binding for binding, _ in bindings if binding.policy == policy.name))
        for policy, _ in policies.values()
        if policy
    ]
    return Policies(tuple(used), store_params(others)), problems


def _without_nulls(tree: Data) -> Data:
    """The tree without what is null: the API server takes it for left out."""
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value_of(value) is not None}
    if type(tree) is TracedList:
        return TracedList([_without_nulls(value) for value in tree], tree.location, tree.layer, tree.overridden)
    return [_without_nulls(value) for value in tree] if isinstance(tree, list) else tree


def _add_policy(
    document: Data, policy: Policy | None, policies: dict[str, tuple[Policy | None, Data]], problems: list[Problem]
) -> None:
    """A policy with its document, so that bindings know of it even if it does not compile."""
    metadata = document.get("metadata")
    node = metadata.get("name") if isinstance(metadata, dict) else None
    name = str(value_of(node))
    if name in policies:
        message = f"there are two policies named `{name}`"
        problems.append(Problem("invalid-policy", message, node, category="policy"))
    else:
        policies[name] = (policy, document)


def _unbound(
    policies: dict[str, tuple[Policy | None, Data]], bindings: Sequence[tuple[Binding, Data]]
) -> Iterable[Problem]:
    """Policies that no binding uses, and bindings that use none or hand it no params."""
    for name, (policy, document) in policies.items():
        if policy and not any(binding.policy == name for binding, _ in bindings):
            message = f"no binding uses policy `{name}`, so it does nothing"
            node = document["metadata"]["name"]
            yield Problem("policy-without-binding", message, node, category="policy", severity=Severity.WARNING)
    for binding, document in bindings:
        if binding.policy not in policies:
            message = f"there is no policy `{binding.policy}`{did_you_mean(binding.policy, list(policies))}"
            yield Problem("binding-without-policy", message, document["spec"]["policyName"], category="policy")
