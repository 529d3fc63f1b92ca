"""Lint against kubeconform: the same manifests, in one run; prints ratios.

    python benchmarks/lint.py [--files 10000]

kubeconform checks schemas alone; jobgen does all it can. Without the binary its stand-in is what it was measured to
need on two cores: 0.52 of the time in which one process loads the files with PyYAML's CSafeLoader.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import yaml
from promise import Row, growing
from repository import ALIKE, write_jobs, write_manifests
from stopwatch import JOBGEN, Run, best, run

ROOT = Path(__file__).parent.parent
WHERE = f"{ROOT}/schemas/{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json"
LINT = (*JOBGEN, "lint")
LOADS = 0.52
FAULTY = 0.03
MANY = 10_000
"""From here on, starting does not count, and the promise of a ratio holds."""
ONE = "manifests/000/bert-000000.yaml"
# A file that was written just now is looked at again, as Git does.
TO_AGE = 2.5


def loading(folder: Path) -> float:
    """Seconds in which one process loads the files."""
    started = time.perf_counter()
    for path in sorted(folder.rglob("*.yaml")):
        yaml.load(path.read_bytes(), yaml.CSafeLoader)
    return time.perf_counter() - started


def kubeconform(times: int, folder: Path, path: str) -> float:
    """Its seconds for a file or a folder; 0 where it is not on PATH."""
    binary = shutil.which("kubeconform")
    words = (binary or "", "-strict", "-schema-location", WHERE, path)
    return best(times, *words, folder=folder, cache=folder).seconds if binary else 0


def peer(times: int, folder: Path) -> tuple[str, float]:
    """Who is raced over all manifests, and its seconds."""
    seconds = kubeconform(times, folder, "manifests")
    if seconds:
        return "kubeconform", seconds
    return "kubeconform (stand-in)", loading(folder / "manifests") * LOADS


def cold(times: int, folder: Path, *paths: str, code: int = 0) -> Run:
    """The quickest of some lints that remember nothing; what the last of them has learnt is in `folder/cache`."""
    runs = []
    for _ in range(times):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        runs.append(run(*LINT, *paths, folder=folder, cache=folder / "cache", code=code))
    return min(runs)


def again(folder: Path, *paths: str) -> Run:
    """A lint of what was linted before."""
    time.sleep(TO_AGE)
    return best(3, *LINT, *paths, folder=folder, cache=folder / "cache")


def changed(folder: Path, one: str, *paths: str) -> Run:
    """A lint after one file has changed, three times over."""
    runs = []
    for word in ("WARN", "TRACE", "VERSION"):
        before = (folder / one).read_text()
        (folder / one).write_text(before.replace("INFO", word))
        runs.append(run(*LINT, *paths, folder=folder, cache=folder / "cache"))
        (folder / one).write_text(before)
    return min(runs)


def manifests(count: int) -> Iterator[Row]:
    """The promises: manifests of one kind, all rules and policies on."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_manifests(folder / "manifests", count, ALIKE)
        first = cold(2, folder, "manifests")
        name, theirs = peer(2, folder)
        warm = again(folder, "manifests").seconds
        once = changed(folder, ONE, "manifests").seconds
        yield Row(f"lint {count:,} manifests, cold", first.seconds, "2x", theirs >= 2 * first.seconds, name, theirs)
        yield Row("again, nothing changed", warm, "10x", first.seconds >= 10 * warm, "cold", first.seconds)
        yield Row(f"again, one of {count:,} changed", once, "1 s", once < 1)
        if first.largest:
            yield memory(f"memory of a process for {count:,}", first.largest, 200)
        yield from one_file(folder)


def one_file(folder: Path) -> Iterator[Row]:
    """One manifest from process start: never seen on this machine, new, and as it was."""
    theirs = kubeconform(5, folder, ONE)
    first = cold(3, folder, ONE)
    yield Row("one manifest, from process start, cache empty", first.seconds)
    new = min(changed(folder, ONE, ONE) for _ in range(2))
    for what, seconds in (("new", new.seconds), ("as it was", again(folder, ONE).seconds)):
        kept = seconds < 0.2 and (not theirs or seconds <= 3 * theirs)
        yield against(Row(f"one manifest, from process start, {what}", seconds, "200 ms, 0.33x", kept), theirs)


def against(row: Row, theirs: float) -> Row:
    """A row beside what kubeconform needs, if it was there."""
    return row._replace(peer="kubeconform", other=theirs) if theirs else row


def memory(what: str, held: int, megabytes: int) -> Row:
    """A promise about memory."""
    return Row(what, held, f"{megabytes} MB", held < megabytes * 1e6, unit="bytes")


def mixed(counts: list[int]) -> Iterator[Row]:
    """Growth over manifests of several kinds that take turns, and what faults cost."""
    before: Row | None = None
    for count in counts:
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home)
            write_manifests(folder / "manifests", count)
            times = 1 if count >= MANY else 2
            seconds = cold(times, folder, "manifests").seconds
            row = Row(f"lint {count:,} of mixed kinds, cold", seconds, series="lint", count=count)
            if count < MANY:
                row = against(row, kubeconform(times, folder, "manifests"))
            else:
                name, theirs = peer(times, folder)
                row = row._replace(peer=name, other=theirs, wanted="2x", kept=theirs >= 2 * seconds)
            before = growing(before, row)
            yield before
    if before:
        yield faulty(before)


def faulty(clean: Row) -> Row:
    """The same manifests, a few of a hundred with a fault."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_manifests(folder / "manifests", clean.count, faults=FAULTY)
        seconds = cold(1, folder, "manifests", code=1).seconds
    what = f"lint {clean.count:,}, {FAULTY:.0%} with a fault"
    return Row(what, seconds, "0.67x", seconds <= 1.5 * clean.value, "without", clean.value)


def jobs(count: int) -> Iterator[Row]:
    """A repository of job specs through two overlays."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_jobs(folder, count)
        first = cold(1, folder).seconds
        warm = again(folder).seconds
        once = changed(folder, "jobs/000/bert-000000.yaml").seconds
    yield Row(f"lint {count:,} jobs x 2 overlays, cold", first)
    yield Row("again, nothing changed", warm, "10x", first >= 10 * warm, "cold", first)
    yield Row(f"again, one of {count:,} jobs changed", once, "1 s", once < 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    count = parser.parse_args().files
    for row in (*manifests(count), *mixed([count]), *jobs(count)):
        print("  ".join(filter(None, row.cells)))


if __name__ == "__main__":
    main()
