"""Completion in the expressions of policies."""

from pathlib import Path

import pytest
from completioncases import ask, load_known

from jobgen.check.cel.admission_scope import AdmissionScope
from jobgen.check.cel.signatures import declare_functions
from jobgen.features.editor.completion.cel import list_functions

ROOT = Path(__file__).parent.parent
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}
  variables:
    - name: roles
      expression: object.spec.pytorchReplicaSpecs
  validations:
"""


@pytest.fixture(scope="module")
def known():
    return load_known(ROOT)


def test_every_function_of_the_engine_is_offered_with_an_example_that_compiles():
    scope = AdmissionScope(has_params=True, has_variables=True)
    functions = list_functions()

    assert {each.name: error for each in functions if (error := scope.find_error(each.example, "bool"))} == {}
    declared = {name for name in declare_functions() if name.replace(".", "").isalnum()}
    assert declared <= {each.name for each in functions}
    assert all(each.summary.endswith(".") for each in functions)


CASES = [
    ("█", {"object", "request", "variables", "params", "has", "quantity"}, {"all", "labels"}),
    ("obj█", {"object", "oldObject"}, {"spec"}),
    ("object.█", {"spec", "metadata", "kind"}, {"has", "all"}),
    ("object.spec.█", {"pytorchReplicaSpecs", "runPolicy"}, {"metadata", "all"}),
    ("object.spec.pytorchReplicaSpecs.Worker.template.spec.containers.█", {"all", "exists", "size"}, {"startsWith"}),
    ("object.spec.pytorchReplicaSpecs['Worker'].template.spec.containers[0].█", {"image", "resources"}, {"all"}),
    ("object.spec.pytorchReplicaSpecs.Worker.template.spec.containers.all(c, c.█)", {"image", "name"}, {"spec"}),
    ("object.spec.pytorchReplicaSpecs.Worker.template.spec.containers.all(c, █)", {"c", "object"}, {"image"}),
    ("object.spec.pytorchReplicaSpecs.all(r, object.spec.pytorchReplicaSpecs[r].█)", {"template", "replicas"}, {"all"}),
    ("object.metadata.name.█", {"startsWith", "matches", "size"}, {"all", "major"}),
    ("object.metadata.labels.█", {"all", "exists"}, {"startsWith"}),
    ("request.█", {"operation", "userInfo", "namespace"}, {"username"}),
    ("request.userInfo.█", {"username", "groups"}, {"operation"}),
    ("namespaceObject.metadata.█", {"labels", "name"}, {"spec"}),
    ("params.█", {"data", "metadata"}, {"spec"}),
    ("variables.█", {"roles"}, {"object", "all"}),
    ("authorizer.█", {"group", "path"}, {"all"}),
    ("format.█", {"dns1123Label", "named"}, {"all"}),
    ("has(object.spec) && object.spec.█", {"runPolicy"}, set()),
]


@pytest.mark.parametrize(("expression", "offered", "others"), CASES)
@pytest.mark.parametrize(
    "style", ["    - expression: {}\n", "    - expression: >-\n        {}\n", "    - {{expression: '{}'}}\n"]
)
def test_offered_in_expressions(known, style, expression, offered, others):
    if style.endswith("'}}\n"):
        expression = expression.replace("'", "''")

    labels = set(ask(known, POLICY + style.format(expression), "policies/limit.yaml").labels)

    assert offered <= labels
    assert not others & labels


@pytest.mark.parametrize("expression", ['"object.█"', "object.metadata.name == 'obj█'", "1.█"])
def test_nothing_in_strings_and_numbers(known, expression):
    text = POLICY + f"    - expression: >-\n        {expression}\n"

    assert ask(known, text, "policies/limit.yaml").labels == []


def test_accepted_field_and_function(known):
    text = POLICY + "    - expression: object.met█\n"
    assert ask(known, text, "policies/limit.yaml").accept("metadata").endswith("- expression: object.metadata\n")
    text = POLICY + "    - expression: object.metadata.name.sta█\n"
    assert ask(known, text, "policies/limit.yaml").accept("startsWith").endswith("object.metadata.name.startsWith()\n")


def test_policies_have_fields_outside_of_expressions(known):
    labels = ask(known, POLICY + "    - expression: 'true'\n      █\n", "policies/limit.yaml").labels

    assert {"message", "messageExpression", "reason"} <= set(labels)
    assert ask(known, POLICY + "  failurePolicy: █\n", "policies/limit.yaml").labels == ["Fail", "Ignore"]


def test_policy_for_several_kinds_offers_the_fields_of_all(known):
    several = POLICY.replace("[pytorchjobs]", "[pytorchjobs, tfjobs, unknowns]")

    assert {"spec", "metadata"} <= set(ask(known, several + "    - expression: object.█\n", "policies/a.yaml").labels)
    labels = ask(known, several + "    - expression: object.spec.█\n", "policies/a.yaml").labels
    assert {"pytorchReplicaSpecs", "tfReplicaSpecs", "runPolicy"} <= set(labels)
    assert len(labels) == len(set(labels))
