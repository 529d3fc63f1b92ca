"""Measure what findings cost: faults in every second file, and the public manifests in ../shared/corpus.

    python benchmarks/faulty_files.py [--manifests 10000]

kubeconform checks the same files. One finding costs the CPU time that files with faults take on top of the same number
of files without, divided by the number of findings; most of these files have a finding or two.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lint import LINT, measure_peer
from measurement import Measurement
from repository import write_varied
from timing import Run, run

CORPUS = Path(__file__).parent.parent.parent / "shared/corpus"
HALF = 0.5
LIMIT = 150e-6
"""Seconds that one finding may cost."""


def lint_uncached(folder: Path, times: int) -> Run:
    """Return the fastest of some runs without a cache, whatever they find."""
    command = (*LINT, "--no-cache", "varied")
    return min(run(*command, folder=folder, cache=folder / "none", code=None) for _ in range(times))


def count_findings(folder: Path) -> int:
    command = [*LINT, "--no-cache", "--format", "json", "varied"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return len(json.loads(done.stdout)["findings"])


def compare(name: str, folder: Path, target: float, times: int) -> tuple[Measurement, Run]:
    """Measure the files of a folder against kubeconform."""
    ours = lint_uncached(folder, times)
    peer, theirs = measure_peer(times, folder)
    met = theirs >= target * ours.seconds
    return Measurement(name, ours.seconds, f"{target:g}x", met, peer, theirs), ours


def measure(count: int) -> Iterator[Measurement]:
    """Yield the rows about files with findings."""
    times = 2 if count <= 1000 else 1
    with tempfile.TemporaryDirectory() as home:
        clean, faulty, public = (Path(home, name) for name in ("clean", "faulty", "public"))
        write_varied(clean / "varied", count)
        write_varied(faulty / "varied", count, HALF)
        name = f"lint {count:,} varied manifests, a fault in every second file"
        row, with_faults = compare(name, faulty, 0.75, times)
        yield row
        without = lint_uncached(clean, times)
        more = count_findings(faulty) - count_findings(clean)
        each = (with_faults.cpu - without.cpu) / more
        yield Measurement(f"CPU time of one of {more:,} findings", each, "150 µs", each < LIMIT)
        if CORPUS.is_dir():
            shutil.copytree(CORPUS, public / "varied")
            files = sum(path.is_file() for path in (public / "varied").rglob("*.yaml"))
            yield compare(f"lint {files} public manifests, cold", public, 1.1, 3)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=10_000)
    for row in measure(parser.parse_args().manifests):
        print("  ".join(filter(None, row.cells)))


if __name__ == "__main__":
    main()
