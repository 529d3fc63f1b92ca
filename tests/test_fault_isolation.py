"""A fault in one rule or file hides nothing that the others find, and a wrong value is a finding, not a fault."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pytest
import yaml
from examples import EXAMPLES, cases
from linting import lint_paths

from jobgen import UsageError, lint
from jobgen.check import rules
from jobgen.check.checker import Checker
from jobgen.check.policy import ClusterFacts, PolicyEvaluator
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.pipeline.policies import load_policies
from jobgen.rendering import config
from jobgen.repo.layout import own_layers
from jobgen.schema.shipped_kinds import list_shipped_kinds
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a, namespace: b}
spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: a, imag: b}]}}}}}
"""


# --- Rules over all jobs.


def test_exception_while_facts_are_collected_is_reported_beside_other_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = next(rule for rule in rules.all_rules() if rule.scope == "fleet")

    def fail(*_: object) -> NoReturn:
        raise KeyError("containerPort")

    def all_rules() -> tuple[rules.Rule, ...]:
        failing = rules.Rule(fleet.name, fleet.category, fleet.severity, "fleet", fleet.check, collect=fail)
        return (failing, *(rule for rule in found if rule.name != fleet.name))

    found = rules.all_rules()
    monkeypatch.setattr(rules, "all_rules", all_rules)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(MANIFEST)
    result = lint_paths(tmp_path, (), (), format_="text")

    assert f"the rule `{fleet.name}` failed on this object with `KeyError`" in result.out
    assert "[unknown-field]" in result.out


# --- Optionals in the variables of policies.

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}}
  variables: {variables}
  validations: [{validation}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"""


def lint_with_policies(root: Path, *policies: str) -> str:
    """The findings of a manifest with an unknown field, under policies."""
    for path, text in {
        "jobs/a.yaml": MANIFEST,
        **{f"policies/{n}.yaml": text for n, text in enumerate(policies)},
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    return lint_paths(root, (), (), format_="text").out


def policy(name: str, expression: str, message_expression: str = "", **variables: str) -> str:
    listed = [{"name": key, "expression": text} for key, text in variables.items()]
    validation = {"expression": expression, "messageExpression": message_expression}
    return POLICY.format(name=name, variables=json.dumps(listed), validation=json.dumps(validation))


ABSENT, PRESENT = "object.?spec.?absent", "object.?metadata.?name"
# Each expression is true, and its negation is not.
OPTIONALS: dict[str, tuple[str, dict[str, str]]] = {
    "hasValue, read once": ("!variables.o.hasValue()", {"o": ABSENT}),
    "hasValue, read twice": ("!variables.o.hasValue() && variables.o == optional.none()", {"o": ABSENT}),
    "orValue": ("variables.o.orValue(1) == 1", {"o": ABSENT}),
    "orValue of a value": ("variables.o.hasValue() && variables.o.orValue('x') == 'a'", {"o": PRESENT}),
    "in a loop": ("['a'].all(x, variables.o.value() == x)", {"o": PRESENT}),
    "fields of an optional": ("variables.o.name.value() == variables.o.?name.orValue('')", {"o": "object.?metadata"}),
    "an optional read": ("variables.?n.orValue(2) == 1", {"n": "1"}),
    "an optional read of an optional": ("variables.?o.hasValue() && !variables.?o.value().hasValue()", {"o": ABSENT}),
    "has": ("has(variables.o) && has(variables.n)", {"o": ABSENT, "n": "1"}),
    "an optional item": ("[?variables.o, ?variables.p] == ['a']", {"o": PRESENT, "p": ABSENT}),
    "optional items, read twice": ("[?variables.o].size() + [?variables.o].size() == 2", {"o": PRESENT}),
    "an optional item in a variable": ("variables.l.size() == 0 && variables.l == []", {"l": f"[?{ABSENT}]"}),
    "an optional entry": ("{?'a': variables.o, ?'b': variables.p} == {'a': 'a'}", {"o": PRESENT, "p": ABSENT}),
    "an optional entry in a variable": ("variables.m == {} && variables.m.size() == 0", {"m": f"{{?'a': {ABSENT}}}"}),
    "optMap": ("variables.o.hasValue() && variables.o.value() == 'ab'", {"o": f"{PRESENT}.optMap(x, x + 'b')"}),
    "optFlatMap": (
        "variables.o.hasValue() && variables.o.value() == 'a'",
        {"o": "object.?metadata.optFlatMap(x, x.?name)"},
    ),
    "optional.of": ("variables.o.hasValue() && variables.o.value() == 1", {"o": "optional.of(1)"}),
    "optional.none": ("!variables.o.hasValue() && variables.o.orValue(2) == 2", {"o": "optional.none()"}),
    "one of two": ("variables.o.hasValue() && variables.o.value() == 'a'", {"o": f"true ? {PRESENT} : {ABSENT}"}),
    "an optional of a variable": (
        "variables.p.hasValue() && variables.p.value() == 'a'",
        {"o": PRESENT, "p": f"{ABSENT}.or(variables.o).or(variables.o) // {ABSENT}"},
    ),
}


@pytest.mark.parametrize("case", OPTIONALS)
def test_optional_in_a_variable_is_evaluated(tmp_path: Path, case: str) -> None:
    expression, variables = OPTIONALS[case]
    out = lint_with_policies(
        tmp_path,
        policy("holds", expression, **variables),
        policy("negated", f"!({expression})", **variables),
        policy("other", "object.metadata.name == 'b'"),
    )

    assert "[holds]" not in out
    assert "[negated]" in out
    assert "could not be evaluated" not in out
    assert "[other]" in out, "the other policies still report"
    assert "[unknown-field]" in out, "the other rules still report"
    assert "invalid-policy" not in out
    assert "internal" not in out


@pytest.mark.parametrize(
    "message", ["'no ' + variables.o.orValue('team')", "'%s %s'.format(['no', [?variables.o, 'team'][0]])"]
)
def test_message_expression_reads_an_optional_variable(tmp_path: Path, message: str) -> None:
    out = lint_with_policies(tmp_path, policy("p", "variables.o.hasValue()", message, o="object.metadata.?labels.team"))

    assert "error: no team [p]" in out


def test_optional_value_without_one_is_an_error_of_its_policy(tmp_path: Path) -> None:
    out = lint_with_policies(tmp_path, policy("p", "variables.o.value() == 1 || variables.o.value() == 2", o=ABSENT))

    assert "policy `p` could not be evaluated: optional.none() dereference" in out


# --- Values of the wrong type: for every path of every format, a wrong value is a finding and never an exception.

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from varied_jobs import MAKERS  # noqa: E402 -- in the folder of benchmarks
from varied_pods import new_job  # noqa: E402

PROJECT = config.load_own(ROOT)
TODAY = "2026-01-31"
Steps = tuple[str | int, ...]
DELETED = object()
WRONG_VALUES: tuple[Any, ...] = (
    DELETED,
    None,
    "",
    "x",
    "a b/c:é\n",
    "5Gi",
    7,
    -1,
    10**30,
    2.5,
    True,
    [],
    [None, 1, "a", [], {}],
    ["a", "a"],
    {},
    {"": None, "a b": 1, "name": [1], "x": {"x": []}},
)


def find_paths(tree: Any, steps: Steps = ()) -> Iterator[Steps]:
    """The path of every value below a node."""
    for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*steps, key)
        yield from find_paths(child, (*steps, key))


def replace(tree: Any, steps: Steps, value: Any) -> Any:
    """A copy of the tree with another value at a path, or without it."""
    if not steps:
        return value
    key, *rest = steps
    children = dict(tree) if isinstance(tree, dict) else dict(enumerate(tree))
    children[key] = replace(children[key], tuple(rest), value)
    if children[key] is DELETED:
        del children[key]
    return children if isinstance(tree, dict) else list(children.values())


def mutate(trees: Mapping[str, Any], times: int) -> Iterator[tuple[str, Any]]:
    """Trees with one wrong value each, evenly over trees and paths; all of them if `times` is 0. With what was done."""
    random = Random(14)
    of_tree = [[(name, steps, wrong) for steps in find_paths(tree) for wrong in WRONG_VALUES]
               for name, tree in trees.items()]  # fmt: skip
    for found in of_tree:
        share = times // len(of_tree) + 1
        for name, steps, wrong in random.sample(found, share) if times and share < len(found) else found:
            done = "nothing" if wrong is DELETED else repr(wrong)
            yield f"{name}: {'.'.join(map(str, steps))} is {done}", replace(trees[name], steps, wrong)


def count_paths(tree: Any) -> int:
    return sum(1 for _ in find_paths(tree))


def rich_manifests() -> dict[str, Any]:
    """The manifest with the most fields, of many, for each kind and shape."""
    made = (max((make(new_job(Random(seed), seed)) for seed in range(30)), key=count_paths) for make, _ in MAKERS)
    return {f"{number} {tree['kind']}": json.loads(json.dumps(tree)) for number, tree in enumerate(made)}


def example_manifests() -> dict[str, Any]:
    """The manifests in the examples of all rules: they have the fields that rules read."""
    found = {}
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for case in cases(path):
            text = "\n".join(line for line in case.lines if not line.startswith("# file:"))
            for document in read(text.encode(), path.name).documents:
                if document.data.get("apiVersion") != "jobgen.dev/v1" and "spec" in document.data:
                    found[f"{path.stem}, {case.title}"] = document.data
    return found


def fill_in(schema: Mapping[str, Any], types: Mapping[str, Any], depth: int) -> Any:
    """A value that a schema accepts, if only types count."""
    if "$ref" in schema:
        return fill_in(types[schema["$ref"].rpartition("/")[2]], types, depth)
    if schema.get("anyOf") and "type" not in schema:
        return fill_in(schema["anyOf"][0], types, depth)
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if "properties" in schema:
        fields = schema["properties"].items() if depth else ()
        return {name: fill_in(child, types, depth - 1) for name, child in fields}
    if kind == "object":
        extra = schema.get("additionalProperties")
        return {"a": fill_in(extra, types, depth - 1)} if isinstance(extra, dict) and depth else {}
    if kind == "array":
        return [fill_in(schema.get("items", {}), types, depth - 1)] * 2 if depth else []
    enum = [word for word in schema.get("enum", ()) if word]
    return enum[0] if enum else {"integer": 1, "number": 1, "boolean": True}.get(kind, "a")


def checker(cluster: Cluster) -> Checker:
    plurals = {(str(kind.api_version).partition("/")[0], kind.name): kind.plural for kind in PROJECT.kinds}
    facts = ClusterFacts("prod", cluster.operators, plurals)
    return Checker(
        own_layers(ROOT),
        PROJECT.kinds,
        cluster,
        rules.all_rules(),
        PolicyEvaluator(load_policies(own_layers(ROOT)).policies, facts),
    )


@pytest.mark.parametrize("trees", [rich_manifests, example_manifests])
def test_wrong_values_in_manifests_raise_no_exception(trees: Callable[[], dict[str, Any]], stress: int) -> None:
    clusters = (
        Cluster(gitops="argocd", queues={"gpu-a": {"gpus": 64}}, operators={"training-operator": "1.9.0"}),
        Cluster(gitops="flux", operators={"training-operator": "1.7.0", "trainer": "2.1.0"}),
    )
    checks = [checker(cluster) for cluster in clusters]
    failed = []
    for number, (name, tree) in enumerate(mutate(trees(), 75 if stress == 1 else 0)):
        check = checks[number % 2]
        problems = check(tree)
        # Objects of a kind without a schema reach the rules with any types.
        problems += check._rule_runner.find_problems(check.manifest(tree))
        deque(check.collect_facts(check.manifest(tree), problems), 0)
        failed += [(name, str(problem.sentence)) for problem in problems if problem.rule == "internal-error"]

    assert not failed


def test_wrong_values_in_objects_of_all_shipped_kinds_raise_no_exception(stress: int) -> None:
    random, check = Random(15), Checker(own_layers(ROOT), PROJECT.kinds, Cluster(), rules.all_rules())
    failed, checked = [], 0
    for kind in list_shipped_kinds():
        shipped = find_shipped_schema(kind.api_version, kind.name, Cluster())
        if shipped is None or shipped.missing:
            continue
        names = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}}
        tree = {**fill_in(shipped.schema, shipped.schema["$defs"], 7), **names}
        paths = list(find_paths(tree))
        for _ in range(2 * stress):
            steps, wrong = random.choice(paths), random.choice(WRONG_VALUES)
            problems = check(replace(tree, steps, wrong))
            failed += [(kind, steps, wrong, str(one.sentence)) for one in problems if one.rule == "internal-error"]
            checked += 1

    assert not failed
    assert checked > 300


JOB: dict[str, Any] = {
    "apiVersion": "jobgen.dev/v1",
    "kind": "TrainingJob",
    "metadata": {"name": "NAME", "namespace": "ml", "labels": {"team": "nlp"}, "annotations": {"a/b": "c"}},
    "spec": {
        "framework": "pytorch",
        "replicas": 3,
        "image": "a.example.com/b:1",
        "imagePullPolicy": "Always",
        "command": ["torchrun", "train.py"],
        "args": ["--lr=0.1"],
        "workingDir": "/work",
        "envFrom": [{"configMapRef": {"name": "a"}}],
        "env": {"A": "b", "C": "d", "TOKEN": {"secretKeyRef": {"name": "hub", "key": "token"}}},
        "ports": {"http": 8080},
        "resources": {"cpu": 8, "memory": "64Gi", "gpu": 4, "requests": {"cpu": 4}, "limits": {"cpu": 8}},
        "volumes": {"data": {"pvc": "datasets", "mountPath": "/data", "subPath": "a", "readOnly": True},
                    "scratch": {"emptyDir": {"sizeLimit": "1Gi"}, "mountPath": "/scratch"}},
        "shm": "16Gi",
        "restartPolicy": "Never",
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}]}},
        "serviceAccount": "train",
        "imagePullSecrets": ["a", {"name": "b"}],
        "securityContext": {"runAsUser": 1000, "capabilities": {"add": ["IPC_LOCK"]}},
        "labels": {"c": "d"},
        "annotations": {"e": "f"},
        "podTemplate": {"metadata": {"labels": {"g": "h"}}, "spec": {"containers": [
            {"name": "pytorch", "env": [{"name": "A", "$patch": "delete"}]}], "hostNetwork": False}},
        "roles": {"master": {}, "worker": {"replicas": 2, "env": [{"name": "X", "value": "b"}], "ports": [
            {"name": "x", "containerPort": 80}], "resources": {"gpu": 4}}},
        "runPolicy": {"cleanPodPolicy": "All", "backoffLimit": 1, "schedulingPolicy": {"minAvailable": 3}},
        "queue": "gpu-a",
        "priority": "high",
        "suspend": False,
        "run": {"identity": "hash", "onChange": "keep", "attempt": 1, "state": "active", "expires": "2999-01-31"},
        "description": "a job",
        "pytorch": {"nprocPerNode": "4", "elasticPolicy": {"minReplicas": 1, "maxReplicas": 3}},
        "manifest": {"metadata": {"annotations": {"x": "z"}}, "spec": {"runPolicy": {"activeDeadlineSeconds": 900}}},
    },
}  # fmt: skip
SWEEP: dict[str, Any] = {
    **JOB,
    "spec": {
        "framework": "pytorch",
        "image": "a.example.com/b:1",
        "args": ["--lr=${{ matrix.lr }}", "--b=${{ matrix.b }}", "${{ matrix.c }}", "${{ matrix.d }}"],
        "matrix": {"lr": [0.1, 0.01], "zip": {"b": [1, 2], "c": ["k", "l"]}, "exclude": [{"lr": 0.1, "b": 1}],
                   "include": [{"b": 2, "d": 5}, {"b": 1, "d": 6}], "limit": {"members": 16, "gpus": 64}},
    },
}  # fmt: skip
OVERLAY: dict[str, Any] = {
    "apiVersion": "jobgen.dev/v1",
    "kind": "Overlay",
    "metadata": {"name": "NAME"},
    "spec": {
        "extends": ["base"],
        "cluster": {
            "platform": "kubeflow",
            "operators": {"training-operator": "1.8.1"},
            "gitops": "argocd",
            "gpuResource": "nvidia.com/gpu",
            "queues": {"gpu-a": {"gpus": 64}},
            "budgets": {"namespaces": {"ml": {"gpus": 1}}, "teams": {"nlp": {"gpus": 1}}, "sweeps": {"gpus": 64}},
        },
        "namespace": "ml-prod",
        "jobs": {"names": ["*"], "labels": {"team": "nlp"}, "namespaces": ["m*"], "paths": ["jobs/*"]},
        "defaults": {key: value for key, value in JOB["spec"].items() if key not in ("framework", "args")},
        "patches": [
            {
                "match": {"frameworks": ["pytorch"], "kinds": ["PyTorchJob"], "labels": {"team": "nlp"}},
                "optional": True,
                "merge": {"resources": {"memory": "1Gi"}, "env": {"C": None}, "roles": {"worker": {"replicas": 2}}},
            },
            {
                "manifest": {"spec": {"runPolicy": {"backoffLimit": None}, "pytorchReplicaSpecs": {"Worker": {
                    "template": {"spec": {"containers": [{"name": "pytorch", "env": [
                        {"name": "X", "$patch": "delete"}]}]}}}}}},
                "jsonPatch": [
                    {"op": "replace", "path": "/spec/pytorchReplicaSpecs/Worker/replicas", "value": 2},
                    {"op": "test", "path": "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/[name=pytorch]"
                                           "/image", "value": "a.example.com/b:1"},
                    {"op": "copy", "from": "/metadata/labels/team", "path": "/metadata/labels/owner"},
                    {"op": "add", "path": "/metadata/labels/x~1y", "value": "z"},
                    {"op": "remove", "path": "/metadata/labels/owner"},
                ],
            },
        ],
        "locked": ["nodeSelector.zone", "runPolicy.managedBy"],
    },
}  # fmt: skip
BASE = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "metadata": {"name": "base"},
        "spec": {"cluster": {"platform": "kubeflow"}, "defaults": {"labels": {"env": "base"}}}}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "environments": ["prod"],
    "rules": {
        "missing-shm": "off",
        "mutable-image-tag": [{"severity": "info", "paths": ["jobs/*"], "environments": ["prod"]},
                              {"severity": "error", "namespaces": ["ml*"]}],
    },
    "categories": {"security": "warning", "pod": [{"severity": "info", "paths": ["x/*"]}]},
    "mandatory": ["plain-secret"],
    "exclude": ["old/**"],
}  # fmt: skip
KIND: dict[str, Any] = {
    **yaml.safe_load(
        (ROOT / "schemas/kubeflow.org/pytorchjob_v1.yaml").read_text("utf-8").replace("pytorch.", "NAME.")
    ),
    "apiVersion": "example.com/v1",
    "kind": "NAME",
    "plural": "NAMEs",
    "frameworks": {"NAME": {}},
    "pods": ["spec.head.template"],
    "addedVolumes": "spec.claims.*.metadata.name",
}
POLICY_DOCUMENTS: list[Any] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "NAME", "annotations": {"jobgen.dev/description": "A policy."}},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
                "objectSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["nlp"]}]},
                "resourceRules": [{"apiGroups": ["kubeflow.org"], "apiVersions": ["*"], "operations": ["CREATE"],
                                   "resources": ["pytorchjobs"], "scope": "*"}],
                "excludeResourceRules": [{"apiGroups": ["x"], "apiVersions": ["v1"], "operations": ["*"],
                                          "resources": ["*"], "resourceNames": ["a"]}],
            },
            "matchConditions": [{"name": "named", "expression": "object.metadata.name != 'x'"}],
            "variables": [{"name": "most", "expression": "int(params.data.most)"}],
            "validations": [{"expression": "size(object.metadata.name) < variables.most", "message": "long",
                             "messageExpression": "'long: ' + object.metadata.name", "reason": "Invalid"}],
            "auditAnnotations": [{"key": "a", "valueExpression": "'b'"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "NAME"},
        "spec": {
            "policyName": "NAME",
            "validationActions": ["Deny"],
            "paramRef": {"name": "NAME", "namespace": "ml", "parameterNotFoundAction": "Deny"},
            "matchResources": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}},
        },
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME", "namespace": "ml"}, "data": {"most": "3"}},
]  # fmt: skip
MUTATING_DOCUMENTS: list[Any] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "NAME"},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": POLICY_DOCUMENTS[0]["spec"]["matchConstraints"],
            "matchConditions": [{"name": "named", "expression": "object.metadata.name != 'x'"}],
            "variables": [{"name": "seconds", "expression": "int(params.data.seconds)"}],
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                    "Object{spec: Object.spec{runPolicy: Object.spec.runPolicy{backoffLimit: variables.seconds}}}"}},
                {"patchType": "JSONPatch", "jsonPatch": {"expression":
                    "[JSONPatch{op: 'add', path: '/metadata/annotations/NAME', value: string(variables.seconds)}]"}},
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "NAME"},
        "spec": {key: value for key, value in POLICY_DOCUMENTS[1]["spec"].items() if key != "validationActions"},
    },
    {**POLICY_DOCUMENTS[2], "data": {"seconds": "3"}},
]  # fmt: skip
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string", "enum": ["example.com/v1"]},
        "kind": {"type": "string", "pattern": "^[a-z0-9]+$", "maxLength": 63, "minLength": 1},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "jaxReplicaSpecs": {"type": "object", "additionalProperties": {"$ref": "#/$defs/replicas"}},
                "runPolicy": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "nullable": True},
                "names": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3,
                          "uniqueItems": True, "x-kubernetes-list-type": "set"},
                "port": {"x-kubernetes-int-or-string": True, "default": 80},
                "share": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.5},
            },
            "x-kubernetes-validations": [{"rule": "size(self.names) > 0", "message": "none", "fieldPath": ".names",
                                          "messageExpression": "'none'", "reason": "FieldValueInvalid"}],
        },
    },
    "$defs": {
        "replicas": {
            "type": "object",
            "allOf": [{"required": ["template"]}],
            "anyOf": [{"required": ["replicas"]}, {"not": {"required": ["other"]}}],
            "oneOf": [{"type": "object"}],
            "properties": {
                "replicas": {"type": "integer", "format": "int32", "default": 1},
                "template": {"type": "object", "properties": {"spec": {"$ref": "#/$defs/pod"}}},
            },
        },
        "pod": {
            "type": "object",
            "properties": {
                "containers": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map",
                               "x-kubernetes-list-map-keys": ["name"]},
            },
        },
    },
}  # fmt: skip


def rename(tree: Any, name: str) -> Any:
    """The tree with the name in place of NAME."""
    return json.loads(json.dumps(tree).replace("NAME", name))


def dump(tree: Any) -> str:
    return yaml.dump_all(tree if isinstance(tree, list) else [tree], Dumper=yaml.CSafeDumper, sort_keys=False)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")


def manifest_of_kind(name: str) -> Any:
    template = {"spec": {"containers": [{"name": "jax", "image": "a.example.com/b:1"}]}}
    return {
        "apiVersion": "example.com/v1",
        "kind": name,
        "metadata": {"name": name},
        "spec": {
            "jaxReplicaSpecs": {"Worker": {"replicas": 2, "template": template}},
            "runPolicy": None,
            "names": ["a"],
            "share": 0.5,
        },
    }


def job_of_framework(name: str) -> Any:
    spec = {**JOB["spec"], "framework": name, name: {"nprocPerNode": 2}}
    return rename({**JOB, "spec": {key: value for key, value in spec.items() if key != "pytorch"}}, name)


FORMATS: dict[str, tuple[Any, str, Callable[[str], dict[str, str]], int]] = {
    "job": (JOB, "jobs/NAME.yaml", lambda _: {}, 40),
    "sweep": (SWEEP, "jobs/NAME.yaml", lambda _: {}, 20),
    "overlay": (OVERLAY, "overlays/NAME/overlay.yaml", lambda _: {}, 20),
    "kind": (KIND, "schemas/example.com/NAME_v1.yaml",
             lambda name: {f"jobs/{name}.yaml": dump(job_of_framework(name))}, 30),
    "policy": (POLICY_DOCUMENTS, "policies/NAME.yaml", lambda _: {}, 40),
    "mutating policy": (MUTATING_DOCUMENTS, "policies/NAME.yaml", lambda _: {}, 40),
    "schema": (SCHEMA, "schemas/example.com/NAME_v1.json",
               lambda name: {f"jobs/{name}.yaml": dump(manifest_of_kind(name))}, 25),
}  # fmt: skip
"""A rich document of each format, its file, the files that use it, and how many mutations are tried in a usual run."""


def write_repository(folder: Path, format_: str, trees: Mapping[str, Any]) -> None:
    """Write a repository with documents of one format, by their names, and the files that use them."""
    _, path, uses, _ = FORMATS[format_]
    write_files(folder, {"overlays/base/overlay.yaml": dump(BASE), "jobs/a.yaml": dump(rename(JOB, "a"))})
    for name, tree in trees.items():
        own, content = path.replace("NAME", name), rename(tree, name)
        write_files(folder, {own: json.dumps(content) if own.endswith(".json") else dump(content)} | uses(name))


@pytest.mark.parametrize("format_", FORMATS)
def test_documents_without_a_wrong_value_are_rendered_and_checked(tmp_path: Path, format_: str) -> None:
    write_repository(tmp_path, format_, {"m0": FORMATS[format_][0]})

    errors = {finding.rule for finding in lint(tmp_path, today=TODAY).findings if finding.severity == "error"}
    assert errors == ({"m0"} if format_ == "policy" else set())


@pytest.mark.parametrize("format_", FORMATS)
def test_wrong_values_in_files_are_findings(tmp_path: Path, format_: str, stress: int) -> None:
    tree, _, _, times = FORMATS[format_]
    mutations = list(mutate({format_: tree}, times // 2 if stress == 1 else 20 * times))
    for start in range(0, len(mutations), 50):
        done = {f"m{number}": mutation for number, mutation in enumerate(mutations[start : start + 50])}
        write_repository(tmp_path / str(start), format_, {name: made for name, (_, made) in done.items()})
        result = lint(tmp_path / str(start), today=TODAY)
        failed = [
            (finding.location.file, finding.env, finding.message, done.get(Path(finding.location.file).stem))
            for finding in result.findings
            if finding.rule == "internal-error"
        ]

        assert not failed
        assert result.findings


KIND_WITH_VALUES = {**KIND, "fields": {"NAME.mode": {"at": "spec.mode", "values": {"fast": "Fast"}},
                                       "NAME.count": {"at": "spec.count", "as": "int"},
                                       "NAME.text": {"at": "spec.text", "as": "string"},
                                       "queue": "spec.queue", "priority": "spec.queue.priority"}}  # fmt: skip


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"mode": ["fast"]}, "`m0.mode` is a list; m0 supports only `fast`"),
        ({"mode": {"a": "b"}}, "`m0.mode` is a mapping; m0 supports only `fast`"),
        ({"count": "\u00b2"}, "`m0.count` is `\u00b2`; m0 supports only a number"),
        ({"count": "9" * 5000}, "; m0 supports only a number"),
        ({"count": [1]}, "`m0.count` is a list; m0 supports only a number"),
        ({"text": [1]}, "`m0.text` is a list; m0 supports only text"),
    ],
)
def test_value_that_a_kind_cannot_convert_is_an_error(tmp_path: Path, block: dict[str, Any], message: str) -> None:
    spec = {"framework": "m0", "image": "a.example.com/b:1", "queue": "a", "priority": "b", "m0": block}
    write_files(tmp_path, {"overlays/base/overlay.yaml": dump(BASE),
                           "jobs/a.yaml": dump(rename({**JOB, "spec": spec}, "a")),
                           "schemas/example.com/m0_v1.yaml": dump(rename(KIND_WITH_VALUES, "m0"))})  # fmt: skip

    [error] = [finding for finding in lint(tmp_path).findings if finding.severity == "error"]
    assert error.rule == "unsupported-by-kind"
    assert message in error.message
    assert error.location.line


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "the path is empty"),
        ("[name=x]", "starts with a list item"),
        ("spec.list[0].x", "has an index"),
        ("spec..x", "is not a path"),
    ],
)
def test_path_that_a_kind_cannot_set_is_an_error(tmp_path: Path, path: str, message: str) -> None:
    for number, field in enumerate((path, {"at": path})):
        kind = {**KIND, "fields": {**KIND["fields"], "queue": field}}
        write_repository(tmp_path / str(number), "kind", {"m0": KIND})
        write_files(tmp_path / str(number), {"schemas/example.com/m0_v1.yaml": dump(rename(kind, "m0"))})

        findings = lint(tmp_path / str(number), today=TODAY).findings
        [error] = [finding for finding in findings if finding.location.file == "schemas/example.com/m0_v1.yaml"]
        assert message in error.message


def test_wrong_values_in_settings_are_findings_or_usage_errors(tmp_path: Path, stress: int) -> None:
    write_files(tmp_path, {"overlays/prod/overlay.yaml": dump(BASE).replace("base", "prod"),
                           "jobs/a.yaml": dump(rename(JOB, "a"))})  # fmt: skip
    for text, made in mutate({"settings": SETTINGS}, 12 if stress == 1 else 0):
        write_files(tmp_path, {"jobgen.yaml": dump(made)})
        with suppress(UsageError):
            assert not [
                finding for finding in lint(tmp_path, today=TODAY).findings if finding.rule == "internal-error"
            ], text
