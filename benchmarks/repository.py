"""Repositories to measure on: job specs with two overlays, or raw manifests; some of them with a fault if asked for.

    python benchmarks/repository.py FOLDER [--jobs 1000] [--manifests 1000] [--faults 0.03]

Nothing is random: the same numbers give the same bytes. No two files are alike, and kinds take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

A_FOLDER = 1000
"""How many files a folder holds: with 100,000 in one, the file system would be measured too."""


class Kind(NamedTuple):
    """How a kind spells what all our jobs say."""

    name: str
    framework: str
    replicas: str
    container: str
    roles: tuple[tuple[str, int], ...]
    own: str = ""
    """Lines of its `spec` that only this kind has."""


IDLE = ("PS", "Launcher")
"""Roles that do not train, and hold no GPUs."""
MASTER = (("Master", 1), ("Worker", 8))
PYTORCH = Kind("PyTorchJob", "pytorch", "pytorchReplicaSpecs", "pytorch", MASTER, '  nprocPerNode: "4"\n')
REPLICATED = (
    PYTORCH,
    Kind("TFJob", "tensorflow", "tfReplicaSpecs", "tensorflow", (("PS", 2), ("Worker", 8))),
    Kind("MPIJob", "mpi", "mpiReplicaSpecs", "mpi", (("Launcher", 1), ("Worker", 8)), "  slotsPerWorker: 4\n"),
    Kind("PaddleJob", "paddle", "paddleReplicaSpecs", "paddle", MASTER),
    Kind("XGBoostJob", "xgboost", "xgbReplicaSpecs", "xgboost", MASTER),
    Kind("JAXJob", "jax", "jaxReplicaSpecs", "jax", (("Worker", 9),)),
)
HEAD = """\
apiVersion: kubeflow.org/v1
kind: {kind.name}
metadata:
  name: bert-@number@
  namespace: ml-prod
  labels:
    team: nlp
spec:
{kind.own}  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: 3
  {kind.replicas}:
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
            - name: {kind.container}
              image: registry.example.com/nlp/bert:1.@number@
              command:
                - torchrun
                - train.py
                - --seed=@number@
              env:
                - name: NCCL_DEBUG
                  value: INFO
                - name: RUN_NUMBER
                  value: "@number@"
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
GPUS = "                  nvidia.com/gpu: 4\n"
TRAINJOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: bert-@number@
  namespace: ml-prod
  labels:
    team: nlp
spec:
  runtimeRef:
    name: torch-distributed
  trainer:
    image: registry.example.com/nlp/bert:1.@number@
    command:
      - torchrun
      - train.py
      - --seed=@number@
    env:
      - name: NCCL_DEBUG
        value: INFO
      - name: RUN_NUMBER
        value: "@number@"
    numNodes: 9
    resourcesPerNode:
      requests:
        cpu: 8
        memory: 64Gi
        nvidia.com/gpu: 4
      limits:
        cpu: 8
        memory: 64Gi
        nvidia.com/gpu: 4
"""
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: bert-@number@
  labels: {{team: nlp}}
spec:
  framework: {kind.framework}
  replicas: {total}
  image: registry.example.com/nlp/bert:1.@number@
  command: [torchrun, train.py, --seed=@number@]
  env:
    NCCL_DEBUG: INFO
    RUN_NUMBER: "@number@"
  resources: {{cpu: 8, memory: 64Gi{gpus}}}
  volumes:
    data: {{pvc: datasets, mountPath: /data}}
  shm: 16Gi
  restartPolicy: OnFailure
  {own}roles:
"""
OWN = {"pytorch": "pytorch: {nprocPerNode: 4}\n  ", "mpi": "mpi: {slotsPerWorker: 4}\n  "}
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
# A field that does not exist, GPUs that are requested and not granted, an image that changes under its name.
MANIFEST_FAULTS = (("command:", "comand:"), ("nvidia.com/gpu: 4", "nvidia.com/gpu: 2"), (":1.@number@", ":latest"))
SPEC_FAULTS = (
    ("command:", "comand:"),
    ("gpu: 4}", "requests: {gpu: 2}, limits: {gpu: 4}}"),
    (":1.@number@", ":latest"),
)


def manifest(kind: Kind) -> str:
    """A manifest whose numbers are still to be filled in."""
    text = HEAD.format(kind=kind)
    for role, count in kind.roles:
        pods = ROLE.format(kind=kind, role=role, count=count)
        text += pods.replace(GPUS, "") if role in IDLE else pods
    return text


def spec(kind: Kind) -> str:
    """The job spec that says the same."""
    all_train = not any(role in IDLE for role, _ in kind.roles)
    gpus, own = (", gpu: 4" if all_train else ""), OWN.get(kind.framework, "")
    text = SPEC.format(kind=kind, total=sum(count for _, count in kind.roles), gpus=gpus, own=own)
    for role, count in kind.roles:
        held = "" if all_train or role in IDLE else ", resources: {gpu: 4}"
        text += f"    {role.lower()}: {{replicas: {count}{held}}}\n"
    return text


ALIKE = (manifest(PYTORCH),)
MIXED = (*map(manifest, REPLICATED), TRAINJOB)
SPECS = tuple(map(spec, REPLICATED))


def write_manifests(folder: Path, count: int, texts: Sequence[str] = MIXED, faults: float = 0) -> None:
    """Raw manifests, at most 95 lines each, that nobody finds anything wrong with but the faults that are asked for."""
    write_files(folder, filled(texts, MANIFEST_FAULTS, count, faults))


def write_jobs(folder: Path, count: int, faults: float = 0) -> None:
    """A repository of job specs with two overlays."""
    for name, overlay in (("base", BASE), ("prod", PROD)):
        (folder / "overlays" / name).mkdir(parents=True)
        (folder / "overlays" / name / "overlay.yaml").write_text(overlay)
    (folder / "jobgen.yaml").write_text("")
    write_files(folder / "jobs", filled(SPECS, SPEC_FAULTS, count, faults))


def filled(texts: Sequence[str], faults: Sequence[tuple[str, str]], count: int, share: float) -> Iterator[str]:
    """The texts in turn, each with its number; faults are spread evenly, and take turns too."""
    wrong = 0
    for number in range(count):
        text = texts[number % len(texts)]
        if (number + 1) * share >= wrong + 1:
            text = text.replace(*faults[wrong % len(faults)], 1)
            wrong += 1
        yield text.replace("@number@", f"{number:06d}")


def write_files(folder: Path, texts: Iterator[str]) -> None:
    """Each text in a file of its own."""
    folder.mkdir(parents=True)
    for number, text in enumerate(texts):
        project = folder / f"{number // A_FOLDER:03d}"
        if number % A_FOLDER == 0:
            project.mkdir()
        (project / f"bert-{number:06d}.yaml").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--manifests", type=int, default=1000)
    parser.add_argument("--faults", type=float, default=0.0)
    options = parser.parse_args()
    write_jobs(options.folder, options.jobs, options.faults)
    write_manifests(options.folder / "manifests", options.manifests, faults=options.faults)


if __name__ == "__main__":
    main()
