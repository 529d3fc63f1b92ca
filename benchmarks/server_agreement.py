"""Count how often jobgen agrees with a real API server, on a folder of manifests with a table of verdicts.

    python benchmarks/server_agreement.py FOLDER/TABLE.tsv

The table has a header. Its first column is a path relative to the table; the column `verdict` or `api_server` is
`accept`, `reject-object` or `reject-pod`. Rows with another value are skipped.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

CATEGORIES = {"yaml", "schema", "pod"}


def read_table(table: Path) -> list[tuple[str, str]]:
    with table.open(encoding="utf-8", newline="") as stream:
        header, *lines = csv.reader(stream, delimiter="\t")
    column = header.index("verdict" if "verdict" in header else "api_server")
    return [(line[0], line[column]) for line in lines]


def find_rejected(folder: Path) -> set[str]:
    """Return the files in which jobgen finds an error that an API server would report."""
    command = [sys.executable, "-m", "jobgen", "-C", str(folder), "lint", "--format", "json", "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings = json.loads(done.stdout)["findings"]
    errors = (finding for finding in findings if finding["severity"] == "error" and finding["category"] in CATEGORIES)
    return {finding["file"] for finding in errors}


def main() -> None:
    table = Path(sys.argv[1])
    rejected = find_rejected(table.parent)
    tally: Counter[tuple[str, bool]] = Counter()
    for path, verdict in read_table(table):
        if verdict in ("accept", "reject-object", "reject-pod"):
            right = (path in rejected) != (verdict == "accept")
            tally[verdict, right] += 1
            if not right:
                print(f"{path}: the server's verdict is {verdict}")
    for verdict in ("reject-object", "reject-pod", "accept"):
        right, wrong = tally[verdict, True], tally[verdict, False]
        share = right / (right + wrong) if right + wrong else 1
        print(f"{verdict:14} {right:4} of {right + wrong:4} right ({share:.1%})")
    raise SystemExit(any(not right for _, right in tally))


if __name__ == "__main__":
    main()
