"""docs/conformance.md is what the conformance suites give now, and every disagreement has a reason."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from sampling import leave
from sharedfiles import shared_folder
from test_written_defaults import CASES

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import build_conformance  # noqa: E402 -- it is found in the folder above
from conformance import Verdict  # noqa: E402 -- the same

PAGE = (DOCS / "conformance.md").read_text("utf-8")


LONG = ("k8s-crd-cel", "k8s-pod-validation", "kind-cases", "kubescape-vap", "policy-cases")


@pytest.mark.parametrize("suite", leave(build_conformance.list_suites(), LONG.__contains__))
def test_page_states_the_result_of_the_suite(suite):
    verdicts = build_conformance.run_suite(shared_folder("suites").parent, suite)
    scores = [*build_conformance.format_scores(suite, verdicts)]
    reasons = [*build_conformance.format_reasons(suite, verdicts)]

    assert "\n".join(scores) in PAGE, "run `make conformance`"
    assert "\n".join(reasons) in PAGE, "run `make conformance`"


def test_every_disagreement_has_a_reason():
    assert build_conformance.NO_REASON not in PAGE


def test_page_lists_all_suites():
    suites = PAGE.partition("## Repositories and updates")[0]
    rows = [line.split(" | ")[0][2:] for line in suites.splitlines() if line.startswith("| ") and " | " in line[2:]]

    assert [name for name in rows if name not in ("suite", "")] == build_conformance.list_suites()


ROW = re.compile(r"^\| ([\w-]*) ?\| (.*) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
REASON = re.compile(r"^- (.*) \((\d+): (.*)\)$", re.MULTILINE)
REASONS = yaml.safe_load((DOCS / "conformance/reasons.yaml").read_text("utf-8"))
# The tests below need no suites, so that CI runs them everywhere.


def section(suite):
    found = re.search(rf"^### {suite}\n(.*?)(?=^### |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return REASON.findall(found[1]) if found else []


def test_numbers_of_the_page_add_up():
    suites = PAGE.partition("## Repositories and updates")[0]
    rows = [(name, reference, *map(int, numbers)) for name, reference, *numbers in ROW.findall(suites)]
    groups: dict[str, list[tuple[int, ...]]] = {}
    suite = ""
    for name, _, *numbers in rows:
        suite = name or suite
        if not name:
            groups.setdefault(suite, []).append(tuple(numbers))

    assert len(rows) > 100
    assert [row for row in rows if row[2] != row[3] + row[4]] == []
    for name, _, *numbers in rows:
        if name in groups:
            assert tuple(numbers) == tuple(map(sum, zip(*groups[name], strict=True))), name


@pytest.mark.parametrize("suite", build_conformance.list_suites())
def test_every_disagreement_of_a_row_is_explained_below(suite):
    [(reference, disagree)] = [(row[1], int(row[4])) for row in ROW.findall(PAGE) if row[0] == suite]
    module = build_conformance._import_suite(suite)

    assert reference == module.__doc__.partition("\n")[0].removesuffix(".")
    assert sum(int(count) for _, count, _ in section(suite)) == disagree


@pytest.mark.parametrize("suite", build_conformance.list_suites())
def test_reasons_of_the_page_are_those_of_the_file_and_none_is_stale(suite):
    entries = REASONS.get(suite, [])
    written = {" ".join(entry["reason"].split()): entry["cases"] for entry in entries}
    shown = {reason: re.findall(r"`([^`]+)`", cases) for reason, _, cases in section(suite)}

    assert set(shown) == set(written)
    for reason, cases in shown.items():
        unmatched = [case for case in cases if not any(fnmatchcase(case, pattern) for pattern in written[reason])]
        assert unmatched == []


def test_the_page_has_the_stored_counts_of_repositories_and_updates():
    [(updates, agree)] = [(int(row[2]), int(row[3])) for row in ROW.findall(PAGE) if row[:2] == ("", "update")]
    jobsets = [Verdict(str(number), number < agree, group="update") for number in range(updates)]

    assert build_conformance.format_measured(jobsets) in PAGE
    assert len(CASES) == build_conformance.WRITTEN_DEFAULTS


def test_counts_of_a_repository_are_parts_of_each_other():
    stored = json.loads(build_conformance.REPOSITORIES.read_text("utf-8"))

    assert len(stored) == 9
    for counts in stored.values():
        assert counts["exact"] <= counts["kept"] <= counts["right errors"]
        assert counts["left"] <= counts["wrong errors"]
        assert counts["found"] <= counts["missed faults"]


def test_reasons_are_about_suites_that_exist():
    assert set(REASONS) <= set(build_conformance.list_suites())


def test_every_suite_beside_the_checkout_has_a_module():
    folder = shared_folder("suites")
    found = {path.parent.name for path in folder.glob("*/cases.json*")}

    assert found <= set(build_conformance.list_suites())
    assert "policy-cases" in build_conformance.list_suites()


def test_without_suites_the_page_is_left_alone(tmp_path):
    """In a checkout that stands alone."""
    copy = tmp_path / "a/b/checkout/docs"
    shutil.copytree(DOCS, copy, ignore=shutil.ignore_patterns("*.png", "*.svg"))
    done = subprocess.run([sys.executable, copy / "build_conformance.py"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("skipped: there is no ../shared/suites beside the repository")
    assert (copy / "conformance.md").read_text("utf-8") == PAGE
