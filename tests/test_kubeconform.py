"""`--second-opinion`: by the real kubeconform where it is on PATH, by a stand-in everywhere."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from findings import without_infos

from jobgen.cli.run_lint import lint_paths

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: %s, namespace: ml}
spec:
  jaxReplicaSpecs:
    Worker:
      replicas: 1
      template: {spec: {containers: [{name: jax, image: "a:1"%s}]}}
"""
REAL = shutil.which("kubeconform")


@pytest.fixture(params=["stand-in", "the real one"])
def binary(request, monkeypatch, tmp_path_factory):
    if request.param == "the real one":
        if not REAL:
            pytest.skip("kubeconform is not on PATH; the stand-in was asked instead")
        return
    bin_ = tmp_path_factory.mktemp("bin")
    script = (ROOT / "tests/standin/kubeconform").read_text("utf-8")
    (bin_ / "kubeconform").write_text(script.replace("/usr/bin/env python3", sys.executable, 1))
    (bin_ / "kubeconform").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")


def found(folder):
    out = lint_paths(folder, ["."], (), format_="json", kubeconform=True).out
    return [(entry["rule"], entry["category"], entry["file"]) for entry in without_infos(json.loads(out)["findings"])]


def test_agreement_with_kubeconform_is_silent(binary, tmp_path):
    (tmp_path / "good.yaml").write_text(JOB % ("good", ""))
    (tmp_path / "bad.yaml").write_text(JOB % ("bad", ", imagee: x"))

    assert found(tmp_path) == [("unknown-field", "schema", "bad.yaml")]


def test_disagreement_with_kubeconform_is_reported(binary, tmp_path):
    group = tmp_path / "schemas/kubeflow.org"
    group.mkdir(parents=True)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/good.yaml").write_text(JOB % ("good", ""))
    # A keyword that only one of the two knows.
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "propertyNames": {"maxLength": 4}}
    (group / "jaxjob_v1.json").write_text(json.dumps(schema))

    out = lint_paths(tmp_path, (), (), format_="json", kubeconform=True).out
    [finding] = without_infos(json.loads(out)["findings"])

    assert (finding["rule"], finding["category"], finding["file"]) == (
        "kubeconform-disagrees",
        "meta",
        "jobs/good.yaml",
    )
    assert finding["message"].startswith("kubeconform rejects `JAXJob ml/good`, but jobgen does not: ")


def test_kubeconform_gets_the_schema_of_the_declared_operator(binary, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "overlays/old").mkdir(parents=True)
    (tmp_path / "overlays/old/o.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {platform: trainer, operators: {trainer: 2.0.0}}}\n"
    )
    (tmp_path / "jobs/a.yaml").write_text(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a, namespace: ml}\n"
        "spec: {runtimeRef: {name: torch-distributed}, podSpecOverrides: [{targetJobs: [{name: node}]}]}\n"
    )
    out = lint_paths(tmp_path, (), (), format_="json", kubeconform=True).out

    assert [entry for entry in json.loads(out)["findings"] if entry["category"] in ("meta", "schema")] == []


def test_missing_kubeconform_is_reported_with_instructions(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = lint_paths(tmp_path, (), (), format_="text", kubeconform=True)

    assert result.code == 2
    assert "kubeconform is not on PATH; get it from" in result.err


def test_since_gives_kubeconform_the_schemas_of_the_commit(binary, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "schemas/kubeflow.org").mkdir(parents=True)
    (tmp_path / "jobs/good.yaml").write_text(JOB % ("good", ""))
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "propertyNames": {"maxLength": 4}}
    (tmp_path / "schemas/kubeflow.org/jaxjob_v1.json").write_text(json.dumps(schema))
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    since = partial(lint_paths, tmp_path, (), (), format_="json", kubeconform=True, since="HEAD")

    assert "kubeconform" not in since().out
    (tmp_path / "jobs/other.yaml").write_text(JOB % ("other", ""))
    assert [entry["file"] for entry in json.loads(since().out)["findings"] if "kubeconform" in entry["rule"]] == [
        "jobs/other.yaml"
    ]
