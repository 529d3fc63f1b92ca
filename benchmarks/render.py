"""Render against kustomize: the same objects from the same facts, in one run; prints ratios.

    python benchmarks/render.py [--jobs 1000] [--growth 1,100,1000,10000]

kustomize gets the manifests themselves, a base overlay and an environment overlay that change what ours change. Both
print to /dev/null; a tree of files (`render -o`) would measure the disk.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from promise import Row, growing
from repository import REPLICATED, write_jobs
from stopwatch import JOBGEN, Run, best, run

from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

RENDER = (*JOBGEN, "render", "-e", "prod")
KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or "kubectl"
KUSTOMIZE = (KUBECTL, "kustomize", "prod")
MANY = 10_000
"""From here on, one run is enough."""


def write_kustomization(folder: Path, objects: list[dict[str, Any]]) -> None:
    """The same objects for kustomize: manifests, a base overlay, an environment overlay."""
    for name in ("jobs", "base", "prod"):
        (folder / name).mkdir(parents=True)
    for thing in objects:
        (folder / "jobs" / f"{thing['metadata']['name']}.yaml").write_text(to_yaml(without_overlays(thing)))
    files = sorted(path.name for path in (folder / "jobs").iterdir())
    (folder / "jobs/kustomization.yaml").write_text(to_yaml({"resources": files}))
    labels = {"template": {"metadata": {"labels": {"fleet": "training"}}}}
    pool = {"template": {"spec": {"nodeSelector": {"pool": "gpu"}}}}
    present = {thing["kind"] for thing in objects}
    base = {"resources": ["../jobs"], "patches": patches(present, {"cleanPodPolicy": "Running"}, labels)}
    prod = {"resources": ["../base"], "patches": patches(present, {"backoffLimit": 3}, pool), "namespace": "ml-prod"}
    (folder / "base/kustomization.yaml").write_text(to_yaml(base))
    (folder / "prod/kustomization.yaml").write_text(to_yaml(prod))


def without_overlays(thing: dict[str, Any]) -> dict[str, Any]:
    """An object as it is before base and prod change it."""
    bare: dict[str, Any] = json.loads(json.dumps(thing))
    del bare["metadata"]["namespace"]
    del bare["spec"]["runPolicy"]
    replicas = next(bare["spec"][kind.replicas] for kind in REPLICATED if kind.name == bare["kind"])
    for role in replicas.values():
        del role["template"]["metadata"]
        del role["template"]["spec"]["nodeSelector"]
    return bare


def patches(present: set[str], policy: dict[str, Any], role: dict[str, Any]) -> list[dict[str, Any]]:
    """What an overlay changes in every kind, and in each of its roles; kustomize asks for a patch for each kind."""
    return [
        {
            "target": {"kind": kind.name},
            "patch": to_yaml(
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": kind.name,
                    "metadata": {"name": "any"},
                    "spec": {"runPolicy": policy, kind.replicas: {name: role for name, _ in kind.roles}},
                }
            ),
        }
        for kind in REPLICATED
        if kind.name in present
    ]


def objects_in(text: bytes) -> dict[str, dict[str, Any]]:
    """What a command has printed, by name."""
    return {document.data["metadata"]["name"]: document.data for document in read(text, "printed").documents}


def kustomize(ours: Path, theirs: Path) -> float:
    """Its seconds for the objects of our repository; both must agree on every one of them."""
    with tempfile.TemporaryFile() as printed:
        run(*RENDER, folder=ours, cache=ours / "cache", out=printed)
        printed.seek(0)
        objects = objects_in(printed.read())
    write_kustomization(theirs, list(objects.values()))
    # Its output is kept in a file, for it takes too long to ask twice; that costs milliseconds.
    with tempfile.TemporaryFile() as printed:
        seconds = run(*KUSTOMIZE, folder=theirs, cache=theirs, out=printed).seconds
        printed.seek(0)
        if objects_in(printed.read()) != objects:
            raise SystemExit("kustomize and jobgen disagree: the race is not fair")
    return seconds


def cold(folder: Path, times: int) -> Run:
    """The quickest of some renders that remember nothing."""
    runs = []
    for _ in range(times):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        runs.append(run(*RENDER, folder=folder, cache=folder / "cache"))
    return min(runs)


def race(count: int) -> Iterator[Row]:
    """The promise, and the same once more."""
    with tempfile.TemporaryDirectory() as home:
        ours, theirs = Path(home, "ours"), Path(home, "theirs")
        write_jobs(ours, count)
        first = cold(ours, 3).seconds
        warm = best(2, *RENDER, folder=ours, cache=ours / "cache").seconds
        slow = kustomize(ours, theirs)
    what = f"render {count:,} jobs x 2 overlays, cold"
    yield Row(what, first, "20x", slow >= 20 * first, "kustomize", slow, series="race", count=count)
    yield Row("again, nothing changed", warm)


def growth(counts: list[int]) -> Iterator[Row]:
    """Repositories of several kinds through two overlays, as they grow; kustomize where it does not take minutes."""
    before: Row | None = None
    for count in counts:
        with tempfile.TemporaryDirectory() as home:
            ours = Path(home, "ours")
            write_jobs(ours, count)
            found = cold(ours, 1 if count >= MANY else 2)
            slow = kustomize(ours, Path(home, "theirs")) if count <= 100 else 0
        name = "kustomize" if slow else ""
        row = Row(
            f"render {count:,} job{'s' * (count > 1)}",
            found.seconds,
            "",
            True,
            name,
            slow,
            series="render",
            count=count,
        )
        before = growing(before, row)
        yield before
        if count > MANY and found.together:
            held = found.together
            yield Row(f"memory of all processes for {count:,}", held, "2 GB", held < 2e9, unit="bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--growth", default="1,100,1000,10000")
    options = parser.parse_args()
    for row in (*race(options.jobs), *growth([int(count) for count in options.growth.split(",") if count])):
        print("  ".join(filter(None, row.cells)))


if __name__ == "__main__":
    main()
