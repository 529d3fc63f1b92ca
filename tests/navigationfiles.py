"""A repository to navigate in: two environments, a runtime, a policy, a sweep, manifests and a rendered tree."""

from __future__ import annotations

from pathlib import Path

BERT = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: bert
  labels: {team: nlp}
spec:
  framework: pytorch
  replicas: 3
  image: registry.example/bert:1.4
  command: [python, train.py]
  env: {LOG_LEVEL: info, API_TOKEN: s3cr3t-value}
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
  queue: team-a
  roles:
    master: {}
    worker: {replicas: 2}
"""
SWEEP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: sweep}
spec:
  framework: pytorch
  image: registry.example/bert:1.4
  matrix: {lr: ["0.1", "0.2"]}
  env: {LR: "${{ matrix.lr }}"}
"""
MANIFESTS = """\
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: ml-prod}
stringData: {key: hunter2-hunter2}
---
# jobgen: ignore[mutable-image-tag, gpu-limits-match-requests] -- a test
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings}
    data: {a: b}
"""
BASE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: base}
spec:
  cluster: {platform: kubeflow, operators: {training-operator: 1.8.1}}
  defaults:
    nodeSelector: {pool: cpu}
    env: {LOG_LEVEL: debug, REGION: eu}
"""
DEV = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: dev}
spec:
  extends: [base]
  namespace: ml-dev
"""
PROD = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  extends: [base]
  namespace: ml-prod
  patches:
    - match: {names: [bert]}
      merge:
        replicas: 5
        env: {LOG_LEVEL: warning}
        roles: {worker: {replicas: 4}}
    - match: {kinds: [PyTorchJob]}
      manifest: {spec: {runPolicy: {backoffLimit: 3}}}
---
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  patches:
    - match: {names: [sweep*]}
      merge: {env: {EXTRA: "1"}}
"""
USES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team-a, namespace: ml-prod}
spec: {clusterQueue: gpus}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune, namespace: ml-prod}
spec:
  runtimeRef: {name: torch}
---
apiVersion: v1
kind: Pod
metadata: {name: uses, namespace: ml-prod}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: registry.example/main:1
      command: &words [a, b]
      args: *words
      env: [{name: K, valueFrom: {secretKeyRef: {name: token, key: key}}}]
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec: {template: {spec: {replicatedJobs: []}}}
"""
SETTINGS = """\
environments: [dev, prod]
rules: {mutable-image-tag: error}
mandatory: [gpu-limits-match-requests, own-policy]
"""
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own-policy}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "object.metadata.name != 'x'", message: no x}]
"""
RENDERED = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: bert
  namespace: ml-prod
  annotations:
    jobgen.dev/source: jobs/nlp/bert.yaml
spec:
  runPolicy:
    backoffLimit: 3
  pytorchReplicaSpecs:
    Worker:
      replicas: 4
"""
FILES = {
    "jobs/nlp/bert.yaml": BERT,
    "jobs/sweep.yaml": SWEEP,
    "jobs/manifests.yaml": MANIFESTS,
    "jobs/uses.yaml": USES,
    "runtimes/torch.yaml": RUNTIME,
    "overlays/base/overlay.yaml": BASE,
    "overlays/dev/overlay.yaml": DEV,
    "overlays/prod/overlay.yaml": PROD,
    "jobgen.yaml": SETTINGS,
    "policies/own.yaml": POLICY,
    "rendered/prod/ml-prod/pytorchjob-bert.yaml": RENDERED,
    "rendered/prod/jobgen.lock.json": "{}\n",
}


def write_files(folder: Path) -> Path:
    """Write the repository to a folder."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def find_mark(text: str, marked: str) -> tuple[int, int]:
    """Return line and column of a mark in a part of a text: `  na¦me: x` is in the first `  name: x`."""
    assert marked.replace("¦", "") in text, marked
    before = text[: text.index(marked.replace("¦", "")) + marked.index("¦")]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
