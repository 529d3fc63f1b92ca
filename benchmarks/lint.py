"""Lint against kubeconform: the same manifests, in one run; prints ratios.

    python benchmarks/lint.py [--files 10000]

kubeconform checks schemas alone; jobgen does all it can. Without the binary its stand-in is what it was measured to
need on two cores: 0.52 of the time in which one process loads the files with PyYAML's CSafeLoader.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
# Installed packages come compiled; a checkout is to be measured as if it were one.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
LOADS = 0.52
HEAD = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: bert-{number:06d}
  namespace: ml-prod
  labels:
    team: nlp
spec:
  nprocPerNode: "4"
  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: 3
  pytorchReplicaSpecs:
"""
ROLE = """\
    {role}:
      replicas: {count}
      restartPolicy: OnFailure
      template:
        spec:
          nodeSelector:
            pool: gpu
          containers:
            - name: pytorch
              image: registry.example.com/nlp/bert:1.{number}
              command:
                - torchrun
                - train.py
                - --seed={number}
              env:
                - name: NCCL_DEBUG
                  value: INFO
                - name: RUN_NUMBER
                  value: "{number}"
              resources:
                requests:
                  cpu: 8
                  memory: 64Gi
                  nvidia.com/gpu: 4
                limits:
                  cpu: 8
                  memory: 64Gi
                  nvidia.com/gpu: 4
              volumeMounts:
                - name: data
                  mountPath: /data
                - name: shm
                  mountPath: /dev/shm
          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: datasets
            - name: shm
              emptyDir:
                medium: Memory
                sizeLimit: 16Gi
"""


def write_manifests(folder: Path, count: int) -> None:
    """Manifests of 94 lines, no two alike."""
    folder.mkdir(parents=True)
    for number in range(count):
        roles = (ROLE.format(role=role, count=pods, number=number) for role, pods in (("Master", 1), ("Worker", 8)))
        (folder / f"bert-{number:06d}.yaml").write_text(HEAD.format(number=number) + "".join(roles))


def timed(*command: str, folder: Path) -> float:
    """Seconds that a command takes; it must find nothing wrong."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise SystemExit(f"{command[0]}: {(done.stdout + done.stderr)[-500:]}")
    return seconds


def loading(folder: Path) -> float:
    """Seconds in which one process loads the files."""
    started = time.perf_counter()
    for path in sorted(folder.iterdir()):
        yaml.load(path.read_bytes(), yaml.CSafeLoader)
    return time.perf_counter() - started


def peer(folder: Path, one: str) -> tuple[str, float, float]:
    """Who is raced, its seconds for all files, and for one of them."""
    binary = shutil.which("kubeconform")
    if not binary:
        return "kubeconform (stand-in)", loading(folder / "manifests") * LOADS, 0.0
    where = f"{ROOT}/schemas/{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json"
    words = (binary, "-strict", "-schema-location", where)
    return "kubeconform -strict", timed(*words, "manifests", folder=folder), timed(*words, one, folder=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    count = parser.parse_args().files
    jobgen = (sys.executable, "-m", "jobgen", "lint")
    one = "manifests/bert-000000.yaml"
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_manifests(folder / "manifests", count)
        timed(*jobgen, one, folder=folder)  # compiles our modules
        ours, our_one = timed(*jobgen, "manifests", folder=folder), timed(*jobgen, one, folder=folder)
        name, theirs, their_one = peer(folder, one)
    print(f"{'':32}{'jobgen':>10}{name:>26}{'ratio':>10}")
    print(f"{f'{count} manifests':32}{ours:9.2f}s{theirs:25.2f}s{theirs / ours:9.1f}x")
    if their_one:
        print(f"{'one manifest, from process start':32}{our_one:9.3f}s{their_one:25.3f}s{their_one / our_one:9.1f}x")
    else:
        print(f"{'one manifest, from process start':32}{our_one:9.3f}s")


if __name__ == "__main__":
    main()
