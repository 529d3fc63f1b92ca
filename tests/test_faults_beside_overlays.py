"""An error in an overlay hides no fault of jobs, policies and other overlays, and nothing that follows is reported."""

from itertools import product
from pathlib import Path

import pytest
from growth import count_calls
from sampling import sample
from transcripts import write_files

import jobgen

HEAD = "apiVersion: jobgen.dev/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: NAME, labels: {team: research}}
spec:
  framework: pytorch
  image: registry.example.com/research/bert:1.0.0
  command: [torchrun, train.py]
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
  shm: 4Gi
  roles: {master: {}, worker: {replicas: 2}}
"""
BASE, DEV, STAGE, PROD = (f"overlays/{name}/overlay.yaml" for name in ("base", "dev", "stage", "prod"))
BERT = "jobs/bert.yaml"
FILES = {
    "jobgen.yaml": "environments: [dev, stage, prod]\n",
    BERT: JOB.replace("NAME", "bert"),
    "jobs/llama.yaml": JOB.replace("NAME", "llama"),
    BASE: HEAD.format("Overlay", "base")
    + "  cluster: {platform: kubeflow, gpuResource: nvidia.com/gpu}\n  defaults: {restartPolicy: OnFailure}\n",
    **{
        path: HEAD.format("Overlay", path.split("/")[1]) + f"  extends: [base]\n  namespace: ml-{number}\n"
        for number, path in enumerate((DEV, STAGE, PROD))
    },
}
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: owner-label}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]
  validations:
    - {expression: "'owner' in object.metadata.?labels.orValue({})", message: a job needs the label `owner`}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: owner-label}
spec: {policyName: owner-label, validationActions: [Deny]}
"""

# An error in the overlay of an environment, and what is reported of it.
ERRORS = {
    "a wrong field": ((PROD, "  namespace", "  shmm: 8Gi\n  namespace"), ["prod:6 unknown-field"]),
    "a wrong name of a field": ((PROD, "namespace", "namespce"), ["prod:6 unknown-field"]),
    "a wrong namespace": ((PROD, "ml-2", "Ml_2"), ["prod:6 invalid-value"]),
    "a wrong patch": (
        (PROD, "  namespace", "  patches: [{merge: {shmm: 8Gi}}]\n  namespace"),
        ["prod:6 unknown-field"],
    ),
    "a wrong match": (
        (PROD, "  namespace", "  patches: [{match: {nmes: [bert]}, merge: {shm: 8Gi}}]\n  namespace"),
        ["prod:6 unknown-field"],
    ),
    "wrong syntax": ((PROD, "[base]", "[base"), ["prod:5 yaml-syntax"]),
    "an unknown base": ((PROD, "[base]", "[bsae]"), ["prod:5 unknown-overlay"]),
    "another kind": ((PROD, "kind: Overlay\n", ""), ["prod:1 missing-field"]),
}
# A fault elsewhere, and what is reported of it.
FAULTS = {
    "a job": ((BERT, "  shm", "  restartPolicy: Always\n  shm"), ["bert:9 never-completes"]),
    "a field of a job": ((BERT, "  shm", "  shmm"), ["bert:9 unknown-field"]),
    "an image": ((BERT, "bert:1.0.0", "bert"), ["bert:6 untagged-image"]),
    "another overlay": ((DEV, "  namespace", "  shmm: 8Gi\n  namespace"), ["dev:6 unknown-field"]),
    "a patch of another overlay": (
        (DEV, "  namespace", "  patches: [{merge: {restartPolicy: Always}}]\n  namespace"),
        ["dev:6 never-completes"],
    ),
    "an idle patch of another overlay": (
        (DEV, "  namespace", "  patches: [{match: {names: [other]}, merge: {shm: 8Gi}}]\n  namespace"),
        ["dev:6 patch-matches-nothing"],
    ),
    "an idle patch of the base": (
        (BASE, "  defaults", "  patches: [{match: {names: [other]}, merge: {shm: 8Gi}}]\n  defaults"),
        ["base:6 patch-matches-nothing"],
    ),
    "an idle deletion of the base": (
        (BASE, "  defaults", "  patches: [{merge: {nodeSelector: null}}]\n  defaults"),
        ["base:6 deletes-nothing"],
    ),
}
# What is right, though an environment alone does not show it.
RIGHT = {
    "a patch for a job of other environments": [
        (BASE, "  defaults", "  patches: [{match: {names: [bert]}, merge: {shm: 8Gi}}]\n  defaults"),
        (PROD, "  namespace", "  jobs: {names: [llama]}\n  namespace"),
    ],
    "a patch for a job of this environment": [
        (BASE, "  defaults", "  patches: [{match: {names: [llama]}, merge: {shm: 8Gi}}]\n  defaults"),
        (DEV, "  namespace", "  jobs: {names: [bert]}\n  namespace"),
        (STAGE, "  namespace", "  jobs: {names: [bert]}\n  namespace"),
    ],
    "a deletion of what another environment sets": [
        (DEV, "  namespace", "  defaults: {nodeSelector: {a: b}}\n  namespace"),
        (BERT, "  shm", "  nodeSelector: null\n  shm"),
    ],
}


def find_rules(root: Path, *changes: tuple[str, str, str], others: dict[str, str] | None = None) -> list[str]:
    """Lint a repository with changed files, and return the file, the line and the rule of each finding."""
    files = FILES | (others or {})
    for path, old, new in changes:
        assert old in files[path]
        files = files | {path: files[path].replace(old, new, 1)}
    write_files(root, {path: text.encode() for path, text in files.items()})
    named = ((each, Path(each.location.file)) for each in jobgen.lint(root).findings)
    names = ((each, path.parent.name if path.stem == "overlay" else path.stem) for each, path in named)
    return sorted({f"{name}:{each.location.line} {each.rule}" for each, name in names})


@pytest.mark.parametrize(("fault", "error"), sample(product(FAULTS, ERRORS), 3))
def test_both_are_found(tmp_path, error, fault):
    wrong, expected = ERRORS[error]
    other, known = FAULTS[fault]
    assert find_rules(tmp_path, wrong, other) == sorted([*expected, *known])


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("right", RIGHT)
def test_what_other_environments_use_is_not_idle(tmp_path, error, right):
    wrong, expected = ERRORS[error]
    rules = [each.split()[-1] for each in find_rules(tmp_path, *RIGHT[right], wrong)]
    assert rules == [each.split()[-1] for each in expected]


@pytest.mark.parametrize("error", ERRORS)
def test_a_policy_finds_jobs_of_all_environments(tmp_path, error):
    wrong, expected = ERRORS[error]
    found = find_rules(tmp_path, wrong, others={"policies/owner-label.yaml": POLICY})
    assert found == sorted([*expected, "bert:3 owner-label", "llama:3 owner-label"])


def test_only_the_environment_with_an_error_is_rendered_again(tmp_path):
    names = [f"env{number}" for number in range(8)]
    overlays = {f"overlays/{name}/overlay.yaml": FILES[DEV].replace("dev", name) for name in names}
    jobs = {f"jobs/job{number}.yaml": JOB.replace("NAME", f"job{number}") for number in range(8)}
    others = {**overlays, **jobs, "jobgen.yaml": f"environments: [{', '.join(names)}]\n"}
    broken = overlays["overlays/env7/overlay.yaml"].replace("  namespace", "  shmm: 8Gi\n  namespace")
    kept = {path: text for path, text in FILES.items() if path not in (DEV, STAGE, PROD)}

    def count(folder: str, changed: dict[str, str]) -> int:
        root = tmp_path / folder
        write_files(root, {path: text.encode() for path, text in (kept | others | changed).items()})
        return count_calls(lambda: jobgen.lint(root))

    count("warm", {})
    valid, wrong = count("valid", {}), count("wrong", {"overlays/env7/overlay.yaml": broken})
    # Without an error, nothing is read twice; with one, the results of the other environments are used again.
    assert wrong < 1.3 * valid
