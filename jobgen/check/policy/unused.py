"""Documents among the policies that are not evaluated, and policies and bindings that match no kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.check.policy.evaluator import Policies
from jobgen.check.policy.match import MatchResources, Requirement, ResourceRule
from jobgen.check.policy.parse import BINDING, GROUP, POLICY, is_mutating, is_policy
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence, Words
from jobgen.model.suggest import did_you_mean, find_closest

_Document = Mapping[str, Any]
NamedResource = tuple[str, str, str]
"""A group, a version and a resource, such as `kubeflow.org`, `v1`, `pytorchjobs`."""

_VERSION = f"{GROUP}/v1"
# Kinds that cluster administrators call policies, by group or by kind.
_ENGINES = ("kyverno.io", "gatekeeper.sh", "policies.kyverno.io", "policies.kubewarden.io", "templates.gatekeeper.sh")
_SIMILAR_KINDS = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_BUILTIN_GROUPS = ("", "apps", "autoscaling", "batch", "policy")


class UnmatchedPolicy(NamedTuple):
    """A policy or binding that matches no known kind; an object of another kind must match all of `matches`."""

    problem: Problem
    matches: tuple[MatchResources, ...]


def find_unevaluated(documents: Iterable[_Document]) -> Iterator[Problem]:
    """Report documents that are neither policies nor bindings nor anything that a policy reads."""
    every = list(documents)
    read = {("v1", "ConfigMap"), ("v1", "Namespace")}
    for spec in (document.get("spec") for document in every if is_policy(document)):
        if isinstance(spec, dict):
            read.add((_text(spec.get("paramKind"), "apiVersion"), _text(spec.get("paramKind"), "kind")))
    for document in every:
        api_version, kind = _text(document, "apiVersion"), _text(document, "kind")
        if is_policy(document) or is_mutating(document) or (api_version, kind) in read:
            continue
        node = find_at(document, "kind") or document
        if kind in (POLICY, BINDING):
            message = Sentence(
                "`{}` has no {}, so it is not evaluated; write `apiVersion: {}`", api_version, kind, _VERSION
            )
            yield _report(message, find_at(document, "apiVersion") or document, Severity.ERROR)
        elif api_version.partition("/")[0].endswith(_ENGINES) or kind in _SIMILAR_KINDS:
            message = Sentence(
                "`{}` of `{}` is not evaluated; rewrite it as a {}, or move it elsewhere", kind, api_version, POLICY
            )
            yield _report(message, node, Severity.ERROR)
        elif closest := find_closest(kind, [POLICY, BINDING], 0.85):
            yield _report(
                Sentence("`{}` is not a kind of policy; did you mean `{}`?", kind, closest), node, Severity.ERROR
            )
        else:
            found = f"`{kind}`" if kind else "a document without `kind`"
            message = Sentence("{} is neither a policy nor a binding, and no policy has it as its `paramKind`", found)
            yield _report(message, node, Severity.WARNING)


def find_unmatched(
    documents: Iterable[_Document], policies: Policies, resources: Sequence[NamedResource]
) -> Iterator[UnmatchedPolicy]:
    """Report policies and bindings that match none of the known resources."""
    by_name = {policy.name: (policy, bindings) for policy, bindings in policies.policies} if resources else {}
    for document in documents:
        metadata = document.get("metadata")
        name = _text(metadata, "name")
        if not is_policy(document) or not isinstance(document.get("spec"), dict):
            continue
        spec = document["spec"]
        if document["kind"] == POLICY and name in by_name:
            match = by_name[name][0].match
            subject, block = f"policy `{name}`", spec.get("matchConstraints")
            if not _matches_any((match,), resources):
                yield UnmatchedPolicy(_explain(subject, block, resources), (match,))
                continue
            problem = _find_unknown_resource(subject, block) or _find_contradiction(subject, (match,), block)
            if problem := problem or _find_false_condition(name, match, spec.get("matchConditions")):
                yield UnmatchedPolicy(problem, (_NOTHING,))
        elif document["kind"] == BINDING and _text(spec, "policyName") in by_name:
            policy, bindings = by_name[_text(spec, "policyName")]
            both = tuple((policy.match, each.match) for each in bindings if each.name == name)
            if both and _matches_any((policy.match,), resources) and not _matches_any(both[0], resources):
                yield UnmatchedPolicy(_explain(f"binding `{name}`", spec.get("matchResources"), resources), both[0])
            elif both and (problem := _find_contradiction(f"binding `{name}`", both[0], spec.get("matchResources"))):
                yield UnmatchedPolicy(problem, (_NOTHING,))


def _find_unknown_resource(subject: str, block: Any) -> Problem | None:
    """Report a policy whose rules name only resources that their groups certainly do not have, such as `pod`."""
    # Imported late: most repositories have no policies of their own.
    from jobgen.schema.resource_names import find_meant_resource

    first: Problem | None = None
    for rule in block.get("resourceRules", ()) if isinstance(block, Mapping) else ():
        groups = [str(group) for group in rule["apiGroups"]]
        for index, resource in enumerate(rule["resources"]):
            name = str(resource).partition("/")[0]
            meant = find_meant_resource(name, groups)
            if meant is None:
                return None
            message = Sentence("{} matches no kind: no kind of its groups has the resource `{}`", subject, name)
            where = f"`{meant.resource}`" if meant.group in groups else f"`{meant.resource}` of `{meant.group}`"
            first = first or _unmatched(Sentence("{}; did you mean {}?", message, where), At(rule["resources"], index))
    return first


# No object excuses a policy that contradicts itself.
_NONE = frozenset[str]()
_NOTHING = MatchResources((ResourceRule(_NONE, _NONE, _NONE, _NONE, _NONE, "*"),))


def _find_contradiction(subject: str, matches: Sequence[MatchResources], block: Any) -> Problem | None:
    """Report selectors that no labels satisfy, those of a policy and its binding together."""
    for field, selectors in (
        ("objectSelector", [match.objects for match in matches]),
        ("namespaceSelector", [match.namespaces for match in matches]),
    ):
        every = [requirement for selector in selectors for requirement in selector]
        for key in dict.fromkeys(requirement.key for requirement in every):
            if selectors[-1] and _is_impossible([requirement for requirement in every if requirement.key == key]):
                node = find_at(block, field) or block
                message = Sentence(
                    "{} matches nothing: no value of the label `{}` satisfies its `{}`", subject, key, field
                )
                other = " and that of the policy" if len(matches) > 1 and any(each.key == key for each in every) else ""
                return _unmatched(Sentence("{}{}; remove one of the conditions", message, other), node)
    return None


def _is_impossible(requirements: Sequence[Requirement]) -> bool:
    """Return True if no label satisfies all requirements on one key."""
    operators = {requirement.operator for requirement in requirements}
    if "DoesNotExist" in operators and operators & {"In", "Exists"}:
        return True
    allowed = [requirement.values for requirement in requirements if requirement.operator == "In"]
    refused = frozenset[str]().union(*(each.values for each in requirements if each.operator == "NotIn"))
    return bool(allowed) and not frozenset.intersection(*allowed) - refused


_FALSE = frozenset(("false", "!true", "!(true)"))
_ONE_RESOURCE = lazy_pattern(r"""request\.resource\.resource\s*==\s*(['"])([a-z]+)\1\Z""")
_ONE_KIND = lazy_pattern(r"""(?:object|request\.kind)\.kind\s*==\s*(['"])([A-Za-z]+)\1\Z""")
_ALIKE = 3
"""How many letters a kind and its resource have in common, however it is made a plural."""


def _find_false_condition(name: str, match: MatchResources, conditions: Any) -> Problem | None:
    """Report a condition that is false for all requests that the rules let through."""
    resources = {each.partition("/")[0] for rule in match.rules for each in rule.resources}
    if any("/" in each for rule in match.rules for each in rule.resources) or not match.rules:
        resources = {"*"}
    for condition in conditions if isinstance(conditions, list) else ():
        text = str((condition.get("expression") if isinstance(condition, Mapping) else None) or "").strip()
        wanted, kind = _ONE_RESOURCE.match(text), _ONE_KIND.match(text)
        is_other = bool(wanted) and wanted is not None and wanted[2] not in resources
        if kind is not None:
            is_other = not any(each.startswith(kind[2].lower()[:_ALIKE]) for each in resources)
        if text in _FALSE or (is_other and "*" not in resources):
            why = "is always false" if text in _FALSE else "is false for all resources of its rules"
            message = Sentence("policy `{}` matches nothing: the condition `{}` {}; correct it", name, text, why)
            return _unmatched(message, At(condition, "expression"))
    return None


def _matches_any(matches: Sequence[MatchResources], resources: Iterable[NamedResource]) -> bool:
    # Kinds of Kubernetes itself are not described, so their group is enough. A binding without rules matches all.
    groups = [[group for rule in match.rules for group in rule.groups] for match in matches if match.rules]
    if all(any(group in _BUILTIN_GROUPS or group.endswith(".k8s.io") for group in named) for named in groups):
        return True
    # Any operation counts: what is not evaluated on creation is documented.
    by_any = [
        match._replace(rules=tuple(rule._replace(operations=frozenset("*")) for rule in match.rules))
        for match in matches
    ]
    return any(all(match.matches_resource(*resource) for match in by_any) for resource in resources)


def _explain(subject: str, block: Any, resources: Sequence[NamedResource]) -> Problem:
    """Point at the first group or resource that no kind has."""
    groups, plurals = ({resource[place] for resource in resources} for place in (0, 2))
    rules = block.get("resourceRules", ()) if isinstance(block, dict) else ()
    for field, word, known in (("apiGroups", "group", groups), ("resources", "resource", plurals)):
        for place in (At(rule[field], index) for rule in rules for index in range(len(rule[field]))):
            name = str(place.node)
            is_any = "*" in name if field == "resources" else name == "*"
            if name not in known and not is_any:
                hint = did_you_mean(name, sorted(known))
                return _unmatched(
                    Sentence("{} matches no kind: no kind has the {} `{}`{}", subject, word, name, hint), place
                )
    return _unmatched(Sentence("{} matches no kind; check its groups, versions and resources", subject), block)


def _unmatched(message: Words, node: Any) -> Problem:
    return Problem("policy-matches-nothing", message, node, category="policy", severity=Severity.WARNING)


def _report(message: Words, node: Any, severity: Severity) -> Problem:
    return Problem("not-a-policy", message, node, category="policy", severity=severity)


def _text(holder: Any, key: str) -> str:
    return str(holder.get(key, "")) if isinstance(holder, dict) else ""
