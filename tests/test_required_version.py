"""`required-version` in the settings: which versions of jobgen may be used."""

from __future__ import annotations

import pytest
from command import run_jobgen_text
from gitrepository import Repository
from packaging.specifiers import SpecifierSet

from jobgen.rendering import settings_errors

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec: {framework: pytorch, image: "registry.example.com/bert:1.4.2"}
"""
NUMBERS = ("0", "0.1", "0.1.9", "0.2", "0.2.0", "0.2.1", "0.3", "1", "0.2.0.0", "0.10")
CONDITIONS = [
    *(operator + number for operator in ("==", "!=", ">=", "<=", ">", "<") for number in NUMBERS),
    *(f"~={number}" for number in NUMBERS if "." in number),
    *(operator + number + ".*" for operator in ("==", "!=") for number in ("0", "0.1", "0.2", "0.2.0", "1")),
    ">=0.2,<0.3",
    ">= 0.1 , != 0.2.0",
    "<0.2,>0.3",
]


@pytest.mark.parametrize("version", ["0.2.0", "0.2.1", "0.10.3", "1.0.0"])
def test_conditions_mean_what_pip_means(monkeypatch, version):
    monkeypatch.setattr(settings_errors, "__version__", version)
    for condition in CONDITIONS:
        problems = list(settings_errors.find_version_problem({"required-version": condition}))

        assert [problem.rule for problem in problems] == (
            [] if SpecifierSet(condition).contains(version) else ["wrong-jobgen-version"]
        ), condition


@pytest.mark.parametrize("condition", ["0.2", ">=", "=>0.2", "~=1", ">=0.2.*", ">=0.2,", "latest", ">=0.2 <0.3", ">=٣"])
def test_what_is_not_a_condition_is_an_error(condition):
    problems = list(settings_errors.find_version_problem({"required-version": condition}))

    assert [problem.rule for problem in problems] == ["invalid-value"]
    assert f"`{condition}`" in str(problems[0].sentence)


@pytest.mark.parametrize("command", [["lint"], ["render"], ["lint", "jobs/bert.yaml"], ["explain", "bert"]])
def test_another_version_ends_every_command_with_an_error_on_its_line(tmp_path, command):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(JOB)
    (tmp_path / "jobgen.yaml").write_text("# Settings.\nrequired-version: '>=999'\nnewSetting: true\n")
    found = run_jobgen_text(tmp_path, *command)

    assert found.returncode == 2
    assert "jobgen.yaml:2:" in found.stdout + found.stderr
    assert "requires `>=999`" in found.stdout + found.stderr


@pytest.mark.parametrize("command", [["diff", "HEAD"], ["lint", "--since", "HEAD"]])
def test_a_change_that_raises_the_version_is_compared(tmp_path, command):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(JOB)
    (tmp_path / "jobgen.yaml").write_text("required-version: '<0.0.1'\n")
    Repository(tmp_path, tmp_path / "home").commit()
    (tmp_path / "jobgen.yaml").write_text("required-version: '>=0.0.1'\n")
    (tmp_path / "jobs/bert.yaml").write_text(JOB.replace("1.4.2", "1.4.3"))
    found = run_jobgen_text(tmp_path, *command)

    assert found.returncode == 0, found.stderr
    assert "requires" not in found.stdout + found.stderr
    assert "change-not-analyzed" not in found.stdout + found.stderr


def test_a_diff_needs_the_version_that_both_sides_require(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(JOB)
    (tmp_path / "jobgen.yaml").write_text("required-version: '>=999'\n")
    Repository(tmp_path, tmp_path / "home").commit()
    (tmp_path / "jobs/bert.yaml").write_text(JOB.replace("1.4.2", "1.4.3"))
    found = run_jobgen_text(tmp_path, "diff", "HEAD")

    assert found.returncode == 1
    assert "requires `>=999`" in found.stderr
