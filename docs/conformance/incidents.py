"""Public incidents as repositories: the faulty one is reported at its cause, the repaired one is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jobgen
from conformance import Verdict
from jobgen.model.finding import Finding, Severity


def run(data: Any) -> Iterator[Verdict]:
    """Lint both repositories of each case, as a user would."""
    for case in data["cases"]:
        for side, is_right in judge(case, Path(data["folder"], case["id"])).items():
            yield Verdict(f"{case['id']} {side}", is_right, case["story"], f"{side} repository")


def judge(case: Any, folder: Path) -> dict[str, bool]:
    """Return whether the faulty repository is reported at the object to blame, and the repaired one has no fault."""
    reported = [
        finding for finding in _lint(folder / "red") if is_said(case, finding) and _is_blamed(case, folder, finding)
    ]
    wrong = [each for each in _lint(folder / "green") if each.severity is Severity.ERROR or is_said(case, each)]
    return {"faulty": bool(reported), "repaired": not wrong}


def _lint(root: Path) -> list[Finding]:
    return [each for each in jobgen.lint(root).findings if each.severity is not Severity.INFO]


def is_said(case: Any, finding: Finding) -> bool:
    """Return whether a message states the cause: it has all of the words that a case expects."""
    return all(re.search(words, finding.message, re.IGNORECASE) for words in case["keywords"])


def _is_blamed(case: Any, folder: Path, finding: Finding) -> bool:
    """Return whether a finding is in a document that is to blame."""
    for blamed in case["blame"]:
        lines = (folder / "red" / blamed["file"]).read_text("utf-8").split("\n")
        at = next(number for number, line in enumerate(lines) if blamed["anchor"].split("\n")[0] in line)
        ends = [number for number, line in enumerate(lines) if re.match(r"---(\s|$)", line)]
        first = max((number for number in ends if number < at), default=-1)
        last = min((number for number in ends if number > at), default=len(lines))
        if finding.location.file == blamed["file"] and first < finding.location.line - 1 < last:
            return True
    return False
