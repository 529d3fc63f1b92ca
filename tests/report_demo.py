"""A small fleet of believable jobs under Git, with queues, prices and a change, for the pictures of docs/report.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gitrepository import Repository

GPU = "nvidia.com/gpu"
ENVIRONMENTS = {"dev": 1, "staging": 2, "prod": 4}
"""With how many replicas large jobs run."""
TEAMS = {
    "language": (
        ("ada", "bert-large", 8),
        ("ada", "bert-distill", 4),
        ("grace", "llama-8b-sft", 8),
        ("grace", "llama-70b-dpo", 8),
    ),
    "vision": (("alan", "vit-pretrain", 8), ("alan", "detr-finetune", 4), ("edsger", "sam-lora", 2)),
    "speech": (("barbara", "whisper-small", 4), ("barbara", "wav2vec-adapt", 2), ("tony", "tts-voices", 4)),
    "ranking": (("donald", "two-tower", 2), ("donald", "ctr-daily", 1), ("leslie", "embeddings", 4)),
}
FRAMEWORKS = ("pytorch", "pytorch", "jax", "pytorch", "tensorflow")
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}, owner: {owner}}}}}
spec:
  framework: {framework}
  roles: {{worker: {{replicas: {replicas}}}}}
  queue: {queue}
  image: registry.example.com/{team}/{name}:{tag}
  command: [python, train.py, --config, configs/{name}.yaml]
  resources: {{cpu: 12, memory: 96Gi, gpu: {gpus}}}
  shm: 8Gi
  env: {{WANDB_PROJECT: {team}}}
{more}"""
SWEEP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: lora-rank, labels: {team: language, owner: grace}}
spec:
  framework: pytorch
  queue: research
  image: registry.example.com/language/lora:2.3.0
  command: [python, train.py, "--rank=${{ matrix.rank }}", "--lr=${{ matrix.lr }}"]
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
  shm: 2Gi
  runPolicy: {activeDeadlineSeconds: 14400}
  matrix: {rank: [8, 16, 32], lr: [1e-4, 3e-4]}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: {name}}}
spec:
  namespace: ml-{name}
  cluster:
    state: cluster
    kueue: {{version: "0.19", frameworks: [kubeflow.org/pytorchjob, kubeflow.org/jaxjob, kubeflow.org/tfjob]}}
  defaults:
    labels: {{stage: {name}}}
    env: {{NCCL_DEBUG: {debug}}}
  patches:
    - match: {{names: [bert-large, llama-70b-dpo, vit-pretrain]}}
      merge:
        roles: {{worker: {{replicas: {replicas}}}}}
        nodeSelector: {{pool: {name}-h100}}
"""
RUNS = {"tts-voices": "  run: {state: paused}\n", "vit-pretrain": "  run: {expected: 20h-30h, deadline: 2026-03-03}\n"}
PRICES = "currency: USD\nprices: [{resource: nvidia.com/gpu, hourly: 2.8}]\n"


def list_queues() -> Iterator[dict]:
    """Queues of one cohort, whose quota is less than what production requests."""
    for queue, gpus in (("research", 96), ("production", 64)):
        amounts = {"cpu": gpus * 12, "memory": f"{gpus * 16}Gi", GPU: gpus}
        resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
        group = {"coveredResources": list(amounts), "flavors": [{"name": "h100", "resources": resources}]}
        spec = {"namespaceSelector": {}, "cohortName": "company", "resourceGroups": [group]}
        yield make_object("ClusterQueue", queue, spec)
        for env in ENVIRONMENTS:
            yield make_object("LocalQueue", queue, {"clusterQueue": queue}, f"ml-{env}")
    yield make_object("ResourceFlavor", "h100", {})


def make_object(kind: str, name: str, spec: dict, namespace: str = "") -> dict:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def list_files() -> Iterator[tuple[str, str]]:
    yield "jobgen.yaml", f"environments: [{', '.join(ENVIRONMENTS)}]\n"
    yield "prices.yaml", PRICES
    yield "cluster/state.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": list(list_queues())})
    for name, replicas in ENVIRONMENTS.items():
        debug = "WARN" if name == "prod" else "INFO"
        yield f"overlays/{name}/overlay.yaml", OVERLAY.format(name=name, replicas=replicas, debug=debug)
    number = 0
    for team, jobs in TEAMS.items():
        for owner, name, gpus in jobs:
            deadline = f"  runPolicy: {{activeDeadlineSeconds: {7200 * (1 + number % 4)}}}\n"
            values = {
                "queue": "production" if number % 3 == 0 else "research",
                "framework": FRAMEWORKS[number % len(FRAMEWORKS)],
                "replicas": 1 + number % 3,
                "tag": "latest" if number % 6 == 5 else f"1.{number}.0",
                "more": RUNS.get(name, f"  run: {{expected: {3 + number * 2}h}}\n") + (deadline if number % 2 else ""),
            }
            yield f"jobs/{team}/{name}.yaml", JOB.format(name=name, team=team, owner=owner, gpus=gpus, **values)
            number += 1
    yield "jobs/language/lora-rank.yaml", SWEEP


def write_demo(folder: Path) -> Path:
    """Write the repository with two commits; the second one scales production up, and removes and adds a job."""
    for path, content in list_files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")
    git = Repository(folder, folder.parent)
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-03-02T09:00:00Z")
    git.environ |= dates
    git.commit()
    overlay = folder / "overlays/prod/overlay.yaml"
    text = overlay.read_text("utf-8")
    overlay.write_text(
        text.replace("replicas: 4", "replicas: 6").replace("NCCL_DEBUG: WARN", "NCCL_DEBUG: INFO"), "utf-8"
    )
    (folder / "jobs/vision/sam-lora.yaml").rename(folder / "jobs/vision/sam-2-lora.yaml")
    renamed = folder / "jobs/vision/sam-2-lora.yaml"
    renamed.write_text(renamed.read_text("utf-8").replace("name: sam-lora", "name: sam-2-lora"), "utf-8")
    git.commit()
    return folder
