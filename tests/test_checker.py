"""The checker runs every rule on every part of every object, whatever it has checked before."""

import marshal
from pathlib import Path

import pytest
from examples import EXAMPLES, cases

from jobgen.check.checker import Checker
from jobgen.check.rules import Rule, Violation, all_rules
from jobgen.model.finding import Severity
from jobgen.pipeline import config
from jobgen.render.build import is_spec
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

PROJECT = config.load(Path(__file__).parent)


def pytorch_job(**replicas):
    template = {"spec": {"containers": [{"name": "pytorch", "image": "a:1"}]}}
    roles = {role: {"replicas": count, "template": template} for role, count in replicas.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "a"},
        "spec": {"pytorchReplicaSpecs": roles},
    }


def count_of(container):
    return container.pod.role.count


def many_replicas(container):
    if count_of(container) > 2:
        yield Violation(container.data.get("image"), "too many")


def named_b(manifest):
    if manifest.name == "b":
        yield Violation(manifest.object["metadata"]["name"], "b")


MANY_REPLICAS = Rule("many-replicas", "test", Severity.ERROR, "container", many_replicas)
NAMED_B = Rule("named-b", "test", Severity.ERROR, "manifest", named_b)


def checker(*rules, cluster=None):
    return Checker(PROJECT.root, PROJECT.kinds, cluster or Cluster(), rules)


def test_a_container_rule_runs_on_the_second_of_two_equal_templates():
    check = checker(MANY_REPLICAS)

    assert [problem.rule for problem in check(pytorch_job(Master=1, Worker=2))] == []
    assert [problem.rule for problem in check(pytorch_job(Master=1, Worker=3))] == ["many-replicas"]


def test_objects_that_differ_in_a_value_are_each_checked():
    check = checker(NAMED_B)
    objects = [pytorch_job(Master=1) | {"metadata": {"name": name}} for name in ["a"] * 50 + ["b"] + ["a"] * 50]

    assert [number for number, made in enumerate(objects) if check.has_problems(check.manifest(made))] == [50]


def example_objects():
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for case in cases(path):
            text = "\n".join(line for line in case.lines if not line.startswith("# file:"))
            for document in read(text.encode(), path.name).documents:
                if not is_spec(document.data) and "spec" in document.data:
                    yield document.data


@pytest.mark.parametrize("cluster", [Cluster(), Cluster(gitops="argocd", queues={"gpu-a": {"gpus": 64}})])
def test_facts_can_be_written_to_the_cache(cluster):
    check = checker(*all_rules(), cluster=cluster)
    facts = [fact for made in example_objects() for _, fact in check.rows(check.manifest(made))]

    assert len(facts) > 100
    assert [tuple(fact) for fact in facts] == [marshal.loads(marshal.dumps(tuple(fact))) for fact in facts]


@pytest.mark.parametrize("cluster", [Cluster(), Cluster(gitops="flux", operators={"training": "1.9.0"})])
def test_has_problems_says_whether_there_are_any(cluster):
    check = checker(*all_rules(), cluster=cluster)
    found = [(check.has_problems(check.manifest(made)), bool(check(made))) for made in example_objects()]

    assert all(quick == whole for quick, whole in found)
    assert {quick for quick, _ in found} == {True, False}
