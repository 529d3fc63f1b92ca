"""Write docs/incidents.md from jobgen/data/incidents.yaml and the scores in docs/conformance.md.

With --check, only test whether the page is current.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from jobgen.check.rule_docs import Incident, all_docs, all_incidents
from jobgen.model.finding import Severity

PAGE = Path(__file__).parent / "incidents.md"
INTRO = """\
<!-- Written by docs/build_incidents.py: run `make docs`. -->

# Incidents

The worst faults pass every validator: the API server accepts the manifest, and then the job waits forever, loses its
checkpoints, or keeps GPUs that it does not use. The incidents below are public. The manifest shows each of them, and
jobgen reports it before the merge, on the line that is to blame. `jobgen explain RULE` lists the incidents behind a
rule.

`tools/score_incidents.py` scores any tool on incidents that are written as two repositories, a faulty and a repaired
one. Of {all} incidents, jobgen finds {found}, and it reports {wrong} of the repaired repositories;
[conformance.md](conformance.md) has the reasons for the others. Of the first 85, kubeconform with the same schemas
finds 3, and reports one repaired repository.

A defect of a version that a release fixed is in [defects.md](defects.md).
"""
SCORES = re.compile(r"^\| \| (?:faulty|repaired) repository \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
TITLES = {
    "never starts": "The pods are never created or never scheduled",
    "never admitted": "The queue never admits the job",
    "hangs": "The job starts and never makes progress",
    "fails": "The job starts and fails, or does something else than was written",
    "refused": "The cluster refuses the object or its pods",
    "wastes GPUs": "GPUs are held and not used",
    "loses data": "Checkpoints or logs are lost",
    "runs again": "A finished job runs again",
}


def main() -> int:
    """Write the page, or compare it."""
    text = build_page()
    if "--check" in sys.argv:
        current = PAGE.is_file() and PAGE.read_text("utf-8") == text
        sys.stderr.write("" if current else "docs/incidents.md is out of date: run `make docs`\n")
        return 0 if current else 1
    PAGE.write_text(text, "utf-8")
    return 0


def build_page() -> str:
    """Return the page: a section for each consequence, with a row for each incident."""
    docs = all_docs(None)
    rows: dict[str, list[tuple[str, Incident]]] = defaultdict(list)
    for rule, incidents in all_incidents().items():
        for incident in incidents:
            rows[incident.consequence].append((rule, incident))
    (listed, found, _), (_, _, wrong) = SCORES.findall((PAGE.parent / "conformance.md").read_text("utf-8"))
    lines = [INTRO.format(all=listed, found=found, wrong="none" if wrong == "0" else wrong)]
    for consequence, title in TITLES.items():
        lines += [f"## {title}", "", "| incident | versions | finding |", "|---|---|---|"]
        for rule, incident in sorted(rows[consequence], key=lambda row: row[1].source):
            severity = "error" if docs[rule].severity is Severity.ERROR else docs[rule].severity.value
            finding = f"[`{rule}`](rules/{rule}.md) ({severity}): {docs[rule].summary}"
            lines.append(f"| {_link(incident.source)} | {incident.versions} | {finding} |")
        lines.append("")
    return "\n".join(lines)


def _link(source: str) -> str:
    repository, _, number = source.partition("#")
    return f"[{source}](https://github.com/{repository}/issues/{number})"


if __name__ == "__main__":
    sys.exit(main())
