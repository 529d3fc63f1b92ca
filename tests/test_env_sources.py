"""Words for the source of a variable that Kubernetes does not have: one finding, which says what to write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_jobgen_text

HEAD = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/a:1.0.0
  command: [python, train.py]
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
  shm: 16Gi
"""
CERTAIN = {
    "{T: {secret: hub, key: token}}": "secretKeyRef",
    "{T: {key: token, secret: hub}}": "secretKeyRef",
    "{T: {secretName: hub, key: token}}": "secretKeyRef",
    "{T: {secretKeyRef: hub, key: token}}": "secretKeyRef",
    "{T: {secret: {name: hub, key: token}}}": "secretKeyRef",
    "{T: {valueFrom: {secret: hub, key: token}}}": "secretKeyRef",
    "[{name: T, valueFrom: {secret: hub, key: token}}]": "secretKeyRef",
    "{T: {configMap: hub, key: token}}": "configMapKeyRef",
    "\n    T:\n      secret: hub\n      key: token": "secretKeyRef",
    "\n    T:\n      # The token.\n      key: token\n      secret: hub # of the team": "secretKeyRef",
}


def lint(root: Path, env: str) -> list[dict[str, Any]]:
    (root / "jobs").mkdir(exist_ok=True)
    (root / "jobs/a.yaml").write_text(f"{HEAD}  env: {env}\n")
    return list(json.loads(run_jobgen_text(root, "lint", "--format", "json").stdout)["findings"])


@pytest.mark.parametrize(("env", "meant"), CERTAIN.items())
def test_a_source_with_one_meaning_is_one_finding_with_a_safe_fix(tmp_path, env, meant):
    found = lint(tmp_path, env)
    assert [(each["rule"], each["fixable"]) for each in found] == [("unknown-field", True)]
    assert f"write `{{{meant}: {{name: hub, key: token}}}}`" in found[0]["message"]

    assert run_jobgen_text(tmp_path, "lint", "--fix").returncode == 0
    container = yaml.safe_load(run_jobgen_text(tmp_path, "render").stdout)
    variables = container["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["env"]
    assert variables == [{"name": "T", "valueFrom": {meant: {"name": "hub", "key": "token"}}}]


def test_a_source_without_a_key_is_not_fixed_and_not_quoted(tmp_path):
    (found,) = lint(tmp_path, "{T: {secret: hub}}")
    assert not found["fixable"]
    assert found["message"] == "`secret` is not a source of `T`; write `{secretKeyRef: {name: NAME, key: KEY}}`"


@pytest.mark.parametrize(
    "env", ["{T: {secret: hub, key: token, fieldRef: {fieldPath: metadata.name}}}", "{T: {secret: [1]}}"]
)
def test_other_sources_stay_errors(tmp_path, env):
    assert "error" in {each["severity"] for each in lint(tmp_path, env)}
