"""Policies of many forms on many objects, evaluated by an API server 1.36.4 with the CRDs of Kubeflow.

The policies that jobgen shipped when the cases were recorded are evaluated as policies of a repository. Expressions
that read what only a cluster knows are not left out: they disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from conformance import Verdict
from jobgen.check.checker import Checker
from jobgen.check.policy import ClusterFacts, PolicyEvaluator, compile_policies
from jobgen.model.budget import RUN
from jobgen.model.finding import Problem, Severity
from jobgen.rendering import config
from jobgen.repo.layout import own_layers

_GROUP = "admissionregistration.k8s.io/v1"
_NO_NAMESPACE = frozenset(("ClusterTrainingRuntime",))
_ERRORS = ("resulted in error", "failed to configure")


class _Evaluation(NamedTuple):
    """What jobgen says about a policy, and how it evaluates objects."""

    refused: str
    """Why a policy or binding is invalid; empty if all are valid."""
    unevaluated: str
    """Why a policy cannot be evaluated offline."""
    checker: Checker

    def find_problems(self, obj: Mapping[str, Any]) -> list[Problem]:
        return self.checker.evaluate_policies(obj)


def run(data: Any) -> Iterator[Verdict]:
    """Evaluate all policies and expressions."""
    cases = data["cases"]
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "jobgen.yaml").write_text("{}\n", "utf-8")
        yield from _run_shipped(cases, root)
        yield from _run_operators(cases, root)
        for case in cases["policies"]:
            RUN.reset()  # each case is a run of its own
            yield from _run_policy(case, cases["objects"], root)
        yield from _run_documents(cases["documents"], root)
        yield from _run_expressions(cases, root)


@lru_cache(maxsize=1)
def _load_project(root: Path) -> config.ProjectConfig:
    return config.load_own(root)


def _compile(documents: Iterable[Mapping[str, Any]], root: Path) -> _Evaluation:
    policies, problems = compile_policies(list(documents))
    refused = next((str(one.sentence) for one in problems if one.rule == "invalid-policy"), "")
    unevaluated = next((str(one.sentence) for one in problems if one.rule == "policy-not-evaluated"), "")
    project = _load_project(root)
    evaluator = PolicyEvaluator(policies, ClusterFacts())
    cluster = project.environment("", []).cluster
    return _Evaluation(refused, unevaluated, Checker(own_layers(root), project.kinds, cluster, (), evaluator))


def _place(obj: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    if obj["kind"] in _NO_NAMESPACE:
        return dict(obj)
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _run_policy(case: Any, objects: list[Any], root: Path) -> Iterator[Verdict]:
    """Compare whether a policy is valid, and its verdicts and messages."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": case["ns"], "labels": case["nslabels"]},
    }
    name, group = case["name"], case["class"]
    found = _compile([case["policy"], *case["bindings"], *case["params"], namespace], root)
    expected = bool(case["refused"])
    agrees = expected == bool(found.refused) and not found.unevaluated
    said = f"the API server says {case['refused'][:1]}, jobgen {found.refused or found.unevaluated!r}"
    yield Verdict(f"{name}/policy", agrees, said, group)
    if expected or found.refused or found.unevaluated:
        return
    for number, (index, verdict, message, warnings) in enumerate(case["objects"]):
        problems = [
            one
            for one in found.find_problems(_place(objects[index], case["ns"]))
            if one.rule == case["policy"]["metadata"]["name"]
        ]
        yield from _compare(f"{name}/{number}", group, verdict, message, warnings, problems)


def _compare(
    name: str, group: str, verdict: str, message: str, warnings: list[str], problems: list[Problem]
) -> Iterator[Verdict]:
    denies = any(one.severity is Severity.ERROR for one in problems)
    warns = any(one.severity is Severity.WARNING for one in problems)
    agrees = denies == (verdict == "deny") and (denies or warns == bool(warnings))
    said = {str(one.sentence) for one in problems}
    wanted = {message} if verdict == "deny" else set(warnings)
    yield Verdict(name, agrees, f"the API server: {verdict} {wanted}, jobgen: {said}", group)
    if agrees and any(wanted) and not any(word in text for text in wanted for word in _ERRORS):
        agrees = _sort_words(wanted) <= _sort_words(said)
        yield Verdict(f"{name}/message", agrees, f"the API server: {wanted}, jobgen: {said}", "messages")


def _sort_words(messages: Iterable[str]) -> set[tuple[str, ...]]:
    """Messages without the order of their parts: the API server goes through mappings in no fixed order."""
    return {tuple(sorted(re.split(r",? |, ", message))) for message in messages}


def _run_documents(documents: list[Any], root: Path) -> Iterator[Verdict]:
    """Compare whether policies and bindings are valid."""
    for number, case in enumerate(documents):
        found = _compile([case["doc"]], root)
        said = f"the API server says {case['refused'][:1]}, jobgen {found.refused!r}"
        yield Verdict(f"{number}/{case['name']}", bool(case["refused"]) == bool(found.refused), said, case["class"])


def _run_expressions(cases: Any, root: Path) -> Iterator[Verdict]:
    """Compare the results of expressions as validations of a policy."""
    for number, (group, name, text, free, wanted, answer) in enumerate(cases["expressions"]):
        spec = {"free": cases["frees"][free], "replicas": 3, "strs": ["b", "a"], "nums": [3, 1, 2], "map": {"x": "1"}}
        metadata = {"name": "w", "namespace": "pol-x", "labels": {"a": "b"}}
        obj = {"apiVersion": "pol.example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
        RUN.reset()
        result = _evaluate_expression(text, obj, root)
        details = f"`{text}` the API server: {wanted} {answer}, jobgen: {result}"
        yield Verdict(f"{number}/{name}", result.partition(":")[0] == wanted, details, group)


def _evaluate_expression(text: str, obj: Mapping[str, Any], root: Path) -> str:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": text, "message": "#"}],
    }
    head = {"apiVersion": _GROUP, "metadata": {"name": "p"}}
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    found = _compile(
        [
            {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec},
            {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
        ],
        root,
    )
    if found.refused:
        return f"refused: {found.refused}"
    if found.unevaluated:
        return f"not evaluated: {found.unevaluated}"
    problems = found.find_problems(obj)
    said = str(problems[0].sentence) if problems else ""
    return "true" if not problems else "false" if said == "#" else f"error: {said}"


def _run_shipped(cases: Any, root: Path) -> Iterator[Verdict]:
    """Compare the verdicts of the policies that were shipped, together and one by one."""
    shipped = cases["shipped"]
    found = _compile(shipped["policies"], root)
    names = {one["metadata"]["name"] for one in shipped["policies"] if one["kind"] == "ValidatingAdmissionPolicy"}
    for number, (source, index, verdict, _, message, warnings) in enumerate(shipped["objects"]):
        problems = found.find_problems(_place(cases["objects"][index], "pol-1"))
        if verdict is not None:
            denies = any(one.severity is Severity.ERROR for one in problems)
            details = f"the API server: {verdict} {message}, jobgen: {[str(one.sentence) for one in problems]}"
            yield Verdict(f"{number}/{source}", denies == (verdict == "deny"), details, "shipped policies: verdict")
        for name in sorted(names):
            wanted = {text for policy, text in warnings if policy == name}
            said = {str(one.sentence) for one in problems if one.rule == name}
            if wanted or said:
                details = f"the API server: {wanted}, jobgen: {said}"
                agrees = _sort_words(wanted) == _sort_words(said)
                yield Verdict(f"{number}/{source}/{name}", agrees, details, "shipped policies: messages")


def _run_operators(cases: Any, root: Path) -> Iterator[Verdict]:
    """Compare the policy that was shipped for MXJobs with the params of several operators."""
    for key, rows in cases["shipped"]["operators"]:
        param: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "jobgen-operators"}}
        if key != "nodata":
            param["data"] = {"training-operator": key[3:]} if key.startswith("op=") else {"mpi-operator": "0.8.0"}
        found = _compile([*cases["shipped"]["policies"], param], root)
        for number, (index, verdict, message) in enumerate(rows):
            problems = [
                one
                for one in found.find_problems(_place(cases["objects"][index], "pol-1"))
                if one.rule == "mxjob-deprecated"
            ]
            severities = {one.severity for one in problems}
            agrees = severities == {Severity.ERROR if verdict == "deny" else Severity.WARNING}
            said = [str(one.sentence) for one in problems]
            agrees = agrees and (verdict != "deny" or said == [message])
            details = f"the API server: {verdict} {message}, jobgen: {said}"
            yield Verdict(f"{key}/{number}", agrees, details, "shipped policies: params")
