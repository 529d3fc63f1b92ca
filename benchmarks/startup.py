"""Measure how long a short run takes from process start: help, the completion of a shell, one new file, the first lint.

    python benchmarks/startup.py

Each row stands beside a Python process that does nothing, or beside kubeconform for the same file if it is on PATH.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lint import LINT, kubeconform_seconds, lint_cold, with_kubeconform
from measurement import Measurement
from repository import write_varied
from timing import JOBGEN, Run, compile_modules, fastest, run

TIMES = 5
HELP, NEW_FILE, FIRST_RUN = 0.04, 0.08, 0.15
COMPLETION = {"_JOBGEN_COMPLETE": "bash_complete", "COMP_WORDS": "jobgen li", "COMP_CWORD": "1"}


def measure() -> Iterator[Measurement]:
    """Measure the rows that benchmarks/README.md has about the start of a process."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_varied(folder / "varied", 10)
        file = min((folder / "varied").rglob("*.yaml"))
        python = fastest(TIMES, sys.executable, "-c", "pass", folder=folder, cache=folder).seconds
        shown = fastest(TIMES, *JOBGEN, "--help", folder=folder, cache=folder).seconds
        yield from with_target("jobgen --help", shown, HELP, "an empty Python", python)
        yield from with_target("completion of a command in bash", complete(folder), HELP, "an empty Python", python)
        theirs = kubeconform_seconds(TIMES, folder, str(file.relative_to(folder)))
        new = min(lint_new_file(folder, file, number) for number in range(TIMES)).seconds
        for row in with_target("one new file, from process start", new, NEW_FILE):
            yield with_kubeconform(row, theirs)
        first = lint_cold(TIMES, folder, str(file.relative_to(folder))).seconds
        for row in with_target("the first lint on a machine, one file", first, FIRST_RUN):
            yield with_kubeconform(row, theirs)


def with_target(
    name: str, seconds: float, target: float, peer: str = "", peer_seconds: float = 0
) -> Iterator[Measurement]:
    """Yield a row with its target."""
    yield Measurement(name, seconds, f"{target * 1000:.0f} ms", seconds <= target, peer, peer_seconds)


def complete(folder: Path) -> float:
    """Return the seconds in which jobgen answers a shell that completes the name of a command."""
    code = f"import os; os.environ.update({COMPLETION!r}); from jobgen.cli.main import main; main()"
    return fastest(TIMES, sys.executable, "-c", code, folder=folder, cache=folder).seconds


def lint_new_file(folder: Path, file: Path, number: int) -> Run:
    """Lint a file that was not there before; the cache knows everything else."""
    new = file.with_name(f"new-{number}.yaml")
    run(*LINT, str(file.relative_to(folder)), folder=folder, cache=folder / "cache")
    new.write_text(f"{file.read_text('utf-8')}# {number}\n", "utf-8")
    return run(*LINT, str(new.relative_to(folder)), folder=folder, cache=folder / "cache")


def main() -> None:
    compile_modules()
    for row in measure():
        print("  ".join(row.cells))


if __name__ == "__main__":
    main()
