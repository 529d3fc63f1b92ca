"""`jobgen policy check`: the warnings that the API server writes to the status of a policy."""

import pytest

from jobgen.check.policy.type_check import Resource, find_type_problems
from jobgen.cli.commands.policy import check_policies, list_policies, run_cases, write_page
from jobgen.model.finding import Severity

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "roles": {"type": "object", "additionalProperties": {"type": "string"}},
                "port": {"x-kubernetes-int-or-string": True},
            },
        }
    },
}
THING = Resource("example.com", "v1", "things", "Thing")
OTHER = Resource("example.com", "v1", "others", "Other")


def warnings(*validations, variables=(), resources=("things",), schema=SCHEMA, **spec):
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": list(resources)}
    document = {
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": name, "expression": text} for name, text in variables],
            "validations": [{"expression": text} for text in validations],
            **spec,
        }
    }
    known = {"Thing": schema, "Other": {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}}
    problems = list(find_type_problems(document, [THING, OTHER], lambda _, kind: known.get(kind)))

    assert {problem.severity for problem in problems} <= {Severity.WARNING}
    return [str(problem.sentence).partition(", if")[0] for problem in problems]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("object.spec.replica > 1", "undefined field `replica`"),
        ("has(object.spec.nothing)", "undefined field `nothing`"),
        ("object.metadata.labels.team == 'a' && object.kind == 'Thing'", ""),
        ("object.spec.exists(field, field == 'roles')", "expression of type `object.spec` cannot be the range"),
        ("object.spec.roles.all(role, object.spec.roles[role] != '')", ""),
        ("object.spec.port == 1 || object.spec.port == 'http'", ""),
        ("dyn(object).spec.anything == 1", ""),
        ("oldObject == null || oldObject.spec.replicas == object.spec.replicas", ""),
        ("request.namespace == 'a' && namespaceObject.metadata.name == 'a'", ""),
    ],
)
def test_expressions_are_checked_with_the_types_of_the_kind(text, message):
    found = warnings(text)

    assert len(found) == bool(message)
    assert not message or found[0].startswith(message)


def test_types_of_variables_are_known():
    assert warnings("variables.n == 'a'", variables=[("n", "object.spec.replicas")])
    assert warnings("variables.n == 1", variables=[("n", "object.spec.replicas")]) == []


def test_an_error_in_a_variable_is_reported_once():
    assert warnings("variables.n == 1", variables=[("n", "object.spec.typo")]) == ["undefined field `typo`"]


def test_params_have_the_type_of_their_kind():
    kind = {"apiVersion": "example.com/v1", "kind": "Thing"}

    assert warnings("params.spec.replicas == 1", paramKind=kind) == []
    assert warnings("params.spec.max == 1", paramKind=kind) == ["undefined field `max`"]


def test_rules_with_wildcards_and_unknown_kinds_are_not_checked():
    assert warnings("object.spec.typo == 1", resources=["*"]) == []
    assert warnings("object.spec.typo == 1", schema=None) == []


def test_one_message_names_all_kinds():
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things", "others"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "object.spec.typo == 1"}]}

    found = [str(one.sentence) for one in find_type_problems({"spec": spec}, [THING, OTHER], lambda *_: SCHEMA)]

    assert found == ["undefined field `typo`, if the object is a Other of example.com/v1, Thing of example.com/v1"]


def test_shipped_policies_have_no_warnings(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}\n")

    result = check_policies(tmp_path)

    assert (result.code, result.out, result.err) == (0, "", "5 policies checked: all ok\n")


def test_warnings_have_locations(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/a.yaml").write_text("""\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}]
  validations:
  - expression: object.spec.runPolicy.suspended == true
""")

    result = check_policies(tmp_path)

    assert result.code == 0
    assert "policies/a.yaml:8:17: warning: undefined field `suspended`" in result.out


def test_settings_that_cannot_be_read_are_an_error(tmp_path):
    """Packs that nobody can read are not the same as none."""
    (tmp_path / "jobgen.yaml").write_text("policies: [strict,\n")

    checked, tested = check_policies(tmp_path), run_cases(tmp_path, tmp_path, None)

    assert checked.code == 1
    assert checked.out.startswith("jobgen.yaml:1:1: error: ")
    assert checked.err.endswith(" policies checked: 1 finding\n")
    assert tested.code == 4
    assert tested.err.startswith(f"{checked.out}jobgen: policies or settings have errors; nothing was tested")
    assert [(result.code, result.err) for result in (list_policies(tmp_path), write_page(tmp_path))] == [
        (4, checked.out)
    ] * 2
