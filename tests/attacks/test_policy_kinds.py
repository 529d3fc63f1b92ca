"""A pull request adds policies that refuse more, and nothing else: however their kinds are written."""

from __future__ import annotations

import json

import pytest

from attacks.test_judge import FILES, JOB, commit, git, lint, rules

API = "apiVersion: admissionregistration.k8s.io/v1"
MATCH = "{resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]}"
DENY = f"""\
{API}
kind: ValidatingAdmissionPolicy
metadata: {{name: no-bad}}
spec:
  matchConstraints: {MATCH}
  validations: [{{expression: "!('bad' in object.metadata.?annotations.orValue({{}}))", message: bad}}]
---
{API}
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: no-bad}}
spec: {{policyName: no-bad, validationActions: [Deny]}}
"""
HARMLESS = DENY.replace("no-bad", "harmless").replace("'bad' in", "'other' in")
MUTATION = "object.metadata.?annotations.hasValue() ? [JSONPatch{op: 'remove', path: '/metadata/annotations/bad'}] : []"
MUTATING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicy",
    "metadata": {"name": "clean"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["pytorchjobs"]}
            ]
        },
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": MUTATION}}],
    },
}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicyBinding",
    "metadata": {"name": "clean"},
    "spec": {"policyName": "clean"},
}
FLOW = f"{json.dumps(MUTATING)}\n---\n{json.dumps(BINDING)}\n"
ESCAPED = FLOW.replace('"kind": "M', '"kind": "\\u004d')
INDENTED = "\n".join(f" {key}: {json.dumps(value)}" for key, value in MUTATING.items())
KEYS = "? kind\n: MutatingAdmissionPolicy\n" + "\n".join(
    f"{key}: {json.dumps(value)}" for key, value in MUTATING.items() if key != "kind"
)
TAGGED = "kind: !!str MutatingAdmissionPolicy\n" + KEYS.partition("\n")[2].partition("\n")[2]
BAD = JOB.replace("labels: {team: nlp}", "labels: {team: nlp}, annotations: {bad: 'yes'}")


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, {**FILES, "policies/p.yaml": DENY})
    return tmp_path


@pytest.mark.parametrize(
    "documents",
    [
        FLOW,
        ESCAPED,
        f"{INDENTED}\n---\n{json.dumps(BINDING)}\n",
        f"{KEYS}\n---\n{json.dumps(BINDING)}\n",
        f"{TAGGED}\n---\n{json.dumps(BINDING)}\n",
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [MUTATING, BINDING]}),
    ],
)
def test_a_mutating_policy_of_a_pull_request_does_not_count(repository, documents):
    commit(repository, {"policies/h.yaml": f"{HARMLESS}---\n{documents}", "jobs/nlp/bert.yaml": BAD})

    found = lint(repository, since="HEAD~1")

    assert "no-bad" in rules(found, "error")
    assert "weaker-governance" in rules(found, "warning")


def test_parameters_of_a_pull_request_do_not_count(repository):
    params = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: allowed-registries, namespace: jobgen-policies}\n"
    allowed = params + "data: {registries: registry.example.com/}\n"
    settings = "policies: [supply-chain]\nrules: {image-digests: off}\n" + FILES["jobgen.yaml"]
    commit(repository, {"jobgen.yaml": settings, "policies/params.yaml": allowed})
    evil = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "allowed-registries", "namespace": "jobgen-policies"},
            "data": {"registries": "evil.io/"},
        }
    )
    image = JOB.replace("registry.example.com/", "evil.io/")
    commit(repository, {"policies/a.yaml": f"{HARMLESS}---\n{evil}\n", "jobs/nlp/bert.yaml": image})

    found = lint(repository, since="HEAD~1")

    assert "allowed-registries" in rules(found, "error")
    assert "weaker-governance" in rules(found, "warning")


def test_a_policy_of_a_pull_request_replaces_none_of_its_name(repository):
    """In a cluster, the last one of a name counts. Here, it is an error, and the first one still refuses."""
    weak = DENY.replace("!('bad' in", "true || !('bad' in")
    commit(repository, {"policies/a.yaml": weak, "jobs/nlp/bert.yaml": BAD})

    assert rules(lint(repository, since="HEAD~1"), "error")


def test_policies_that_refuse_more_count(repository):
    commit(repository, {"policies/p.yaml": None, "jobs/nlp/bert.yaml": BAD})
    commit(repository, {"policies/new.yaml": DENY})

    assert "no-bad" in rules(lint(repository, since="HEAD~1"), "error")


ESCAPES = {
    "policies": ("policies: [supply-chain]\n", "image-digests"),
    "rendered": ("rendered: tree\n", "stale-rendered-tree"),
}


@pytest.mark.parametrize("key", ESCAPES)
def test_an_escaped_key_of_the_settings_turns_nothing_off(repository, key):
    """What is not seen as a change is none after the merge either."""
    line, rule = ESCAPES[key]
    settings = FILES["jobgen.yaml"] + line
    commit(repository, {"jobgen.yaml": settings, "jobs/nlp/bert.yaml": BAD})
    commit(repository, {"jobgen.yaml": settings.replace(key, f'"\\x{ord(key[0]):x}{key[1:]}"')})

    changed, merged = lint(repository, since="HEAD~1"), lint(repository)

    assert "weaker-governance" not in rules(changed, "warning")
    assert rule in rules(merged, "error")
