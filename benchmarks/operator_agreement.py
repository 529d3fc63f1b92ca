"""Compare `jobgen lint` with the operators' own tests: manifests that an operator version accepts or rejects.

    python benchmarks/operator_agreement.py FOLDER

FOLDER holds <anything>/<case>@v<version>.valid.yaml and .invalid.yaml. Comments at the top name the operator
(`# source: owner/operator@…`) and may name the fields that it rejects (`#   - Invalid spec.a.b[c].d`). A rejected
manifest must have an error; an accepted one must have none of the category `operator`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


def lint(text: str, operator: str, version: str) -> list[dict[str, str]]:
    """Return the findings about a manifest in a cluster with this operator."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "overlays/only").mkdir(parents=True)
        overlay = OVERLAY.format(platform=PLATFORMS[operator], operator=operator, version=version)
        (root / "overlays/only/overlay.yaml").write_text(overlay)
        (root / "jobs").mkdir()
        (root / "jobs/job.yaml").write_text(text)
        command = [sys.executable, "-m", "jobgen", "-C", folder, "lint", "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings: list[dict[str, str]] = json.loads(done.stdout)["findings"]
    return findings


def to_pointer(field: str) -> str:
    """Convert a field from the notation of operators to a JSON pointer."""
    return "/" + field.replace("[", ".").replace("]", "").replace(".", "/")


def find_cases(folder: Path) -> Iterator[tuple[Path, str, str, bool]]:
    """Yield each file with its operator, the version, and whether the operator rejects it."""
    for path in sorted(folder.rglob("*.yaml")):
        found, source = _CASE.search(path.name), _SOURCE.search(path.read_text())
        if found and source:
            yield path, source[1], found[1], found[2] == "invalid"


def main(folder: Path) -> int:
    """Print missed and false findings and the totals; return the exit code."""
    rejected = accepted = missed = false = named = located = 0
    for path, operator, version, is_rejected in find_cases(folder):
        text = path.read_text()
        errors = [finding for finding in lint(text, operator, version) if finding["severity"] == "error"]
        if is_rejected:
            rejected += 1
            fields = {to_pointer(field) for field in _FIELD.findall(text)}
            pointers = [finding["pointer"] for finding in errors]
            near = [field for field in fields if any(_is_near(field, pointer) for pointer in pointers)]
            named += len(fields)
            located += len(near)
            if not errors:
                missed += 1
                print(f"missed: {path}")
            for field in sorted(fields - set(near)):
                print(f"  located elsewhere: {path.name}: {field}; found {', '.join(pointers)}")
        else:
            accepted += 1
            for finding in errors:
                if finding["category"] == "operator":
                    false += 1
                    print(f"false positive: {path}: {finding['rule']}: {finding['message']}")
    print(f"rejected: {rejected - missed} of {rejected} found; accepted: {false} false positives in {accepted}")
    print(f"fields that operators name: {located} of {named} located")
    return 1 if missed or false else 0


def _is_near(field: str, pointer: str) -> bool:
    """Whether a finding is at the field, inside it, or at the nearest parent of a missing field."""
    return pointer.startswith(field) or (bool(pointer) and field.startswith(pointer))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
