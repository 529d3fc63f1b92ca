"""Write a repository as a team has it: varied specs, copies of them, sweeps, raw manifests, and layered overlays.

    python benchmarks/fleet.py FOLDER [--jobs 1000] [--environments 5] [--shapes 150]

The specs are varied manifests that `jobgen import` has converted. That takes long, so each shape is used by several
jobs, with another name and other numbers of pods, as people copy jobs. The same numbers give the same bytes.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from repository import FILES_PER_FOLDER, write_varied

from jobgen.features.convert.importing.collect import ImportedManifest, collect_manifests
from jobgen.rendering import config
from jobgen.repo.files import read_file
from jobgen.repo.named_paths import find_manifests

RAW, SWEPT = 0.3, 0.1
"""The shares of jobs that are raw manifests, and that sweeps generate."""
MEMBERS = 10
"""How many jobs a sweep generates."""
NAMES = ("dev", "staging", "prod-eu", "prod-us", "prod-ap")
BASE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: base}
spec:
  defaults:
    labels: {fleet: training, cost-center: "4711"}
    env: {NCCL_DEBUG: WARN, HF_HOME: /cache/huggingface}
    runPolicy: {cleanPodPolicy: Running}
"""
GPU = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: gpu}
spec:
  extends: [base]
  defaults:
    labels: {fleet: gpu}
  patches:
    - match: {frameworks: [pytorch, tensorflow]}
      merge: {nodeSelector: {pool: gpu}, env: {NCCL_SOCKET_IFNAME: eth0}}
"""
ENVIRONMENT = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: {name}}}
spec:
  extends: [gpu]
  namespace: ml-{name}
  defaults:
    labels: {{stage: {name}}}
  patches:
    - merge: {{env: {{CLUSTER: {name}, NCCL_DEBUG: INFO}}}}
    - match: {{frameworks: [pytorch]}}
      manifest: {{spec: {{runPolicy: {{backoffLimit: {number}}}}}}}
"""
SWEEP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: sweep-{number:04d}, labels: {{team: {team}}}}}
spec:
  framework: pytorch
  image: registry.example.com/{team}/vit:1.{number}
  command: [torchrun, train.py, "--lr=${{{{ matrix.lr }}}}", --batch={number}]
  env: {{RUN: "{number}", DATA_ROOT: /mnt/{team}}}
  resources: {{cpu: 8, memory: 64Gi, gpu: 4}}
  shm: 16Gi
  volumes:
    data: {{pvc: {team}-data, mountPath: /data}}
  roles: {{master: {{replicas: 1}}, worker: {{replicas: {replicas}}}}}
  matrix: {{lr: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}
"""
TEAMS = ("nlp", "vision", "speech", "recsys")
PLATFORM = "kubeflow"
_GROUP = re.compile(rb"kubeflow\.org/v1\b")
_REPLICAS = re.compile(r"(?<=replicas: )\d+")


def write_fleet(folder: Path, count: int, environments: int = 5, shapes: int = 150) -> None:
    """Write a repository with that many jobs and environments."""
    names = [NAMES[number] if number < len(NAMES) else f"env-{number}" for number in range(environments)]
    overlays = {name: ENVIRONMENT.format(name=name, number=number) for number, name in enumerate(names)}
    for name, text in {"base": BASE, "gpu": GPU, **overlays}.items():
        write_file(folder / "overlays" / name / "overlay.yaml", text)
    write_file(folder / "jobgen.yaml", "")
    sweeps, raw = int(count * SWEPT) // MEMBERS, int(count * RAW)
    write_varied(folder / "jobs" / "raw", raw)
    for number in range(sweeps):
        team = TEAMS[number % len(TEAMS)]
        text = SWEEP.format(number=number, team=team, replicas=number % 7 + 1)
        write_file(folder / "jobs" / "sweeps" / f"sweep-{number:04d}.yaml", text)
    specs = count - raw - sweeps * MEMBERS
    for number, text in enumerate(copy_specs(import_specs(min(shapes, specs), raw), specs)):
        write_file(folder / "jobs" / f"{number // FILES_PER_FOLDER:03d}" / f"job-{number:05d}.yaml", text)


def import_specs(count: int, seed: int) -> list[tuple[str, str]]:
    """Return the names and texts of the specs of varied manifests, all for the platform of the overlays."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        # About a third are of the platform. Another seed than that of the raw manifests gives other names.
        write_varied(folder, 5 * count + MEMBERS, seed=seed + 1)
        entries = (entry for entry in find_manifests(folder, ".") if _GROUP.search(read_file(entry).content))
        found = collect_manifests(entries, config.load_own(folder).kinds)
        specs = (each.spec for each in found if isinstance(each, ImportedManifest) and each.spec.is_spec)
        fitting = (spec for spec in specs if spec.kind.platform == PLATFORM)
        return [(spec.name, spec.text) for spec in islice(fitting, count)]


def copy_specs(specs: Sequence[tuple[str, str]], count: int) -> Iterator[str]:
    """Yield copies of specs with other names and numbers of pods."""
    for number in range(count):
        copy, place = divmod(number, len(specs))
        name, text = specs[place]
        text = text.replace(name, f"{name}-s{copy}")
        yield _REPLICAS.sub(lambda found, more=copy: str(int(found[0]) + more), text)  # type: ignore[misc]


def write_file(path: Path, text: str) -> None:
    """Write a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--environments", type=int, default=5)
    parser.add_argument("--shapes", type=int, default=150, help="how many specs differ in more than name and numbers")
    options = parser.parse_args()
    write_fleet(options.folder, options.jobs, options.environments, options.shapes)


if __name__ == "__main__":
    main()
