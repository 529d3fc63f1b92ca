"""Measure `jobgen report`: CPU seconds on top of `render` and `lint`, memory, and the size of the page.

    python benchmarks/report.py [--jobs 1000] [--environments 5] [--shapes 150] [--folder FOLDER]

The page needs the objects of `jobgen render` and the findings of `jobgen lint`; the rest of its time is its own. All
three run with the same environments and without a cache. With `--folder`, the repository stays there for other runs.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fleet import write_fleet
from timing import JOBGEN, Run, compile_modules, fastest

TIMES = 1


def measure(folder: Path) -> None:
    """Print what the three commands need."""
    cache, site = folder / ".cache", folder / ".site"
    found: dict[str, Run] = {}
    for name, arguments in {
        "start": ("--version",),
        "render": ("render", "-o", str(folder / ".rendered")),
        "lint": ("lint", "--no-cache"),
        "report": ("report", "--no-cache", "-o", str(site)),
    }.items():
        # Warnings of `lint` do not matter here.
        found[name] = fastest(TIMES, *JOBGEN, *arguments, folder=folder, cache=cache, code=None)
    start, render, lint, report = (found[name].cpu for name in ("start", "render", "lint", "report"))
    page = (site / "index.html").read_bytes()
    print(f"render  {render:6.2f} s CPU")
    print(f"lint    {lint:6.2f} s CPU")
    print(f"report  {report:6.2f} s CPU, of which its own part {report - lint - render + start:.2f} s")
    print(f"wall    {found['report'].seconds:6.2f} s, memory of all processes {found['report'].total / 1e6:.0f} MB")
    print(f"page    {len(page):,} bytes, {len(gzip.compress(page, 6)):,} with gzip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--environments", type=int, default=5)
    parser.add_argument("--shapes", type=int, default=150, help="how many specs differ in more than name and numbers")
    parser.add_argument("--folder", type=Path, help="of the repository; it is written if it does not exist")
    options = parser.parse_args()
    compile_modules()
    with tempfile.TemporaryDirectory() as home:
        folder = options.folder or Path(home, "fleet")
        if not folder.exists():
            write_fleet(folder, options.jobs, options.environments, options.shapes)
        measure(folder)


if __name__ == "__main__":
    main()
