"""Measure `jobgen lint` against kubeconform on the same files, in one run.

    python benchmarks/lint.py [--manifests 10000]

kubeconform checks schemas alone; jobgen applies all its rules and policies. Where kubeconform is not on PATH, its time
is estimated: on two cores it needed 0.52 of the time in which one process loads 95-line manifests with PyYAML's
CSafeLoader.
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
from measurement import Measurement, require_linear
from render import KUSTOMIZE, kustomize_seconds
from repository import PYTORCH, fill_templates, manifest_template, write_files, write_jobs, write_varied
from timing import JOBGEN, Run, fastest, run

ROOT = Path(__file__).parent.parent
SCHEMAS = "kubeconform-schemas"
"""The folder that gets the schemas for kubeconform; jobgen itself would read one that is called `schemas`."""
_FILE = "{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"
LOCATIONS = [f"{SCHEMAS}/{group}/{_FILE}" for group in ("{{.Group}}", "core")]
KUBECONFORM = ("-strict", *(word for location in LOCATIONS for word in ("-schema-location", location)))
LINT = (*JOBGEN, "lint")
KUBECONFORM_SHARE = 0.52
"""kubeconform's time as a share of the time that PyYAML needs to load the files."""
FAULTS = 0.03
MANY = 10_000
"""From here on, process start does not count, and the ratio is a target."""
TARGET, CLEAN_TARGET, VERDICT_TARGET = 1.3, 0.85, 6
"""How many times as fast as the other tools a lint is to be: of varied manifests, of clean ones, and from sources."""
CLEAN, SOURCES = 3_000, 1_000
RACY = 2.5
"""Seconds after which a file that was just written is no longer read again, as in Git."""
LOG_LEVELS = ("WARN", "TRACE", "VERSION")


def load_seconds(folder: Path) -> float:
    """Return the seconds in which one process loads all YAML and JSON files with PyYAML."""
    started = time.perf_counter()
    for path in sorted(folder.rglob("*.*")):
        list(yaml.load_all(path.read_bytes(), yaml.CSafeLoader))
    return time.perf_counter() - started


def kubeconform_seconds(times: int, folder: Path, path: str) -> float:
    """Return kubeconform's seconds for a file or a folder, whatever it finds, or 0 if it is not on PATH."""
    binary = shutil.which("kubeconform")
    if not binary:
        return 0
    if not (folder / SCHEMAS).exists():
        run(*JOBGEN, "schema", "export", SCHEMAS, folder=folder, cache=folder)
    return fastest(times, binary, *KUBECONFORM, path, folder=folder, cache=folder, code=None).seconds


def measure_peer(times: int, folder: Path) -> tuple[str, float]:
    """Return the name of the tool to compare with, and its seconds for all varied manifests."""
    seconds = kubeconform_seconds(times, folder, "varied")
    if seconds:
        return "kubeconform", seconds
    return "kubeconform (estimate)", load_seconds(folder / "varied") * KUBECONFORM_SHARE


def cache_of(folder: Path) -> Path:
    """Return the cache, beside the repository: jobgen does not use one inside the files that it lints."""
    return folder.with_name("cache")


def lint_cold(times: int, folder: Path, *paths: str, code: int = 0) -> Run:
    """Return the fastest of some runs that start with an empty cache; the last run leaves its own."""
    runs = []
    for _ in range(times):
        shutil.rmtree(cache_of(folder), ignore_errors=True)
        runs.append(run(*LINT, *paths, folder=folder, cache=cache_of(folder), code=code))
    return min(runs)


def lint_unchanged(folder: Path, *paths: str) -> Run:
    """Lint files that were linted before."""
    time.sleep(RACY)
    return fastest(3, *LINT, *paths, folder=folder, cache=cache_of(folder))


def lint_changed(folder: Path, file: Path, *paths: str) -> Run:
    """Lint after one file has changed, several times."""
    runs = []
    for level in LOG_LEVELS:
        before = file.read_text("utf-8")
        file.write_text(before.replace("INFO", level, 1), "utf-8")
        runs.append(run(*LINT, *paths, folder=folder, cache=cache_of(folder)))
        file.write_text(before, "utf-8")
    return min(runs)


def changeable_file(folder: Path) -> Path:
    """Return a file with the log level that `lint_changed` changes."""
    return next(path for path in sorted(folder.rglob("*.yaml")) if "INFO" in path.read_text("utf-8"))


def measure_repository(count: int) -> Iterator[Measurement]:
    """Measure a repository of varied manifests: cold, unchanged, one file changed, memory, one file alone."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "repository")
        write_varied(folder / "varied", count)
        changed = changeable_file(folder / "varied")
        first = lint_cold(2, folder, "varied")
        name, theirs = measure_peer(2, folder)
        unchanged = lint_unchanged(folder, "varied").seconds
        once = lint_changed(folder, changed, "varied").seconds
        row = Measurement(f"lint {count:,} varied manifests, cold", first.seconds, peer=name, peer_value=theirs)
        yield row._replace(target=f"{TARGET}x", met=theirs >= TARGET * first.seconds)
        yield Measurement(f"lint {count:,} varied manifests, CPU time", first.cpu)
        is_met = first.seconds >= 10 * unchanged
        yield Measurement("again, nothing changed", unchanged, "10x", is_met, "cold", first.seconds)
        yield Measurement(f"again, one of {count:,} changed", once, "1 s", once < 1)
        if first.largest:
            yield measure_memory(f"memory of one process for {count:,}", first.largest, 200)
        yield from measure_one_file(folder, changed)


def measure_one_file(folder: Path, file: Path) -> Iterator[Measurement]:
    """Measure one manifest from process start: with an empty cache, changed, and unchanged."""
    path = str(file.relative_to(folder))
    theirs = kubeconform_seconds(5, folder, path)
    yield Measurement("one manifest, from process start, empty cache", lint_cold(3, folder, path).seconds)
    changed = min(lint_changed(folder, file, path) for _ in range(2))
    for what, seconds in (("changed", changed.seconds), ("unchanged", lint_unchanged(folder, path).seconds)):
        met = seconds < 0.2 and (not theirs or seconds <= 3 * theirs)
        row = Measurement(f"one manifest, from process start, {what}", seconds, "200 ms, 0.33x", met)
        yield with_kubeconform(row, theirs)


def with_kubeconform(row: Measurement, theirs: float) -> Measurement:
    """Compare a row with kubeconform, if it was measured."""
    return row._replace(peer="kubeconform", peer_value=theirs) if theirs else row


def measure_memory(name: str, held: int, megabytes: int) -> Measurement:
    return Measurement(name, held, f"{megabytes} MB", held < megabytes * 1e6, unit="bytes")


def measure_growth(counts: list[int]) -> Iterator[Measurement]:
    """Measure more and more varied manifests, and what faults cost."""
    before: Measurement | None = None
    for count in counts:
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home, "repository")
            write_varied(folder / "varied", count)
            times = 1 if count >= MANY else 2
            seconds = lint_cold(times, folder, "varied").seconds
            row = Measurement(f"lint {count:,} varied, cold", seconds, series="lint", count=count)
            if count < MANY:
                row = with_kubeconform(row, kubeconform_seconds(times, folder, "varied"))
            else:
                name, theirs = measure_peer(times, folder)
                row = row._replace(peer=name, peer_value=theirs, target=f"{TARGET}x", met=theirs >= TARGET * seconds)
            before = require_linear(before, row)
            yield before
    if before:
        yield measure_faults(before)


def measure_faults(clean: Measurement) -> Measurement:
    """Measure the same number of manifests, a few in a hundred with a fault."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "repository")
        write_varied(folder / "varied", clean.count, FAULTS)
        seconds = lint_cold(1, folder, "varied", code=1).seconds
    name = f"lint {clean.count:,} varied, {FAULTS:.0%} with a fault"
    return Measurement(name, seconds, "0.67x", seconds <= 1.5 * clean.value, "without", clean.value)


def measure_jobs(count: int) -> Iterator[Measurement]:
    """Measure a repository of job specs through two overlays; the specs come from six templates."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "repository")
        write_jobs(folder, count)
        first = lint_cold(1, folder).seconds
        unchanged = lint_unchanged(folder).seconds
        once = lint_changed(folder, folder / "jobs/000/bert-000000.yaml").seconds
    yield Measurement(f"lint {count:,} jobs (6 templates) x 2 overlays, cold", first)
    yield Measurement("again, nothing changed", unchanged, "10x", first >= 10 * unchanged, "cold", first)
    yield Measurement(f"again, one of {count:,} jobs changed", once, "1 s", once < 1)


def measure_clean(count: int) -> Measurement:
    """Measure manifests of one kind without findings: every rule and policy is asked, and nothing is reported."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "repository")
        write_files(folder / "varied", fill_templates((manifest_template(PYTORCH),), (), count, 0))
        seconds = lint_cold(2, folder, "varied").seconds
        name, theirs = measure_peer(2, folder)
    met = theirs >= CLEAN_TARGET * seconds
    return Measurement(f"lint {count:,} clean PyTorchJobs, cold", seconds, f"{CLEAN_TARGET}x", met, name, theirs)


def measure_verdict(count: int) -> Measurement:
    """Measure job specs through an overlay to a verdict, beside kustomize and kubeconform on the same objects."""
    with tempfile.TemporaryDirectory() as home:
        ours, theirs = Path(home, "ours"), Path(home, "theirs")
        write_jobs(ours, count)
        seconds = lint_cold(3, ours, "-e", "prod").seconds
        slow = kustomize_seconds(ours, theirs)
        (theirs / "varied").mkdir()
        with open(theirs / "varied/built.yaml", "wb") as built:
            run(*KUSTOMIZE, folder=theirs, cache=theirs, out=built)
        name, checked = measure_peer(2, theirs)
    met = slow + checked >= VERDICT_TARGET * seconds
    peer = f"kustomize and {name}"
    return Measurement(
        f"lint {count:,} jobs x 1 overlay, cold", seconds, f"{VERDICT_TARGET}x", met, peer, slow + checked
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=MANY)
    count = parser.parse_args().manifests
    alone = (measure_clean(CLEAN), measure_verdict(SOURCES))
    for row in (*measure_repository(count), *measure_growth([count]), *measure_jobs(count), *alone):
        print("  ".join(filter(None, row.cells)))


if __name__ == "__main__":
    main()
