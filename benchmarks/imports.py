"""How much of a folder of manifests `jobgen import` takes, and how much shorter the specs are.

    python benchmarks/imports.py FOLDER

If the folder has a table INDEX.tsv, its column `api_server` says what an API server said of each file (its first
column); what it accepted is counted by itself. Lines are counted without comments and blank lines.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path
from statistics import median

from jobgen.convert.importing.collect import ImportedManifest, SkippedManifest, collect_manifests
from jobgen.pipeline import config
from jobgen.repo import layout


def verdicts(folder: Path) -> dict[str, str]:
    table = folder / "INDEX.tsv"
    if not table.exists():
        return {}
    with table.open(encoding="utf-8", newline="") as stream:
        return {row["path"]: row["api_server"] for row in csv.DictReader(stream, delimiter="\t")}


def written(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def said(reason: str) -> str:
    """A reason without the values in it, so that alike ones are counted together."""
    return "`…`".join(reason.split("`")[::2])[:90]


def main() -> None:
    folder = Path(sys.argv[1])
    judged = verdicts(folder)
    kinds = config.load(Path.cwd()).kinds
    tally: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    ratios: list[float] = []
    for entry in layout.find_manifests(folder, "."):
        results = list(collect_manifests([entry], kinds))
        for each in results:
            verdict = judged.get(each.location.file, "")
            if isinstance(each, SkippedManifest):
                unknown = "not a kind" in each.reason or "not YAML" in each.reason or "no `kind`" in each.reason
                tally["unknown kind or not YAML" if unknown else "refused"] += 1
                tally["accepted, refused"] += verdict == "accept" and not unknown
                reasons[said(each.reason)] += 1
            else:
                tally["imported" if each.spec.is_spec else "kept as manifests"] += 1
                tally["accepted, imported"] += verdict == "accept"
        if len(results) == 1 and isinstance(results[0], ImportedManifest) and results[0].spec.is_spec:
            ratios.append(written(results[0].spec.text) / written(layout.read_file(entry).content.decode()))
    known = tally["imported"] + tally["kept as manifests"] + tally["refused"]
    taken = known - tally["refused"]
    print(f"of known kinds and readable: {known}, imported {taken} ({taken / known:.1%})", end=", ")
    print(f"{tally['kept as manifests']} of them kept as manifests: no jobs")
    print(f"accepted by an API server:   {tally['accepted, imported'] + tally['accepted, refused']},", end=" ")
    print(f"imported {tally['accepted, imported']}")
    print(f"lines of a spec to those of its manifest: median {median(ratios):.0%} of {len(ratios)}")
    print(f"not imported: {sum(reasons.values())}")
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")


if __name__ == "__main__":
    main()
