"""Write repositories to measure on: raw manifests and job specs, some with faults if asked for.

    python benchmarks/repository.py FOLDER [--varied 4000] [--jobs 1000] [--manifests 1000] [--faults 0.03] [--seed 1]

Three sorts of files, from the most to the least realistic:

- `FOLDER/varied`: raw manifests of all kinds in many YAML styles, no two from one template (benchmarks/varied_jobs.py).
- `FOLDER/jobs`, `FOLDER/overlays`: job specs of six kinds, from one template for each kind.
- `FOLDER/manifests`: raw manifests of seven kinds, from one template for each kind.

The same numbers and seed give the same bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import faults as mistakes
from varied_jobs import make_companion, make_manifest
from yaml_styles import choose_style, to_json, to_yaml

FILES_PER_FOLDER = 1000
"""With 100,000 files in one folder, the file system would be measured too."""
SEED = 1
LARGEST_FILE = 4
"""The most manifests that one varied file has."""
TEXT_FAULTS = 12
"""Every twelfth fault of the varied manifests is one of the YAML text."""


class Kind(NamedTuple):
    """A kind of job, as the templates need it."""

    name: str
    framework: str
    replicas: str
    container: str
    roles: tuple[tuple[str, int], ...]
    own: str = ""
    """Lines of `spec` that only this kind has."""


IDLE = ("PS", "Launcher")
"""Roles that do not train and hold no GPUs."""
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
                - --nproc-per-node=auto
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
COMMAND = """\
              command:
                - torchrun
                - --nproc-per-node=auto
                - train.py
                - --seed=@number@
"""
SPEC_COMMAND = "command: [torchrun, --nproc-per-node=auto, train.py, --seed=@number@]"
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
      - --nproc-per-node=auto
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
  command: [torchrun, --nproc-per-node=auto, train.py, --seed=@number@]
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
# A misspelled field, a GPU request that is not the limit, and a mutable image tag.
MANIFEST_FAULTS = (("command:", "comand:"), ("nvidia.com/gpu: 4", "nvidia.com/gpu: 2"), (":1.@number@", ":latest"))
SPEC_FAULTS = (
    ("command:", "comand:"),
    ("gpu: 4}", "requests: {gpu: 2}, limits: {gpu: 4}}"),
    (":1.@number@", ":latest"),
)


def waits(kind: Kind, role: str) -> bool:
    """Whether the pods of a role have no command, because they wait for the launcher."""
    return kind.framework == "mpi" and role == "Worker"


def start(kind: Kind, text: str) -> str:
    """Return a text with the command of a kind: torchrun joins only pods that their operator introduces to it."""
    is_joined = kind.framework in ("pytorch", "mpi")
    return text if is_joined else text.replace("torchrun", "python3").replace("--nproc-per-node=auto", "-u")


def manifest_template(kind: Kind) -> str:
    """Return a manifest with placeholders for its number."""
    text = HEAD.format(kind=kind)
    for role, count in kind.roles:
        pods = ROLE.format(kind=kind, role=role, count=count)
        if waits(kind, role):
            pods = pods.replace(COMMAND, "")
        text += pods.replace(GPUS, "") if role in IDLE else pods
    return start(kind, text)


def spec_template(kind: Kind) -> str:
    """Return the job spec of the same job, with placeholders for its number."""
    all_train = not any(role in IDLE for role, _ in kind.roles)
    gpus, own = (", gpu: 4" if all_train else ""), OWN.get(kind.framework, "")
    text = SPEC.format(kind=kind, total=sum(count for _, count in kind.roles), gpus=gpus, own=own)
    has_waiting = any(waits(kind, role) for role, _ in kind.roles)
    if has_waiting:
        text = text.replace(f"  {SPEC_COMMAND}\n", "")
    for role, count in kind.roles:
        held = "" if all_train or role in IDLE else ", resources: {gpu: 4}"
        held += f", {SPEC_COMMAND}" if has_waiting and not waits(kind, role) else ""
        text += f"    {role.lower()}: {{replicas: {count}{held}}}\n"
    return start(kind, text)


MANIFEST_TEMPLATES = (*map(manifest_template, REPLICATED), TRAINJOB)
SPEC_TEMPLATES = tuple(map(spec_template, REPLICATED))


def write_manifests(folder: Path, count: int, faults: float = 0) -> None:
    """Write raw manifests from templates, which differ in their numbers alone; they lint without findings."""
    write_files(folder, fill_templates(MANIFEST_TEMPLATES, MANIFEST_FAULTS, count, faults))


def write_jobs(folder: Path, count: int, faults: float = 0) -> None:
    """Write a repository of job specs with two overlays; the specs differ in their numbers alone."""
    for name, overlay in (("base", BASE), ("prod", PROD)):
        (folder / "overlays" / name).mkdir(parents=True)
        (folder / "overlays" / name / "overlay.yaml").write_text(overlay)
    (folder / "jobgen.yaml").write_text("")
    write_files(folder / "jobs", fill_templates(SPEC_TEMPLATES, SPEC_FAULTS, count, faults))


def fill_templates(
    templates: Sequence[str], faults: Sequence[tuple[str, str]], count: int, share: float
) -> Iterator[str]:
    """Yield the templates in turn, each with its number; faults are spread evenly and take turns too."""
    positions = fault_positions(count, share)
    for number in range(count):
        text = templates[number % len(templates)]
        if number in positions:
            text = text.replace(*faults[positions[number] % len(faults)], 1)
        yield text.replace("@number@", f"{number:06d}")


def fault_positions(count: int, share: float) -> dict[int, int]:
    """Return which of some files have a fault, spread evenly, each with the number of its fault."""
    positions: dict[int, int] = {}
    for number in range(count):
        if (number + 1) * share >= len(positions) + 1:
            positions[number] = len(positions)
    return positions


def write_files(folder: Path, texts: Iterator[str]) -> None:
    """Write each text to a file of its own."""
    folder.mkdir(parents=True)
    for number, text in enumerate(texts):
        part = folder / f"{number // FILES_PER_FOLDER:03d}"
        if number % FILES_PER_FOLDER == 0:
            part.mkdir()
        (part / f"bert-{number:06d}.yaml").write_text(text)


def write_varied(folder: Path, count: int, faults: float = 0, seed: int = SEED) -> None:
    """Write varied manifests; without faults they lint without errors, and few have a warning.

    Most files hold one manifest; some hold several as documents or as a List, some are JSON.
    """
    positions = fault_positions(count, faults)
    number = 0
    while number < count:
        random = Random(f"{seed}/{number}")
        [size] = random.choices(range(1, LARGEST_FILE + 1), (92, 4, 2, 2))
        numbers = range(number, min(number + size, count))
        path, text = varied_file(random, numbers, positions)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
        number = numbers.stop


def varied_file(random: Random, numbers: range, positions: dict[int, int]) -> tuple[Path, str]:
    """Return the path and the text of one file; each of its manifests may have a fault."""
    documents = [make_manifest(random, number) for number in numbers]
    [ending] = random.choices(("yaml", "yml", "json"), (80, 17, 3))
    path = varied_path(random, numbers.start, documents[0], ending)
    text_fault = -1
    for number, data in zip(numbers, documents, strict=True):
        fault = positions.get(number, -1)
        if fault % TEXT_FAULTS == TEXT_FAULTS - 1 and ending != "json" and len(documents) == 1 and fault >= 0:
            text_fault = fault // TEXT_FAULTS
        elif fault >= 0:
            mistakes.add_data_fault(random, data, fault)
    if random.random() < 0.015:
        documents.insert(0, make_companion(random, documents[0]))
    if ending == "json":
        return path, to_json(documents)
    if len(documents) > 1 and random.random() < 0.3:
        documents = [{"apiVersion": "v1", "kind": "List", "items": documents}]
    text = to_yaml(documents, choose_style(random), random)
    return path, mistakes.add_text_fault(text, text_fault) if text_fault >= 0 else text


def varied_path(random: Random, number: int, data: dict[str, Any], ending: str) -> Path:
    """Return a path as people choose them: by name, by kind and name, in a folder of its own."""
    name = data["metadata"]["name"]
    stem = random.choice((name, name, name, f"{data['kind'].lower()}-{name}", f"{name}/job"))
    part = random.choice(("", "", "experiments", "prod/nightly"))
    return Path(f"{number // FILES_PER_FOLDER:03d}", part, f"{stem}.{ending}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=0, help="job specs from templates")
    parser.add_argument("--manifests", type=int, default=0, help="raw manifests from templates")
    parser.add_argument("--varied", type=int, default=0, help="raw manifests, no two from one template")
    parser.add_argument(
        "--faults", type=float, default=0.0, help="the share of files, or varied manifests, with a fault"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of the varied manifests")
    options = parser.parse_args()
    if options.jobs:
        write_jobs(options.folder, options.jobs, options.faults)
    if options.manifests:
        write_manifests(options.folder / "manifests", options.manifests, options.faults)
    if options.varied:
        write_varied(options.folder / "varied", options.varied, options.faults, options.seed)


if __name__ == "__main__":
    main()
