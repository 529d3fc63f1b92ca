"""Lint against operators' own tests: manifests that each of them takes or refuses, with its version in the file's name.

    python benchmarks/operators.py FOLDER

FOLDER holds <anything>/<case>@v<version>.valid.yaml and .invalid.yaml; comments at the top name the operator
(`# source: owner/operator@…`) and maybe the fields it complains about (`#   - Invalid spec.a.b[c].d`). A manifest that
is refused must get an error; one that is taken must get none of the category `operator`.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from jobgen.cli.commands.lint import lint_paths

OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: only}}
spec:
  cluster: {{platform: {platform}, operators: {{{operator}: {version}}}}}
"""
PLATFORMS = {"training-operator": "kubeflow", "trainer": "trainer", "mpi-operator": "mpi-operator"}
_CASE = re.compile(r"@v([0-9.]+)\.(valid|invalid)\.yaml$")
_SOURCE = re.compile(r"^# source: \w+/([\w-]+)@", re.MULTILINE)
_FIELD = re.compile(r"^#   - (?:Required|Invalid|Forbidden|NotSupported) (\S+)", re.MULTILINE)


def linted(text: str, operator: str, version: str) -> list[dict[str, str]]:
    """The findings about a manifest in a cluster with that operator."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "overlays/only").mkdir(parents=True)
        overlay = OVERLAY.format(platform=PLATFORMS[operator], operator=operator, version=version)
        (root / "overlays/only/overlay.yaml").write_text(overlay)
        (root / "jobs").mkdir()
        (root / "jobs/job.yaml").write_text(text)
        return json.loads(lint_paths(root, (), (), format_="json").out)["findings"]


def pointer(field: str) -> str:
    """A field as operators write it, as a pointer."""
    return "/" + field.replace("[", ".").replace("]", "").replace(".", "/")


def cases(folder: Path) -> Iterator[tuple[Path, str, str, bool]]:
    """Each file, its operator and version, and whether it is refused."""
    for path in sorted(folder.rglob("*.yaml")):
        found, source = _CASE.search(path.name), _SOURCE.search(path.read_text())
        if found and source:
            yield path, source[1], found[1], found[2] == "invalid"


def main(folder: Path) -> int:
    """Print what was missed and what was wrongly found, and how often each was right."""
    refused = taken = missed = wrong = named = placed = 0
    for path, operator, version, is_refused in cases(folder):
        findings = linted(path.read_text(), operator, version)
        errors = [finding for finding in findings if finding["severity"] == "error"]
        if is_refused:
            refused += 1
            fields = {pointer(field) for field in _FIELD.findall(path.read_text())}
            places = [finding["pointer"] for finding in errors]
            near = [field for field in fields if any(_meets(field, place) for place in places)]
            named += len(fields)
            placed += len(near)
            if not errors:
                missed += 1
                print(f"missed: {path}")
            for field in sorted(fields - set(near)):
                print(f"  elsewhere: {path.name}: {field}; found {', '.join(places)}")
        else:
            taken += 1
            for finding in errors:
                if finding["category"] == "operator":
                    wrong += 1
                    print(f"false alarm: {path}: {finding['rule']}: {finding['message']}")
    print(f"refused: {refused - missed} of {refused} found; taken: {wrong} false alarms in {taken}")
    print(f"fields that operators name: {placed} of {named} blamed")
    return 1 if missed or wrong else 0


def _meets(field: str, place: str) -> bool:
    """Whether a finding is at the field, inside of it, or at the nearest thing around a field that is not there."""
    return place.startswith(field) or (bool(place) and field.startswith(place))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
