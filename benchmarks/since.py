"""Measure `jobgen lint --since` and `jobgen diff` against one lint of the same repository, in one run.

    python benchmarks/since.py [--teams 40] [--jobs 25]

The repository has varied jobs of many teams in four environments (`teams.py`). An earlier lint has filled the cache, as
it has before most changes; each run starts with this cache.
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

from lint import LINT, RACY
from measurement import Measurement
from teams import change_files, write_teams
from timing import JOBGEN, Run, run

TEAMS, JOBS, ENVIRONMENTS = 40, 25, 4
CHANGED = 10
COMMANDS = {"lint --since HEAD": (*LINT, "--since", "HEAD"), "diff HEAD": (*JOBGEN, "diff", "HEAD")}
OVERLAY = "overlays/base/overlay.yaml"


def run_from(kept: Path, folder: Path, cache: Path, *command: str) -> Run:
    """Run a command, whatever it finds, with the cache that an earlier lint left."""
    shutil.rmtree(cache, ignore_errors=True)
    if kept.exists():
        shutil.copytree(kept, cache)
    return run(*command, folder=folder, cache=cache, code=None)


def change_overlay(folder: Path) -> None:
    """Change the environment of every container."""
    change_files(folder, 0)
    path = folder / OVERLAY
    path.write_text(path.read_text("utf-8").replace("NCCL_DEBUG: WARN", "NCCL_DEBUG: INFO"), "utf-8")


def measure(teams: int = TEAMS, jobs: int = JOBS, times: int = 2) -> Iterator[Measurement]:
    """Measure a change of some files, and one of an overlay that concerns every job."""
    size = f"{teams * jobs:,} jobs x {ENVIRONMENTS}"
    with tempfile.TemporaryDirectory() as home:
        folder, kept, cache = Path(home) / "repository", Path(home) / "kept", Path(home) / "cache"
        write_teams(folder, teams, jobs, ENVIRONMENTS)
        time.sleep(RACY)
        whole = run_from(kept, folder, cache, *LINT)
        yield Measurement(f"lint {size}, cold", whole.seconds)
        cache.rename(kept)
        change_files(folder, CHANGED)
        for name, command in COMMANDS.items():
            runs = [run_from(kept, folder, cache, *command) for _ in range(times)]
            seconds, row = min(each.seconds for each in runs), f"{name}, {CHANGED} of {size} changed"
            yield Measurement(row, seconds, "1 s", seconds < 1, "cold lint", whole.seconds)
            yield Measurement(f"{row}, CPU time", min(each.cpu for each in runs))
        change_overlay(folder)
        for name, command in COMMANDS.items():
            seconds = run_from(kept, folder, cache, *command).seconds
            is_met = seconds < 1.5 * whole.seconds
            row = f"{name}, an overlay of all jobs changed"
            yield Measurement(row, seconds, "0.67x", is_met, "cold lint", whole.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teams", type=int, default=TEAMS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    options = parser.parse_args()
    for row in measure(options.teams, options.jobs):
        print("  ".join(filter(None, row.cells)), flush=True)


if __name__ == "__main__":
    main()
