"""The cases of RFC 6902, each applied to plain and to traced data."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from jobgen.model.data import untraced
from jobgen.spec.json_patch import apply_json_patch
from jobgen.yamlio.read import read

TEXT = (Path(__file__).parent / "jsonpatch.yaml").read_text("utf-8")
CASES = yaml.load(TEXT, yaml.CSafeLoader)
MARKED = read(f"cases:\n{TEXT}".encode(), "jsonpatch.yaml", traced=True).documents[0].data["cases"]

every_case = pytest.mark.parametrize("number", range(len(CASES)), ids=[case["about"] for case in CASES])


@every_case
def test_json_patch_cases_of_the_rfc(number):
    case, problems = deepcopy(CASES[number]), []

    result = apply_json_patch(case["document"], case["patch"], problems)

    assert len(problems) == ("fails" in case)
    for problem in problems:
        # What exists instead follows.
        assert str(problem.sentence) == case["fails"] or str(problem.sentence).startswith(f"{case['fails']}; ")
    assert result == case.get("then", CASES[number]["document"])
    assert case == CASES[number], "neither the object nor the patch is changed"


@every_case
def test_locations_are_kept_and_failures_have_the_failing_path(number):
    case, problems = MARKED[number], []

    result = apply_json_patch(case["document"], case["patch"], problems)

    assert untraced(result) == CASES[number].get("then", CASES[number]["document"])
    assert all(any(problem.node is operation["path"] for operation in case["patch"]) for problem in problems)


def test_patched_value_has_its_location_and_the_value_it_replaced():
    [document] = read(
        b'object: {env: [{name: A, value: "1"}]}\npatch:\n- op: replace\n  path: /env/0/value\n  value: "2"\n',
        "file.yaml",
        traced=True,
    ).documents
    before = document.data["object"]["env"][0]["value"]

    after = apply_json_patch(document.data["object"], document.data["patch"], [])["env"][0]["value"]

    assert (after.value, str(after.location)) == ("2", "file.yaml:5:10")
    assert after.overridden is before
