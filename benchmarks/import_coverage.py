"""Count how many manifests of a folder `jobgen import` converts, and how much shorter the specs are.

    python benchmarks/import_coverage.py FOLDER

If the folder has a table INDEX.tsv, its column `api_server` is the verdict of an API server on each file (the first
column), and accepted files are also counted separately. Comments and blank lines do not count as lines.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path
from statistics import median

from jobgen.features.convert.importing.collect import ImportedManifest, SkippedManifest, collect_manifests
from jobgen.rendering import config
from jobgen.repo.files import read_file
from jobgen.repo.named_paths import find_manifests


def read_verdicts(folder: Path) -> dict[str, str]:
    table = folder / "INDEX.tsv"
    if not table.exists():
        return {}
    with table.open(encoding="utf-8", newline="") as stream:
        return {row["path"]: row["api_server"] for row in csv.DictReader(stream, delimiter="\t")}


def count_lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def generalize(reason: str) -> str:
    """Return a reason without its values, so that equal reasons are counted together."""
    return "`…`".join(reason.split("`")[::2])[:90]


def main() -> None:
    folder = Path(sys.argv[1])
    verdicts = read_verdicts(folder)
    kinds = config.load_own(Path.cwd()).kinds
    tally: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    ratios: list[float] = []
    for entry in find_manifests(folder, "."):
        results = list(collect_manifests([entry], kinds))
        for each in results:
            verdict = verdicts.get(each.location.file, "")
            if isinstance(each, SkippedManifest):
                unknown = "not a kind" in each.reason or "not YAML" in each.reason or "no `kind`" in each.reason
                tally["unknown kind or not YAML" if unknown else "refused"] += 1
                tally["accepted, refused"] += verdict == "accept" and not unknown
                reasons[generalize(each.reason)] += 1
            else:
                tally["imported" if each.spec.is_spec else "kept as manifests"] += 1
                tally["accepted, imported"] += verdict == "accept"
        if len(results) == 1 and isinstance(results[0], ImportedManifest) and results[0].spec.is_spec:
            ratios.append(count_lines(results[0].spec.text) / count_lines(read_file(entry).content.decode()))
    known = tally["imported"] + tally["kept as manifests"] + tally["refused"]
    taken = known - tally["refused"]
    print(f"readable, of a known kind: {known}; imported: {taken} ({taken / known:.1%}),", end=" ")
    print(f"of which {tally['kept as manifests']} are not jobs and stay manifests")
    print(f"accepted by an API server: {tally['accepted, imported'] + tally['accepted, refused']};", end=" ")
    print(f"imported: {tally['accepted, imported']}")
    print(f"lines of a spec, as a share of its manifest: {median(ratios):.0%} (median of {len(ratios)})")
    print(f"not imported: {sum(reasons.values())}")
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")


if __name__ == "__main__":
    main()
