"""A job that breaks a limit of its team, a mandatory rule or a policy is not rendered, whatever its author writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_jobgen

TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {{name: {name}}}
spec:
  folders: [jobs/{name}]
  namespaces: [{name}]
  queues: [{name}]
  serviceAccounts: [{name}]
  priorityClasses: [{name}-low]
  platforms: [kubeflow]
  budget: {{replicas: 10}}
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: {team}}}
spec:
  framework: pytorch
  image: registry.example.com/train:1.0
  queue: {team}
  resources: {{cpu: 1, memory: 1Gi}}
"""
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own-registry}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}
  validations:
    - expression: >-
        object.spec.pytorchReplicaSpecs.all(role, object.spec.pytorchReplicaSpecs[role].template.spec.containers
          .all(each, each.image.startsWith('registry.example.com/')))
      message: the image is from another registry
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: own-registry}
spec: {policyName: own-registry, validationActions: [Deny]}
"""
ROOT_JOB = "  podTemplate: {spec: {containers: [{name: pytorch, securityContext: {privileged: true}}]}}\n"
FOREIGN_IMAGE = "  image: other.example.com/train:1.0\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two teams with one lawful job each, a policy, and a mandatory rule."""
    files = {
        "jobgen.yaml": "mandatory: [privileged-container]\nrules: {privileged-container: error}\n",
        "overlays/prod/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n",
        "policies/own-registry.yaml": POLICY,
        **{f"teams/{name}.yaml": TEAM.format(name=name) for name in ("nlp", "vision")},
        "jobs/nlp/bert.yaml": JOB.format(name="bert", team="nlp"),
        "jobs/vision/resnet.yaml": JOB.format(name="resnet", team="vision"),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def replace(repository: Path, old: str, new: str, path: str = "jobs/nlp/bert.yaml") -> None:
    text = (repository / path).read_text()
    assert old in text
    (repository / path).write_text(text.replace(old, new))


def generate(repository: Path, *words: str, inside: str = ".") -> tuple[int, str, str]:
    """The plugin as Argo CD runs it: it sends no commit."""
    done = run_jobgen(repository / inside, "cmp", "generate", *words, env={"ARGOCD_APP_SOURCE_PATH": inside})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


ATTACKS = {
    "foreign-namespace": ("namespace: nlp", "namespace: vision"),
    "foreign-queue": ("queue: nlp", "queue: vision"),
    "foreign-service-account": ("  queue:", "  serviceAccount: vision\n  queue:"),
    "foreign-priority-class": ("  queue:", "  priority: vision-low\n  queue:"),
    "platform-not-allowed": ("  queue:", "  platform: trainer\n  queue:"),
    "team-budget-exceeded": ("  queue:", "  roles: {worker: {replicas: 100}}\n  queue:"),
    "privileged-container": ("  queue:", f"{ROOT_JOB}  queue:"),
    "own-registry": ("  image: registry.example.com/train:1.0\n", FOREIGN_IMAGE),
}


@pytest.mark.parametrize("rule", ATTACKS)
def test_what_a_limit_forbids_is_not_emitted(repository: Path, rule: str) -> None:
    assert generate(repository)[0] == 0
    replace(repository, *ATTACKS[rule])
    code, out, err = generate(repository)
    rendered = run_jobgen(repository, "render", "--enforce", "-o", "rendered")

    assert (code, out) == (1, "")
    assert f": {rule}" in err
    assert "nothing was generated" in err
    assert (rendered.returncode, rendered.stdout, (repository / "rendered").exists()) == (1, b"", False)
    assert f"[{rule}]" in rendered.stderr.decode()
    assert b"nothing was rendered" in rendered.stderr
    # Others are not kept from their work.
    assert generate(repository, inside="jobs/vision")[0] == 0
    assert run_jobgen(repository, "render", "--enforce", "resnet").returncode == 0


def test_without_enforcing_only_a_lint_reports_it(repository: Path) -> None:
    replace(repository, *ATTACKS["foreign-queue"])

    assert generate(repository, "--no-enforce")[0] == 0
    assert run_jobgen(repository, "render").returncode == 0
    assert run_jobgen(repository, "lint").returncode == 1


@pytest.mark.parametrize("rule", ["foreign-queue", "own-registry"])
def test_comment_allows_nothing(repository: Path, rule: str) -> None:
    replace(repository, *ATTACKS[rule])
    replace(repository, "apiVersion", f"# jobgen: ignore-file[{rule}] -- we need it\napiVersion")

    assert generate(repository)[:2] == (1, "")


def test_tree_that_is_up_to_date_is_refused_too(repository: Path) -> None:
    replace(repository, *ATTACKS["foreign-queue"])

    assert run_jobgen(repository, "render", "--no-enforce", "-o", "rendered").returncode == 0
    assert run_jobgen(repository, "render", "-o", "rendered", "--check").returncode == 0
    assert run_jobgen(repository, "render", "-o", "rendered", "--check", "--enforce").returncode == 1


def test_a_tree_is_not_written_against_a_limit(repository: Path) -> None:
    replace(repository, *ATTACKS["foreign-queue"])
    refused = run_jobgen(repository, "render", "-o", "rendered")

    assert refused.returncode == 1
    assert b"[foreign-queue]" in refused.stderr
    assert b"nothing was written; `--no-enforce` allows it" in refused.stderr
    assert not (repository / "rendered").exists()
    # What is printed is not applied by itself, and a tree without teams has no limits.
    assert run_jobgen(repository, "render").returncode == 0
    for team in (repository / "teams").iterdir():
        team.unlink()
    assert run_jobgen(repository, "render", "-o", "rendered").returncode == 0


def test_value_of_an_overlay_counts_for_the_jobs_that_it_reaches(repository: Path) -> None:
    patch = "spec: {patches: [{match: {names: [bert]}, merge: {queue: vision}}]}"
    replace(repository, "spec: {}", patch, "overlays/prod/overlay.yaml")

    assert generate(repository, inside="jobs/nlp")[:2] == (1, "")
    assert generate(repository, inside="jobs/vision")[0] == 0


def test_budget_counts_jobs_that_are_not_part_of_the_application(repository: Path) -> None:
    more = JOB.format(name="gpt", team="nlp").replace("  queue:", "  roles: {worker: {replicas: 100}}\n  queue:")
    (repository / "jobs/nlp/large").mkdir()
    (repository / "jobs/nlp/large/gpt.yaml").write_text(more)

    assert run_jobgen(repository, "render", "--enforce", "bert").returncode == 1
    assert run_jobgen(repository, "render", "--enforce", "resnet").returncode == 0


def test_settings_in_the_folder_of_a_team_are_not_those_of_the_repository(repository: Path) -> None:
    replace(repository, *ATTACKS["foreign-queue"])
    (repository / "jobs/nlp/jobs").mkdir()
    (repository / "jobs/nlp/bert.yaml").rename(repository / "jobs/nlp/jobs/bert.yaml")
    (repository / "jobs/nlp/jobgen.yaml").write_text("{}\n")

    assert generate(repository, inside="jobs/nlp")[:2] == (1, "")
    assert generate(repository, inside="jobs/nlp/jobs")[:2] == (1, "")


MUTATION = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: own-queue}
spec:
  reinvocationPolicy: Never
  matchConditions: [{name: own, expression: object.metadata.name == 'bert'}]
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: 'Object{metadata: Object.metadata{labels: {"kueue.x-k8s.io/queue-name": "nlp"}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: own-queue}
spec: {policyName: own-queue}
"""


def test_mutating_policy_beside_the_jobs_allows_nothing(repository: Path) -> None:
    replace(repository, *ATTACKS["foreign-queue"])
    (repository / "policies/own-queue.yaml").write_text(MUTATION)

    assert b"foreign-queue" not in run_jobgen(repository, "lint").stdout, "the cluster would change the queue"
    code, out, err = generate(repository)
    assert (code, out) == (1, "")
    assert ": foreign-queue" in err


def test_mutating_policy_with_an_escaped_kind_allows_nothing(repository: Path) -> None:
    replace(repository, *ATTACKS["foreign-queue"])
    escaped = MUTATION.replace("kind: MutatingAdmissionPolicyBinding", 'kind: "\\x4dutatingAdmissionPolicyBinding"')
    escaped = escaped.replace("kind: MutatingAdmissionPolicy\n", 'kind: "\\x4dutatingAdmissionPolicy"\n')
    (repository / "policies/own-queue.yaml").write_text(escaped)

    assert "Mutating" not in escaped
    assert generate(repository)[:2] == (1, "")


def test_policy_that_cannot_be_read_allows_nothing(repository: Path) -> None:
    replace(repository, "startsWith(", "startsWith((", "policies/own-registry.yaml")

    assert generate(repository)[:2] == (1, "")


@pytest.mark.parametrize(("expires", "code"), [("2020-01-01", 1), ("9999-01-01", 0)])
def test_exception_of_the_settings_counts_until_it_expires_without_a_commit(
    repository: Path, expires: str, code: int
) -> None:
    replace(repository, *ATTACKS["foreign-queue"])
    entry = f"{{rule: foreign-queue, teams: [nlp], reason: shared, owner: platform, expires: {expires}}}"
    replace(repository, "mandatory: [privileged-container]\n", f"exceptions: [{entry}]\n", "jobgen.yaml")

    assert generate(repository)[0] == code
