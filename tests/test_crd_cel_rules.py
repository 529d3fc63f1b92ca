"""The CEL rules of a CRD accept and refuse the same objects as in a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jobgen.check.schema.build import convert_crd
from jobgen.check.schema.cel_rules import find_rule_errors
from jobgen.check.schema.cel_types import escape_name
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.cli.commands.schema import import_crds
from jobgen.model.place import At
from jobgen.yamlio.read import read

CASES = Path(__file__).parent / "crd"
SPECS = read((CASES / "recitals.yaml").read_bytes(), "recitals.yaml").documents[0].data


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(CASES / "recital.yaml", root)
    result = import_crds(root, [root / "recital.yaml"])

    assert result.code == 0
    warning = "schemas/example.com/recital_v1.json: warning: the API server refuses"
    no_overload = "found no matching overload for `_==_` applied to `(string, null_type)`"
    assert sorted(result.err.splitlines()) == [
        "schemas/example.com/recital_v1.json written",
        f"{warning} `messageExpression` of the rule `self.title != 'Bolero'`: undefined field `nope`",
        f"{warning} the rule `!has(self.metadata.labels)`: undefined field `labels`",
        f"{warning} the rule `!has(self.note) || self.note == null || self.note.size() < 5`: {no_overload}",
        f"{warning} the rule `math.greatest(1, 2) == 2`: undeclared reference to `math`",
    ]
    return compile_structural(json.loads((root / "schemas/example.com/recital_v1.json").read_text()))


def recital(**fields) -> dict:
    metadata = {"name": "r1", "labels": {"a": "b"}}
    return {"apiVersion": "example.com/v1", "kind": "Recital", "metadata": metadata, **fields}


@pytest.mark.parametrize("spec", SPECS["accepted"], ids=json.dumps)
def test_objects_that_the_cel_rules_accept_are_accepted(check, spec):
    assert check(recital(spec=spec)) == []


@pytest.mark.parametrize(("spec", "node", "message"), SPECS["refused"], ids=json.dumps)
def test_objects_that_a_cel_rule_refuses_are_refused_at_its_path(check, spec, node, message):
    found = [(problem.rule, name(problem.node), str(problem.sentence)) for problem in check(recital(spec=spec))]

    assert found == [("crd-rule-violated", node, message)]


def name(place):
    """The key or index of an entry; a mapping itself."""
    return place.key if type(place) is At else place


def test_root_rules_see_only_the_name_of_the_metadata(check):
    made = recital(spec={}) | {"metadata": {"name": "x", "labels": {}}}

    assert [str(problem.sentence) for problem in check(made)] == ["a recital begins with r"]
    assert check(recital()) == []


def test_rules_run_at_every_level_that_passed_the_schema(check):
    found = check(recital(spec={"booked": 11, "voices": {"alto": -1}}))

    assert [problem.node.key for problem in found] == ["alto", "booked"]


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


TYPED = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "start": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "limit": {"type": "string", "format": "duration"},
        "limits": {"type": "array", "items": {"type": "string", "format": "duration"}},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "share": {"x-kubernetes-int-or-string": True},
        "empty": {"type": "string", "nullable": True},
        "other": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "inner": {"type": "object", "properties": {"if": {"type": "boolean"}, "a-b": {"type": "number"}}},
        "unnamed": {"type": "array", "items": {"type": "object", "properties": {"k!": {"type": "string"}}}},
    },
}
VALUE = {
    "text": "a",
    "count": 2,
    "start": "2026-01-31T12:00:00+01:00",
    "day": "2026-01-31",
    "limit": "1h30m",
    "limits": ["1m", "30s"],
    "tags": ["a", "b"],
    "ports": [{"name": "x", "port": 1}, {"name": "y", "port": 2}],
    "labels": {"k": "v"},
    "share": "50%",
    "empty": None,
    "inner": {"if": True, "a-b": 1},
    "unnamed": [{"k!": "a"}, {"k!": "b"}, {"k!": "a"}],
}


def with_rule(rule: dict) -> dict:
    spec = {**TYPED, "x-kubernetes-validations": [rule]}
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}
    crd = {"spec": {"group": "example.com", "names": {"kind": "Recital"}, "versions": [version]}}
    (schema,) = dict(convert_crd(crd)).values()
    return schema


@pytest.mark.parametrize(
    "rule",
    [
        "self.start == timestamp('2026-01-31T11:00:00Z')",
        "self.start.getFullYear() == 2026 && self.day < self.start",
        "self.limit == duration('90m') && self.limit.getMilliseconds() == 5400000",
        "self.limits.all(l, l < self.limit) && self.limits.max() == duration('1m')",
        "self.limits.sum() == duration('90s') && self.limits.indexOf(duration('30s')) == 1",
        "self.?start.orValue(timestamp('2000-01-01T00:00:00Z')) > timestamp('2025-01-01T00:00:00Z')",
        "self.tags == ['b', 'a'] && self.tags + ['b', 'c'] == ['c', 'b', 'a']",
        "self.ports == [self.ports[1], self.ports[0]] && self.ports + [self.ports[0]] == self.ports",
        "self.ports.filter(p, p.name == 'x') != self.ports",
        "has(self.labels.k) && self.labels.k == 'v' && self.labels['k'] == 'v' && !has(self.labels.z)",
        "!has(self.empty) && has(self.inner.if) && self.inner.if && self.inner.a__dash__b == 1.0",
        "type(self.share) == string && self.share.endsWith('%')",
        "self.?inner.?if.orValue(false) && !self.?labels.z.hasValue()",
        "type(self.start) == google.protobuf.Timestamp",
        "self.unnamed[0] != self.unnamed[1] && self.unnamed[0] == self.unnamed[2]",
        "self.text == 'a' // self.nothing",
    ],
)
def test_rules_read_typed_values(rule):
    schema = with_rule({"rule": rule})

    assert list(find_rule_errors(schema)) == []
    assert compile_structural(schema)(recital(spec=VALUE)) == []


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("self.text == 1", "found no matching overload for `_==_` applied to `(string, int)`"),
        ("self.count.size() == 1", "found no matching overload for `size`"),
        ("self.nothing == 1", "undefined field `nothing`"),
        ("has(self.nothing)", "undefined field `nothing`"),
        ("self.other == 1", "found no matching overload for `_==_` applied to `(object.other, int)`"),
        ("has(self.other.a)", "undefined field `a`"),
        ("self.start == '2026-01-31T11:00:00Z'", "found no matching overload"),
        ("self.limits.exists(l, l == 1)", "found no matching overload"),
        ("self.text != null", "found no matching overload"),
        ("self.count", "must evaluate to bool but got int"),
        ("has(self)", "invalid argument to has() macro"),
        ("self.ports[0].nme == 'a'", "undefined field `nme`"),
        ("self.labels.k == 1", "found no matching overload"),
    ],
)
def test_rules_that_do_not_fit_their_schema_are_errors(rule, message):
    ((_, field, reason),) = find_rule_errors(with_rule({"rule": rule}))

    assert field == "rule"
    assert message in reason


@pytest.mark.parametrize(
    ("expression", "message"), [("'a' + self.count", "found no matching overload"), ("true", "must evaluate to string")]
)
def test_message_expressions_are_checked(expression, message):
    ((_, field, reason),) = find_rule_errors(with_rule({"rule": "true", "messageExpression": expression}))

    assert field == "messageExpression"
    assert message in reason


@pytest.mark.parametrize(
    ("embedded", "messages"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a:b", "namespace": "ml", "labels": {"a": "b"}}}, []),
        ({"apiVersion": "v1", "kind": "Pod"}, []),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"nam": "x"}}, ["`nam` is not a field of `metadata`"]),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "a_b"}}, ["`a_b` is not a valid namespace"]),
        ({"apiVersion": "a/b/c", "kind": "Po d"}, ["`a/b/c` is not an API version", "`Po d` is not a kind"]),
        ({"kind": "Pod"}, ["`embedded` needs `apiVersion`"]),
    ],
)
def test_embedded_objects_are_objects(embedded, messages):
    field = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"embedded": field}}}}
    crd = {"spec": {"group": "example.com", "names": {"kind": "Recital"}, "versions": [version]}}
    (schema,) = dict(convert_crd(crd)).values()
    found = [str(problem.sentence) for problem in compile_structural(schema)(recital(embedded=embedded))]

    assert len(found) == len(messages)
    assert [part for part, message in zip(messages, found, strict=True) if part not in message] == []


@pytest.mark.parametrize(
    ("rule", "limit", "is_refused"),
    [
        ("self.a.all(x, x > 1)", {}, False),
        ("self.a.filter(x, x > 1).size() < 4", {}, True),
        ("self.a.all(x, x in [1, 2])", {}, True),
        ("self.a.all(x, self.a.exists(y, x == y))", {}, True),
        ("self.a.all(x, self.a.exists(y, x == y))", {"maxItems": 2000}, True),
        ("self.a.all(x, self.a.exists(y, x == y))", {"maxItems": 1200}, False),
        ("self.a.max() == 1 && self.a.isSorted()", {}, False),
        ("self.m.all(k, self.m.all(j, self.m.all(l, k == j)))", {}, True),
    ],
)
def test_rules_that_a_server_refuses_because_of_their_cost(rule, limit, is_refused):
    numbers = {"type": "array", "items": {"type": "integer"}, **limit}
    fields = {"a": numbers, "m": {"type": "object", "additionalProperties": numbers}}
    schema = {"type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": rule}]}

    assert ["can cost more" in reason for _, _, reason in find_rule_errors(schema)] == [True] * is_refused
