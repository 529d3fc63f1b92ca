"""ValidatingAdmissionPolicies evaluated offline, as the API server would when an object is created."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jobgen.check.cel import available
from jobgen.check.policy.eval_context import store_params
from jobgen.check.policy.evaluator import ClusterFacts, Policies, PolicyEvaluator
from jobgen.check.policy.parse import (
    BINDING,
    MUTATING,
    MUTATING_BINDING,
    Binding,
    Policy,
    find_errors,
    is_mutating,
    is_policy,
    parse_binding,
    parse_policy,
)
from jobgen.k8s.kinds import NEWEST_RELEASE, Release, format_release
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.origins import NO_ORIGINS, Origins
from jobgen.model.place import At, Derived, DerivedList, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, suggest_value

if TYPE_CHECKING:
    from jobgen.check.policy.mutate import MutatingPolicy

__all__ = ["ClusterFacts", "Policies", "PolicyEvaluator", "compile_policies"]


_Document = Mapping[str, Any]
_P = TypeVar("_P")


def compile_policies(
    documents: Iterable[_Document],
    trusted: Iterable[_Document] = (),
    releases: tuple[Release, ...] = (),
    origins: Origins = NO_ORIGINS,
) -> tuple[Policies, list[Problem]]:
    """Parse and check policies and their bindings; other documents are params and namespaces.

    Trusted documents are those that come with jobgen, which its tests check; they are compiled when first evaluated.
    Releases are those of the clusters: an error in all of them is an error, one in the oldest is a warning. What
    mutating policies set has the locations of `origins`.
    """
    newest = max(releases, default=NEWEST_RELEASE)
    own: list[_Document] = [_drop_nulls(document) for document in documents]
    missing = available()
    if missing:
        # A repository relies on its own policies; a run without those of jobgen is still useful.
        severity = Severity.ERROR if own else Severity.WARNING
        return Policies(), [Problem("policy-not-evaluated", missing, category="policy", severity=severity)]
    problems: list[Problem] = []
    policies: dict[str, tuple[Policy | None, _Document]] = {}
    bindings: list[tuple[Binding, _Document]] = []
    broken: list[_Document] = []
    others: list[Mapping[str, Any]] = []
    mutating: list[_Document] = []
    for document, is_trusted in (*((item, True) for item in trusted), *((item, False) for item in own)):
        if is_mutating(document):
            mutating.append(document)
        elif not is_policy(document):
            others.append(document)
        elif document["kind"] == BINDING:
            binding = parse_binding(document, problems, is_trusted=is_trusted)
            bindings += [(binding, document)] if binding else []
            broken += [] if binding else [document]
        else:
            _add_policy(
                document, parse_policy(document, problems, is_trusted=is_trusted, release=newest), policies, problems
            )
    problems += _find_unbound(policies, bindings, broken)
    compiled = {name: document for name, (policy, document) in policies.items() if policy and document in own}
    made = _parse_mutating(mutating, problems, newest, origins)
    compiled |= {str(_find_name(each)): each for each in mutating if each["kind"] == MUTATING}
    if min(releases, default=newest) < newest and not any(each.rule == "invalid-policy" for each in problems):
        problems += _find_older_errors(compiled.values(), min(releases))
    used = [
        (policy, tuple(binding for binding, _ in bindings if binding.policy == policy.name))
        for policy, _ in policies.values()
        if policy
    ]
    return Policies(tuple(used), store_params(others), made), problems


def _find_older_errors(documents: Iterable[_Document], release: Release) -> Iterator[Problem]:
    """Report what only the oldest of several clusters refuses."""
    for document in documents:
        for problem in find_errors(document, release):
            message = Sentence("{}; an environment has Kubernetes {}", problem.sentence, format_release(release))
            yield problem._replace(sentence=message, severity=Severity.WARNING)


def _parse_mutating(
    documents: Sequence[_Document], problems: list[Problem], release: Release, origins: Origins
) -> tuple[tuple[MutatingPolicy, tuple[Binding, ...]], ...]:
    """Mutating policies in the order of their names, each with its bindings."""
    if not documents:
        return ()
    # Imported late: most repositories have no such policies.
    from jobgen.check.policy.mutate import parse_mutating_binding, parse_mutating_policy

    policies: dict[str, tuple[MutatingPolicy | None, _Document]] = {}
    bindings: list[tuple[Binding, _Document]] = []
    for document in documents:
        if document["kind"] == MUTATING_BINDING:
            binding = parse_mutating_binding(document, problems)
            bindings += [(binding, document)] if binding else []
            continue
        policy = parse_mutating_policy(document, problems, release, origins)
        if policy or str(_find_name(document)) not in policies:
            _add_policy(document, policy, policies, problems)
    problems += _find_unbound(policies, bindings, ())
    return tuple(
        (policy, tuple(sorted((one for one, _ in bindings if one.policy == name), key=lambda one: one.name)))
        for name, (policy, _) in sorted(policies.items())
        if policy
    )


def _drop_nulls(tree: Any) -> Any:
    """The tree without null fields, which the API server ignores; one without nulls is not copied."""
    if isinstance(tree, dict):
        kept = {key: _drop_nulls(value) for key, value in tree.items() if value is not None}
        is_same = len(kept) == len(tree) and all(kept[key] is value for key, value in tree.items())
        return tree if is_same else Derived(kept, tree)
    if isinstance(tree, list):
        items = [_drop_nulls(value) for value in tree]
        is_same = all(item is value for item, value in zip(items, tree, strict=True))
        return tree if is_same else DerivedList(items, tree)
    return tree


def _add_policy(
    document: _Document, policy: _P | None, policies: dict[str, tuple[_P | None, _Document]], problems: list[Problem]
) -> None:
    """Add a policy by its name, so that bindings find it even if it does not compile."""
    name = str(_find_name(document))
    if name in policies:
        message = Sentence("there are two policies named `{}`", name)
        problems.append(Problem("invalid-policy", message, find_at(document, "metadata", "name"), category="policy"))
    else:
        policies[name] = (policy, document)


def _find_name(document: _Document) -> Plain:
    metadata = document.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


def _find_unbound(
    policies: Mapping[str, tuple[object, _Document]],
    bindings: Sequence[tuple[Binding, _Document]],
    broken: Sequence[_Document],
) -> Iterable[Problem]:
    """Report policies without a binding, and bindings without a policy; a binding with errors counts too."""
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    broken_specs = (document.get("spec") for document in broken)
    bound = {str(spec.get("policyName")) for spec in broken_specs if isinstance(spec, dict)}
    bound |= {binding.policy for binding, _ in bindings}
    bound |= {find_meant(name, policies) for name in bound.difference(policies)}
    for name, (policy, document) in policies.items():
        if policy and name not in bound:
            message = Sentence("no binding uses policy `{}`, so it has no effect; add a binding", name)
            node = At(document["metadata"], "name")
            yield Problem("policy-without-binding", message, node, category="policy", severity=Severity.WARNING)
    for binding, document in bindings:
        if binding.policy not in policies:
            node = At(document["spec"], "policyName")
            message = Sentence(
                "there is no policy `{}`{}", binding.policy, did_you_mean(binding.policy, list(policies))
            )
            steps, safe = suggest_value(node, list(policies))
            yield Problem("binding-without-policy", message, node, category="policy", fix_steps=steps, safe=safe)
