"""A finding about a product, such as pods times GPUs, stands at the patch that raised a factor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen_text

OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {0}}}\nspec:\n{1}"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml, labels: {team: nlp}}
spec:
  framework: pytorch
  replicas: 4
  image: registry.example.com/a:1.0.0
  resources: {cpu: 8, memory: 64Gi, gpu: 8}
  shm: 16Gi
  queue: b
"""
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: ml}
spec: {hard: {requests.nvidia.com/gpu: 64}}
"""
QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: b, namespace: ml}
spec: {clusterQueue: cq}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: f
          resources:
            - {name: cpu, nominalQuota: 1000}
            - {name: memory, nominalQuota: 10000Gi}
            - {name: nvidia.com/gpu, nominalQuota: 64}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: f}
"""
TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: nlp}
spec: {folders: [jobs], budget: {gpus: 64}}
"""
CASES = [
    ("queue-quota-exceeded", "queues: {b: {gpus: 64}}", {}),
    ("gpu-budget-exceeded", "budgets: {namespaces: {ml: {gpus: 64}}}", {}),
    ("gpu-budget-exceeded", "budgets: {teams: {nlp: {gpus: 64}}}", {}),
    ("exceeds-quota", "gitops: argocd", {"jobs/quota.yaml": QUOTA}),
    ("inadmissible-job", "gitops: argocd", {"jobs/queues.yaml": QUEUES}),
    ("team-budget-exceeded", "gitops: argocd", {"teams/nlp.yaml": TEAM}),
]


def lint(root: Path, cluster: str, files: dict[str, str], patch: str, job: str = JOB) -> list[dict[str, Any]]:
    base = OVERLAY.format("base", f"  cluster: {{platform: kubeflow, {cluster}}}\n")
    patches = f"  patches:\n    - match: {{names: [a]}}\n      merge: {patch}\n" if patch else ""
    prod = OVERLAY.format("prod", f"  extends: [base]\n{patches}")
    written = {"jobs/a.yaml": job, "overlays/base/overlay.yaml": base, "overlays/prod/overlay.yaml": prod, **files}
    for path, text in written.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    found: list[dict[str, Any]] = json.loads(run_jobgen_text(root, "lint", "--format", "json").stdout)["findings"]
    return found


def locate(finding: dict[str, Any]) -> tuple[str, int]:
    return finding["file"], finding["line"]


@pytest.mark.parametrize(("rule", "cluster", "files"), CASES)
@pytest.mark.parametrize("patch", ["{replicas: 16}", "{resources: {gpu: 32}}"])
def test_it_stands_at_the_patch_and_relates_what_it_overrides(tmp_path, rule, cluster, files, patch):
    [finding] = [each for each in lint(tmp_path, cluster, files, patch) if each["rule"] == rule]

    assert locate(finding) == ("overlays/prod/overlay.yaml", 8)
    related = [(each["file"], each["line"]) for each in finding["related"]]
    assert ("jobs/a.yaml", 6) in related
    assert ("jobs/a.yaml", 8) in related


@pytest.mark.parametrize(("rule", "cluster", "files"), CASES)
@pytest.mark.parametrize("patch", ["", "{replicas: 15}", '{env: {A: "1"}}'])
def test_a_patch_that_does_not_raise_it_is_not_at_fault(tmp_path, rule, cluster, files, patch):
    job = JOB.replace("replicas: 4", "replicas: 16")
    [finding] = [each for each in lint(tmp_path, cluster, files, patch, job) if each["rule"] == rule]

    assert finding["file"] == "jobs/a.yaml"
