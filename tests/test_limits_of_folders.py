"""Quotas and limit ranges of plain files: they apply to the pods of other files of their namespace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from linting import lint_paths

RULES = ("exceeds-quota", "exceeds-limit-range", "internal-error", "unread-file")


def lint(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    found: list[dict[str, Any]] = json.loads(lint_paths(folder, (".",), (), format_="json").out)["findings"]
    return [each for each in found if each["rule"] in RULES]


def quota(hard: str, namespace: str = "ml", name: str = "most") -> str:
    head = f"apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
    return f"{head}spec: {{hard: {{{hard}}}}}\n"


def limit_range(limits: str) -> str:
    head = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: bounds, namespace: ml}\n"
    return f"{head}spec: {{limits: [{{type: Container, {limits}}}]}}\n"


def pod(resources: str, name: str = "main") -> str:
    container = f"{{name: {name}, image: 'example.com/a:1', command: [python, a.py], resources: {resources}}}"
    return f"{{spec: {{restartPolicy: Never, containers: [{container}]}}}}"


def job(resources: str, name: str = "train", more: str = "") -> str:
    head = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: ml}}\n"
    return f"{head}spec:\n{more}  template: {pod(resources)}\n"


def pytorch_job(resources: str) -> str:
    roles = f"{{Worker: {{replicas: 4, restartPolicy: Never, template: {pod(resources, 'pytorch')}}}}}"
    head = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: train, namespace: ml}\n"
    return f"{head}spec:\n  pytorchReplicaSpecs: {roles}\n"


GPUS = "{limits: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 8}}"
SMALL = "{limits: {cpu: 4, memory: 8Gi}}"


@pytest.mark.parametrize(
    ("limit", "text", "words"),
    [
        (quota("requests.nvidia.com/gpu: 4"), job(GPUS), "Job `train` takes `8` of `requests.nvidia.com/gpu`"),
        (quota("cpu: 2"), job(SMALL), "Job `train` takes `4` of `cpu`"),
        (quota("requests.memory: 16Gi"), pytorch_job(SMALL), "PyTorchJob `train` takes `32Gi` of `requests.memory`"),
        (quota("pods: 3"), pytorch_job(SMALL), "PyTorchJob `train` takes `4` of `pods`"),
        (quota("limits.memory: 16Gi"), job("{requests: {cpu: 1}}"), "container `main` sets no `limits.memory`"),
        (limit_range("max: {memory: 4Gi}"), job(SMALL), "LimitRange `bounds` allows at most `4Gi`"),
        (limit_range("min: {cpu: 8}"), job(SMALL), "LimitRange `bounds` requires at least `8`"),
        (
            limit_range("maxLimitRequestRatio: {cpu: 2}"),
            job("{requests: {cpu: 1}, limits: {cpu: 4}}"),
            "allows a limit of at most `2` times the request",
        ),
    ],
)
def test_limits_of_a_file_apply_to_pods_of_another(limit, text, words, tmp_path):
    (found,) = lint(tmp_path, {"limits.yaml": limit, "job.yaml": text})

    assert (found["file"], found["severity"]) == ("job.yaml", "error")
    assert words in found["message"]


def test_a_quota_of_another_folder_is_a_warning(tmp_path):
    (found,) = lint(tmp_path, {"cluster/quota.yaml": quota("cpu: 2"), "jobs/job.yaml": job(SMALL)})
    assert (found["file"], found["severity"]) == ("jobs/job.yaml", "warning")


@pytest.mark.parametrize(
    "files",
    [
        {"quota.yaml": quota("cpu: 2", "other"), "job.yaml": job(SMALL)},
        {"quota.yaml": quota("cpu: 6"), "a.yaml": job(SMALL, "a"), "b.yaml": job(SMALL, "b")},
        {"quota.yaml": quota("cpu: 2"), "job.yaml": job(SMALL, more="  suspend: true\n")},
        {"a/quota.yaml": quota("cpu: 2"), "b/quota.yaml": quota("cpu: 8"), "c/job.yaml": job(SMALL)},
    ],
    ids=["another namespace", "jobs of several files", "suspended", "alternatives"],
)
def test_what_may_fit_is_not_reported(files, tmp_path):
    assert lint(tmp_path, files) == []


def test_jobs_of_one_file_exceed_its_quota_together_once(tmp_path):
    text = "---\n".join((quota("cpu: 6"), job(SMALL, "a"), job(SMALL, "b")))
    (found,) = lint(tmp_path, {"all.yaml": text, "c.yaml": job("{limits: {cpu: 1, memory: 1Gi}}", "c")})
    assert found["message"].startswith("2 objects take `8` together")
