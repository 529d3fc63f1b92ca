"""`authorizer` in policies: what it answers, and what the API server counts and refuses."""

import json

import pytest

import jobgen
from jobgen.check.policy import ClusterFacts, PolicyEvaluator, compile_policies

GROUP = "admissionregistration.k8s.io/v1"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
PODS = "authorizer.group('').resource('pods')"


def policy(expression, **more):
    """A policy for ConfigMaps, and its binding."""
    spec = {
        "matchConstraints": {"resourceRules": RULES},
        "validations": [{"expression": expression, "message": "#"}],
        **more,
    }
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    return [
        {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec},
        {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"}, "spec": binding},
    ]


def evaluate(documents, *, grants=True):
    policies, problems = compile_policies(documents)
    evaluator = PolicyEvaluator(policies, ClusterFacts(grants_permissions=grants))
    return [str(problem.sentence) for problem in (*problems, *evaluator.find_problems(CONFIG_MAP))]


@pytest.mark.parametrize(
    "expression",
    [
        "authorizer.path('/healthz').check('get').allowed()",
        f"{PODS}.subresource('log').namespace('n').name('x').check('get').allowed()",
        f"{PODS}.fieldSelector('a=b').labelSelector('c=d').check('list').allowed()",
        "authorizer.serviceAccount('ci', 'deployer').group('apps').resource('deployments').check('get').allowed()",
        "authorizer.requestResource.check('use').allowed()",
        f"[1, 2].all(x, {PODS}.check('get').allowed())",
    ],
)
def test_the_environment_states_the_answer(expression):
    assert evaluate(policy(expression)) == []
    assert evaluate(policy(expression), grants=False) == ["#"]


@pytest.mark.parametrize("grants", [True, False])
def test_answers_have_no_reason_and_no_error(grants):
    text = f"[{PODS}.check('get')].all(d, !d.errored() && d.error() == '' && d.reason() == '')"

    assert evaluate(policy(text), grants=grants) == []


def test_variables_hold_questions():
    variables = [{"name": "pods", "expression": PODS}, {"name": "may", "expression": "variables.pods.check('get')"}]
    text = "variables.may.allowed() && variables.may.reason() == '' && variables.pods.name('x') != null"

    assert evaluate(policy(text, variables=variables)) == []
    assert evaluate(policy(text, variables=variables), grants=False) == ["#"]


def test_match_conditions_leave_out_users_with_a_permission():
    conditions = [{"name": "c", "expression": f"!{PODS}.check('bypass').allowed()"}]

    assert evaluate(policy("false", matchConditions=conditions)) == []
    assert evaluate(policy("false", matchConditions=conditions), grants=False) == ["#"]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (f"[1, 2, 3].all(x, {PODS}.check('get').allowed())", "it costs more than the API server allows: 1000000"),
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        ("authorizer.serviceAccount('b', 'A').path('/').check('get').allowed()", "Invalid service account name"),
        ("authorizer.serviceAccount('b.c', 'a').path('/').check('get').allowed()", "Invalid service account namespace"),
    ],
)
def test_evaluations_fail_as_in_the_api_server(expression, reason):
    (message,) = evaluate(policy(expression))

    assert reason in message


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"validations": [{"expression": "authorizer.allowed()"}]}, "found no matching overload for `allowed`"),
        ({"validations": [{"expression": PODS}]}, "must evaluate to bool but got"),
        (
            {"validations": [{"expression": "true", "messageExpression": f"{PODS}.check('get').reason()"}]},
            "undeclared reference to `authorizer`",
        ),
    ],
)
def test_expressions_that_the_api_server_refuses(spec, reason):
    (message,) = evaluate(policy("true", **spec))

    assert reason in message


@pytest.mark.parametrize(("cluster", "rules"), [({}, []), ({"authorizer": "deny"}, ["p"])])
def test_settings_state_the_answer(tmp_path, cluster, rules):
    (tmp_path / "policies").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobgen.yaml").write_text(json.dumps({"cluster": cluster}))
    (tmp_path / "policies/p.yaml").write_text("\n---\n".join(map(json.dumps, policy(f"{PODS}.check('x').allowed()"))))
    (tmp_path / "jobs/a.yaml").write_text(json.dumps(CONFIG_MAP))

    assert [found.rule for found in jobgen.lint(tmp_path).findings] == rules
