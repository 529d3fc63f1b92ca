"""Count the calls of functions that a command needs: the same number on a fast and on a busy machine.

A child process on one core runs the command under a profiler whose timer counts events. So the own time of a function
is the number of calls that it makes itself, also of functions written in C, and their sum is the number of all calls.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
EVENTS_OF_A_CALL = 2
"""Its begin and its end."""
CHILD = """\
import cProfile, gc, itertools, json, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
gc.disable()
root, libraries, target, *arguments = sys.argv[1:]
# The same folders for every installation, because each of them is looked at for every import.
sys.path[:] = [root, *(folder for folder in sys.path if folder and "site-packages" not in folder), libraries]
sys.argv[:] = ["jobgen", *arguments]
profile = cProfile.Profile(itertools.count().__next__, 1.0)
def leave(code=0):
    profile.disable()
    profile.create_stats()
    rows = [(file, name, own) for (file, _, name), (_, _, own, _, _) in profile.stats.items()]
    with open(target, "w") as stream:
        json.dump({"exit": code, "rows": rows}, stream)
    raise SystemExit(0)
os._exit = leave
profile.enable()
from jobgen.cli.main import main
main()
"""


class Calls(NamedTuple):
    """The calls of one run: how many each function makes itself, by the function's module and name."""

    by_function: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.by_function.values())

    def __sub__(self, other: Calls) -> Calls:
        names = {**self.by_function, **other.by_function}
        return Calls({name: self.by_function.get(name, 0) - other.by_function.get(name, 0) for name in names})

    def __truediv__(self, count: int) -> Calls:
        return Calls({name: calls / count for name, calls in self.by_function.items()})


def count_command(folder: Path, arguments: Sequence[str], programs: Sequence[Path] = ()) -> Calls:
    """Return the calls of a command of jobgen that runs in a folder, with some programs on its PATH."""
    target, package, bin_ = folder / "calls.json", folder / "package", folder / "bin"
    bin_.mkdir()
    for program in programs:
        (bin_ / program.name).symlink_to(program)
    # Paths of the same length for every checkout, because even they are part of the work.
    package.symlink_to(ROOT)
    environment = {
        "PATH": os.pathsep.join((str(bin_), os.defpath)) if programs else os.defpath,
        "HOME": str(folder),
        "PYTHONHASHSEED": "0",
        "PYTHONSAFEPATH": "1",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    command = [sys.executable, "-S", "-c", CHILD, str(package), sysconfig.get_path("purelib"), str(target), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if not target.exists():
        raise RuntimeError(f"jobgen {' '.join(arguments)}: {done.stderr}")
    result = json.loads(target.read_text("utf-8"))
    # Findings end with 1. Anything else is not what is to be counted.
    if result["exit"] not in {0, 1}:
        raise RuntimeError(f"jobgen {' '.join(arguments)}: exit {result['exit']}\n{done.stderr}")
    counts: Counter[str] = Counter()
    for file, name, own in result["rows"]:
        counts[_name_function(file, name, package)] += own
    return Calls({name: events / EVENTS_OF_A_CALL for name, events in counts.items()})


def _name_function(file: str, name: str, package: Path) -> str:
    """Return a name that is the same in every checkout, and after an edit above the function."""
    path = Path(file)
    if path.is_relative_to(package):
        return f"{path.relative_to(package)}:{name}"
    return _ADDRESS.sub("", name) if file == "~" else f"{path.parent.name}/{path.name}:{name}"
