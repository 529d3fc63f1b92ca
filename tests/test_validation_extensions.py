"""Policies, bindings, webhooks and CRDs are validated as the API server does when they are created."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from placedproblems import check_located

from jobgen.check.validation import validate_object
from jobgen.k8s.kinds import NEWEST_RELEASE
from jobgen.yamlio.read import read

TABLES = sorted((Path(__file__).parent / "validation/extensions").glob("*.yaml"))


def load_rows():
    for path in TABLES:
        table = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
        for row in table["rows"]:
            yield pytest.param(table["object"], row, id=f"{path.stem}: {row['set']}")


def change(obj: dict, changes: dict) -> dict:
    """Set fields of an object by their paths; null removes one."""
    made = deepcopy(obj)
    for path, value in changes.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        owner = made
        for step in steps:
            owner = owner[step]
        if value == "(remove)":
            del owner[last]
        elif isinstance(owner, list) and last == len(owner):
            owner.append(value)
        else:
            owner[last] = value
    return made


@pytest.mark.parametrize(("obj", "row"), list(load_rows()))
def test_objects_with_changes(obj, row):
    found = [
        f"{problem.rule}: {problem.sentence}" for problem in validate_object(change(obj, row["set"]), NEWEST_RELEASE)
    ]

    if "expect" not in row:
        assert found == []
    else:
        assert len(found) == 1 + row.get("more", 0), found
        assert found[0].startswith(row["expect"])


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_findings_are_at_the_fault(path):
    table = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
    for case in table.get("lines", ()):
        (document,) = read(case["text"].encode(), "a.yaml", traced=True).documents
        problems = check_located(lambda plain: validate_object(plain, NEWEST_RELEASE), document.data)

        assert [problem.location.line for problem in problems] == [case["line"]], case["text"]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_values_of_any_type_are_survived(path):
    obj = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)["object"]

    def visit(node, steps):
        for junk in (None, 1, "x", [], {}, [None], [1], True):
            if steps:
                problems = validate_object(change(obj, {"/".join(steps): junk}), NEWEST_RELEASE)
                assert all(str(problem.sentence) for problem in problems)
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, child in items:
            if key not in ("apiVersion", "kind") and "/" not in str(key):
                visit(child, [*steps, str(key)])

    visit(obj, [])
