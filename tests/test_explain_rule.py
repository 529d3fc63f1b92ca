"""`jobgen explain RULE`: works in any folder, unless a job has that name."""

import json
from pathlib import Path

import pytest
from command import run_jobgen_text

from jobgen.check.rule_docs import all_rule_docs, policy_docs, policy_example
from jobgen.cli.commands.explain import explain_name
from jobgen.repo.layout import own_layers

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: mutable-image-tag}
spec: {framework: pytorch, image: a:1}
"""
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: our-own
  annotations:
    jobgen.dev/description: |
      Every job has a team.

      The bill goes to somebody.
spec: {}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: our-own}
spec: {policyName: our-own, validationActions: [Audit, Warn]}
"""
CASES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: teams}
---
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: a} # expect: our-own
---
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: a, labels: {team: nlp}}
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def explained(root, name, field="", format_="text"):
    return explain_name(root or "/", name, field, (), format_)


def test_rule_is_explained_with_examples():
    done = explained(ROOT, "mutable-image-tag")
    head, bad, good = (part.strip("\n") for part in done.out.replace("Good:", "Bad:").split("Bad:"))

    assert (done.code, done.err) == (0, "")
    assert head.startswith("mutable-image-tag (image, warning)\n\nAn image with a mutable tag")
    assert bad.endswith("    image: registry.example.com/bert:latest")
    assert good.endswith("    image: registry.example.com/bert:1.4.2")


def test_rule_is_explained_as_json():
    rule = json.loads(explained(ROOT, "mutable-image-tag", format_="json").out)["rule"]

    assert list(rule) == ["name", "category", "severity", "summary", "text", "bad", "good", "page"]
    assert rule["page"].endswith("/docs/rules/mutable-image-tag.md")
    assert (rule["name"], rule["category"], rule["severity"]) == ("mutable-image-tag", "image", "warning")
    assert rule["bad"].endswith("  image: registry.example.com/bert:latest\n")


def test_every_rule_can_be_explained_outside_of_a_repository():
    for name, doc in all_rule_docs().items():
        done = explained(None, name)

        assert done.code == 0, name
        assert done.out.startswith(f"{name} ({doc.category}, ")
        assert done.out.endswith("\n"), name
        assert not done.out.endswith("\n\n"), name


def test_job_takes_precedence_over_a_rule_of_the_same_name(tmp_path):
    write(tmp_path / "jobs/a.yaml", JOB)

    assert explained(tmp_path, "mutable-image-tag", "kind").out.startswith('kind = "PyTorchJob"\n')
    assert explained(tmp_path, "image-name-whitespace").out.startswith("image-name-whitespace (pod, error)\n")


def test_rule_is_explained_in_a_broken_repository(tmp_path):
    write(tmp_path / "jobgen.yaml", "rules: {moving-tags: off}\n")
    write(tmp_path / "jobs/a.yaml", "a: b: c\n")

    assert explained(tmp_path, "mutable-image-tag").code == 0


def test_field_of_a_rule_is_a_usage_error():
    done = explained(ROOT, "mutable-image-tag", "image")

    assert (done.code, done.err) == (
        2,
        (
            "jobgen: `mutable-image-tag` is a rule, and a rule has no field `image`; "
            "run `jobgen explain mutable-image-tag`\n"
        ),
    )


@pytest.mark.parametrize(
    ("root", "name", "message"),
    [
        (ROOT, "mutable-image-tags", "there is no job or rule `mutable-image-tags`; did you mean `mutable-image-tag`?"),
        (ROOT, "pytorch-simpel", "there is no job or rule `pytorch-simpel`; did you mean `pytorch-simple`?"),
        (None, "mutable-image-tags", "there is no rule `mutable-image-tags`; did you mean `mutable-image-tag`?"),
        (None, "xyzzy", "there is no rule `xyzzy`, and this is not a jobs repository; `jobgen rules` lists the rules"),
    ],
)
def test_unknown_name_suggests_the_nearest(root, name, message):
    done = explained(root, name)

    assert (done.code, done.err.splitlines()[-1]) == (3, f"jobgen: {message}")


def test_explain_rule_works_in_any_folder(tmp_path):
    def run(*arguments):
        return run_jobgen_text(tmp_path, "explain", *arguments)

    assert run("mutable-image-tag").stdout.startswith("mutable-image-tag (image, warning)\n")
    assert run("mutable-image-tag", "spec").returncode == 2
    assert run("xyzzy").returncode == 3


def test_policy_is_explained_by_its_description(tmp_path):
    write(tmp_path / "jobgen.yaml", "")
    write(tmp_path / "policies/own.yaml", POLICY)
    write(tmp_path / "policies/tests/our-own/jobs.yaml", CASES)
    done = explained(tmp_path, "our-own")

    assert done.out.startswith(
        "our-own (policy, warning)\n\nEvery job has a team.\n\nThe bill goes to somebody.\n\nBad:"
    )
    assert policy_example(own_layers(tmp_path), "our-own") == (
        "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: a}\n",
        "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: a, labels: {team: nlp}}\n",
    )


def test_policy_without_a_description_is_explained_by_its_messages(tmp_path):
    validations = "spec: {validations: [{expression: a, message: a job has a team}, {expression: b == c}]}"
    write(tmp_path / "policies/own.yaml", POLICY.partition("  annotations")[0] + validations)
    doc = policy_docs(own_layers(tmp_path))["our-own"]

    assert (doc.severity, doc.summary, doc.text) == ("info", "A job has a team.", "B == c.")


@pytest.mark.parametrize("broken", ["metadata: a", "metadata: {name: [a]}", "spec: {validations: a}", "spec: [a]"])
def test_rule_is_explained_beside_a_broken_policy(broken, tmp_path):
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    write(tmp_path / "policies/own.yaml", "---\n".join(f"kind: {kind}\n{broken}\n" for kind in kinds))

    assert explained(tmp_path, "mutable-image-tag").code == 0


@pytest.mark.parametrize(
    ("environ", "first"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "同一个映射中某个 key 出现两次；Kubernetes 会默默采用最后一个。"),
        ({"LC_ALL": "zh", "LANG": "en_US.UTF-8"}, "同一个映射中某个 key 出现两次；Kubernetes 会默默采用最后一个。"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "A key that appears twice in a mapping;"),
        ({}, "A key that appears twice in a mapping;"),
    ],
)
def test_the_summary_is_also_in_chinese_where_messages_are(environ, first, monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    _, summary, *_ = filter(None, explained(None, "duplicate-key").out.splitlines())
    assert summary.startswith(first)
    assert (
        "A key that appears twice in a mapping; Kubernetes silently uses the last one."
        in explained(None, "duplicate-key").out
    )


def test_every_built_in_policy_is_explained():
    for name in policy_docs(None):
        assert explained(None, name).out.startswith(f"{name} (policy, ")


def test_own_policy_named_like_one_of_a_pack_has_no_examples_of_the_pack(tmp_path):
    (tmp_path / "policies/tests/max-gpus").mkdir(parents=True)
    (tmp_path / "jobgen.yaml").write_text("")
    assert policy_example(own_layers(tmp_path), "max-gpus") is not None
    (tmp_path / "policies/own.yaml").write_text(POLICY.replace("our-own", "max-gpus"))
    assert policy_example(own_layers(tmp_path), "max-gpus") is None
    explained = run_jobgen_text(tmp_path, "explain", "max-gpus").stdout
    assert "Every job has a team." in explained
    assert "Bad:" not in explained
    case = "kind: Pod\nmetadata: {name: ours} # expect: max-gpus\n"
    (tmp_path / "policies/tests/max-gpus/cases.yaml").write_text(case)
    assert policy_example(own_layers(tmp_path), "max-gpus") == ("kind: Pod\nmetadata: {name: ours}\n", "")
