"""Numbers of pods are numbers: a typo of zeros takes neither time nor memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from limitedrun import run_limited
from linting import lint_paths
from transcripts import write_files

from jobgen.cli.result import Result

ZEROS = 2_000_000_000
CONTAINER = "image: 'registry.example.com/a:1.0.0', resources: {limits: {cpu: 1, memory: 1Gi"


def mpi_job(command: str, *, slots: int = 8) -> str:
    launcher = f"{{containers: [{{name: l, {CONTAINER}}}}}, command: {command}}}]}}"
    worker = f"{{containers: [{{name: w, {CONTAINER}, nvidia.com/gpu: 8}}}}}}]}}"
    replicas = f"Launcher: {{replicas: 1, template: {{spec: {launcher}}}}}"
    replicas += f", Worker: {{replicas: {ZEROS}, template: {{spec: {worker}}}}}"
    spec = f"{{slotsPerWorker: {slots}, runPolicy: {{cleanPodPolicy: Running}}, mpiReplicaSpecs: {{{replicas}}}}}"
    return f"apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {{name: a, namespace: ml}}\nspec: {spec}\n"


def lint(root: Path, text: str) -> Result:
    write_files(root, {"a.yaml": text.encode()})
    return run_limited(lambda: lint_paths(root, ["a.yaml"], [], format_="text"))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("[mpirun, -np, '16', python, a.py]", f"`16` processes for {8 * ZEROS} GPUs of {ZEROS} workers"),
        ("[mpirun, -npernode, '9', python, a.py]", f"`{9 * ZEROS}` processes for {8 * ZEROS} slots ({ZEROS} hosts)"),
        ("[deepspeed, --hostfile, /etc/mpi/hostfile, --num_nodes, '3', a.py]", f"3 workers, and the job has {ZEROS}"),
        ("[deepspeed, --hostfile, /etc/mpi/hostfile, --num_gpus, '4', a.py]", "4"),
    ],
)
def test_two_billion_workers_are_counted(tmp_path: Path, command: str, message: str):
    assert message in lint(tmp_path, mpi_job(command)).out


def test_slots_beyond_all_machines_are_counted(tmp_path: Path):
    command = "[deepspeed, --hostfile, /etc/mpi/hostfile, --include, 'a-worker-0:5', a.py]"
    assert "not a host" not in lint(tmp_path, mpi_job(command, slots=10**30)).out


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "paddle", "xgboost", "jax", "mxnet"])
def test_two_billion_replicas_are_counted(tmp_path: Path, framework: str):
    spec: dict[str, Any] = {"framework": framework, "replicas": ZEROS, "image": "registry.example.com/a:1.0.0"}
    lines = "".join(f"  {name}: {value}\n" for name, value in spec.items())
    text = f"apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {{name: a, namespace: ml}}\nspec:\n{lines}"
    write_files(tmp_path, {"jobgen.yaml": b"", "jobs/a.yaml": text.encode()})

    result = run_limited(lambda: lint_paths(tmp_path, [], [], format_="text"))

    assert "1 object checked" in result.err
