"""Defaults of an overlay that all jobs override have no effect, and the overlay looks as if they had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen_text

HEADER = "apiVersion: jobgen.dev/v1\nkind: "
JOB = """\
  framework: pytorch
  image: registry.example.com/a:1.0.0
  command: [torchrun, train.py]
"""
BASE = "  cluster: {platform: kubeflow, gpuResource: nvidia.com/gpu}\n"


def write(root: Path, jobs: dict[str, str], overlays: dict[str, str]) -> None:
    for name, fields in jobs.items():
        text = f"{HEADER}TrainingJob\nmetadata: {{name: {name}}}\nspec:\n{JOB}  {fields}\n"
        (root / "jobs").mkdir(parents=True, exist_ok=True)
        (root / f"jobs/{name}.yaml").write_text(text)
    for name, spec in {"base": BASE, **overlays}.items():
        (root / f"overlays/{name}").mkdir(parents=True, exist_ok=True)
        (root / f"overlays/{name}/overlay.yaml").write_text(
            f"{HEADER}Overlay\nmetadata: {{name: {name}}}\nspec:\n{spec}"
        )


def find_idle(root: Path, *arguments: str) -> list[tuple[str, int, str, str]]:
    report: Any = json.loads(run_jobgen_text(root, "lint", "--format", "json", *arguments).stdout)
    return [
        (found["file"], found["line"], found["severity"], found["message"])
        for found in report["findings"]
        if found["rule"] == "overridden-value"
    ]


SIZES = "resources: {cpu: 4, memory: 32Gi, gpu: 2}"
PROD = "  extends: [base]\n  namespace: ml\n  defaults:\n    "
DEV = "  extends: [base]\n  namespace: dev\n"


def test_sizes_of_an_environment_that_all_jobs_set_are_reported_once_with_all_fields(tmp_path: Path) -> None:
    prod = f"{PROD}env: {{LOG: info}}\n    replicas: 8\n    resources: {{gpu: 8, memory: 256Gi}}\n"
    write(tmp_path, {"a": f"{SIZES}\n  replicas: 2", "b": f"{SIZES}\n  replicas: 3"}, {"prod": prod, "dev": DEV})
    [(file, line, severity, message)] = find_idle(tmp_path)
    assert (file, line, severity) == ("overlays/prod/overlay.yaml", 9, "warning")
    assert message.startswith("every job sets `replicas`, `resources.gpu` and `resources.memory` itself")
    # The same from the cache, and if another environment is linted, nothing about this one.
    assert find_idle(tmp_path) == [(file, line, severity, message)]
    assert find_idle(tmp_path, "-e", "dev") == []
    assert find_idle(tmp_path, "-e", "prod") == [(file, line, severity, message)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("shm: 4Gi", "priority: high", id="a job that takes the default"),
        pytest.param("shm: 4Gi", "shm: 2Gi", id="a job that wants the same"),
        pytest.param("shm: 4Gi", "roles: {master: {shm: 8Gi}, worker: {}}", id="a role that takes it"),
        pytest.param("shm: 4Gi", "shm: null", id="a job that deletes it"),
        pytest.param("shm: 4Gi", "shm: 8Gi", id="a patch that sets the field too"),
    ],
)
def test_a_default_that_counts_somewhere_is_not_reported(tmp_path: Path, first: str, second: str) -> None:
    patches = "  patches: [{match: {names: [b]}, merge: {shm: 9Gi}}]\n" if second == "shm: 8Gi" else ""
    write(tmp_path, {"a": first, "b": second}, {"prod": f"{PROD}shm: 2Gi\n{patches}"})
    assert find_idle(tmp_path) == []


@pytest.mark.parametrize(
    ("default", "own"),
    [
        ("resources: {gpu: 8}", "resources: {limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 2}}"),
        ("shm: 2Gi", "roles: {master: {shm: 8Gi}, worker: {shm: 4Gi}}"),
        ("roles: {worker: {shm: 2Gi}}", "shm: 8Gi\n  roles: {master: {}, worker: {}}"),
        ("nodeSelector: {pool: a}", "nodeSelector: {pool: b}"),
        ("runPolicy: {cleanPodPolicy: None}", "runPolicy: {cleanPodPolicy: All}"),
        ("workingDir: /a", "workingDir: /b"),
    ],
)
def test_other_spellings_of_a_field_override_it_too(tmp_path: Path, default: str, own: str) -> None:
    write(tmp_path, {"a": own}, {"prod": f"{PROD}{default}\n"})
    assert [found[:3] for found in find_idle(tmp_path)] == [("overlays/prod/overlay.yaml", 8, "warning")]


def test_defaults_that_others_extend_are_for_jobs_to_come_and_an_info(tmp_path: Path) -> None:
    base = f"{BASE}  defaults: {{shm: 2Gi}}\n"
    write(tmp_path, {"a": "shm: 4Gi"}, {"base": base, "prod": "  extends: [base]\n", "dev": DEV})
    assert find_idle(tmp_path) == []
    write(tmp_path, {"b": "shm: 8Gi"}, {"base": base})
    assert [found[:3] for found in find_idle(tmp_path)] == [("overlays/base/overlay.yaml", 6, "info")]
    assert find_idle(tmp_path, "-e", "prod") == []


def test_a_block_with_match_counts_the_jobs_that_it_matches(tmp_path: Path) -> None:
    blocks = (
        "- match: {names: ['a*']}\n      merge: {shm: 2Gi}\n    - match: {names: [none]}\n      merge: {shm: 3Gi}\n"
    )
    write(tmp_path, {"a": "shm: 4Gi", "b": "priority: high"}, {"prod": f"{PROD}{blocks}"})
    [(_, line, _, message)] = find_idle(tmp_path)
    assert (line, message.partition(",")[0]) == (9, "the job sets `shm` itself")


def test_defaults_of_a_team_count_for_themselves(tmp_path: Path) -> None:
    write(tmp_path, {"a": "shm: 4Gi", "b": "priority: high"}, {"prod": f"{PROD}shm: 2Gi\n"})
    (tmp_path / "teams").mkdir()
    team = f"{HEADER}Team\nmetadata: {{name: nlp}}\nspec: {{folders: [jobs], defaults: {{shm: 1Gi}}}}\n"
    (tmp_path / "teams/nlp.yaml").write_text(team)
    # The team overrides the overlay here, so what the jobs do is not the reason.
    assert find_idle(tmp_path) == []
    (tmp_path / "jobs/b.yaml").write_text((tmp_path / "jobs/a.yaml").read_text().replace("name: a", "name: b"))
    assert len(find_idle(tmp_path)) == 1
