"""`jobgen test`: expectations that are met and not met, snapshots, formats, and mistakes in tests."""

from __future__ import annotations

import json
from textwrap import dedent
from xml.etree import ElementTree as ET

import pytest
from command import run_jobgen_text
from growth import grows_with_the_square

import jobgen
from jobgen.features.testing.job_tests import run_tests
from jobgen.yamlio.read import read

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, labels: {tier: free}}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {cpu: 1, memory: 2Gi}
  roles: {master: {}, worker: {replicas: 3}}
"""
SWEEP = JOB.replace("replicas: 3", "replicas: '${{ matrix.workers }}'") + "  matrix: {workers: [3, 4]}\n"
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
  patches:
    - match: {names: [bert]}
      merge: {roles: {worker: {replicas: 4}}}
"""
LABELED = OVERLAY.replace("  patches:", "  defaults: {labels: {tier: free}}\n  patches:")
WORKERS = "spec.pytorchReplicaSpecs.Worker.replicas"
CONTAINER = "spec.pytorchReplicaSpecs.Master.template.spec.containers.[name=pytorch]"


@pytest.fixture
def repository(tmp_path):
    return write(tmp_path, {"jobs/bert.yaml": JOB})


def write(root, jobs):
    for path, text in {"jobgen.yaml": "{}\n", "overlays/prod/overlay.yaml": OVERLAY, **jobs}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def write_tests(root, text):
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests/a.yaml").write_text(f"apiVersion: jobgen.dev/v1\nkind: JobTests\nspec:\n{dedent(text)}")
    return root


def run_one(root, expect, **fields):
    test = {"name": "one", "jobs": ["bert"], **fields, "expect": expect}
    write_tests(root, f"- {json.dumps(test)}\n")
    result = run_tests(root)
    assert [each.message for each in result.findings] == []
    return [each.message for each in result.outcomes]


@pytest.mark.parametrize(
    ("path", "expected", "message"),
    [
        (WORKERS, 4, ""),
        (WORKERS, 3, f"`{WORKERS}` is `4`, expected `3`"),
        (WORKERS, "4", f'`{WORKERS}` is `4`, expected `"4"`'),
        (WORKERS, {"min": 2, "max": 4}, ""),
        (WORKERS, {"max": 3}, f"`{WORKERS}` is `4`, expected at most `3`"),
        (WORKERS, {"oneOf": [1, 2]}, f"`{WORKERS}` is `4`, expected one of `[1, 2]`"),
        ("spec.runPolicy", {"present": False}, ""),
        ("spec.runPolicy", {"present": True}, "`spec.runPolicy` is missing, expected presence `true`"),
        ("spec.runPolicy", 1, "`spec.runPolicy` is missing, expected `1`"),
        ("metadata.labels", {"equals": {"tier": "free"}}, ""),
        ("metadata.labels", {"contains": {"tier": "paid"}}, None),
        (f"{CONTAINER}.image", {"matches": "registry.example.com/*"}, ""),
        (f"{CONTAINER}.image", {"matches": "docker.io/*"}, None),
        (f"{CONTAINER}.resources.limits.memory", {"max": "2Gi"}, ""),
        (f"{CONTAINER}.resources.limits.memory", {"max": "2047Mi"}, None),
        ("spec.pytorchReplicaSpecs.*.template.spec.containers.0.name", "pytorch", ""),
        ("spec.pytorchReplicaSpecs.*.replicas", 4, None),
        ("spec.pytorchReplicaSpecs.*.nothing", 4, "`spec.pytorchReplicaSpecs.*.nothing` is missing, expected `4`"),
        ("spec.*.Worker.template.spec.nodeSelector.pool", "a", None),
        ("spec.nothing.*.replicas", 4, "`spec.nothing.*.replicas` is missing, expected `4`"),
        ("spec.nothing.*.replicas", {"present": False}, ""),
        ("metadata.labels", {"equals": {}}, '`metadata.labels` is `{"tier": "free"}`, expected `{}`'),
        ("spec.pytorchReplicaSpecs.Master.template.spec.containers", {"contains": {"name": "pytorch"}}, ""),
    ],
)
def test_values(repository, path, expected, message):
    found = run_one(repository, {"values": {path: expected}})

    assert (found == [message]) if message is not None else (len(found) == 1 and found[0])


def test_failure_names_who_set_the_value(repository):
    write_tests(repository, f"- name: one\n  jobs: [bert]\n  expect:\n    values:\n      {WORKERS}: 8\n")

    done = run_jobgen_text(repository, "test")

    assert done.returncode == 1
    assert done.stdout.splitlines()[:3] == [
        f"tests/a.yaml:8:7: failed: one: bert: `{WORKERS}` is `4`, expected `8` (in prod)",
        "    overlays/prod/overlay.yaml:7:42  patch of prod: `4`",
        "    jobs/bert.yaml:8:42  job: `3`",
    ]


def test_expressions(repository):
    texts = ["object.metadata.name == 'bert'", "object.metadata.name == 'gpt'", "object.spec.nothing", "1 +"]
    found = run_one(repository, {"cel": texts})

    assert found[0] == ""
    assert found[1] == "`object.metadata.name == 'gpt'` is `false`, expected `true`"
    assert "cannot be evaluated" in found[2] or "is not an expression" in found[2]
    assert "`1 +` is not an expression" in found[3]


def test_findings_are_those_of_lint(repository):
    (repository / "jobs/bert.yaml").write_text(JOB.replace("bert:1.4.2", "bert:latest"))
    rules = {each.rule for each in jobgen.lint(repository).findings if each.severity is not jobgen.Severity.INFO}

    assert rules
    assert run_one(repository, {"findings": sorted(rules)}) == [""]
    assert run_one(repository, {"findings": []}) == [
        "; ".join(f"`{rule}` is found and not expected" for rule in sorted(rules))
    ]


def test_effects_of_a_change(repository):
    image = {"image": "registry.example.com/bert:2.0.0"}

    assert run_one(repository, {"effect": "no-effect"}, change=image) == [""]
    assert run_one(repository, {"effect": "none"}, change={"image": "registry.example.com/bert:1.4.2"}) == [""]
    assert "the effect is `no-effect`" in run_one(repository, {"effect": "restart"}, change=image)[0]


def test_every_item_has_the_value(repository):
    (repository / "jobs/bert.yaml").write_text(JOB.replace("master: {}", "master: {nodeSelector: {pool: a}}"))
    pools = "spec.pytorchReplicaSpecs.*.template.spec.nodeSelector.pool"

    assert run_one(repository, {"values": {pools: "a"}}) == [f'`{pools}` is missing, expected `"a"`']
    assert run_one(repository, {"values": {pools: {"present": False}}}) != [""]


def test_expectations_are_about_the_changed_job(repository):
    change = {"image": "registry.example.com/bert:latest"}

    assert run_one(repository, {"values": {f"{CONTAINER}.image": change["image"]}}, change=change) == [""]
    assert run_one(repository, {"findings": []}, change=change) == ["`mutable-image-tag` is found and not expected"]
    assert run_one(repository, {"findings": []}) == [""]


def test_findings_of_jobs_that_are_not_rendered(repository):
    (repository / "overlays/prod/overlay.yaml").write_text(OVERLAY + "  locked: [tolerations]\n")
    locked = {"tolerations": [{"operator": "Exists"}]}
    reason = "the job is not rendered: it has errors: `tolerations` is locked by overlay `prod`; remove it from the job"

    assert run_one(repository, {"findings": ["locked-field"]}, change=locked) == [""]
    assert run_one(repository, {"findings": ["locked-field"], "rendered": False}, change=locked) == ["", ""]
    assert run_one(repository, {"findings": [], "rendered": False}, change=locked) == [
        "",
        "`locked-field` is found and not expected",
    ]
    assert run_one(repository, {"effect": "none"}, change=locked) == [reason]
    assert run_one(repository, {"findings": ["locked-field"], "cel": ["true"]}, change=locked) == ["", reason]


def test_equal_failures_in_several_environments_are_one_entry(repository):
    (repository / "overlays/dev").mkdir()
    (repository / "overlays/dev/overlay.yaml").write_text(OVERLAY)
    write_tests(repository, "- {name: one, jobs: [bert], expect: {values: {kind: Job}}}\n")

    text = run_tests(repository).text

    assert text.splitlines()[0].endswith('`kind` is `"PyTorchJob"`, expected `"Job"` (in dev, prod)')
    assert text.count("failed: one") == 1


def test_given_jobs_get_what_their_file_would_get(repository):
    (repository / "teams").mkdir()
    team = "apiVersion: jobgen.dev/v1\nkind: Team\nspec: {folders: [jobs/nlp], labels: {team: nlp}}\n"
    (repository / "teams/nlp.yaml").write_text(team)
    given = {"metadata": {"name": "tiny"}, "spec": {"framework": "pytorch", "image": "registry.example.com/x:1.0.0"}}
    test = {"name": "given", "given": given, "file": "jobs/nlp/x.yaml"}
    write_tests(repository, f"- {json.dumps({**test, 'expect': {'values': {'metadata.labels.team': 'nlp'}}})}\n")

    result = run_tests(repository)

    assert [(each.job, each.message) for each in result.outcomes] == [("tiny", "")]


def test_jobs_that_are_not_rendered(repository):
    (repository / "jobs/old.yaml").write_text(JOB.replace("bert", "old") + "  run: {state: done}\n")

    assert run_one(repository, {"rendered": False}, jobs=["old"]) == [""]
    assert run_one(repository, {"rendered": True}, jobs=["bert"]) == [""]
    assert "the job is not rendered" in run_one(repository, {"values": {"kind": "PyTorchJob"}}, jobs=["old"])[0]
    assert run_one(repository, {"rendered": True}, jobs=["nope"]) == ["there is no job `nope`"]


def test_snapshots_are_written_and_compared(repository):
    write_tests(repository, "- name: all of it\n  jobs: [bert]\n  expect: {snapshot: true}\n")
    path = repository / "tests/snapshots/a/all-of-it.prod.bert.yaml"

    assert run_jobgen_text(repository, "test").returncode == 1
    assert run_jobgen_text(repository, "test", "--update").returncode == 0
    assert path.read_text() == run_jobgen_text(repository, "render", "-e", "prod").stdout
    assert run_jobgen_text(repository, "test").returncode == 0
    (repository / "jobs/bert.yaml").write_text(JOB.replace("1.4.2", "1.4.3"))
    failed = run_jobgen_text(repository, "test")
    assert failed.returncode == 1
    assert "+            image: registry.example.com/bert:1.4.3" in failed.stdout.replace("    +", "+")


def test_formats(repository):
    write_tests(repository, f'- {{name: "a <b>", jobs: [bert], expect: {{values: {{{WORKERS}: 8}}}}}}\n')

    text = run_jobgen_text(repository, "test").stdout.splitlines()[-1]
    assert {run_jobgen_text(repository, "test", "--format", name).stderr for name in ("junit", "json")} == {f"{text}\n"}
    junit = ET.fromstring(run_jobgen_text(repository, "test", "--format", "junit").stdout)
    document = json.loads(run_jobgen_text(repository, "test", "--format", "json").stdout)

    assert (junit.get("tests"), junit.get("failures")) == ("1", "1")
    assert junit.find("testsuite/testcase").get("name") == "a <b>, bert, prod"
    assert document["failed"] == 1
    assert document["outcomes"][0]["sources"][0].startswith("overlays/prod/overlay.yaml:7:42")


@pytest.mark.parametrize(
    ("text", "rule", "message"),
    [
        ("- {name: a, expect: {findings: []}}\n", "invalid-value", "the test has no job"),
        ("- {name: a, jobs: [b], given: {}, expect: {findings: []}}\n", "invalid-value", "both `jobs` and `given`"),
        ("- {name: a, jobs: [b], expect: {effect: restart}}\n", "missing-field", "`change`"),
        ("- {name: a, jobs: [b], expect: {values: {'a[': 1}}}\n", "invalid-value", "is not a path"),
        ("- {name: a, jobs: [b], expect: {values: {a: {mx: 1}}}}\n", "unknown-field", "did you mean `max`?"),
        ("- {name: a, jobs: [b], expect: {value: {a: 1}}}\n", "unknown-field", "did you mean `values`?"),
    ],
)
def test_mistakes_in_tests_have_a_line(repository, text, rule, message):
    write_tests(repository, text)

    found = run_tests(repository).findings

    assert [(each.rule, each.location.file, each.location.line) for each in found] == [(rule, "tests/a.yaml", 4)]
    assert message in found[0].message
    assert run_jobgen_text(repository, "test").returncode == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bert-large", JOB.replace("bert", "bert-large")),
        ("bert-large", JOB.replace("{name: bert", '{name: "bert\\x2dlarge"')),
        ("bert-l*", JOB.replace("bert", "bert-large")),
        ("bert-3", SWEEP),
        ("bert", SWEEP),
    ],
)
def test_names_of_jobs_are_found_however_they_are_written(repository, name, text):
    """Only files that may have a job with the name are read."""
    (repository / "jobs/bert.yaml").write_text(text)
    outcomes = run_one(repository, {"values": {"kind": "PyTorchJob"}}, jobs=[name])

    assert outcomes
    assert set(outcomes) == {""}


def test_files_without_the_jobs_of_tests_are_not_read(repository):
    (repository / "jobs/other.yaml").write_text("a: [\n")

    assert run_one(repository, {"values": {"kind": "PyTorchJob"}}) == [""]


def test_without_tests_there_is_nothing_to_do(repository):
    assert run_jobgen_text(repository, "test").returncode == 3
    write_tests(repository, "- {name: a, jobs: [bert], expect: {findings: []}}\n")
    assert run_jobgen_text(repository, "test", "nothing-*").returncode == 3


def test_many_expectations_take_linear_time(tmp_path):
    result = prepare_expectations(tmp_path / "many", 24)()

    assert (len(result.outcomes), sum(bool(each.message) for each in result.outcomes)) == (240, 0)
    assert not grows_with_the_square(lambda count: prepare_expectations(tmp_path / str(count), count), 6)


def prepare_expectations(root, count):
    """Write that many jobs with ten expectations each; return a function that tests them."""
    write(root, {f"jobs/job{number}.yaml": JOB.replace("bert", f"job{number}") for number in range(count)})
    values = ", ".join(
        f"{path}: {{present: true}}" for path in ("kind", "spec", "metadata.name", "apiVersion", WORKERS)
    )
    cel = ", ".join(f"'object.metadata.name != \"x{number}\"'" for number in range(5))
    write_tests(
        root,
        "".join(
            f"- {{name: t{number}, jobs: [job{number}], expect: {{values: {{{values}}}, cel: [{cel}]}}}}\n"
            for number in range(count)
        ),
    )
    return lambda: run_tests(root)


GIVEN = {"name": "one", "expect": {"values": {"metadata.name": "x"}}}
REFUSED = {
    "no values": ({"jobs": ["bert"], "expect": {"values": {}}}, "the test expects nothing"),
    "no snapshot": ({"jobs": ["bert"], "expect": {"snapshot": False}}, "the test expects nothing"),
    "no condition": ({"jobs": ["bert"], "expect": {"values": {"kind": {}}}}, "every value meets"),
    "empty text": ({"jobs": ["bert"], "expect": {"values": {"kind": {"contains": ""}}}}, "every value meets"),
    "empty mapping": ({"jobs": ["bert"], "expect": {"values": {"metadata": {"contains": {}}}}}, "every value meets"),
    "kind of a wrong type": ({"given": {"apiVersion": "v1", "kind": 5, "metadata": {"name": "x"}}}, "`kind`"),
    "no metadata": ({"given": {"apiVersion": "v1", "kind": "Pod"}}, "no `metadata`"),
    "a list": ({"given": {"apiVersion": "v1", "kind": "List", "items": []}}, "List"),
    "a sweep": (
        {"given": {"metadata": {"name": "x"}, "spec": {"matrix": {"a": [1]}, "framework": "pytorch"}}},
        "`matrix`",
    ),
}


@pytest.mark.parametrize("way", REFUSED)
def test_tests_that_cannot_fail_or_give_no_job_are_refused(repository, way):
    fields, message = REFUSED[way]
    write_tests(repository, f"- {json.dumps({**GIVEN, **fields})}\n")

    result = run_tests(repository)

    assert result.failed
    assert message in result.findings[0].message


def test_two_tests_of_one_name_are_refused(repository):
    test = json.dumps({"name": "one", "jobs": ["bert"], "expect": {"rendered": True}})
    write_tests(repository, f"- {test}\n- {test}\n")

    assert [each.rule for each in run_tests(repository).findings] == ["duplicate-item"]


def test_two_tests_do_not_share_a_snapshot(repository):
    (repository / "jobs/gpt.yaml").write_text(JOB.replace("name: bert", "name: gpt"))
    tests = [
        {"name": name, "given": {"metadata": {"name": "x"}, "spec": spec}, "expect": {"snapshot": True}}
        for name, spec in (
            ("a b", {"framework": "pytorch", "image": "r.example.com/a:1"}),
            ("a-b", {"framework": "pytorch", "image": "r.example.com/b:1"}),
        )
    ]
    write_tests(repository, "".join(f"- {json.dumps(test)}\n" for test in tests))

    assert "another test also has the snapshot" in run_tests(repository).outcomes[1].message


@pytest.mark.parametrize("kind", ["JobTest", "jobtests"])
def test_a_misspelled_kind_is_an_error(repository, kind):
    write_tests(repository, '- {name: "one", jobs: [bert], expect: {rendered: true}}\n')
    (repository / "tests/b.yaml").write_text(f"apiVersion: jobgen.dev/v1\nkind: {kind}\nspec: []\n")

    result = run_tests(repository)

    assert result.failed
    assert {each.location.file for each in result.findings} == {"tests/b.yaml"}


@pytest.mark.parametrize("change", [{"roles": 5}, {"imagee": "x"}])
def test_a_change_with_errors_fails(repository, change):
    assert "the changed job has an error" in run_one(repository, {"effect": "none"}, change=change)[0]


def test_a_change_of_a_manifest_is_merged_into_its_spec(repository):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rates, namespace: ml}\n"
    (repository / "jobs/rates.yaml").write_text(text)

    assert run_one(repository, {"effect": "in-place"}, jobs=["rates"], change={"a": 1}) == [""]


def test_errors_that_keep_tests_from_running_are_in_every_format(repository):
    write_tests(repository, "- 5\n")

    shown = {name: run_tests(repository, format=name).text for name in ("text", "json", "junit")}

    assert shown["text"] == "0 expectations of 0 tests: 1 error in tests/a.yaml\n"
    assert [each["file"] for each in json.loads(shown["json"])["errors"]] == ["tests/a.yaml"]
    assert 'errors="1"' in shown["junit"]
    assert "<error message=" in shown["junit"]


def test_every_named_test_must_exist(repository):
    write_tests(repository, '- {name: "one", jobs: [bert], expect: {rendered: true}}\n')

    with pytest.raises(jobgen.NotFoundError, match="there is no test `two`"):
        run_tests(repository, ["one", "two"])


POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: tier}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: ['*']}]
  validations:
  - {expression: "has(object.metadata.labels) && object.metadata.labels.tier == 'free'", message: wrong tier}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: tier}
spec: {policyName: tier, validationActions: [Deny]}
"""
TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: nlp}
spec: {folders: [jobs/nlp], namespaces: [nlp], budget: {gpus: 1}}
"""
# The file, fields of the spec, and a rule that finds something.
LINTED = [
    ("jobs/bert.yaml", {"image": "registry.example.com/bert:latest"}, "mutable-image-tag"),
    ("jobs/bert.yaml", {"labels": {"tier": "paid"}}, "tier"),
    ("jobs/bert.yaml", {"command": ["torchrun", "--nnodes=9", "train.py"]}, "nnodes-mismatch"),
    ("jobs/nlp/bert.yaml", {"resources": {"gpu": 8, "memory": "1Gi"}}, "team-budget-exceeded"),
    ("jobs/nlp/bert.yaml", {}, "foreign-namespace"),
]


@pytest.mark.parametrize(("path", "change", "rule"), LINTED)
def test_given_and_changed_jobs_have_the_findings_that_a_lint_of_them_has(repository, path, change, rule):
    """The same object is judged by the same rules, policies, limits and severities, whoever asks."""
    layers = {"policies/tier.yaml": POLICY, "teams/nlp.yaml": TEAM, "overlays/prod/overlay.yaml": LABELED}
    write(repository, layers)
    (repository / "jobs/bert.yaml").unlink()
    job = read(JOB.encode(), "a.yaml").documents[0].data
    given = json.loads(json.dumps({**job, "spec": {**job["spec"], **change}}))
    write(repository, {path: json.dumps(given), **layers})
    reported = (jobgen.Severity.ERROR, jobgen.Severity.WARNING)
    found = [each for each in jobgen.lint(repository).findings if each.severity in reported and each.env == "prod"]
    rules = sorted({each.rule for each in found if each.object and each.object.name == "bert"})

    assert rule in rules
    assert run_one(repository, {"findings": rules}, environments=["prod"]) == [""]
    (repository / path).write_text(JOB)
    assert run_one(repository, {"findings": rules}, environments=["prod"], change=change or {"parallelism": None}) == [
        ""
    ]
    (repository / path).unlink()
    write_tests(
        repository, f"- {json.dumps({'name': 'a', 'given': given, 'file': path, 'expect': {'findings': rules}})}\n"
    )
    assert [each.message for each in run_tests(repository, environments=["prod"]).outcomes] == [""]


def test_policies_judge_given_manifests(repository):
    write(repository, {"policies/tier.yaml": POLICY})
    given = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a", "namespace": "ml"}}
    given["spec"] = {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1.0.0"}]}}
    }
    write_tests(repository, f"- {json.dumps({'name': 'a', 'given': given, 'expect': {'findings': []}})}\n")

    assert "`tier` is found and not expected" in run_tests(repository).outcomes[0].message
