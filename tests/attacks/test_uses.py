"""What a team member writes to get more than the team may use, in every place where an object can hold it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jobgen
from jobgen.check.repeated_runs import count_starts
from jobgen.check.team_volumes import find_foreign_volumes, find_volume_uses
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster
from jobgen.spec.teams import TeamScope

TEAMS = """\
teams:
  t:
    folders: [jobs/t]
    kinds: ["*", NetworkPolicy]
    namespaces: [t]
    queues: [t]
    serviceAccounts: [t-*]
    budget: {gpus: 16, devices: [{resource: nvidia.com/gpu, nodeSelector: {gpu: a100}, max: 8}]}
  v:
    folders: [jobs/v]
    kinds: ["*", PersistentVolume, LocalQueue]
    namespaces: [v]
    queues: [v]
    serviceAccounts: [v, v-*]
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
NAMESPACE, ACCOUNT, VOLUME = "foreign-namespace", "foreign-service-account", "foreign-volume"
KIND = "kind-not-allowed"
DEVICES, TRAFFIC, TRACKING = "unrequested-devices", "foreign-traffic", "team-untracked-object"
ANY = -1
"""For an attack that lets the team use any number of GPUs."""
RAW_POD = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "z"}, "spec": pod(64)})


POD_IN_BRACES = """\
kind: Pod
apiVersion: v1
spec:
  priority: {{inputs.parameters.n}}
  containers: [{name: a, resources: {limits: {nvidia.com/gpu: 64}}}]
"""
CONFIG_IN_BRACES = """\
apiVersion: v1
kind: ConfigMap
metadata: {generateName: a-, namespace: t}
data: {n: {{inputs.parameters.n}}}
"""


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
REACHING = {
    "namespace of a command": attack(NAMESPACE, creating(manifest=RAW_POD, flags=["--namespace=v"])),
    "account of a task": attack(
        ACCOUNT, tekton("PipelineRun", {"taskRunSpecs": [{"pipelineTaskName": "a", "taskServiceAccountName": "v"}]})
    ),
    "namespaces of an affinity": attack(NAMESPACE, affinity("podAntiAffinity", namespaces=["v"])),
    "namespaces of a monitor": attack(
        NAMESPACE,
        make("monitoring.coreos.com/v1", "PodMonitor", {"selector": {}, "namespaceSelector": {"matchNames": ["v"]}}),
    ),
    "nodes in settings of Spark": attack(
        BUDGET,
        spark(
            {"spark.kubernetes.node.selector.gpu": "a100"}, executor={"gpu": {"name": "nvidia.com/gpu", "quantity": 9}}
        ),
    ),
}
OTHERS = {
    "controller": attack(
        UNQUEUED,
        job(
            metadata={
                "ownerReferences": [
                    {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "b", "uid": "0", "controller": True}
                ]
            }
        ),
    ),
    "Workload of another": attack(
        UNQUEUED, job(metadata={"labels": {**QUEUED, "kueue.x-k8s.io/prebuilt-workload-name": "w"}})
    ),
    "CDI": attack(
        DEVICES,
        make("v1", "Pod", pod(0), annotations={"cdi.k8s.io/gpus": "nvidia.com/gpu=all"}),
    ),
    "all devices": attack(
        DEVICES,
        make("v1", "Pod", {"containers": [container(0, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])]}),
    ),
    "address": attack(TRAFFIC, make("v1", "Service", {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]})),
    "host": attack(
        TRAFFIC, make("networking.istio.io/v1", "VirtualService", {"hosts": ["api.v.svc.cluster.local"], "http": []})
    ),
    "claim by labels": attack(VOLUME, claim(selector={"matchLabels": {"pv": "vd"}})),
    "inline volume": attack(
        VOLUME, job(spec={"volumes": [{"name": "d", "nfs": {"server": "nfs.example.com", "path": "/v/d"}}]})
    ),
    "suspended job of a default queue": attack(
        BUDGET,
        make("batch/v1", "Job", {"suspend": True, **batch_job(64)}, labels={}),
        make("kueue.x-k8s.io/v1beta1", "LocalQueue", {"clusterQueue": "t"}, "default"),
        gpus=64,
    ),
    "forged tracking id": attack(
        TRACKING, job(metadata={"annotations": {"argocd.argoproj.io/tracking-id": "v:batch/Job:v/a"}})
    ),
    "finalizer": attack(
        TRACKING,
        job(
            metadata={
                "finalizers": ["t.example.com/keep"],
                "annotations": {"argocd.argoproj.io/sync-options": "Prune=false"},
            }
        ),
    ),
}
MORE_SCALED = {
    "runs that overlap until their deadline": attack(BUDGET, cron(deadline=300), gpus=40),
    "runs of a Workflow": attack(
        BUDGET,
        make(
            "argoproj.io/v1alpha1", "CronWorkflow", {"schedules": ["@daily"], "workflowSpec": workflow(TRAIN)["spec"]}
        ),
        gpus=ANY,
    ),
    "thousands of schedules": attack(
        BUDGET,
        make(
            "argoproj.io/v1alpha1",
            "CronWorkflow",
            {
                "schedules": ["0 0 * * *"] * 3000,
                "workflowSpec": {**workflow(TRAIN)["spec"], "activeDeadlineSeconds": 60},
            },
        ),
        gpus=3000 * 8,
    ),
    "runs of Ray": attack(
        BUDGET,
        make(
            "ray.io/v1",
            "RayCronJob",
            {"schedule": "* * * * *", "jobTemplate": {"rayClusterSpec": ray({"replicas": 1})["spec"]}},
        ),
        gpus=ANY,
    ),
    "workers of Ray": attack(
        BUDGET, ray({"replicas": 1, "minReplicas": 0, "maxReplicas": 100}, enableInTreeAutoscaling=True), gpus=800
    ),
    "executors": attack(
        BUDGET,
        spark(
            executor={"gpu": {"name": "nvidia.com/gpu", "quantity": 8}},
            dynamicAllocation={"enabled": True, "maxExecutors": 100},
        ),
        gpus=800,
    ),
    "Rollout that is scaled": attack(
        BUDGET, deployment(0), rollout(deployment()), hpa(rollout(deployment())), gpus=800
    ),
    "template that a Rollout uses": attack(
        BUDGET,
        {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "a", "namespace": "t"},
            "template": {"metadata": {"labels": QUEUED}, "spec": pod()},
        },
        rollout({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"}}, replicas=50),
        gpus=400,
    ),
    "template of a Workflow": attack(
        BUDGET,
        make("argoproj.io/v1alpha1", "WorkflowTemplate", workflow(steps(withItems=list(range(9))), TRAIN)["spec"]),
        make("argoproj.io/v1alpha1", "Workflow", {"workflowTemplateRef": {"name": "a"}}, "w"),
        gpus=72,
    ),
    "nodes of a model whose runtime has the containers": attack(
        BUDGET, model(model={}, workerSpec={"pipelineParallelSize": 9, "tensorParallelSize": 4}), gpus=32
    ),
    "scale of Knative without a limit": attack(BUDGET, knative(), gpus=ANY),
    "least scale of a model": attack(
        BUDGET,
        {
            **(scaled := model(model={"resources": container()["resources"]})),
            "metadata": {**scaled["metadata"], "annotations": {"autoscaling.knative.dev/minScale": "9"}},
        },
        gpus=72,
    ),
    "matrix of tasks": attack(
        BUDGET,
        tekton(
            "PipelineRun",
            {
                "pipelineSpec": {
                    "tasks": [
                        {
                            "name": "a",
                            "matrix": {"params": [{"name": "i", "value": list("abcdefghi")}]},
                            "taskSpec": {
                                "steps": [{"name": "a", "computeResources": {"limits": {"nvidia.com/gpu": 8}}}]
                            },
                        }
                    ]
                }
            },
        ),
        gpus=72,
    ),
    "pods on every node": attack(BUDGET, replicated("apps/v1", "DaemonSet"), gpus=ANY),
    "trials that are distributed": attack(BUDGET, katib(pytorch(replicas=4)), gpus=96),
    "amount in braces": attack(
        BUDGET,
        creating(manifest=POD_IN_BRACES),
        gpus=64,
    ),
}
MORE_REACHING = {
    "namespaces that a selector names": attack(
        NAMESPACE, affinity("podAffinity", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "v"}})
    ),
    "all namespaces": attack(NAMESPACE, affinity("podAntiAffinity", namespaceSelector={})),
    "namespaces by labels": attack(
        NAMESPACE,
        affinity("podAntiAffinity", namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
    ),
    "any namespace of a monitor": attack(
        NAMESPACE,
        make("monitoring.coreos.com/v1", "ServiceMonitor", {"selector": {}, "namespaceSelector": {"any": True}}),
    ),
    "short flag": attack(NAMESPACE, creating(manifest=RAW_POD, flags=["-n", "v"])),
    "joined flag": attack(NAMESPACE, creating(manifest=RAW_POD, flags=["-nv"])),
    "another user": attack(ACCOUNT, creating(manifest=RAW_POD, flags=["--as=system:serviceaccount:t:v"])),
    "namespace of an artifact": attack(
        NAMESPACE,
        creating(
            manifestFrom={"artifact": {"name": "a", "raw": {"data": RAW_POD.replace('"z"', '"z", "namespace": "v"')}}}
        ),
    ),
    "namespace in any text": attack(
        NAMESPACE,
        make(
            "example.com/v1",
            "Bundle",
            {"objects": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: v}\n"},
        ),
    ),
    "account of settings": attack(ACCOUNT, spark({"spark.kubernetes.authenticate.driver.serviceAccountName": "v"})),
    "artifact of a bucket": attack(KIND, creating(manifestFrom={"artifact": {"name": "a", "s3": {"key": "a.yaml"}}})),
    "text of a step": attack(KIND, creating(manifest="{{inputs.parameters.object}}")),
}
MORE_OTHERS = {
    "CDI in a template": attack(
        DEVICES,
        {
            **(hidden := job(0)),
            "spec": {
                **hidden["spec"],
                "template": {"metadata": {"annotations": {"cdi.k8s.io/a": "nvidia.com/gpu=0"}}, "spec": pod(0)},
            },
        },
    ),
    "devices of an init container": attack(
        DEVICES, job(spec={"initContainers": [container(0, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}])]})
    ),
    "host of all Services": attack(
        TRAFFIC, make("networking.istio.io/v1", "VirtualService", {"hosts": ["*.svc.cluster.local"], "http": []})
    ),
    "short host": attack(TRAFFIC, make("networking.istio.io/v1", "VirtualService", {"hosts": ["api.v"], "http": []})),
    "host of an Ingress": attack(
        TRAFFIC, make("networking.k8s.io/v1", "Ingress", {"rules": [{"host": "api.v.svc.cluster.local"}]})
    ),
    "claims by labels": attack(
        VOLUME,
        replicated(
            "apps/v1",
            "StatefulSet",
            0,
            volumeClaimTemplates=[
                {
                    "metadata": {"name": "d"},
                    "spec": claim(selector={"matchExpressions": [{"key": "pv", "operator": "Exists"}]})["spec"],
                }
            ],
        ),
    ),
    "inline volume above": attack(
        VOLUME, job(spec={"volumes": [{"name": "d", "nfs": {"server": "nfs.example.com", "path": "/"}}]})
    ),
}
LATER = {
    "semaphore of the team": attack(
        BUDGET,
        workflow(
            steps(withSequence={"count": "100"}),
            {**TRAIN, "synchronization": {"semaphore": {"configMapKeyRef": {"name": "s", "key": "n"}}}},
        ),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": "t"}, "data": {"n": "1000"}},
        gpus=800,
    ),
    "autoscaler of another kind": attack(
        BUDGET,
        deployment(),
        scaler("datadoghq.com/v1alpha1", "WatermarkPodAutoscaler", deployment(), maxReplicas=100),
        gpus=800,
    ),
    "suspended Jobs that a queue starts": attack(
        BUDGET,
        {
            **(paused_runs := cron("Forbid")),
            "spec": {
                **paused_runs["spec"],
                "jobTemplate": {"metadata": {"labels": QUEUED}, "spec": batch_job(64, suspend=True)},
            },
        },
        gpus=64,
    ),
    "action in a parameter": attack(
        KIND,
        workflow(
            {"name": "a", "resource": {"action": "{{inputs.parameters.a}}", "manifest": "{{inputs.parameters.b}}"}}
        ),
    ),
    "names of namespaces": attack(
        NAMESPACE,
        make(
            "monitoring.coreos.com/v1alpha1",
            "ScrapeConfig",
            {"kubernetesSDConfigs": [{"namespaces": {"names": ["v"]}}]},
        ),
    ),
    "network": attack(NAMESPACE, job(metadata={"annotations": {"k8s.v1.cni.cncf.io/networks": "v/net"}})),
    "network as JSON": attack(
        NAMESPACE,
        job(metadata={"annotations": {"k8s.v1.cni.cncf.io/networks": '[{"name": "net", "namespace": "v"}]'}}),
    ),
    "devices of a ConfigMap": attack(
        DEVICES,
        job(spec={"containers": [{**container(0), "envFrom": [{"configMapRef": {"name": "e"}}]}]}),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "e", "namespace": "t"},
            "data": {"NVIDIA_VISIBLE_DEVICES": "all"},
        },
    ),
    "access of an administrator": attack(
        DEVICES,
        make(
            "resource.k8s.io/v1",
            "ResourceClaim",
            {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}]}},
        ),
    ),
    "another spelling of a path": attack(
        VOLUME, job(spec={"volumes": [{"name": "d", "nfs": {"server": "NFS.example.com.", "path": "/v/./d"}}]})
    ),
    "claim for any volume": attack(VOLUME, claim(selector={})),
    "object that Flux keeps": attack(
        TRACKING,
        job(
            metadata={
                "finalizers": ["t.example.com/keep"],
                "annotations": {"kustomize.toolkit.fluxcd.io/prune": "Disabled"},
            }
        ),
    ),
    "objects in an AppWrapper": attack(
        BUDGET,
        make(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            {"components": [{"template": deployment()}, {"template": hpa(deployment())}]},
        ),
        gpus=800,
    ),
    "items of a List": attack(
        BUDGET,
        {"apiVersion": "v1", "kind": "List", "items": [deployment(0), rollout(deployment(), replicas=50)]},
        gpus=400,
    ),
}


def creating_jobs(times: int = 8, **template: Any) -> Tree:
    """A Workflow whose steps create a Job one after another."""
    made = {**job(), "metadata": {"generateName": "x-", "namespace": "t", "labels": QUEUED}}
    resource = {"action": "create", "manifest": json.dumps(made), **template.pop("resource", {})}
    calls = [[{"name": f"s{number}", "template": "make"}] for number in range(times)]
    return workflow({"name": "start", "steps": calls}, {"name": "make", "resource": resource, **template})


def slow_to_end(tree: Tree) -> Tree:
    tree["spec"]["jobTemplate"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 3600
    return tree


def updated(surge: Any, **spec: Any) -> Tree:
    return replicated("apps/v1", "Deployment", replicas=2, strategy={"rollingUpdate": {"maxSurge": surge}}, **spec)


def volume(**source: Any) -> Tree:
    return job(spec={"volumes": [{"name": "d", **source}]})


ENDS = {"successCondition": "status.succeeded > 0", "failureCondition": "status.failed > 0"}
LOST = {"successCondition": "status.succeeded > 0", "failureCondition": "status.active > 0"}
EARLY = {"successCondition": "status.active > 0"}
DAEMON = {**TRAIN, "daemon": True}
IN_A_ROW = {"name": "start", "steps": [[{"name": f"s{number}", "template": "train"}] for number in range(8)]}
DEVICE_MOUNT = {"volumeMounts": [{"name": "d", "mountPath": "/run/nvidia-container-devices/all"}]}
KEPT = {"argocd.argoproj.io/sync-options": "Prune=false"}
LATEST = {
    "daemons of a Workflow": attack(BUDGET, workflow(IN_A_ROW, DAEMON), gpus=64),
    "objects that steps create": attack(BUDGET, creating_jobs(), gpus=64),
    "objects that run when their step ends": attack(BUDGET, creating_jobs(resource=EARLY), gpus=64),
    "objects that steps give up": attack(BUDGET, creating_jobs(resource=LOST), gpus=64),
    "objects that a step creates again": attack(
        BUDGET,
        creating_jobs(1, retryStrategy={"limit": "50"}, resource={"failureCondition": "status.active > 0"}),
        gpus=51 * 8,
    ),
    "objects that outlive the runs of a Workflow": attack(
        BUDGET,
        make(
            "argoproj.io/v1alpha1",
            "CronWorkflow",
            {"schedule": "@daily", "concurrencyPolicy": "Forbid", "workflowSpec": creating_jobs(1)["spec"]},
        ),
        gpus=ANY,
    ),
    "replaced runs that do not end": attack(BUDGET, slow_to_end(cron("Replace", schedule="*/5 * * * *")), gpus=11 * 8),
    "runs that do not end": attack(BUDGET, slow_to_end(cron(deadline=60, schedule="*/5 * * * *")), gpus=11 * 8),
    "runs every few seconds": attack(BUDGET, cron(deadline=60, schedule="@every 5s"), gpus=12 * 8),
    "hook that each sync creates": attack(
        BUDGET,
        {
            **pytorch(),
            "metadata": {
                "generateName": "a-",
                "namespace": "t",
                "labels": QUEUED,
                "annotations": {"argocd.argoproj.io/hook": "PostSync"},
            },
        },
        gpus=ANY,
    ),
    "surge that stays": attack(BUDGET, updated("100%", minReadySeconds=2_000_000_000), gpus=32),
    "surge of many updates": attack(BUDGET, updated(100), gpus=102 * 8),
    "surge of groups": attack(
        BUDGET,
        make(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {
                "replicas": 1,
                "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 4}},
                "leaderWorkerTemplate": {"size": 4, "workerTemplate": {"metadata": {"labels": QUEUED}, "spec": pod()}},
            },
        ),
        gpus=20 * 8,
    ),
    "inline NFS of CSI": attack(
        VOLUME,
        volume(
            csi={
                "driver": "nfs.csi.k8s.io",
                "volumeAttributes": {"server": "nfs.example.com", "share": "/v", "subDir": "d"},
            }
        ),
    ),
    "devices by mounts": attack(DEVICES, make("v1", "Pod", {"containers": [container(0, **DEVICE_MOUNT)]})),
    **{
        f"devices of {vendor}": attack(
            DEVICES,
            make(
                "v1", "Pod", {"containers": [container(0, env=[{"name": f"{vendor}_VISIBLE_DEVICES", "value": "0-7"}])]}
            ),
        )
        for vendor in ("AMD", "ASCEND", "HABANA")
    },
    "identity by a label": attack(
        "team-cloud-identity",
        {**job(0), "metadata": {"name": "a", "namespace": "t", "labels": {"aadpodidbinding": "v"}}},
    ),
    "second name of a Service": attack(
        TRAFFIC, make("v1", "Service", {"type": "ExternalName", "externalName": "api.v.svc.cluster.local"})
    ),
    "Deployment that is not pruned": attack(
        TRACKING, {**deployment(), "metadata": {"name": "a", "namespace": "t", "labels": QUEUED, "annotations": KEPT}}
    ),
}
ATTACKS = {**SCALED, **MORE_SCALED, **REACHING, **MORE_REACHING, **OTHERS, **MORE_OTHERS, **LATER, **LATEST}
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

    all_found = find(tmp_path, objects)
    found = [each for each in all_found if each.rule == rule]

    assert "internal-error" not in {each.rule for each in all_found}
    assert {each.severity for each in found} == {"error"}, way
    assert all(each.location.file.startswith("jobs/t/") and each.location.line for each in found)
    wanted = "can request any number of GPUs" if gpus == ANY else f"requests {gpus} GPUs"
    assert not gpus or wanted in found[0].message


CONTROLS: Mapping[str, Sequence[Tree]] = {
    "objects that end with their steps": [creating_jobs(resource=ENDS, retryStrategy={"limit": 3})],
    "runs that wait for what they create": [
        make(
            "argoproj.io/v1alpha1",
            "CronWorkflow",
            {
                "schedule": "@daily",
                "concurrencyPolicy": "Forbid",
                "workflowSpec": creating_jobs(2, resource=ENDS)["spec"],
            },
        )
    ],
    "replaced runs": [cron("Replace", schedule="*/5 * * * *")],
    "usual updates": [updated("25%"), replicated("apps/v1", "Deployment", 0, "b", strategy={"type": "Recreate"})],
    "all at once": [updated("100%", minReadySeconds=30)],
    "Service of the platform": [
        make("v1", "Service", {"type": "ExternalName", "externalName": "a.b.svc.cluster.local"})
    ],
    "job that is not pruned": [
        {**job(), "metadata": {"name": "a", "namespace": "t", "labels": QUEUED, "annotations": KEPT}}
    ],
    "networks and mounts": [
        {
            **(fabric := job()),
            "spec": {
                **fabric["spec"],
                "template": {
                    "metadata": {"labels": QUEUED},
                    "spec": pod(
                        8,
                        containers=[
                            {
                                **container(),
                                "resources": {
                                    "limits": {
                                        "nvidia.com/gpu": 8,
                                        "cpu": 1,
                                        "memory": "1Gi",
                                        "rdma/hca": 1,
                                        "vpc.amazonaws.com/efa": 4,
                                        "smarter-devices/fuse": 1,
                                        "ephemeral-storage": "1Gi",
                                        "hugepages-2Mi": "1Gi",
                                    }
                                },
                            }
                        ],
                    ),
                },
            },
        }
    ],
    "daily runs": [cron("Forbid", schedule="@daily")],
    "runs that end before the next": [cron(deadline=3600, schedule="0 */2 * * *")],
    "two runs that overlap": [cron(deadline=7200, schedule="@hourly")],
    "weekly runs": [cron(deadline=3 * 86_400, schedule="0 3 * * SUN")],
    "elastic replicas that nothing scales": [pytorch(elasticPolicy={"minReplicas": 1, "maxReplicas": 64})],
    "mutex": [workflow(steps(withSequence={"count": "100"}), mutex("gpu"))],
    "flows one after another": [
        *(
            make(
                "flow.volcano.sh/v1alpha1",
                "JobTemplate",
                {"tasks": [{"name": "a", "replicas": 2, "template": {"spec": pod()}}]},
                name,
            )
            for name in "ab"
        ),
        make(
            "flow.volcano.sh/v1alpha1",
            "JobFlow",
            {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]},
            "f",
        ),
    ],
    "autoscaler within the budget": [deployment(), hpa(deployment(), 2)],
    "trials": [katib(make("batch/v1", "Job", batch_job(2)), parallelTrialCount=8)],
    "scale of Knative": [knative(max_scale="2")],
    "own namespace": [affinity("podAntiAffinity", namespaces=["t"])],
    "affinity": [affinity("podAntiAffinity")],
    "monitor": [
        make("monitoring.coreos.com/v1", "PodMonitor", {"selector": {}, "namespaceSelector": {"matchNames": ["t"]}})
    ],
    "own host": [
        make(
            "networking.istio.io/v1",
            "VirtualService",
            {"hosts": ["api.t.svc.cluster.local", "example.com"], "http": []},
        )
    ],
    "call of another team": [
        make(
            "networking.istio.io/v1",
            "VirtualService",
            {"hosts": ["api"], "http": [{"route": [{"destination": {"host": "api.v.svc.cluster.local"}}]}]},
        )
    ],
    "network of others": [
        make(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            {
                "podSelector": {},
                "ingress": [
                    {"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}]}
                ],
            },
        )
    ],
    "devices that are requested": [
        job(spec={"containers": [container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])]})
    ],
    "no devices": [
        job(0, spec={"containers": [container(0, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])]})
    ],
    "own volume": [claim(selector={"matchLabels": {"pv": "td"}})],
    "another server": [job(spec={"volumes": [{"name": "d", "nfs": {"server": "t.example.com", "path": "/v/d"}}]})],
    "suspended job": [make("batch/v1", "Job", {"suspend": True, **batch_job(64)}, labels={})],
    "owner that is no controller": [
        job(metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "0"}]})
    ],
    "kept claim": [
        {
            **(kept := claim()),
            "metadata": {**kept["metadata"], "annotations": {"argocd.argoproj.io/sync-options": "Prune=false"}},
        }
    ],
    "parameter in a created object": [
        workflow(
            {
                "name": "start",
                "resource": {
                    "action": "create",
                    "manifest": CONFIG_IN_BRACES,
                },
            }
        )
    ],
    "object that is deleted": [workflow({"name": "start", "resource": {"action": "delete", "flags": ["job", "a"]}})],
}


@pytest.mark.parametrize("way", CONTROLS)
def test_what_a_team_may_use_is_no_finding(tmp_path: Path, way: str) -> None:
    found = [each.message for each in find(tmp_path, CONTROLS[way]) if each.category == "team"]

    # With a budget, some of these kinds need `pods` in the team's file, whatever they have.
    assert [each for each in found if not each.startswith("jobgen cannot count the pods of kind")] == []


def test_a_captured_default_queue_starts_suspended_jobs(tmp_path: Path) -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": {"name": "default", "namespace": "t"},
    }
    write(tmp_path, [make("batch/v1", "Job", {"suspend": True, **batch_job(64)}, labels={})])
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {operators: {kueue: %s}, state: cluster}}\n"
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster/queue.json").write_text(json.dumps({**queue, "spec": {"clusterQueue": "t"}}))

    for version, is_found in (("0.17.0", True), ("0.11.0", False)):
        (tmp_path / "overlays/prod/overlay.yaml").write_text(overlay % version)
        assert (BUDGET in {each.rule for each in jobgen.lint(tmp_path).findings}) is is_found


@pytest.mark.parametrize(
    ("schedule", "seconds", "starts"),
    [
        ("* * * * *", 3600, 60),
        ("*/5 * * * *", 3600, 12),
        ("0 * * * *", 3601, 2),
        ("@daily", 3600, 1),
        ("0,1 0 * * *", 86_400, 2),
        ("0 3 * * SUN", 3 * 86_400, 1),
        ("0 3 * * MON-FRI", 3 * 86_400, 3),
        ("0 0 1,2 * *", 86_401, 2),
        ("59 23 * * *", 86_460, 2),
        ("TZ=UTC 0 0 1 1 *", 3600, 1),
        ("what is this", 3600, 60),
        ("99999999999 * * * *", 60, 1),
    ],
)
def test_runs_that_can_overlap(schedule: str, seconds: int, starts: int) -> None:
    assert count_starts(schedule, seconds) == starts


LOCKED: Mapping[str, Tree] = {
    "Workflow": workflow(TRAIN, nodeSelector={"pool": "v"}),
    "template of a Workflow": workflow({**TRAIN, "nodeSelector": {"pool": "v"}}),
    "defaults of a Workflow": workflow(TRAIN, templateDefaults={"nodeSelector": {"pool": "v"}}),
    "inline template": workflow(
        {"name": "a", "steps": [[{"name": "b", "inline": {**TRAIN, "nodeSelector": {"pool": "v"}}}]]}
    ),
    "patch of a pod": workflow(TRAIN, podSpecPatch=json.dumps({"nodeSelector": {"pool": "v"}})),
    "created object": creating(
        manifest=json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": pod(nodeSelector={"pool": "v"})})
    ),
    "driver": spark(driver={"nodeSelector": {"pool": "v"}}),
    "executor": spark(executor={"nodeSelector": {"pool": "v"}}),
    "Spark": spark(nodeSelector={"pool": "v"}),
    "settings of Spark": spark({"spark.kubernetes.node.selector.pool": "v"}),
    "template of a driver": spark(driver={"template": {"spec": pod(nodeSelector={"pool": "v"})}}),
    "model": model(nodeSelector={"pool": "v"}, model={}),
    "workers of a model": model(model={}, workerSpec={"nodeSelector": {"pool": "v"}}),
    "TaskRun": tekton("TaskRun", {"podTemplate": {"nodeSelector": {"pool": "v"}}}),
    "PipelineRun": tekton("PipelineRun", {"taskRunTemplate": {"podTemplate": {"nodeSelector": {"pool": "v"}}}}),
    "trial": katib(job(spec={"nodeSelector": {"pool": "v"}})),
    "Knative": make(
        "serving.knative.dev/v1",
        "Service",
        {"template": {"spec": {"nodeSelector": {"pool": "v"}, "containers": [container()]}}},
    ),
    "trigger": make(
        "keda.sh/v1alpha1", "ScaledJob", {"jobTargetRef": {"template": {"spec": pod(nodeSelector={"pool": "v"})}}}
    ),
    "Job": job(spec={"nodeSelector": {"pool": "v"}}),
}


def lint_locked(root: Path, field: str, obj: Tree) -> list[jobgen.Finding]:
    write(root, [obj])
    overlay = root / "overlays/prod/overlay.yaml"
    overlay.write_text(f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{locked: [{field}]}}\n")
    return [each for each in jobgen.lint(root).findings if each.rule == "locked-field"]


@pytest.mark.parametrize("way", LOCKED)
def test_a_lock_holds_in_every_pod(tmp_path: Path, way: str) -> None:
    assert len(lint_locked(tmp_path, "nodeSelector", LOCKED[way])) == 1
    assert len(lint_locked(tmp_path, "nodeSelector.pool", LOCKED[way])) == 1
    assert not lint_locked(tmp_path, "nodeSelector.zone", LOCKED[way])
    assert not lint_locked(tmp_path, "tolerations", LOCKED[way])


IMAGES = {
    "Workflow": (workflow(TRAIN), 1),
    "other containers": (workflow({"name": "a", "resource": {"action": "get"}, "sidecars": [container()]}), 0),
    "driver": (spark(driver={"image": "registry.example.com/a:1"}), 1),
    "TaskRun": (tekton("TaskRun", {"taskSpec": {"steps": [container()]}}), 1),
    "Service": (make("v1", "Service", {"ports": [{"port": 80}]}), 0),
    "values": (make("example.com/v1", "Config", {"data": {"image": "a"}}), 0),
}


@pytest.mark.parametrize("way", IMAGES)
def test_a_lock_of_a_container_holds_in_the_one_that_works(tmp_path: Path, way: str) -> None:
    obj, count = IMAGES[way]

    assert len(lint_locked(tmp_path, "image", obj)) == count


def train(**spec: Any) -> Tree:
    shown = {"framework": "pytorch", "image": "registry.example.com/a:1", "queue": "t"}
    own = {"resources": {"gpu": 8, "cpu": 1, "memory": "1Gi"}, **spec}
    metadata = {"name": "a", "namespace": "t"}
    return {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": metadata, "spec": {**shown, **own}}


OTHER_TERM = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaces": ["v"]}
    ]
}
FIELDS = {
    "volume": (VOLUME, {"volumes": {"d": {"nfs": {"server": "nfs.example.com", "path": "/v/d"}, "mountPath": "/d"}}}),
    "affinity": (NAMESPACE, {"affinity": {"podAntiAffinity": OTHER_TERM}}),
    "variable": (DEVICES, {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}, "resources": {"cpu": 1, "memory": "1Gi"}}),
    "annotation": (DEVICES, {"annotations": {"cdi.k8s.io/a": "nvidia.com/gpu=all"}}),
    "pod template": (DEVICES, {"podTemplate": {"metadata": {"annotations": {"cdi.k8s.io/a": "nvidia.com/gpu=all"}}}}),
    "label": (UNQUEUED, {"labels": {"kueue.x-k8s.io/prebuilt-workload-name": "w"}}),
    "manifest": (UNQUEUED, {"manifest": {"metadata": {"ownerReferences": [{"name": "b", "controller": True}]}}}),
}


@pytest.mark.parametrize("platform", ["kubeflow", "kubernetes", "jobset", "ray", "tensorstack", "trainer", "volcano"])
def test_fields_of_jobs_are_no_way_around(tmp_path: Path, platform: str) -> None:
    jobs = {way: train(platform=platform, **spec) for way, (_, spec) in FIELDS.items()}
    for way, each in jobs.items():
        each["metadata"]["name"] = way.replace(" ", "-")
    found = find(tmp_path, list(jobs.values()))

    errors = {(each.location.file, each.rule) for each in found if each.severity == "error"}
    assert {(f"jobs/t/{index}.json", rule) for index, (rule, _) in enumerate(FIELDS.values())} <= errors


NFS = {"server": "nfs.example.com", "path": "/v/d"}
SHARED_STORAGE = [
    (
        {"csi": {"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "NFS.example.com.", "share": "/v"}}},
        {"nfs": NFS},
    ),
    (
        {"nfs": NFS},
        {"csi": {"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "nfs.example.com", "share": "v/d"}}},
    ),
    ({"cephfs": {"monitors": ["a:6789", "b:6789"], "path": "/v"}}, {"cephfs": {"monitors": ["b:6789"]}}),
    ({"local": {"path": "/mnt/v"}, "nodeAffinity": {}}, {"hostPath": {"path": "/mnt/"}}),
    ({"hostPath": {"path": "/mnt/v"}}, {"hostPath": {"path": "/mnt/v/d"}}),
    ({"rbd": {"monitors": ["a:6789"], "image": "v"}}, {"rbd": {"monitors": ["a:6789"], "image": "v"}}),
    ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {"awsElasticBlockStore": {"volumeID": "vol-1"}}),
]
OTHER_STORAGE = [
    ({"nfs": NFS}, {"nfs": {**NFS, "path": "/v/d2"}}),
    ({"cephfs": {"monitors": ["a:6789"], "path": "/v"}}, {"cephfs": {"monitors": ["c:6789"], "path": "/v"}}),
    ({"local": {"path": "/mnt/v"}, "nodeAffinity": {}}, {"hostPath": {"path": "/mnt/w"}}),
    ({"rbd": {"monitors": ["a:6789"], "image": "v"}}, {"rbd": {"monitors": ["a:6789"], "image": "v2"}}),
    ({"hostPath": {"path": "/mnt/v"}}, {"local": {"path": "/mnt/v"}}),
]


@pytest.mark.parametrize(("own", "used"), [*SHARED_STORAGE, *OTHER_STORAGE])
def test_one_storage_has_other_types(own: Tree, used: Tree) -> None:
    scope = {name: TeamScope(name, {"namespaces": (name,)}) for name in "tv"}
    persistent = {**VOLUME_OF_V, "spec": {**own, "capacity": {"storage": "1Ti"}}}
    manifests = [("v", persistent), ("t", volume(**used))]
    uses = [
        use
        for team, each in manifests
        for use, _ in find_volume_uses(Manifest(each, None, Cluster(), team=scope[team]), scope[team])
    ]

    assert bool(list(find_foreign_volumes(uses))) is ((own, used) in SHARED_STORAGE)


UNCOUNTED = {
    "class": {"deviceclass.resource.kubernetes.io/our-h100": 64},
    "other accelerators": {"google.com/tpu": 64},
    "renamed accelerators": {"nvidia.com/GH100_H100": 64},
    "resource of a scheduler": {"koordinator.sh/gpu": 64},
    "unknown vendor": {"example.com/npu": 64},
}


@pytest.mark.parametrize("way", UNCOUNTED)
def test_resources_that_no_budget_counts_are_named(tmp_path: Path, way: str) -> None:
    amounts = {"cpu": 1, "memory": "1Gi", **UNCOUNTED[way]}
    own = {"name": "main", "image": "registry.example.com/a:1", "resources": {"limits": amounts}}
    found = [each for each in find(tmp_path, [make("v1", "Pod", {"containers": [own]})]) if each.rule == UNKNOWN]

    assert len(found) == 1
    assert f"`{next(iter(UNCOUNTED[way]))}`" in found[0].message
    assert "does not count for the budget of team `t`" in found[0].message


def test_a_claim_that_the_repository_does_not_have_is_named(tmp_path: Path) -> None:
    claims = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "eight"}]}
    own = {**container(0), "resources": {"claims": [{"name": "g"}]}}
    found = find(tmp_path, [make("v1", "Pod", {"containers": [own], **claims})])

    [named] = [each for each in found if each.rule == UNKNOWN]
    assert named.message.startswith("the devices of ResourceClaimTemplate `eight` are not known")
