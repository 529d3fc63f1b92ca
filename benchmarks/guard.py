"""Compare instruction counts with those of the last release, so that a slowdown is seen in review.

    python benchmarks/guard.py [--base REVISION] [--limit 1.05] [--case NAME]... [--json FILE]

Instructions, unlike seconds, are the same on a busy machine. `perf stat` counts them where the system lets it; else
valgrind does, which takes about 50 times as long. Both revisions run in this run, with this Python, on the same files:
counts of two machines cannot be compared. The exit code is 1 if a case needs more instructions than the limit allows.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from repository import SEED, write_jobs, write_varied

ROOT = Path(__file__).parent.parent
LIMIT = 1.05
PARTS = ("jobgen", "schemas", "policies", "defects", "tools")
FILES = 40
"""Enough for every stage to run, and few enough for valgrind."""
CASES = {
    "help": ("--help",),
    "one file": ("lint", "--no-cache", "one"),
    f"{FILES} varied manifests": ("lint", "--no-cache", "varied"),
    f"{FILES} varied manifests, half with a fault": ("lint", "--no-cache", "faulty"),
    f"render {FILES} jobs": ("render", "-e", "prod"),
}
START = """\
import os, runpy
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
runpy.run_module("jobgen", run_name="__main__", alter_sys=True)
"""
"""One process, because the work of several is divided by chance."""
_CACHEGRIND = re.compile(rb"I\s+refs:\s+([\d,]+)")


class Comparison(NamedTuple):
    """The instructions of a case before and now."""

    name: str
    before: int
    now: int

    @property
    def ratio(self) -> float:
        return self.now / self.before


def find_release() -> str:
    """Return the newest tag of a release that this revision descends from."""
    command = ["git", "describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit("there is no tag of a release, such as `v0.1.0`; name a revision with --base")
    return found.stdout.strip()


def extract(revision: str, folder: Path) -> Path:
    """Write the package of a revision into a folder, with compiled modules, as an installed package has them."""
    command = ["git", "archive", revision, "--", *PARTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"`{revision}` cannot be read: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return compile_package(folder)


def copy_checkout(folder: Path) -> Path:
    """Copy the package of this checkout, with what is not committed, into a folder."""
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "ready"))
    return compile_package(folder)


def compile_package(folder: Path) -> Path:
    """Compile the modules and build the ready tables, as a wheel has them."""
    subprocess.run([sys.executable, "tools/build_ready.py"], cwd=folder, check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "jobgen"], cwd=folder, check=True)
    return folder


def write_files(folder: Path) -> None:
    """Write what the cases read."""
    write_varied(folder / "one", 1)
    write_varied(folder / "varied", FILES)
    write_varied(folder / "faulty", FILES, 0.5)
    write_jobs(folder, FILES)


def choose_counter() -> tuple[str, ...]:
    """Return the start of a command that counts instructions."""
    perf, valgrind = shutil.which("perf"), shutil.which("valgrind")
    counter = (perf or "", "stat", "-x", ",", "-e", "instructions:u", "--")
    if perf and read_count(subprocess.run([*counter, "true"], capture_output=True, check=False).stderr):
        return counter
    if valgrind:
        return (valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--")
    raise SystemExit("neither perf nor valgrind can count instructions here; install one of them")


def read_count(report: bytes) -> int:
    """Return the count in a report of perf or valgrind; 0 if there is none."""
    if found := _CACHEGRIND.search(report):
        return int(found[1].replace(b",", b""))
    counts = (line.partition(b",")[0] for line in report.splitlines() if b"instructions" in line)
    return next((int(count) for count in counts if count.isdigit()), 0)


def count_instructions(counter: Sequence[str], package: Path, folder: Path, arguments: Sequence[str]) -> int:
    """Return the instructions of a command."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(package / "cache"),
    }
    command = [*counter, sys.executable, "-c", START, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    count = read_count(done.stderr)
    # Findings end with 1. Anything else is not what is to be measured.
    if done.returncode not in {0, 1} or not count:
        raise SystemExit(f"jobgen {' '.join(arguments)}: exit {done.returncode}\n{done.stderr[-2000:].decode()}")
    return count


def compare(base: str, names: Sequence[str]) -> Iterator[Comparison]:
    """Yield each case with the instructions of a revision and of this checkout."""
    counter = choose_counter()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "files")
        write_files(folder)
        # Paths of the same length, because even they are part of the work.
        before, now = extract(base, Path(home, "base")), copy_checkout(Path(home, "head"))
        for name in names or CASES:
            counts = (count_instructions(counter, package, folder, CASES[name]) for package in (before, now))
            yield Comparison(name, *counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="", help="a revision; by default the tag of the last release")
    parser.add_argument("--limit", type=float, default=LIMIT, help="the ratio from which a case counts as slower")
    parser.add_argument("--case", action="append", choices=list(CASES), default=[], help="compare this case only")
    parser.add_argument("--json", default="", help="write the comparison to this file")
    options = parser.parse_args()
    base = options.base or find_release()
    print(f"instructions of {base} and of this checkout, seed {SEED}")
    rows = []
    for row in compare(base, options.case):
        rows.append(row)
        verdict = "SLOWER" if row.ratio > options.limit else ""
        line = f"{row.name:45} {row.before / 1e6:12,.1f} M {row.now / 1e6:12,.1f} M {row.ratio:8.3f}x  {verdict}"
        print(line.rstrip(), flush=True)
    if options.json:
        record = {"base": base, "limit": options.limit, "cases": [row._asdict() | {"ratio": row.ratio} for row in rows]}
        Path(options.json).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if any(row.ratio > options.limit for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
