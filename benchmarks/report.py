"""Measure `jobgen report`: seconds on top of `render` and `lint`, memory, and the size of the page.

    python benchmarks/report.py [--jobs 1000] [--environments 5] [--shapes 150] [--folder FOLDER]

The page needs the objects of `jobgen render` and the findings of `jobgen lint`; the rest of its time is its own. The
second report takes the findings from the cache. Wall time is that of all cores; on a busy machine, compare CPU
seconds, or ratios to `render`. With `--folder`, the repository stays there for other runs.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fleet import write_fleet
from timing import JOBGEN, Run, compile_modules, run

COMMANDS = {
    "start": ("--version",),
    "render": ("render", "-o", "{folder}/.rendered", "--allow-mass-delete"),
    "lint": ("lint", "--no-cache"),
    "report": ("report", "-o", "{folder}/.site"),
    "report again": ("report", "-o", "{folder}/.site"),
}


def measure(folder: Path, cache: Path) -> None:
    """Print what the commands need. A cache in the repository itself is not used."""
    found: dict[str, Run] = {}
    print(f"{'':20}{'wall':>10}{'CPU':>10}{'memory':>10}")
    for name, arguments in COMMANDS.items():
        command = [argument.format(folder=folder) for argument in arguments]
        # Warnings of `lint` do not matter here, nor that some jobs cannot be rendered.
        found[name] = each = run(*JOBGEN, *command, folder=folder, cache=cache, code=None)
        print(f"{name:20}{each.seconds:8.2f} s{each.cpu:8.2f} s{each.total / 1e6:7.0f} MB", flush=True)
    start, render, lint, report, again = found.values()
    own, rest = again.seconds - render.seconds, report.seconds - render.seconds - lint.seconds + start.seconds
    print(f"{'on top of render':20}{own:8.2f} s{again.cpu - render.cpu:8.2f} s, with findings from the cache")
    print(
        f"{'and of lint':20}{rest:8.2f} s{report.cpu - render.cpu - lint.cpu + start.cpu:8.2f} s, with an empty cache"
    )
    page = (folder / ".site" / "index.html").read_bytes()
    print(f"{'page':20}{len(page):,} bytes, {len(gzip.compress(page, 6)):,} with gzip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--environments", type=int, default=5)
    parser.add_argument("--shapes", type=int, default=150, help="how many specs differ in more than name and numbers")
    parser.add_argument("--folder", type=Path, help="of the repository; it is written if it does not exist")
    options = parser.parse_args()
    compile_modules()
    with tempfile.TemporaryDirectory() as home:
        folder = (options.folder or Path(home, "fleet")).resolve()
        if not folder.exists():
            write_fleet(folder, options.jobs, options.environments, options.shapes)
        measure(folder, Path(home, "cache"))


if __name__ == "__main__":
    main()
