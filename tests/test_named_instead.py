"""What a message offers if a setting, a comment, a policy or a command names something that does not exist."""

from __future__ import annotations

import pytest
from command import run_jobgen_text

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/train:1.0.0
  command: [torchrun, train.py]
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {gpuResource: nvidia.com/gpu}}\n"
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}
  validations: [{expression: object.metadata.name != ''}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: named}
spec: {policyName: named, validationActions: [Deny]}
"""
FILES = {
    "jobgen.yaml": "{}\n",
    "jobs/bert.yaml": JOB,
    "overlays/dev/overlay.yaml": OVERLAY,
    "policies/named.yaml": POLICY,
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "shown"),
    [
        (
            "jobgen.yaml",
            "{}",
            "ignore: [vendor/**]",
            "jobgen.yaml:1:10: error: there is no rule, category or policy `vendor/**`; `exclude` leaves out files",
        ),
        (
            "policies/named.yaml",
            "object.metadata",
            "objct.metadata",
            (
                "policies/named.yaml:8:30: error: `expression` does not compile: undeclared reference to `objct`;"
                " did you mean `object`?"
            ),
        ),
        (
            "policies/named.yaml",
            "object.metadata.name != ''",
            "sise(object.metadata.name) > 0",
            "undeclared reference to `sise`; did you mean `size`?",
        ),
        (
            "jobs/bert.yaml",
            "train:1.0.0",
            "train:latest # jobgen: ignore mutable-image-tag, lost-logs",
            "the comment names no rule; write `# jobgen: ignore[mutable-image-tag, lost-logs] -- reason`",
        ),
        (
            "jobs/bert.yaml",
            "train:1.0.0",
            "train:latest # jobgen: ignore the tag",
            "the comment names no rule; write `# jobgen: ignore[rule] -- reason`",
        ),
        (
            "jobs/bert.yaml",
            "train:1.0.0",
            "train:latest # jobgen: ignore[mutable-image-tag]",
            "the comment has no reason, so it is ignored; write `# jobgen: ignore[mutable-image-tag] -- reason`",
        ),
    ],
)
def test_a_message_offers_what_was_meant(root, file, old, new, shown):
    assert " error" not in run_jobgen_text(root, "lint").stdout
    (root / file).write_text(FILES[file].replace(old, new))

    assert shown in run_jobgen_text(root, "lint").stdout


@pytest.mark.parametrize(
    ("path", "meant"), [("job", "jobs"), ("jobs/brt.yaml", "jobs/bert.yaml"), ("jbos/", "jobs"), ("./jobz", "./jobs")]
)
def test_a_path_that_does_not_exist_is_answered_with_one_that_does(root, path, meant):
    assert f"there is no such file or folder; did you mean `{meant}`?" in run_jobgen_text(root, "lint", path).stdout


def test_a_path_below_a_folder_that_does_not_exist_is_to_be_checked(root):
    shown = run_jobgen_text(root, "lint", "nowhere/at/all.yaml").stdout

    assert "nowhere/at/all.yaml:1:1: error: there is no such file or folder; check the path" in shown


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("jobs/bert.yaml", "; name a job, not a file: `bert`"),
        ("brt.yaml", "; name a job, not a file: `bert`"),
        ("brt", "; did you mean `bert`?"),
    ],
)
def test_a_render_of_a_file_names_its_job(root, name, hint):
    assert f"there is no job `{name}`{hint}\n" in run_jobgen_text(root, "render", name, "-e", "dev").stderr
