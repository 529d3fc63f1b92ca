"""What pages claim about numbers, addresses, connections and positions is what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from command import run_jobgen_text
from walkthrough import MARK

from jobgen.check.rule_docs import all_docs
from jobgen.model.features import list_command_modules

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MOST_ITEMS, MOST_ITEM_WORDS = 12, 60
"""Of a section of the change log, and of one of its items."""
MISMATCH = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources:
    limits: {gpu: 2}
    requests: {gpu: 1}
  roles: {master: {}}
"""
SLIP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: slip, namespace: ml}
spec:
  command: [python, train.py]
  framework pytorch
  image: registry.example.com/a
  resources: {cpu: 4, memory: 16Gi}
  roles: {master: {}}
"""


@pytest.mark.parametrize(("name", "job"), [("bert", MISMATCH), ("slip", SLIP)])
def test_findings_of_the_page_about_lint_are_printed(name, job, tmp_path):
    (tmp_path / "jobgen.yaml").touch()
    for path, text in {
        f"jobs/{name}.yaml": job,
        "overlays/prod/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec: {}\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    page = (ROOT / "docs/lint.md").read_text("utf-8")
    (shown,) = re.findall(
        rf"^```text\n(?:\$ jobgen lint\n)?(jobs/{name}\.yaml:.*?)^```$", page, re.MULTILINE | re.DOTALL
    )

    assert shown in run_jobgen_text(tmp_path, "lint").stdout


def test_no_page_shows_a_number_of_rules_that_no_test_compares():
    found = [
        (page.name, shown)
        for page in PAGES
        if MARK not in page.read_text("utf-8") and "zh" not in page.parts
        for shown in re.findall(r"checked by \d+ rules", page.read_text("utf-8"))
    ]

    assert found == []


def test_pages_name_the_repository_of_the_project():
    named = {
        (page.name, address)
        for page in PAGES
        for address in re.findall(r"https://[\w.-]+/[\w.-]+/jobgen\b(?!\.)", page.read_text("utf-8"))
    }

    assert named
    assert [found for found in named if found[1] != PROJECT["urls"]["Source"]] == []


def test_pages_name_the_commands_that_read_a_cluster():
    """Only they start a program with the credentials of the user."""
    reading = sorted(
        name for name in list_command_modules() if "--context" in run_jobgen_text(ROOT, name, "--help").stdout
    )

    assert reading == ["capture", "drift"]
    for page in ("compare.md", "checked.md", "faq.md"):
        text = (ROOT / "docs" / page).read_text("utf-8")
        assert [name for name in reading if f"`jobgen {name}`" not in text and f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    "claim", ["no clock", "never connects", "ten lines", "eight platforms", "commands need an extra"]
)
def test_wrong_claims_do_not_come_back(claim):
    assert [page.name for page in PAGES if claim in page.read_text("utf-8")] == []


def test_the_page_about_lint_names_every_category():
    table = (
        (ROOT / "docs/lint.md").read_text("utf-8").partition("| category | an error means |")[2].partition("\n\n")[0]
    )
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if row else "")}

    # Known defects have the severity of their entry.
    assert named == {doc.category for doc in all_docs(None).values()} - {"defect"}


def test_the_change_log_begins_with_a_summary_that_leads_to_its_headings():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = text.split("\n## ")[1]
    headings = re.findall(r"^### (.+)$", newest, re.MULTILINE)
    summary = newest.partition("### In short\n")[2].partition("\n### ")[0]
    linked = re.findall(r"\[([^\]]+)\]\(#", summary)

    assert headings[:2] == ["In short", "What to do when you update"]
    assert len(set(headings)) == len(headings)
    assert len(summary.split()) < 300
    assert set(linked) <= set(headings)
    assert len(linked) >= 5
    assert text.count("(unreleased)") == 0


def test_changes_are_scanned_by_headings():
    """Nobody reads 13,000 words: a change is a line or two, and what nobody acts on is left out."""
    newest = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1]
    sections = dict(re.findall(r"^### (.+)\n\n((?:(?!^### ).*\n?)*)", newest, re.MULTILINE))
    items = {title: re.split(r"^- ", text, flags=re.MULTILINE)[1:] for title, text in sections.items()}

    assert {title: len(found) for title, found in items.items() if len(found) > MOST_ITEMS} == {}
    assert [item for found in items.values() for item in found if len(item.split()) > MOST_ITEM_WORDS] == []
