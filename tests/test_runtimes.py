"""What Kubeflow Trainer accepts and refuses of a runtime and of a TrainJob, by the schemas of its versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from shippedschemas import shipped_schema

from jobgen.check.schema.build import build_schemas
from jobgen.check.schema.crd_schema import compile_structural

CASES = yaml.load((Path(__file__).parent / "crd/runtimes.yaml").read_text("utf-8"), yaml.CSafeLoader)
ACCEPTED = [(until, spec) for until, cases in CASES.items() for spec in cases["accepted"]]
BROKEN = [(until, spec) for until, cases in CASES.items() for spec in cases["broken"]]
REFUSED = [
    (until, rule, spec) for until, cases in CASES.items() for rule, specs in cases["refused"].items() for spec in specs
]
UNTIL = {"2.1.0": "2.0", "2.2.0": "2.1", "2.3.0": "2.2", "": "2.3"}
KINDS = ("TrainingRuntime", "ClusterTrainingRuntime")
IMMUTABLE = "self == oldSelf"
NAMES = ["self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", "size(self.metadata.name) <= 63"]


def schema(kind: str, until: str) -> dict:
    return shipped_schema("trainer.kubeflow.org/v1alpha1", kind, UNTIL[until])


@cache
def check(kind: str, until: str) -> Callable:
    return compile_structural(schema(kind, until))


def rules_of(kind: str, spec: dict, until: str = "", name: str = "a") -> list[str]:
    made = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return [problem.rule for problem in check(kind, until)(made)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("until", "spec"), ACCEPTED, ids=json.dumps)
def test_objects_that_trainer_accepts_are_accepted(kind, until, spec):
    assert rules_of(kind, spec, until) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("until", "rule", "spec"), REFUSED, ids=json.dumps)
def test_objects_that_trainer_refuses_are_refused(kind, until, rule, spec):
    assert set(rules_of(kind, spec, until)) == {rule}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("until", "spec"), BROKEN, ids=json.dumps)
def test_violated_crd_rule_is_reported(kind, until, spec):
    assert rules_of(kind, spec, until) == ["crd-rule-violated"]


@pytest.mark.parametrize(
    ("spec", "since"),
    [
        ({"managedBy": "somebody/else"}, "2.0"),
        ({"managedBy": ""}, "2.0"),
        ({"initializer": {"dataset": {"storageUri": "no uri"}}}, "2.3"),
    ],
    ids=json.dumps,
)
def test_trainjob_rules_depend_on_the_version(spec, since):
    reference = {"runtimeRef": {"name": "a"}}

    for until, version in UNTIL.items():
        assert rules_of("TrainJob", {**reference, **spec}, until) == ["crd-rule-violated"] * (version >= since)


@pytest.mark.parametrize("name", ["a.b", "1a", "a" * 64])
def test_trainjob_name_is_a_label_since_2_1(name):
    for until, version in UNTIL.items():
        broken = rules_of("TrainJob", {"runtimeRef": {"name": "a"}}, until, name)

        assert broken == ["crd-rule-violated"] * (version >= "2.1")


def test_a_runtime_has_no_status():
    made = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "a"}}

    assert [problem.rule for problem in check("TrainingRuntime", "")({**made, "status": {}})] == ["unknown-field"]


def spelt_out(schema: dict) -> Iterator[tuple[str, list[str]]]:
    """The places of a schema that have CEL rules, with them."""

    def below(node: dict, path: str) -> Iterator[tuple[str, list[str]]]:
        node = node["anyOf"][0] if "anyOf" in node else node
        if "$ref" in node:
            node = {**schema["$defs"][node["$ref"].rpartition("/")[2]], **node}
        rules = [rule["rule"] for rule in node.get("x-kubernetes-validations", ())]
        if rules:
            yield path, rules
        if path.endswith("template.spec.template.spec"):
            own = {name: child for name, child in node["properties"].items() if name in OF_A_PATCH}
            node = {**node, "properties": own}
        for name, child in node.get("properties", {}).items():
            if name not in UNRULED:
                yield from below(child, f"{path}.{name}")
        if "items" in node:
            yield from below(node["items"], f"{path}[]")

    yield from below(schema, "")


OF_A_PATCH = {
    "containers",
    "imagePullSecrets",
    "initContainers",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "volumes",
}
# Types of Kubernetes, which refer to themselves and have no rules of a CRD.
UNRULED = {"metadata", "env", "volumeMounts", "affinity", "tolerations"}


@pytest.mark.parametrize(
    ("until", "immutable"),
    [
        ("2.1.0", {".spec.runtimeRef"}),
        ("2.2.0", {".spec.runtimeRef"}),
        ("2.3.0", {".spec.activeDeadlineSeconds", ".spec.initializer", ".spec.runtimeRef", ".spec.trainer"}),
        ("", {".spec.activeDeadlineSeconds", ".spec.initializer", ".spec.runtimeRef", ".spec.trainer"}),
    ],
)
def test_trainjob_rules_have_the_paths_of_the_crd(until, immutable):
    rules = dict(spelt_out(schema("TrainJob", until)))
    patches = {path for path in rules if path.startswith(".spec.runtimePatches[]")}
    ends = {path.rpartition(".")[2] for path in patches}

    assert rules.get("", []) == ([] if until == "2.1.0" else NAMES)
    assert rules[".spec.managedBy"][1] == IMMUTABLE
    assert "'kueue.x-k8s.io/multikueue'" in rules[".spec.managedBy"][0]
    assert {path for path, [rule, *_] in rules.items() if rule == IMMUTABLE and path not in patches} == immutable
    assert (".spec.initializer.dataset.storageUri" in rules) == (until == "")
    if until in ("2.1.0", "2.2.0"):
        assert ends == set()
    else:
        assert ends == {"manager", *OF_A_PATCH} - ({"terminationGracePeriodSeconds"} if until else set())


def test_trainjob_limits_depend_on_the_version():
    def spec(**trainer):
        return {"runtimeRef": {"name": "a"}, "trainer": trainer}

    assert rules_of("TrainJob", spec(image="x" * 501)) == ["out-of-range"]
    assert rules_of("TrainJob", spec(image="x" * 501), "2.2.0") == []
    assert rules_of("TrainJob", spec(args=["x" * 70_000])) == []
    assert rules_of("TrainJob", spec(args=["x" * 70_000]), "2.3.0") == ["out-of-range"]
    assert rules_of("TrainJob", spec(env=[{"name": "a"}, {"name": "a"}])) == ["duplicate-item"]
    assert rules_of("TrainJob", {"runtimeRef": {"name": ""}}) == ["out-of-range"]
    assert rules_of("TrainJob", {"runtimeRef": {"name": ""}}, "2.1.0") == []


def test_type_descriptions_with_lists_limits_and_rules():
    described = {
        "apiVersion": "example.com/v1",
        "kind": "Dance",
        "operator": {"name": "dancer"},
        "spec": {"steps!": {"=": ["Step"], "keys": ["foot"], "maxItems": 2}, "style": {"=": "a | b", "rules": [1]}},
        "rules": ["root"],
        "specs": [{"until": "2", "rules": None, "types": {"Step": {"foot!": {"maxLength": None}}}}],
    }
    shared = {"Step": {"foot!": {"=": "string", "maxLength": 5}}}
    built = dict(build_schemas(described, shared))
    today, before = built["example.com/dance_v1.json"], built["example.com/dance_v1-until-2.json"]

    assert today["properties"]["spec"]["properties"] == {
        "steps": {
            "type": "array",
            "items": {"$ref": "#/$defs/Step"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["foot"],
            "maxItems": 2,
        },
        "style": {"enum": ["a", "b", None], "x-kubernetes-validations": [1]},
    }
    assert today["x-kubernetes-validations"] == ["root"]
    assert "x-kubernetes-validations" not in before
    assert today["$defs"]["Step"]["properties"]["foot"] == {"type": "string", "maxLength": 5}
    assert before["$defs"]["Step"]["properties"]["foot"] == {"type": "string"}


def test_description_of_a_crd_without_list_keys():
    described = {
        "apiVersion": "example.com/v1",
        "kind": "Dance",
        "operator": {"name": "dancer"},
        "spec": {"container": "io.k8s.api.core.v1.Container"},
    }
    twice = {"container": {"name": "a", "env": [{"name": "A"}, {"name": "A"}]}}
    made = {"apiVersion": "example.com/v1", "kind": "Dance", "metadata": {"name": "a"}, "spec": twice}

    [(_, with_keys)] = build_schemas(described, {})
    [(_, without_keys)] = build_schemas({**described, "listKeys": False}, {})
    assert [problem.rule for problem in compile_structural(with_keys)(made)] == ["duplicate-item"]
    assert compile_structural(without_keys)(made) == []
