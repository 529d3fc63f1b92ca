"""Messages name what was written, the job that they are about, and what to write instead."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from findings import without_infos

from jobgen.cli.run_lint import lint_paths

TODAY = "2025-01-31"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  command: [torchrun, train.py]
  resources: {cpu: 8, memory: 64Gi, gpu: 8}
  shm: 8Gi
  roles:
    master: {}
    worker: {replicas: 3}
"""
NODES = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: llama, namespace: ml}
spec:
  framework: pytorch
  platform: trainer
  image: registry.example.com/llama:3.0.0
  command: [torchrun, train.py]
  resources: {cpu: 16, memory: 128Gi, gpu: 8}
  roles:
    node: {replicas: 2}
"""


def lint_files(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    """Write files and return the findings of a lint, as JSON has them, without infos."""
    for name, text in {"jobgen.yaml": "", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    done = lint_paths(folder, (), (), format_="json", today=TODAY)
    return without_infos(json.loads(done.out)["findings"])


def overlay(spec: str, name: str = "prod") -> dict[str, str]:
    """An overlay with these fields, in flow style."""
    text = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    return {f"overlays/{name}/overlay.yaml": text}


# Operators


def test_the_number_of_nodes_is_not_called_as_in_the_rendered_object(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/llama.yaml": NODES.replace("replicas: 2", "replicas: 0")})
    assert (found["line"], found["message"]) == (11, "the job has 0 nodes but needs at least 1")


CLUSTERS = {
    "another operator": ("{platform: kubeflow, operators: {training-operator: 1.9.0}}", True),
    "no operators": ("{platform: kubeflow}", False),
    "only operators that run no jobs": ("{platform: kubeflow, operators: {kueue: 0.14.0}}", False),
    "the operator": ("{platform: kubeflow, operators: {training-operator: 1.9.0, trainer: 2.1.0}}", False),
    "the platform": ("{platform: trainer, operators: {training-operator: 1.9.0}}", False),
    "the list of platforms": ("{platforms: [kubeflow, trainer], operators: {training-operator: 1.9.0}}", False),
}


@pytest.mark.parametrize("case", CLUSTERS)
def test_a_job_for_a_platform_whose_operator_the_cluster_lacks(case, tmp_path):
    cluster, refused = CLUSTERS[case]
    found = lint_files(tmp_path, {"jobs/llama.yaml": NODES, **overlay(f"{{cluster: {cluster}}}")})
    expected = (
        "the cluster does not have platform `trainer`: `cluster.operators` does not list `trainer`;"
        " if the cluster has it, write `platforms: [kubeflow, trainer]` in `cluster`"
    )
    assert [(each["line"], each["message"]) for each in found] == [(6, expected)] * refused
