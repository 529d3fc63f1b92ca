"""A repository to edit at random: jobs, overlays, settings and manifests, and edits that keep or break them."""

from __future__ import annotations

from random import Random

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  framework: {framework}
  image: registry.example.com/train:{tag}
  resources: {{cpu: 4, memory: 16Gi, gpu: {gpus}}}
  env: {{SEED: "{seed}"}}
  roles:
    worker: {{replicas: {replicas}}}
"""
BASE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  cluster: {platform: kubeflow, operators: {training-operator: 1.9.4}}
  defaults: {labels: {fleet: training}}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  extends: [base]
  namespace: ml-{env}
  patches:
    - match: {{names: ["{pattern}*"]}}
      merge: {{resources: {{gpu: {gpus}}}}}
"""
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {{name: gpus, namespace: ml-prod}}
spec: {{hard: {{requests.nvidia.com/gpu: {gpus}}}}}
"""
SETTINGS = """\
rules: {mutable-image-tag: error}
exceptions:
  - {rule: foreign-namespace, teams: [nlp], reason: soon, owner: "@example/nlp", expires: "2027-01-31"}
"""
FILES = {
    "jobgen.yaml": SETTINGS,
    "overlays/base/overlay.yaml": BASE,
}
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few-gpus}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}
  validations:
    - expression: object.metadata.name.startsWith('b')
      message: the name of a job begins with `b`
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few-gpus}
spec: {policyName: few-gpus, validationActions: [Deny]}
"""
KIND = """\
apiVersion: example.dev/v1
kind: DanceJob
platform: kubeflow
operator: {name: dance-operator}
frameworks: {jax: {}}
replicas: {at: spec.dancers, shape: map}
roles:
  worker: {spelling: Worker, replicas: 1}
single: worker
container: dancer
nameSuffix: "-{role}-{index}"
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec: {template: {spec: {replicatedJobs: []}}}
"""
TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
spec: {folders: [jobs], namespaces: [ml-prod], labels: {owner: nlp}, budget: {gpus: 8}}
"""
NEW_FILES = {
    "overlays/stage/overlay.yaml": OVERLAY.format(env="stage", pattern="b", gpus=2),
    "overlays/dev/more.json": '{"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {"namespase": "x"}}',
    "policies/few-gpus.yaml": POLICY,
    "schemas/example.dev/dancejob_v1.yaml": KIND,
    "runtimes/torch.yaml": RUNTIME,
    "teams/nlp.yaml": TEAM,
    "jobs/team/new/raw.yml": QUOTA.format(gpus="many"),
    "jobs/notes.txt": QUOTA.format(gpus=4),
    "jobs/.hidden.yaml": "kind: [",
}
"""Files that are created while a repository is edited, of every kind that a lint reads."""


def make_job(random: Random) -> str:
    """Return a job; some have faults."""
    return JOB.format(
        name=random.choice(("bert", "bart", "gpt", "vit", "t5", "whisper")),
        team=random.choice(("nlp", "vision")),
        framework=random.choice(("pytorch", "tensorflow", "pytorch", "pytorhc")),
        tag=random.choice(("1.2", "latest", "2.0")),
        gpus=random.choice((1, 8, 0)),
        seed=random.randrange(3),
        replicas=random.choice((1, 4, 4, -1)),
    )


def make_overlay(random: Random, env: str) -> str:
    """Return an overlay; some of its patches match no job."""
    return OVERLAY.format(env=env, pattern=random.choice(("b", "gp", "zzz")), gpus=random.choice((2, 4, "many")))


def make_repository(random: Random, jobs: int = 6) -> dict[str, str]:
    """Return the files of a repository by path."""
    files = {**FILES, "jobs/quota.yaml": QUOTA.format(gpus=random.choice((4, 400)))}
    files |= {f"overlays/{env}/overlay.yaml": make_overlay(random, env) for env in ("dev", "prod")}
    return files | {f"jobs/job{number}.yaml": make_job(random) for number in range(jobs)}


def edit(random: Random, path: str, text: str) -> str:
    """Return the file after an edit: another version of it, or one that is half typed."""
    choice = random.randrange(6)
    if choice == 0:
        return text[: random.randrange(len(text) + 1)]
    if choice == 1:
        at = random.randrange(len(text) + 1)
        return (
            text[:at]
            + random.choice(("x", ": ", "\n", "  ", "{", "# jobgen: ignore[mutable-image-tag] -- ok\n"))
            + text[at:]
        )
    if path.startswith("jobs/job"):
        return make_job(random)
    if path.startswith("overlays/") and path.endswith("/overlay.yaml") and "base" not in path:
        return make_overlay(random, path.split("/")[1])
    return QUOTA.format(gpus=random.choice((4, 400))) if "quota" in path else (FILES | NEW_FILES)[path]
