"""Measure what a user waits for, beside the tools that they would use instead: the table of docs/performance.md.

    python benchmarks/waits.py [--write]

kubeconform, kubectl and checkov are measured if they are there; where kubeconform is not on PATH, its time is an
estimate, and the table says so. Every row is measured in one run, and is the fastest of a few runs of either tool.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lint import LINT, cache_of, lint_cold, lint_unchanged, measure_peer
from measurement import Measurement, format_amount
from render import KUSTOMIZE, kustomize_seconds
from repository import write_jobs, write_varied
from table import describe_machine
from timing import compile_modules, fastest, run

PAGE = Path(__file__).parent.parent / "docs/performance.md"
BEGIN, END = "<!-- measured: `python benchmarks/waits.py --write` -->\n", "<!-- end -->"
JOBS, MANIFESTS, FEW = 1000, 1000, 100


def measure() -> Iterator[Measurement]:
    """Yield one row for each thing that a user waits for."""
    compile_modules()
    yield measure_one_file()
    yield measure_pull_request()
    yield from measure_whole_repository()
    yield from measure_checkov()


def measure_one_file() -> Measurement:
    """A commit hook: one manifest that jobgen has not seen."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "repository")
        write_varied(folder / "varied", 10)
        only = min((folder / "varied").rglob("*.yaml"))
        text = only.read_text("utf-8")
        shutil.rmtree(folder / "varied")
        (folder / "varied").mkdir()
        (folder / "varied" / only.name).write_text(text, "utf-8")
        seconds = lint_cold(5, folder, "varied").seconds
        return Measurement("one file, in a commit hook", seconds, "", True, *measure_peer(5, folder))


def measure_pull_request() -> Measurement:
    """CI with the cache of an earlier run: one of many jobs has changed. The other tools build and check all."""
    with tempfile.TemporaryDirectory() as home:
        folder, theirs = Path(home, "ours"), Path(home, "theirs")
        write_jobs(folder, JOBS)
        commit(folder)
        run(*LINT, folder=folder, cache=cache_of(folder))
        changed = folder / "jobs/000/bert-000000.yaml"
        changed.write_text(changed.read_text("utf-8").replace("INFO", "WARN", 1), "utf-8")
        kept = Path(home, "kept")
        cache_of(folder).rename(kept)
        runs = []
        for _ in range(3):
            shutil.rmtree(cache_of(folder), ignore_errors=True)
            shutil.copytree(kept, cache_of(folder))
            runs.append(run(*LINT, "--since", "HEAD", folder=folder, cache=cache_of(folder)))
        built = kustomize_seconds(folder, theirs)
        (theirs / "varied").mkdir()
        with open(theirs / "varied/built.yaml", "wb") as output:
            run(*KUSTOMIZE, folder=theirs, cache=theirs, out=output)
        name, checked = measure_peer(2, theirs)
    what = f"a pull request that changes one of {JOBS:,} jobs"
    return Measurement(what, min(runs).seconds, "", True, f"kustomize and {name}", built + checked)


def commit(folder: Path) -> None:
    """Put a folder under version control, as CI checks it out."""
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "jobs")):
        subprocess.run(["git", *command], cwd=folder, check=True)


def measure_whole_repository() -> Iterator[Measurement]:
    """The first run in a repository of manifests, and the next one."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "repository")
        write_varied(folder / "varied", MANIFESTS)
        seconds = lint_cold(2, folder, "varied").seconds
        name, theirs = measure_peer(2, folder)
        yield Measurement(f"a repository of {MANIFESTS:,} manifests, first run", seconds, "", True, name, theirs)
        again = lint_unchanged(folder, "varied").seconds
        yield Measurement("the same, nothing changed", again, "", True, name, theirs)


def measure_checkov() -> Iterator[Measurement]:
    """A linter with rules of its own, on few files, because it takes long."""
    checkov = shutil.which("checkov")
    if not checkov:
        return
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "repository")
        write_varied(folder / "varied", FEW)
        seconds = lint_cold(2, folder, "varied").seconds
        command = (
            checkov,
            "--directory",
            "varied",
            "--framework",
            "kubernetes",
            "--skip-download",
            "--compact",
            "--quiet",
        )
        theirs = fastest(2, *command, folder=folder, cache=folder, code=None).seconds
    yield Measurement(f"{FEW} manifests, first run", seconds, "", True, "checkov", theirs)


def format_table(rows: list[Measurement]) -> str:
    """Return the machine and the table."""
    machine = "{cpu}, {cores} cores, {system}, Python {python}".format(**describe_machine())
    lines = [
        f"Measured on {datetime.now(UTC).date().isoformat()}: {machine}; wall time.\n",
        "| you wait for | jobgen | instead of |",
        "|---|---|---|",
    ]
    for row in rows:
        theirs = f"{row.peer}: {format_amount(row.peer_value, row.unit)}"
        lines.append(f"| {row.name} | {format_amount(row.value, row.unit)} | {theirs} |")
    return "\n".join(lines) + "\n"


def replace_table(page: str, table: str) -> str:
    """Return the page with a new table."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    options = parser.parse_args()
    table = format_table(list(measure()))
    print(table, end="")
    if options.write:
        PAGE.write_text(replace_table(PAGE.read_text("utf-8"), table), "utf-8")


if __name__ == "__main__":
    main()
