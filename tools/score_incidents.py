"""Score tools on the public incidents: `score_incidents.py CASES [NAME=COMMAND …]`.

CASES has a folder for each incident, as docs/conformance/incidents.py reads them. jobgen is scored by what it says.
Another tool is a command that gets a folder of rendered objects as its last argument: an incident is found if it fails
for the faulty objects and not for the repaired ones. For example:

    python tools/score_incidents.py CASES 'kubeconform=kubeconform -strict' 'kube-linter=kube-linter lint'
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "docs")]

from conformance.incidents import judge  # noqa: E402 -- the folder is not on the path before

import jobgen  # noqa: E402
from jobgen.api.errors import JobgenError  # noqa: E402


def main() -> int:
    """Print how many incidents each tool finds."""
    cases, *tools = sys.argv[1:]
    commands = [(name, shlex.split(command)) for name, _, command in (tool.partition("=") for tool in tools)]
    folders = sorted(path.parent for path in Path(cases).glob("*/case.json"))
    found = dict.fromkeys(["jobgen", *(name for name, _ in commands)], 0)
    false = dict(found)
    for folder in folders:
        case = json.loads((folder / "case.json").read_text("utf-8"))
        own = judge(case, folder)
        found["jobgen"] += own["faulty"]
        false["jobgen"] += not own["repaired"]
        for name, command in commands:
            red, green = (_fails(command, folder / side) for side in ("red", "green"))
            found[name] += red and not green
            false[name] += green
    print(f"{'tool':<16} {'found':>9} {'reports the repaired one':>25}")
    for name, count in found.items():
        print(f"{name:<16} {count:>4} / {len(folders)} {false[name]:>25}")
    return 0


def _fails(command: Sequence[str], root: Path) -> bool:
    """Return whether a tool fails for the objects of a repository and of its cluster."""
    try:
        objects = [each.text for each in jobgen.render(root).objects]
    except JobgenError:
        objects = []
    with tempfile.TemporaryDirectory() as folder:
        for number, each in enumerate(objects):
            Path(folder, f"{number}.yaml").write_text(each, "utf-8")
        for state in sorted(root.glob("cluster/*.yaml")):
            Path(folder, f"cluster-{state.name}").write_bytes(state.read_bytes())
        done = subprocess.run([*command, folder], capture_output=True, check=False)  # noqa: S603 -- the user's own tool
        return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
