"""A repository with jobs of many shapes, for the tests of the page of a job."""

from __future__ import annotations

from pathlib import Path

_HEAD = "apiVersion: jobgen.dev/v1\nkind: {kind}\nmetadata: {{name: {name}{more}}}\nspec:\n"
REGIONS = tuple(f"region-{number}" for number in range(7))
ENVIRONMENTS = ("dev", "prod", "volcano", "trainer", "ray", *REGIONS)
HOSTILE_FILE = "jobs/sp ace#1?ü'\".yaml"


def _overlay(name: str, text: str) -> str:
    return _HEAD.format(kind="Overlay", name=name, more="") + text


def _job(name: str, text: str, more: str = "") -> str:
    return _HEAD.format(kind="TrainingJob", name=name, more=more) + text


OVERLAYS = {
    "base": "  defaults: {env: {LEVEL: base}, resources: {cpu: 1}, labels: {layer: base}}\n",
    "middle": "  extends: [base]\n  defaults: {env: {LEVEL: middle}, resources: {cpu: 2}}\n",
    "prod": (
        "  extends: [middle]\n  namespace: ml-prod\n  patches:\n"
        "  - match: {frameworks: [pytorch]}\n    merge: {env: {LEVEL: prod}, labels: {layer: prod}}\n"
        "  - match: {names: [bert]}\n    merge: {roles: {worker: {replicas: 4}}, command: [python, a.py, -e=4]}\n"
    ),
    "dev": "  extends: [base]\n  namespace: ml-dev\n",
    "volcano": "  extends: [base]\n  namespace: ml\n  cluster: {platform: volcano}\n",
    "trainer": "  extends: [middle]\n  namespace: ml\n  cluster: {platform: trainer}\n",
    "ray": "  extends: [base]\n  namespace: ml\n  cluster: {platform: ray}\n",
    **{
        name: f"  extends: [base]\n  namespace: ml-{name}\n  defaults: {{labels: {{region: {name}}}}}\n"
        for name in REGIONS
    },
}
_LONG = "".join(f"  key-{number}: value {number}\n" for number in range(3000))
JOBS = {
    "jobs/bert.yaml": _job(
        "bert",
        """\
  framework: pytorch
  image: registry.example.com/bert:1.4.0
  command: [python, train.py, --epochs=1]
  env: {LEVEL: job, EMPTY: "", TEXT: "one\\ntwo\\n"}
  resources: {memory: 2Gi}
  configs:
    training:
      data:
        training.yaml: |
          epochs: 3
          lr: 0.1
      mountPath: /etc/training
  roles: {master: {}, worker: {replicas: 1}}
""",
        ", labels: {team: nlp}",
    ),
    "jobs/mpi.yaml": _job(
        "mpi",
        "  framework: mpi\n  image: x:1\n  resources: {memory: 1Gi}\n"
        "  roles: {launcher: {command: [mpirun, train]}, worker: {replicas: 2}}\n",
    ),
    "jobs/sweep.yaml": _job(
        "sweep",
        '  framework: pytorch\n  image: x:1\n  command: [python, train.py, "--lr=${{ matrix.lr }}"]\n'
        "  resources: {memory: 1Gi}\n  matrix: {lr: [0.1, 0.01]}\n",
    ),
    "jobs/raw.yaml": (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: raw, labels: {team: nlp}}\nspec:\n"
        "  pytorchReplicaSpecs:\n    Worker:\n      replicas: 1\n      template:\n        spec:\n"
        "          containers:\n          - name: pytorch\n            image: x:1\n"
        '            env: [{name: A, value: "1"}]\n            args: []\n'
    ),
    "jobs/long.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: long}}\ndata:\n{_LONG}",
    HOSTILE_FILE: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\ndata: {a: <b>x</b>}\n",
}


def write_jobs(folder: Path) -> Path:
    """Write the repository."""
    files = {
        "jobgen.yaml": f"environments: [{', '.join(ENVIRONMENTS)}]\n",
        **{f"overlays/{name}/overlay.yaml": _overlay(name, text) for name, text in OVERLAYS.items()},
        **JOBS,
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")
    return folder
