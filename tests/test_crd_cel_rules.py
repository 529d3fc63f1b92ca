"""The CEL rules of a CRD accept and refuse the same objects as in a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jobgen.check.schema.cel_values import escape_name
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.cli.commands.schema import import_crds
from jobgen.yamlio.read import read

CASES = Path(__file__).parent / "crd"
SPECS = read((CASES / "recitals.yaml").read_bytes(), "recitals.yaml").documents[0].data


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(CASES / "recital.yaml", root)
    result = import_crds(root, [root / "recital.yaml"])

    assert result.code == 0
    assert result.err == (
        "schemas/example.com/recital_v1.json written\n"
        "schemas/example.com/recital_v1.json: warning: the rule `math.greatest(1, 2) == 2` is not evaluated: "
        "undeclared reference to `math`\n"
    )
    return compile_structural(json.loads((root / "schemas/example.com/recital_v1.json").read_text()))


def recital(**fields) -> dict:
    metadata = {"name": "r1", "labels": {"a": "b"}}
    return {"apiVersion": "example.com/v1", "kind": "Recital", "metadata": metadata, **fields}


@pytest.mark.parametrize("spec", SPECS["accepted"], ids=json.dumps)
def test_objects_that_the_cel_rules_accept_are_accepted(check, spec):
    assert check(recital(spec=spec)) == []


@pytest.mark.parametrize(("spec", "node", "message"), SPECS["refused"], ids=json.dumps)
def test_objects_that_a_cel_rule_refuses_are_refused_at_its_path(check, spec, node, message):
    found = [(problem.rule, problem.node, problem.message) for problem in check(recital(spec=spec))]

    assert found == [("crd-rule-violated", node, message)]


def test_root_rules_see_only_the_name_of_the_metadata(check):
    made = recital(spec={}) | {"metadata": {"name": "x", "labels": {}}}

    assert [problem.message for problem in check(made)] == ["a recital begins with r"]
    assert check(recital()) == []


def test_rules_run_at_every_level_that_passed_the_schema(check):
    found = check(recital(spec={"booked": 11, "voices": {"alto": -1}}))

    assert [problem.node for problem in found] == ["alto", "booked"]


def test_rules_do_not_run_on_values_that_failed_the_schema(check):
    assert [problem.rule for problem in check(recital(spec={"booked": "many", "hall": "closed"}))] == ["wrong-type"]


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        *(("a", "a"), ("a-b", "a__dash__b"), ("a.b/c", "a__dot__b__slash__c"), ("a__b", "a__underscores__b")),
        *(("in", "__in__"), ("namespace", "__namespace__"), ("int", "int"), ("1a", ""), ("a b", ""), ("$ref", "")),
    ],
)
def test_field_names_are_escaped_as_in_kubernetes(name, spelt):
    assert escape_name(name) == spelt
