"""The checker runs every rule on every part of every object, whatever it has checked before."""

import json
import marshal
from collections import Counter
from pathlib import Path

import pytest
from examples import EXAMPLES, cases
from linting import lint_paths

from jobgen.check.checker import Checker
from jobgen.check.rule_runner import RuleRunner
from jobgen.check.rules import Rule, Violation, all_rules
from jobgen.cli.result import ExitCode
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.rendering.build import is_spec
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

PROJECT = config.load_own(Path(__file__).parent)


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
    return Checker(PROJECT.layers, PROJECT.kinds, cluster or Cluster(), rules)


def test_a_container_rule_runs_on_the_second_of_two_equal_templates():
    check = checker(MANY_REPLICAS)

    assert [problem.rule for problem in check(pytorch_job(Master=1, Worker=2))] == []
    assert [problem.rule for problem in check(pytorch_job(Master=1, Worker=3))] == ["many-replicas"]


def test_objects_that_differ_in_a_value_are_each_checked():
    check = checker(NAMED_B)
    objects = [pytorch_job(Master=1) | {"metadata": {"name": name}} for name in ["a"] * 50 + ["b"] + ["a"] * 50]

    assert [number for number, made in enumerate(objects) if bool(check.find_problems(check.manifest(made)))] == [50]


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
    facts = [fact for made in example_objects() for _, fact in check.collect_facts(check.manifest(made), [])]

    assert len(facts) > 100
    assert [tuple(fact) for fact in facts] == [marshal.loads(marshal.dumps(tuple(fact))) for fact in facts]


@pytest.mark.parametrize("cluster", [Cluster(), Cluster(gitops="flux", operators={"training": "1.9.0"})])
def test_has_problems_says_whether_there_are_any(cluster):
    check = checker(*all_rules(), cluster=cluster)
    found = [(bool(check.find_problems(check.manifest(made))), bool(check(made))) for made in example_objects()]

    assert all(quick == whole for quick, whole in found)
    assert {quick for quick, _ in found} == {True, False}


def fails(_):
    raise ValueError("out of order")
    yield  # a rule is a generator


FAILS = Rule("fails", "test", Severity.WARNING, "container", fails)


def test_an_exception_in_a_rule_is_a_problem_and_the_other_rules_run():
    check = checker(FAILS, MANY_REPLICAS)
    problems = check(pytorch_job(Worker=3))

    assert [problem.rule for problem in problems] == ["internal-error", "many-replicas"]
    assert str(problems[0].sentence).startswith(
        "the rule `fails` failed on this object with `ValueError`: out of order"
    )
    assert problems[0].severity is Severity.ERROR
    assert bool(check.find_problems(check.manifest(pytorch_job(Worker=1))))


def test_an_exception_in_the_schema_or_the_policies_is_a_problem():
    class Evaluator:
        reads_pods = False

        def find_problems(self, _):
            raise KeyError("x")

    def broken(_):
        raise RecursionError

    check = Checker(PROJECT.layers, PROJECT.kinds, Cluster(), [MANY_REPLICAS], Evaluator())
    check._schemas["kubeflow.org/v1", "PyTorchJob"] = broken

    assert [problem.rule for problem in check(pytorch_job(Worker=3))] == [
        "internal-error",
        "many-replicas",
        "internal-error",
    ]


def test_lint_goes_on_after_an_exception_in_a_rule_and_says_that_something_is_broken(tmp_path, monkeypatch):
    init = RuleRunner.__init__
    monkeypatch.setattr(RuleRunner, "__init__", lambda runner, _: init(runner, (FAILS, NAMED_B)))
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(json.dumps(pytorch_job(Worker=1) | {"metadata": {"name": name}}))
    done = lint_paths(tmp_path, (), (), format_="json")

    assert done.code is ExitCode.INTERNAL_ERROR
    assert Counter((found["rule"], found["file"]) for found in json.loads(done.out)["findings"]) == {
        ("internal-error", "a.yaml"): 1,
        ("internal-error", "b.yaml"): 1,
        ("named-b", "b.yaml"): 1,
    }
