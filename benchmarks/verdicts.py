"""How often jobgen agrees with a real API server, on a folder of manifests with a table of verdicts.

    python benchmarks/verdicts.py FOLDER/TABLE.tsv

The table has a header; its first column is a path beside it, and a column called `verdict` or `api_server` holds
`accept`, `reject-object` or `reject-pod`; rows with another word are passed over.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

CATEGORIES = {"yaml", "schema", "pod"}


def rows(table: Path) -> list[tuple[str, str]]:
    with table.open(encoding="utf-8", newline="") as stream:
        header, *lines = csv.reader(stream, delimiter="\t")
    column = header.index("verdict" if "verdict" in header else "api_server")
    return [(line[0], line[column]) for line in lines]


def found(folder: Path) -> set[str]:
    """The files of a folder in which jobgen finds an error of those that a server would tell."""
    command = [sys.executable, "-m", "jobgen", "-C", str(folder), "lint", "--format", "json", "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings = json.loads(done.stdout)["findings"]
    wanted = (finding for finding in findings if finding["severity"] == "error" and finding["category"] in CATEGORIES)
    return {finding["file"] for finding in wanted}


def main() -> None:
    table = Path(sys.argv[1])
    refused = found(table.parent)
    tally: Counter[tuple[str, bool]] = Counter()
    for path, verdict in rows(table):
        if verdict in ("accept", "reject-object", "reject-pod"):
            right = (path in refused) != (verdict == "accept")
            tally[verdict, right] += 1
            if not right:
                print(f"{path}: the server said {verdict}")
    for verdict in ("reject-object", "reject-pod", "accept"):
        right, wrong = tally[verdict, True], tally[verdict, False]
        share = right / (right + wrong) if right + wrong else 1
        print(f"{verdict:14} {right:4} of {right + wrong:4} right ({share:.1%})")
    raise SystemExit(any(not right for _, right in tally))


if __name__ == "__main__":
    main()
