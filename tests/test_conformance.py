"""docs/conformance.md is what the conformance suites give now, and every disagreement has a reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sharedfiles import shared_folder

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import build_conformance  # noqa: E402 -- it is found in the folder above

PAGE = (DOCS / "conformance.md").read_text("utf-8")


@pytest.mark.parametrize("suite", build_conformance.list_suites())
def test_page_states_the_result_of_the_suite(suite):
    verdicts = build_conformance.run_suite(shared_folder("suites").parent, suite)
    scores = [*build_conformance.format_scores(suite, verdicts)]
    reasons = [*build_conformance.format_reasons(suite, verdicts)]

    assert "\n".join(scores) in PAGE, "run `make conformance`"
    assert "\n".join(reasons) in PAGE, "run `make conformance`"


def test_every_disagreement_has_a_reason():
    assert build_conformance.NO_REASON not in PAGE


def test_page_lists_all_suites():
    rows = [line.split(" | ")[0][2:] for line in PAGE.splitlines() if line.startswith("| ") and " | " in line[2:]]

    assert [name for name in rows if name not in ("suite", "")] == build_conformance.list_suites()
