"""Render against kustomize: the same objects from the same facts, in one run; prints ratios.

    python benchmarks/render.py [--jobs 1000] [--growth 1000,10000]

kustomize gets the manifests themselves, a base overlay and an environment overlay that change what ours change.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from jobgen.emit import to_yaml
from jobgen.source import read

# Installed packages come compiled; a checkout is to be measured as if it were one.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
BASE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: base}
spec:
  cluster: {platform: kubeflow, operators: {training-operator: 1.9.4}}
  defaults:
    labels: {fleet: training}
    runPolicy: {cleanPodPolicy: Running}
"""
PROD = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  extends: [base]
  namespace: ml-prod
  patches:
    - merge: {nodeSelector: {pool: gpu}}
    - manifest: {spec: {runPolicy: {backoffLimit: 3}}}
"""
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: bert-{number:06d}
  labels: {{team: nlp}}
spec:
  framework: pytorch
  replicas: 9
  image: registry.example.com/nlp/bert:1.{number}
  command: [torchrun, train.py, --seed={number}]
  env:
    NCCL_DEBUG: INFO
    RUN_NUMBER: "{number}"
  resources: {{cpu: 8, memory: 64Gi, gpu: 4}}
  volumes:
    data: {{pvc: datasets, mountPath: /data}}
  shm: 16Gi
  roles:
    master: {{}}
    worker: {{replicas: 8}}
"""


def write_jobs_repository(folder: Path, count: int) -> None:
    """A repository of job specs with two overlays."""
    (folder / "overlays/base").mkdir(parents=True)
    (folder / "overlays/prod").mkdir()
    (folder / "jobs").mkdir()
    (folder / "jobgen.yaml").write_text("")
    (folder / "overlays/base/overlay.yaml").write_text(BASE)
    (folder / "overlays/prod/overlay.yaml").write_text(PROD)
    for number in range(count):
        (folder / f"jobs/bert-{number:06d}.yaml").write_text(SPEC.format(number=number))


def write_kustomization(folder: Path, objects: list[dict]) -> None:
    """The same objects for kustomize: manifests, a base overlay, an environment overlay."""
    roles = ("Master", "Worker")
    for name in ("jobs", "base", "prod"):
        (folder / name).mkdir(parents=True)
    files = []
    for thing in objects:
        bare = json.loads(json.dumps(thing))
        del bare["metadata"]["namespace"]
        del bare["spec"]["runPolicy"]
        for role in roles:
            template = bare["spec"]["pytorchReplicaSpecs"][role]["template"]
            del template["metadata"]
            del template["spec"]["nodeSelector"]
        files.append(f"{bare['metadata']['name']}.yaml")
        (folder / "jobs" / files[-1]).write_text(to_yaml(bare))
    (folder / "jobs/kustomization.yaml").write_text(to_yaml({"resources": files}))
    labels = {"template": {"metadata": {"labels": {"fleet": "training"}}}}
    first = {"spec": {"runPolicy": {"cleanPodPolicy": "Running"}, "pytorchReplicaSpecs": dict.fromkeys(roles, labels)}}
    pool = {"template": {"spec": {"nodeSelector": {"pool": "gpu"}}}}
    second = {"spec": {"runPolicy": {"backoffLimit": 3}, "pytorchReplicaSpecs": dict.fromkeys(roles, pool)}}
    for name, below, patch in (("base", "jobs", first), ("prod", "base", second)):
        body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "any"}, **patch}
        kustomization = {
            "resources": [f"../{below}"],
            "patches": [{"target": {"kind": "PyTorchJob"}, "patch": to_yaml(body)}],
            **({"namespace": "ml-prod"} if name == "prod" else {}),
        }
        (folder / name / "kustomization.yaml").write_text(to_yaml(kustomization))


def timed(command: list[str], folder: Path) -> tuple[float, bytes]:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, env=ENVIRONMENT)
    return time.perf_counter() - started, done.stdout


def jobgen_command() -> list[str]:
    return [sys.executable, "-m", "jobgen", "render", "-e", "prod"]


def race(count: int) -> dict[str, float]:
    """Both tools on the same jobs; they must agree on every object."""
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs = Path(scratch, "ours"), Path(scratch, "theirs")
        write_jobs_repository(ours, count)
        took, text = min(timed(jobgen_command(), ours) for _ in range(3))
        objects = {doc.data["metadata"]["name"]: doc.data for doc in read(text, "ours").documents}
        write_kustomization(theirs, list(objects.values()))
        kubectl = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or "kubectl"
        reference, text = timed([kubectl, "kustomize", "prod"], theirs)
        built = {doc.data["metadata"]["name"]: doc.data for doc in read(text, "theirs").documents}
        if built != objects:
            raise SystemExit("kustomize and jobgen disagree: the race is not fair")
    return {"jobs": count, "jobgen": took, "kustomize": reference, "ratio": reference / took}


def growth(counts: list[int]) -> list[dict[str, float]]:
    """The time for each job as repositories grow."""
    rows = []
    for count in counts:
        with tempfile.TemporaryDirectory() as scratch:
            write_jobs_repository(Path(scratch), count)
            took, _ = min(timed(jobgen_command(), Path(scratch)) for _ in range(2))
        rows.append({"jobs": count, "seconds": took, "microseconds a job": took / count * 1e6})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--growth", default="100,1000,10000")
    options = parser.parse_args()
    row = race(options.jobs)
    print(f"render {row['jobs']} jobs through two overlays")
    print(f"  kubectl kustomize  {row['kustomize']:8.2f} s")
    print(f"  jobgen render      {row['jobgen']:8.2f} s   {row['ratio']:.0f} times faster (wanted: 20)")
    print("growth")
    for line in growth([int(count) for count in options.growth.split(",") if count]):
        print(f"  {line['jobs']:>7} jobs  {line['seconds']:8.2f} s   {line['microseconds a job']:6.0f} µs a job")


if __name__ == "__main__":
    main()
