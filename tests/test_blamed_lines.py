"""A finding that compares a job with an overlay stands at the line of the job, with the overlay's line as related."""

from __future__ import annotations

import pytest
from lintfiles import JOB, lint_files, overlay

QUEUE = "{cluster: {platform: kubeflow, queues: {dev: {gpus: 8}}}, defaults: {queue: dev}}"
BACKOFF = "{defaults: {runPolicy: {backoffLimit: 3}, restartPolicy: OnFailure}}"
PLATFORM = "{defaults: {platform: mpi-operator}}"
PROCESSES = "{defaults: {pytorch: {nprocPerNode: 16}}}"
GANG = "{defaults: {runPolicy: {schedulingPolicy: {minAvailable: 9}}}}"
CASES = {
    # rule: the overlay, an edit of the job, the line of the job
    "queue-quota-exceeded": (QUEUE, ("", ""), "worker: {replicas: 3}"),
    "backoff-without-restarts": (BACKOFF, ("  shm", "  restartPolicy: Never\n  shm"), "restartPolicy: Never"),
    "unsupported-by-kind": (PLATFORM, ("", ""), "framework: pytorch"),
    "nproc-gpu-mismatch": (PROCESSES, ("", ""), "resources: "),
    "min-available-too-high": (GANG, ("", ""), "worker: {replicas: 3}"),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_comparison_with_an_overlay_stands_in_the_job(rule, tmp_path):
    spec, (old, new), line = CASES[rule]
    job = JOB.replace(old, new, 1) if old else JOB

    found = [each for each in lint_files(tmp_path, {"jobs/bert.yaml": job, **overlay(spec)}) if each["rule"] == rule]

    assert [each["file"] for each in found] == ["jobs/bert.yaml"], found
    assert line in job.splitlines()[found[0]["line"] - 1]
    assert [each["file"] for each in found[0]["related"]] == ["overlays/prod/overlay.yaml"]


def test_values_of_the_overlay_alone_stay_there(tmp_path):
    spec = "{defaults: {resources: {gpu: 8}, pytorch: {nprocPerNode: 16}}}"
    job = JOB.replace("  resources: {cpu: 8, memory: 64Gi, gpu: 8}\n", "  resources: {cpu: 8, memory: 64Gi}\n")

    found = lint_files(tmp_path, {"jobs/bert.yaml": job, **overlay(spec)})

    assert {each["file"] for each in found if each["rule"] == "nproc-gpu-mismatch"} == {"overlays/prod/overlay.yaml"}


def test_a_platform_that_the_cluster_does_not_run_is_reported_at_the_platform(tmp_path):
    job = JOB.replace("  framework: pytorch\n", "  framework: mpi\n  platform: mpi-operator\n").replace(
        "master", "launcher"
    )
    spec = "{cluster: {platform: kubeflow, operators: {training-operator: 1.9.0}}}"

    [found] = [
        each
        for each in lint_files(tmp_path, {"jobs/bert.yaml": job, **overlay(spec)})
        if each["rule"] == "kind-not-served"
    ]

    assert job.splitlines()[found["line"] - 1] == "  platform: mpi-operator"
    assert "use `platform: kubeflow`" in found["message"]


def test_a_platform_for_another_framework_is_reported_at_the_platform(tmp_path):
    job = JOB.replace("  framework: pytorch\n", "  framework: pytorch\n  platform: mpi-operator\n")

    [found] = lint_files(tmp_path, {"jobs/bert.yaml": job})

    assert found["message"] == "`platform: mpi-operator` needs `framework: mpi`; this job has `pytorch`"
    assert job.splitlines()[found["line"] - 1] == "  platform: mpi-operator"
