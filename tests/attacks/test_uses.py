"""What a team member writes to get more than the team may use, in every place where an object can hold it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jobgen

TEAMS = """\
teams:
  t:
    folders: [jobs/t]
    kinds: ["*"]
    namespaces: [t]
    queues: [t]
    serviceAccounts: [t-*]
    budget: {gpus: 16, devices: [{resource: nvidia.com/gpu, nodeSelector: {gpu: a100}, max: 8}]}
  v: {folders: [jobs/v], kinds: ["*"], namespaces: [v], queues: [v], serviceAccounts: [v, v-*]}
"""
QUEUED = {"kueue.x-k8s.io/queue-name": "t"}
Tree = dict[str, Any]


def container(gpus: Any = 8, **fields: Any) -> Tree:
    amounts = {"cpu": 1, "memory": "1Gi", **({"nvidia.com/gpu": gpus} if gpus else {})}
    return {"name": "main", "image": "registry.example.com/a:1", "resources": {"limits": amounts}, **fields}


def pod(gpus: Any = 8, **fields: Any) -> Tree:
    return {"restartPolicy": "Never", "containers": [container(gpus)], **fields}


def make(version: str, kind: str, spec: Any, name: str = "a", **metadata: Any) -> Tree:
    place = {"name": name, "namespace": "t", "labels": QUEUED, **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": place, "spec": spec}


def replicated(version: str, kind: str, gpus: Any = 8, name: str = "a", **spec: Any) -> Tree:
    """An object whose pods are like those of a Deployment."""
    template = {"metadata": {"labels": {"app": "a", **QUEUED}}, "spec": {"containers": [container(gpus)]}}
    return make(version, kind, {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec}, name)


def deployment(replicas: int = 1, gpus: Any = 8) -> Tree:
    return replicated("apps/v1", "Deployment", gpus, replicas=replicas)


def batch_job(gpus: Any = 8, **fields: Any) -> Tree:
    return {"parallelism": 1, "template": {"metadata": {"labels": QUEUED}, "spec": pod(gpus)}, **fields}


def job(gpus: Any = 8, metadata: Mapping[str, Any] = {}, spec: Mapping[str, Any] = {}, **fields: Any) -> Tree:
    made = make("batch/v1", "Job", {**batch_job(gpus), **fields}, **metadata)
    made["spec"]["template"]["spec"].update(spec)
    return made


def pytorch(replicas: int = 1, gpus: Any = 8, **spec: Any) -> Tree:
    worker = {"replicas": replicas, "template": {"spec": {"containers": [container(gpus, name="pytorch")]}}}
    return make("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": worker}, **spec})


def scaler(version: str, kind: str, target: Tree, **spec: Any) -> Tree:
    reference = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": target["metadata"]["name"]}
    return make(version, kind, {"scaleTargetRef": reference, **spec}, "scaler")


def hpa(target: Tree, most: int = 100) -> Tree:
    return scaler("autoscaling/v2", "HorizontalPodAutoscaler", target, maxReplicas=most)


def rollout(target: Tree, **spec: Any) -> Tree:
    reference = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": target["metadata"]["name"]}
    return make("argoproj.io/v1alpha1", "Rollout", {"workloadRef": reference, **spec}, "r")


def workflow(*templates: Tree, **spec: Any) -> Tree:
    first = {"entrypoint": templates[0]["name"], "templates": list(templates), "podMetadata": {"labels": QUEUED}}
    return make("argoproj.io/v1alpha1", "Workflow", {**first, **spec})


TRAIN = {"name": "train", "container": container()}


def steps(**fields: Any) -> Tree:
    return {"name": "start", "steps": [[{"name": "s", "template": "train", **fields}]]}


def creating(**resource: Any) -> Tree:
    return workflow({"name": "start", "resource": {"action": "create", **resource}})


def mutex(name: str) -> Tree:
    return {**TRAIN, "synchronization": {"mutex": {"name": name}}}


def katib(trial: Tree, **spec: Any) -> Tree:
    return make("kubeflow.org/v1beta1", "Experiment", {**spec, "trialTemplate": {"trialSpec": trial}})


def model(**predictor: Any) -> Tree:
    return make("serving.kserve.io/v1beta1", "InferenceService", {"predictor": predictor})


def knative(**annotations: str) -> Tree:
    scale = {f"autoscaling.knative.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    template = {"metadata": {"annotations": scale, "labels": QUEUED}, "spec": {"containers": [container()]}}
    return make("serving.knative.dev/v1", "Service", {"template": template})


def tekton(kind: str, spec: Any) -> Tree:
    return make("tekton.dev/v1", kind, spec)


def spark(conf: Any = (), driver: Any = (), executor: Any = (), **spec: Any) -> Tree:
    known = {"type": "Python", "mode": "cluster", "sparkVersion": "3.5.0", "mainApplicationFile": "local:///a.py"}
    roles = {"driver": dict(driver), "executor": {"instances": 1, **dict(executor)}}
    return make("sparkoperator.k8s.io/v1beta2", "SparkApplication", {**known, **roles, "sparkConf": dict(conf), **spec})


def ray(group: Mapping[str, Any], **spec: Any) -> Tree:
    head = {"rayStartParams": {}, "template": {"spec": pod(0)}}
    workers = [{"groupName": "a", "rayStartParams": {}, "template": {"spec": pod()}, **group}]
    return make("ray.io/v1", "RayCluster", {"headGroupSpec": head, "workerGroupSpecs": workers, **spec})


def cron(policy: str = "", deadline: int = 0, schedule: str = "* * * * *") -> Tree:
    chosen = {"concurrencyPolicy": policy} if policy else {}
    ends = {"activeDeadlineSeconds": deadline} if deadline else {}
    template = {"metadata": {"labels": QUEUED}, "spec": batch_job(**ends)}
    return make("batch/v1", "CronJob", {"schedule": schedule, **chosen, "jobTemplate": template})


def affinity(kind: str, **term: Any) -> Tree:
    required = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, **term}]
    return job(spec={"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": required}}})


def claim(**spec: Any) -> Tree:
    amounts = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return make("v1", "PersistentVolumeClaim", {**amounts, "storageClassName": "", **spec})


BUDGET, UNQUEUED, UNKNOWN = "team-budget-exceeded", "unqueued-accelerators", "uncounted-accelerators"
ANY = -1
"""For an attack that lets the team use any number of GPUs."""
RAW_POD = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "z"}, "spec": pod(64)})


class Attack(NamedTuple):
    rule: str
    objects: Sequence[Tree]
    gpus: int = 0
    """How many GPUs the finding names; 0 if it names none."""


def attack(rule: str, *objects: Tree, gpus: int = 0) -> Attack:
    return Attack(rule, objects, gpus)


SCALED = {
    "Rollout of a Deployment without replicas": attack(
        BUDGET, deployment(0), rollout(deployment(), replicas=50), gpus=400
    ),
    "paused replicas of KEDA": attack(
        BUDGET,
        deployment(),
        {
            **(paused := scaler("keda.sh/v1alpha1", "ScaledObject", deployment(), maxReplicaCount=1, triggers=[])),
            "metadata": {
                **paused["metadata"],
                "annotations": {"autoscaling.keda.sh/paused-replicas": "500"},
            },
        },
        gpus=4000,
    ),
    "PyTorchJob": attack(BUDGET, pytorch(), hpa(pytorch()), gpus=800),
    "CloneSet": attack(
        BUDGET,
        replicated("apps.kruise.io/v1alpha1", "CloneSet", replicas=1),
        hpa(replicated("apps.kruise.io/v1alpha1", "CloneSet")),
        gpus=800,
    ),
    "JobFlow": attack(
        BUDGET,
        make(
            "flow.volcano.sh/v1alpha1",
            "JobTemplate",
            {"tasks": [{"name": "a", "replicas": 100, "template": {"spec": pod()}}]},
        ),
        make("flow.volcano.sh/v1alpha1", "JobFlow", {"flows": [{"name": "a"}]}, "f"),
        gpus=800,
    ),
    "mutex by parameter": attack(
        BUDGET, workflow(steps(withSequence={"count": "100"}), mutex("{{inputs.parameters.i}}")), gpus=800
    ),
    "parallel trials": attack(
        BUDGET, katib(make("batch/v1", "Job", batch_job()), parallelTrialCount=100, maxTrialCount=100), gpus=800
    ),
    "nodes of a model": attack(
        BUDGET,
        model(
            model={"resources": container()["resources"]},
            workerSpec={"pipelineParallelSize": 64, "containers": [container()]},
        ),
        gpus=512,
    ),
    "least scale of Knative": attack(BUDGET, knative(min_scale="100", max_scale="100"), gpus=800),
    "amounts of a TaskRun": attack(
        BUDGET,
        tekton(
            "TaskRun",
            {"taskSpec": {"steps": [{"name": "a", "computeResources": {"limits": {"nvidia.com/gpu": "64"}}}]}},
        ),
        gpus=64,
    ),
    "CronJob whose runs overlap": attack(BUDGET, cron("Allow"), gpus=ANY),
    "elastic replicas": attack(
        BUDGET, pytorch(elasticPolicy={"minReplicas": 1, "maxReplicas": 1000, "metrics": []}), gpus=8000
    ),
    "artifact": attack(BUDGET, creating(manifestFrom={"artifact": {"name": "a", "raw": {"data": RAW_POD}}}), gpus=64),
}
ATTACKS = SCALED
VOLUME_OF_V = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "vd", "labels": {"pv": "vd"}},
    "spec": {
        "capacity": {"storage": "1Ti"},
        "accessModes": ["ReadWriteMany"],
        "nfs": {"server": "nfs.example.com", "path": "/v/d"},
    },
}


def write(root: Path, objects: Sequence[Tree], settings: str = TEAMS) -> Path:
    (root / "jobgen.yaml").write_text(settings)
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {operators: {kueue: 0.17.0}}}\n"
    files = {"overlays/prod/overlay.yaml": overlay, "jobs/v/volume.json": json.dumps(VOLUME_OF_V)}
    files |= {f"jobs/t/{index}.json": json.dumps(each) for index, each in enumerate(objects)}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def find(root: Path, objects: Sequence[Tree]) -> list[jobgen.Finding]:
    return list(jobgen.lint(write(root, objects)).findings)


@pytest.mark.parametrize("way", ATTACKS)
def test_what_a_team_may_not_use_is_an_error(tmp_path: Path, way: str) -> None:
    rule, objects, gpus = ATTACKS[way]

    found = [each for each in find(tmp_path, objects) if each.rule == rule]

    assert {each.severity for each in found} == {"error"}, way
    assert all(each.location.file.startswith("jobs/t/") and each.location.line for each in found)
    wanted = "can request any number of GPUs" if gpus == ANY else f"requests {gpus} GPUs"
    assert not gpus or wanted in found[0].message
