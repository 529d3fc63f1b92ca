"""Mistakes of a new user: each fault is reported once, in one run, and nothing that only follows from it."""

from pathlib import Path

import pytest
from transcripts import write_files

import jobgen

HEAD = "apiVersion: jobgen.dev/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: bert
  labels: {team: research}
spec:
  framework: pytorch
  replicas: 3
  image: registry.example.com/research/bert:1.0.0
  command: [torchrun, train.py]
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
  shm: 4Gi
  roles:
    master: {}
    worker: {replicas: 2}
"""
FILES = {
    "jobgen.yaml": "environments: [dev, prod]\n",
    "jobs/bert.yaml": JOB,
    "overlays/base/overlay.yaml": HEAD.format("Overlay", "base")
    + "  cluster: {platform: kubeflow, gpuResource: nvidia.com/gpu}\n  defaults: {restartPolicy: OnFailure}\n",
    "overlays/dev/overlay.yaml": HEAD.format("Overlay", "dev") + "  extends: [base]\n  namespace: ml-dev\n",
    "overlays/prod/overlay.yaml": HEAD.format("Overlay", "prod") + "  extends: [base]\n  namespace: ml-prod\n",
}
PROD = "overlays/prod/overlay.yaml"
BERT = "jobs/bert.yaml"
ALWAYS = {BERT: JOB.replace("  shm", "  restartPolicy: Always\n  shm")}


def find_rules(root: Path, changed: dict[str, str]) -> list[str]:
    """Lint a repository with other files, and return the file, the line and the rule of each finding."""
    write_files(root, {path: text.encode() for path, text in (FILES | changed).items()})
    found = jobgen.lint(root).findings
    places = [f"{Path(each.location.file).parent.name or 'settings'}:{each.location.line}" for each in found]
    return list(dict.fromkeys(f"{place} {each.rule}" for place, each in zip(places, found, strict=True)))


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("environments: [dev, prod]", []),
        ("environments: [dev, prod]\nrulles: {missing-shm: off}", ["settings:2 unknown-field"]),
        ("environments: [dev, prd]", ["settings:1 unknown-overlay"]),
        ("environments: dev, prod", ["settings:1 wrong-type"]),
        ("environments: [dev, prod", ["settings:1 yaml-syntax"]),
        ("environments: [dev]\n---\nenvironments: [prod]", ["settings:3 ignored-document"]),
        ("cluster: {platfrm: ray}", ["settings:1 unknown-field"]),
        ("exceptions: [{rule: plain-secret, reason: a, owner: b}]", ["settings:1 missing-field"]),
    ],
)
def test_an_error_in_the_settings_hides_no_other(tmp_path, settings, found):
    assert find_rules(tmp_path, ALWAYS | {"jobgen.yaml": settings + "\n"}) == [*found, "jobs:12 never-completes"]
    if found:
        with pytest.raises(jobgen.UsageError):
            jobgen.render(tmp_path)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({PROD: "# To do.\n"}, ["prod:1 empty-file"]),
        (
            {PROD: FILES[PROD].replace("namespace", "namespce") + "  patches: [{merge: {restartPolicy: Always}}]\n"},
            ["prod:6 unknown-field", "prod:7 never-completes"],
        ),
        (
            {PROD: FILES[PROD] + "  patches: [{merge: {shmm: 8Gi, image: pytorch}}]\n"},
            ["prod:7 unknown-field", "prod:7 untagged-image"],
        ),
    ],
)
def test_every_fault_of_an_overlay_is_found(tmp_path, changed, found):
    assert find_rules(tmp_path, changed) == found


POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: team-label}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]
  validations:
    - {expression: "'team' in object.metadata.?labels.orValue({})", message: a job needs the label `team`}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: team-label}
spec: {policyName: team-label, validationActions: [Deny]}
"""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("master", "chief", ["jobs:14 unknown-role"]),
        ("worker: {replicas: 2}", "worker: {replicas: -1}", ["jobs:15 invalid-value"]),
        ("labels: {team: research}", "labels: [team=research]", ["jobs:5 wrong-type"]),
        ("registry.example.com/research/bert:1.0.0", "{name: bert}", ["jobs:9 wrong-type"]),
        ("shm: 4Gi", "shm: {size: 4Gi}", ["jobs:12 wrong-type"]),
        ("{cpu: 4, memory: 16Gi, gpu: 1}", "[{cpu: 4}, {memory: 16Gi}]", ["jobs:11 wrong-type"]),
        ("framework: pytorch", "framework: pytorh\n  memori: 1Gi", ["jobs:7 invalid-value", "jobs:8 unknown-field"]),
        ("pytorch\n", "pytorh\n  restartPolicy: Always\n", ["jobs:7 invalid-value", "jobs:8 never-completes"]),
    ],
)
def test_nothing_follows_from_a_fault_of_a_job(tmp_path, old, new, found):
    assert JOB.count(old) == 1
    assert find_rules(tmp_path, {BERT: JOB.replace(old, new), "policies/team-label.yaml": POLICY}) == found


def test_a_cycle_is_reported_at_the_base(tmp_path):
    base = FILES["overlays/base/overlay.yaml"] + "  extends: [prod]\n"

    assert find_rules(tmp_path, {"overlays/base/overlay.yaml": base}) == ["base:7 overlay-cycle"]


def test_a_total_that_a_patch_changes_is_reported_at_the_patch(tmp_path):
    patch = "  patches: [{merge: {roles: {worker: {replicas: 8}}}}]\n"

    assert find_rules(tmp_path, {PROD: FILES[PROD] + patch}) == ["prod:7 replica-totals"]
    [found] = jobgen.lint(tmp_path).findings
    assert found.message.endswith("; add `replicas: 9` to the patch")
    assert found.related[0].location.file == BERT


def test_both_faults_of_an_image_are_in_its_message(tmp_path):
    image = JOB.replace("image: registry.example.com/research", "image: https://registry.example.com/Research")

    assert find_rules(tmp_path, {BERT: image}) == ["jobs:9 malformed-image"]
    assert "; remove `https://`; also, the repository must be lowercase" in jobgen.lint(tmp_path).findings[0].message


def test_names_that_exist_are_suggested(tmp_path):
    find_rules(tmp_path, {})

    [found] = jobgen.lint(tmp_path, ["jobs/brt.yaml"]).findings
    assert found.message.endswith("; did you mean `jobs/bert.yaml`?")
    with pytest.raises(jobgen.NotFoundError, match=r"did you mean `metadata\.namespace`"):
        jobgen.explain(tmp_path, "bert", "namespace", environments=["prod"])


@pytest.mark.parametrize("name", ["", 'name: ""', "name: 5"])
def test_an_object_without_a_name_is_checked(tmp_path, name):
    pod = "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a:1, imagee: b}]}}}"
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{{name}}}\n{pod}\n"
    found = find_rules(tmp_path, {"jobs/run.yaml": text, "jobs/other.yaml": text})

    assert [each.split()[0] for each in found] == ["jobs:3", "jobs:4", *found[2:]]
    assert "jobs:4 unknown-field" in found
    assert not [each for each in found if "duplicate" in each]


OLD = {
    "MPIJob": ("kubeflow.org/v1alpha2", "mpiReplicaSpecs: {Worker: {TEMPLATE}}"),
    "Deployment": ("apps/v1beta1", "TEMPLATE"),
    "CronJob": ("batch/v1beta1", "schedule: '@daily', jobTemplate: {spec: {TEMPLATE}}"),
}


@pytest.mark.parametrize("kind", OLD)
def test_an_old_version_hides_no_fault_of_the_pods(tmp_path, kind):
    version, spec = OLD[kind]
    policy = "Always" if kind == "Deployment" else "Never"
    pod = f"restartPolicy: {policy}, imagePullPolicy: Always, containers: [{{name: A, image: a}}]"
    right = f"restartPolicy: {policy}, containers: [{{name: a, image: 'a:1'}}]"
    found = {}
    for name, template in (("wrong", pod), ("right", right)):
        (tmp_path / "jobs.yaml").write_text(
            f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a, namespace: ml}}\n"
            f"spec: {{{spec.replace('TEMPLATE', f'template: {{spec: {{{template}}}}}')}}}\n"
        )
        found[name] = sorted(each.rule for each in jobgen.lint(tmp_path).findings if each.severity.value == "error")

    assert found["right"] == ["old-api-version"]
    assert found["wrong"] == ["invalid-container-name", "old-api-version", "unknown-field"]
