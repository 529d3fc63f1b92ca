"""Measure `jobgen render` against `kubectl kustomize` on the same objects, in one run.

    python benchmarks/render.py [--jobs 1000] [--growth 1,100,1000,10000]

The job specs come from six templates. kustomize gets the manifests, a base overlay and an environment overlay with the
same changes. Both print to /dev/null: writing files would measure the disk. `render -o` is measured by itself: all
files of a new tree, synced to the disk, and the same tree again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import yaml
from measurement import Measurement, require_linear
from repository import REPLICATED, write_jobs
from timing import JOBGEN, Run, fastest, run

RENDER = (*JOBGEN, "render", "-e", "prod")
KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or "kubectl"
KUSTOMIZE = (KUBECTL, "kustomize", "prod")
MANY = 10_000
"""From here on, one run is enough."""
SETTLING = 2.1
"""Seconds after which the cache trusts the times of files."""


class Dumper(yaml.CSafeDumper):
    """Writes YAML that kustomize reads as PyYAML does: no aliases, and quotes around strings of digits."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML passes it
        return True


def represent_text(dumper: Dumper, data: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style='"' if data[:1].isdigit() else None)


Dumper.add_representer(str, represent_text)


def write_yaml(path: Path, data: Any) -> None:
    path.write_text(yaml.dump(data, Dumper=Dumper), "utf-8")


def write_kustomization(folder: Path, objects: list[dict[str, Any]]) -> None:
    """Write the same objects for kustomize: manifests, a base overlay, an environment overlay."""
    for name in ("jobs", "base", "prod"):
        (folder / name).mkdir(parents=True)
    for data in objects:
        write_yaml(folder / "jobs" / f"{data['metadata']['name']}.yaml", without_overlays(data))
    files = sorted(path.name for path in (folder / "jobs").iterdir())
    write_yaml(folder / "jobs/kustomization.yaml", {"resources": files})
    labels = {"template": {"metadata": {"labels": {"fleet": "training"}}}}
    pool = {"template": {"spec": {"nodeSelector": {"pool": "gpu"}}}}
    kinds = {data["kind"] for data in objects}
    base = {"resources": ["../jobs"], "patches": make_patches(kinds, {"cleanPodPolicy": "Running"}, labels)}
    prod = {"resources": ["../base"], "patches": make_patches(kinds, {"backoffLimit": 3}, pool), "namespace": "ml-prod"}
    write_yaml(folder / "base/kustomization.yaml", base)
    write_yaml(folder / "prod/kustomization.yaml", prod)


def without_overlays(data: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the changes of base and prod."""
    manifest: dict[str, Any] = json.loads(json.dumps(data))
    del manifest["metadata"]["namespace"]
    del manifest["spec"]["runPolicy"]
    replicas = next(manifest["spec"][kind.replicas] for kind in REPLICATED if kind.name == manifest["kind"])
    for role in replicas.values():
        del role["template"]["metadata"]
        del role["template"]["spec"]["nodeSelector"]
    return manifest


def make_patches(kinds: set[str], policy: dict[str, Any], role: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one patch for each kind, as kustomize requires, with an overlay's changes to the job and its roles."""
    return [
        {
            "target": {"kind": kind.name},
            "patch": yaml.dump(
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": kind.name,
                    "metadata": {"name": "any"},
                    "spec": {"runPolicy": policy, kind.replicas: {name: role for name, _ in kind.roles}},
                },
                Dumper=Dumper,
            ),
        }
        for kind in REPLICATED
        if kind.name in kinds
    ]


def read_objects(text: bytes) -> dict[str, dict[str, Any]]:
    """Return the objects that a command has printed, by name."""
    return {data["metadata"]["name"]: data for data in yaml.load_all(text, yaml.CSafeLoader)}


def kustomize_seconds(ours: Path, theirs: Path) -> float:
    """Return kustomize's seconds for the objects of our repository; both tools must print the same objects."""
    with tempfile.TemporaryFile() as printed:
        run(*RENDER, folder=ours, cache=ours / "cache", out=printed)
        printed.seek(0)
        objects = read_objects(printed.read())
    write_kustomization(theirs, list(objects.values()))
    # Its output goes to a file, because a second run would take long; that costs milliseconds.
    with tempfile.TemporaryFile() as printed:
        seconds = run(*KUSTOMIZE, folder=theirs, cache=theirs, out=printed).seconds
        printed.seek(0)
        if read_objects(printed.read()) != objects:
            raise SystemExit("kustomize and jobgen print different objects, so their times cannot be compared")
    return seconds


def render_cold(folder: Path, times: int) -> Run:
    """Return the fastest of some runs that start with an empty cache."""
    runs = []
    for _ in range(times):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        runs.append(run(*RENDER, folder=folder, cache=folder / "cache"))
    return min(runs)


def measure_race(count: int) -> Iterator[Measurement]:
    """Measure a repository against kustomize, and once more with a filled cache."""
    with tempfile.TemporaryDirectory() as home:
        ours, theirs = Path(home, "ours"), Path(home, "theirs")
        write_jobs(ours, count)
        first = render_cold(ours, 3).seconds
        unchanged = fastest(2, *RENDER, folder=ours, cache=ours / "cache").seconds
        slow = kustomize_seconds(ours, theirs)
    name = f"render {count:,} jobs (6 templates) x 2 overlays, cold"
    yield Measurement(name, first, "30x", slow >= 30 * first, "kustomize", slow, series="race", count=count)
    yield Measurement("again, nothing changed", unchanged)


def measure_growth(counts: list[int]) -> Iterator[Measurement]:
    """Measure repositories as they grow; kustomize only where it does not take minutes."""
    before: Measurement | None = None
    for count in counts:
        with tempfile.TemporaryDirectory() as home:
            ours = Path(home, "ours")
            write_jobs(ours, count)
            found = render_cold(ours, 1 if count >= MANY else 2)
            slow = kustomize_seconds(ours, Path(home, "theirs")) if count <= 100 else 0
        name = f"render {count:,} job{'s' * (count > 1)} (6 templates)"
        peer = "kustomize" if slow else ""
        row = Measurement(name, found.seconds, peer=peer, peer_value=slow, series="render", count=count)
        before = require_linear(before, row)
        yield before
        if count > MANY and found.total:
            name = f"memory of all processes for {count:,}"
            yield Measurement(name, found.total, "1 GB", found.total < 1e9, unit="bytes")


def measure_tree(count: int) -> Iterator[Measurement]:
    """Measure `render -o`: a write of all files, and an unchanged tree."""
    write = (*RENDER, "-o", "rendered")
    with tempfile.TemporaryDirectory() as home:
        # A cache inside the repository would not be used.
        ours, cache = Path(home, "ours"), Path(home, "cache")
        write_jobs(ours, count)
        time.sleep(SETTLING)
        first = run(*write, folder=ours, cache=cache).seconds
        time.sleep(SETTLING)
        # The first of these reads the files that were just written.
        unchanged = fastest(3, *write, folder=ours, cache=cache).seconds
    name = f"render -o: write all files of {count:,} jobs (6 templates), with fsync"
    yield Measurement(name, first, "4 s", first < 4)
    yield Measurement(
        f"render -o: the same tree of {count:,} jobs, nothing changed", unchanged, "500 ms", unchanged < 0.5
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--growth", default="1,100,1000,10000")
    options = parser.parse_args()
    counts = [int(count) for count in options.growth.split(",") if count]
    for row in (*measure_race(options.jobs), *measure_growth(counts), *measure_tree(max(counts, default=options.jobs))):
        print("  ".join(filter(None, row.cells)))


if __name__ == "__main__":
    main()
