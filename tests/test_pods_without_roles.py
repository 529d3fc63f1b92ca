"""A job that says only how many pods it has gets the roles of its framework, which add up to that number."""

from __future__ import annotations

import pytest
import yaml
from command import jobgen
from lintfiles import JOB, lint_files, overlay

NO_ROLES = JOB.partition("  roles:")[0]
CASES = {
    ("pytorch", "kubeflow"): {"Master": 1, "Worker": 3},
    ("tensorflow", "kubeflow"): {"Worker": 4},
    ("paddle", "kubeflow"): {"Worker": 4},
    ("xgboost", "kubeflow"): {"Master": 1, "Worker": 3},
}


def write(framework: str, platform: str, replicas: int = 4) -> dict[str, str]:
    job = NO_ROLES.replace("framework: pytorch", f"framework: {framework}") + f"  replicas: {replicas}\n"
    return {"jobs/bert.yaml": job, **overlay(f"{{cluster: {{platform: {platform}}}}}")}


@pytest.mark.parametrize("case", CASES)
def test_replicas_are_spread_over_the_roles(case, tmp_path):
    found = lint_files(tmp_path, write(*case))
    assert [each for each in found if each["rule"] == "replica-totals"] == []

    made = yaml.safe_load(jobgen(tmp_path, "render").stdout)

    [roles] = [value for key, value in made["spec"].items() if key.endswith("ReplicaSpecs")]
    assert {name: role.get("replicas", 1) for name, role in roles.items()} == CASES[case]


def test_a_trainjob_has_as_many_nodes(tmp_path):
    lint_files(tmp_path, write("pytorch", "trainer"))
    assert yaml.safe_load(jobgen(tmp_path, "render").stdout)["spec"]["trainer"]["numNodes"] == 4


def test_the_line_of_replicas_explains_the_workers(tmp_path):
    lint_files(tmp_path, write("pytorch", "kubeflow"))
    shown = jobgen(tmp_path, "explain", "bert", "spec.pytorchReplicaSpecs.Worker.replicas").stdout.decode()
    assert "jobs/bert.yaml:10" in shown


def test_mpi_is_told_which_roles_to_write(tmp_path):
    files = write("mpi", "kubeflow")
    [found] = [each for each in lint_files(tmp_path, files) if each["rule"] == "replica-totals"]
    assert found["message"].endswith("; write `roles: {launcher: {}, worker: {replicas: 4}}` instead")

    roles = "  roles: {launcher: {}, worker: {replicas: 4}}\n"
    fixed = {**files, "jobs/bert.yaml": files["jobs/bert.yaml"].replace("  replicas: 4\n", roles)}
    assert "replica-totals" not in {each["rule"] for each in lint_files(tmp_path, fixed)}


def test_one_replica_is_what_it_was(tmp_path):
    lint_files(tmp_path, write("pytorch", "kubeflow", 1))
    made = yaml.safe_load(jobgen(tmp_path, "render").stdout)
    assert [*made["spec"]["pytorchReplicaSpecs"]] == ["Master"]
