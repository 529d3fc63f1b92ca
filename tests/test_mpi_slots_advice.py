"""Too few slots for the processes and for the GPUs are one fault with one answer."""

from __future__ import annotations

import json

import pytest
from command import run_jobgen_text

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: m, namespace: ml}}
spec:
  framework: mpi
  platform: mpi-operator
  image: registry.example.com/a:1.0.0
  mpi: {{slotsPerWorker: {slots}}}
  runPolicy: {{cleanPodPolicy: Running}}
  roles:
    launcher: {{command: [mpirun, {option}python, train.py], resources: {{cpu: 1, memory: 2Gi}}}}
    worker: {{replicas: 2, resources: {{cpu: 8, memory: 64Gi, gpu: 8}}, shm: 16Gi}}
"""


def lint(folder, slots, option):
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs/m.yaml").write_text(JOB.format(slots=slots, option=option))
    return json.loads(run_jobgen_text(folder, "lint", "--format", "json").stdout)["findings"]


@pytest.mark.parametrize(("count", "advice"), [(16, "set `slotsPerWorker` to 8"), (12, "to 8 and remove the option")])
def test_the_advice_leaves_nothing_to_report(tmp_path, count, advice):
    [finding] = lint(tmp_path, 4, f'-np, "{count}", ')

    assert advice in finding["message"]
    assert lint(tmp_path, 8, f'-np, "{count}", ' if count == 16 else "") == []


def test_enough_slots_for_the_gpus_keep_the_old_advice(tmp_path):
    [finding] = lint(tmp_path, 8, '-np, "32", ')

    assert "remove the option" in finding["message"]
    assert "slotsPerWorker" not in finding["message"]
