"""A fault in one rule hides nothing that the others find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from jobgen.check import rules
from jobgen.cli.run_lint import lint_paths

MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a, namespace: b}
spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: a, imag: b}]}}}}}
"""


# --- Rules over all jobs.


def test_exception_while_facts_are_collected_is_reported_beside_other_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = next(rule for rule in rules.all_rules() if rule.scope == "fleet")

    def fail(*_: object) -> NoReturn:
        raise KeyError("containerPort")

    def all_rules() -> tuple[rules.Rule, ...]:
        return (fleet._replace(collect=fail), *(rule for rule in found if rule.name != fleet.name))

    found = rules.all_rules()
    monkeypatch.setattr(rules, "all_rules", all_rules)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(MANIFEST)
    result = lint_paths(tmp_path, (), (), format_="text")

    assert f"the rule `{fleet.name}` failed on this object with `KeyError`" in result.out
    assert "[unknown-field]" in result.out


# --- Optionals in the variables of policies.

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}}
  variables: {variables}
  validations: [{validation}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"""


def lint_with_policies(root: Path, *policies: str) -> str:
    """The findings of a manifest with an unknown field, under policies."""
    for path, text in {
        "jobs/a.yaml": MANIFEST,
        **{f"policies/{n}.yaml": text for n, text in enumerate(policies)},
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    return lint_paths(root, (), (), format_="text").out


def policy(name: str, expression: str, message_expression: str = "", **variables: str) -> str:
    listed = [{"name": key, "expression": text} for key, text in variables.items()]
    validation = {"expression": expression, "messageExpression": message_expression}
    return POLICY.format(name=name, variables=json.dumps(listed), validation=json.dumps(validation))


ABSENT, PRESENT = "object.?spec.?absent", "object.?metadata.?name"
# Each expression is true, and its negation is not.
OPTIONALS: dict[str, tuple[str, dict[str, str]]] = {
    "hasValue, read once": ("!variables.o.hasValue()", {"o": ABSENT}),
    "hasValue, read twice": ("!variables.o.hasValue() && variables.o == optional.none()", {"o": ABSENT}),
    "orValue": ("variables.o.orValue(1) == 1", {"o": ABSENT}),
    "orValue of a value": ("variables.o.hasValue() && variables.o.orValue('x') == 'a'", {"o": PRESENT}),
    "in a loop": ("['a'].all(x, variables.o.value() == x)", {"o": PRESENT}),
    "fields of an optional": ("variables.o.name.value() == variables.o.?name.orValue('')", {"o": "object.?metadata"}),
    "an optional read": ("variables.?n.orValue(2) == 1", {"n": "1"}),
    "an optional read of an optional": ("variables.?o.hasValue() && !variables.?o.value().hasValue()", {"o": ABSENT}),
    "has": ("has(variables.o) && has(variables.n)", {"o": ABSENT, "n": "1"}),
    "an optional item": ("[?variables.o, ?variables.p] == ['a']", {"o": PRESENT, "p": ABSENT}),
    "optional items, read twice": ("[?variables.o].size() + [?variables.o].size() == 2", {"o": PRESENT}),
    "an optional item in a variable": ("variables.l.size() == 0 && variables.l == []", {"l": f"[?{ABSENT}]"}),
    "an optional entry": ("{?'a': variables.o, ?'b': variables.p} == {'a': 'a'}", {"o": PRESENT, "p": ABSENT}),
    "an optional entry in a variable": ("variables.m == {} && variables.m.size() == 0", {"m": f"{{?'a': {ABSENT}}}"}),
    "optMap": ("variables.o.hasValue() && variables.o.value() == 'ab'", {"o": f"{PRESENT}.optMap(x, x + 'b')"}),
    "optFlatMap": (
        "variables.o.hasValue() && variables.o.value() == 'a'",
        {"o": "object.?metadata.optFlatMap(x, x.?name)"},
    ),
    "optional.of": ("variables.o.hasValue() && variables.o.value() == 1", {"o": "optional.of(1)"}),
    "optional.none": ("!variables.o.hasValue() && variables.o.orValue(2) == 2", {"o": "optional.none()"}),
    "one of two": ("variables.o.hasValue() && variables.o.value() == 'a'", {"o": f"true ? {PRESENT} : {ABSENT}"}),
    "an optional of a variable": (
        "variables.p.hasValue() && variables.p.value() == 'a'",
        {"o": PRESENT, "p": f"{ABSENT}.or(variables.o).or(variables.o) // {ABSENT}"},
    ),
}


@pytest.mark.parametrize("case", OPTIONALS)
def test_optional_in_a_variable_is_evaluated(tmp_path: Path, case: str) -> None:
    expression, variables = OPTIONALS[case]
    out = lint_with_policies(
        tmp_path,
        policy("holds", expression, **variables),
        policy("negated", f"!({expression})", **variables),
        policy("other", "object.metadata.name == 'b'"),
    )

    assert "[holds]" not in out
    assert "[negated]" in out
    assert "could not be evaluated" not in out
    assert "[other]" in out, "the other policies still report"
    assert "[unknown-field]" in out, "the other rules still report"
    assert "invalid-policy" not in out
    assert "internal" not in out


@pytest.mark.parametrize(
    "message", ["'no ' + variables.o.orValue('team')", "'%s %s'.format(['no', [?variables.o, 'team'][0]])"]
)
def test_message_expression_reads_an_optional_variable(tmp_path: Path, message: str) -> None:
    out = lint_with_policies(tmp_path, policy("p", "variables.o.hasValue()", message, o="object.metadata.?labels.team"))

    assert "error: no team [p]" in out


def test_policy_whose_optionals_cannot_be_evaluated_is_reported_as_such(tmp_path: Path) -> None:
    out = lint_with_policies(
        tmp_path,
        policy("nested", "variables.l[0].hasValue() && [?variables.l[0]].size() == 1", l="[optional.of(1)]"),
        policy("other", "object.metadata.name == 'b'"),
    )

    assert out.count("[policy-not-evaluated]") == 1
    assert "invalid-policy" not in out
    assert "internal" not in out
    assert "[other]" in out
    assert "[unknown-field]" in out


def test_optional_value_without_one_is_an_error_of_its_policy(tmp_path: Path) -> None:
    out = lint_with_policies(tmp_path, policy("p", "variables.o.value() == 1 || variables.o.value() == 2", o=ABSENT))

    assert "policy `p` could not be evaluated: optional.none() dereference" in out
