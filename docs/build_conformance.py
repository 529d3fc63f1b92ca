"""Write docs/conformance.md: the agreement with public conformance suites, and the reasons of each difference.

With --check, only test whether the page is current. With names of suites, run these and print every disagreement.
With --repositories FILE, store the counts that `score.py`, beside the labels of repositories, wrote with --json.
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from conformance import Verdict  # noqa: E402 -- these folders are not on the path before

PAGE = HERE / "conformance.md"
REPOSITORIES = HERE / "conformance/repositories.json"
NO_REASON = "No reason is known yet."
MAX_LISTED = 12
TABLE_HEAD = ("| suite | reference | cases | agree | disagree |", "|---|---|---|---|---|")
INTRO = """\
<!-- Written by docs/build_conformance.py: run `make conformance`. -->

# Conformance

jobgen is compared with public test suites, with the tests of operators and with a real API server. A case agrees if
jobgen and the reference give the same verdict or the same value. Each disagreement has a reason below. The suites are
not part of this repository; `docs/conformance/` contains one module for each of them.
"""
MEASURED = """\
## Repositories and updates

Two things have no suite, because the repositories are not ours and an update needs a server with the old object.

Nine public repositories of GPU workloads have a verdict for each error that an earlier release reported, and a list of
the faults that it missed. An error with a right verdict is **kept** if it is reported today, and **exact** if the
verdict is also right about every word of its message. A **wrong** one is about an object that is fine.
"""
GONE = """
Of the right errors that are not kept, 48 are about placeholders in files of which another placeholder is reported, 14
are about charts whose values come from outside of the repository, 3 are about a patch that no build lists, and 3 are
milder findings today. Not found are two claims that no file of their repository has: a person may create them.
"""
UPDATES = """
| update | reference | cases | agree | disagree |
|---|---|---|---|---|
{rows}

Before that, 204 edits and 121 written-out defaults were created and then updated on an API server 1.36: `jobgen diff`
agreed in 197 edits, and called 46 of the defaults rejected before it compared objects with their defaults.
"""
WRITTEN_DEFAULTS = 197
"""The cases of `tests/test_written_defaults.py`, each of which writes a default out and deletes it."""
COUNTS = {
    "right errors": "right_error",
    "kept": "right_error_kept",
    "exact": "right_error_kept_right",
    "wrong errors": "wrong_error",
    "left": "wrong_error_still",
    "missed faults": "missed",
    "found": "missed_now_found",
}
"""The columns of the table of repositories, and their names in what `score.py` writes."""


def main() -> int:
    """Write the page, compare it, or list what disagrees in some suites."""
    folder = find_shared()
    if folder is None:
        sys.stderr.write("skipped: there is no ../shared/suites beside the repository; the page is unchanged\n")
        return 0
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    if "--repositories" in sys.argv:
        return store_repositories(Path(names[0]))
    if names:
        return list_disagreements(folder, names)
    text = build_page(folder)
    if "--check" in sys.argv:
        current = PAGE.is_file() and PAGE.read_text("utf-8") == text
        sys.stderr.write("" if current else "docs/conformance.md is out of date: run `make conformance`\n")
        return 0 if current else 1
    PAGE.write_text(text, "utf-8")
    return 0


def find_shared() -> Path | None:
    """Return the folder of the suites: beside the repository, or one level up, as for a worktree."""
    root = HERE.parent
    return next((above / "shared" for above in root.parents[:2] if (above / "shared/suites").is_dir()), None)


def build_page(folder: Path) -> str:
    """Return the text of the page, after running all suites."""
    results = {name: run_suite(folder, name) for name in list_suites()}
    scores = [line for name, verdicts in results.items() for line in format_scores(name, verdicts)]
    reasons = [line for name, verdicts in results.items() for line in format_reasons(name, verdicts)]
    measured = format_measured(results["operator-jobset"])
    return "\n".join([INTRO, *TABLE_HEAD, *scores, "", measured, "## Reasons", *reasons]) + "\n"


def store_repositories(path: Path) -> int:
    """Store how many labels of each repository agree; what the labels are about is not ours."""
    scores = json.loads(path.read_text("utf-8"))["repos"]
    counts = {name: {column: score.get(key, 0) for column, key in COUNTS.items()} for name, score in scores.items()}
    REPOSITORIES.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n", "utf-8")
    return 0


def format_measured(jobsets: Sequence[Verdict]) -> str:
    """Return the section about repositories and updates."""
    updates = [verdict for verdict in jobsets if verdict.group == "update"]
    rejected = sum(not verdict.agrees for verdict in updates)
    defaults = 2 * WRITTEN_DEFAULTS
    rows = (
        ("a changed JobSet", "JobSet's webhook, on the updates of its own tests", len(updates), rejected),
        ("a default written out or deleted", "The API server's own, in `tests/test_written_defaults.py`", defaults, 0),
    )
    lines = [f"| {what} | {by} | {count} | {count - wrong} | {wrong} |" for what, by, count, wrong in rows]
    table = "\n".join(format_repositories())
    return f"{MEASURED}\n{table}\n{GONE}".rstrip("\n") + "\n" + UPDATES.format(rows="\n".join(lines))


def format_repositories() -> Iterator[str]:
    """Yield the table of repositories, with the sum of all."""
    stored: Mapping[str, Mapping[str, int]] = json.loads(REPOSITORIES.read_text("utf-8"))
    yield f"| repository | {' | '.join(COUNTS)} |"
    yield "|---" * (len(COUNTS) + 1) + "|"
    total = {column: sum(counts[column] for counts in stored.values()) for column in COUNTS}
    for name, counts in (*sorted(stored.items()), ("all", total)):
        yield f"| {name} | {' | '.join(str(counts[column]) for column in COUNTS)} |"


def list_suites() -> list[str]:
    """Return the names of all suites: each has a module in docs/conformance/."""
    return sorted(
        path.stem.replace("_", "-") for path in (HERE / "conformance").glob("*.py") if not path.stem.startswith("_")
    )


def run_suite(folder: Path, name: str) -> list[Verdict]:
    """Run the cases of a suite."""
    module = _import_suite(name)
    return list(module.run(_read_cases(folder, name)))


def explain_disagreement(suite: str, case: str) -> str:
    """Return the reason for a disagreement; empty if there is none."""
    for entry in _read_reasons().get(suite, ()):
        if any(fnmatchcase(case, pattern) for pattern in entry["cases"]):
            return " ".join(entry["reason"].split())
    return ""


def list_disagreements(folder: Path, names: Sequence[str]) -> int:
    """Print the disagreements of some suites."""
    for name in names:
        verdicts = run_suite(folder, name)
        wrong = [verdict for verdict in verdicts if not verdict.agrees]
        for verdict in wrong:
            reason = explain_disagreement(name, verdict.case) or NO_REASON
            print(f"  {verdict.case} [{reason}] {' '.join(verdict.details.split())}")
        print(f"{name}: {len(verdicts) - len(wrong)}/{len(verdicts)}")
    return 0


def _import_suite(name: str) -> ModuleType:
    return import_module(f"conformance.{name.replace('-', '_')}")


def _read_cases(folder: Path, name: str) -> Any:
    """Return the content of a suite: one JSON document, or one for each line, table or folder."""
    path = folder / "suites" / name / "cases.json"
    if path.is_file():
        return json.loads(path.read_text("utf-8"))
    cases = sorted((folder / name).glob("cases/*/case.json"))
    if cases:
        listed = [json.loads(case.read_text("utf-8")) for case in cases]
        return {"cases": listed, "folder": folder / name / "cases"}
    tables = sorted((folder / name).glob("*.json"))
    if tables:
        return {table.stem: json.loads(table.read_text("utf-8")) for table in tables}
    with (folder / name / "cases.jsonl").open(encoding="utf-8") as lines:
        return {"cases": [json.loads(line) for line in lines]}


@cache
def _read_reasons() -> Mapping[str, Any]:
    reasons: Mapping[str, Any] = yaml.safe_load((HERE / "conformance/reasons.yaml").read_text("utf-8"))
    return reasons


def format_scores(name: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the rows of a suite: all cases, and its groups."""
    agree = sum(verdict.agrees for verdict in verdicts)
    reference = (_import_suite(name).__doc__ or "").strip().partition("\n")[0].removesuffix(".")
    yield f"| {name} | {reference} | {len(verdicts)} | {agree} | {len(verdicts) - agree} |"
    groups = Counter(verdict.group for verdict in verdicts)
    right = Counter(verdict.group for verdict in verdicts if verdict.agrees)
    for group, count in sorted(groups.items()) if len(groups) > 1 else ():
        yield f"| | {group} | {count} | {right[group]} | {count - right[group]} |"


def format_reasons(name: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the section of a suite with the reasons for its disagreements; nothing if there are none."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for verdict in verdicts:
        if not verdict.agrees:
            by_reason[explain_disagreement(name, verdict.case) or NO_REASON].append(verdict.case)
    if by_reason:
        yield from ("", f"### {name}", "")
    for reason, cases in sorted(by_reason.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        shown = ", ".join(f"`{case}`" for case in cases[:MAX_LISTED])
        more = f" and {len(cases) - MAX_LISTED} more" if len(cases) > MAX_LISTED else ""
        yield f"- {reason} ({len(cases)}: {shown}{more})"


if __name__ == "__main__":
    sys.exit(main())
