"""What operators reject, never start, or cannot create: objects of their kinds, each with one change."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml

from jobgen.check.rule_runner import RuleRunner
from jobgen.check.rules import all_rules
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

RULES = ("rejected-by-operator", "never-starts", "rejected-child", "feature-gate-off")
RUNNER = RuleRunner([rule for rule in all_rules() if rule.name in RULES])

BASES = {
    document["kind"]: document
    for document in yaml.safe_load_all("""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: bert, namespace: ml}
spec:
  replicatedJobs:
    - name: leader
      template: &job
        spec:
          parallelism: 2
          completions: 2
          backoffLimit: 0
          template:
            spec: {restartPolicy: Never, containers: [{name: train, image: "registry.example.com/bert:1.4.2"}]}
    - name: workers
      replicas: 4
      template: *job
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: bert, namespace: ml}
spec:
  rayVersion: 2.56.0
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: head, image: "registry.example.com/ray:2.56.0"}]}}
  workerGroupSpecs:
    - groupName: small
      minReplicas: 1
      maxReplicas: 4
      rayStartParams: {}
      template: {spec: {containers: [{name: worker, image: "registry.example.com/ray:2.56.0"}]}}
    - groupName: large
      rayStartParams: {}
      template: {spec: {containers: [{name: worker, image: "registry.example.com/ray:2.56.0"}]}}
---
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: bert, namespace: ml}
spec:
  entrypoint: python train.py
  rayClusterSpec: {}
---
apiVersion: ray.io/v1
kind: RayService
metadata: {name: bert, namespace: ml}
spec: {}
""")
}
BASES["RayJob"]["spec"]["rayClusterSpec"] = BASES["RayCluster"]["spec"]
BASES["RayService"]["spec"]["rayClusterConfig"] = BASES["RayCluster"]["spec"]


class Row(NamedTuple):
    """An object, what is changed in it, and the start of the only finding; no finding if it is empty."""

    kind: str
    change: dict[str, Any]
    expected: str = ""
    operators: Mapping[str, str] = MappingProxyType({})
    gates: tuple[str, ...] = ()


JOB = "spec.replicatedJobs.1.template.spec"
HEAD = "spec.headGroupSpec"
POD = "spec.headGroupSpec.template.spec.containers.0"
WORKER = "spec.workerGroupSpecs.0"
V2 = {"spec.enableInTreeAutoscaling": True, "spec.autoscalerOptions": {"version": "v2"}}
IN_PLACE = {"spec.failurePolicy": {"restartStrategy": "InPlaceRestart"}}
RESTART = {"spec.failurePolicy": {"rules": [{"name": "a", "action": "RestartJob"}]}}
SHUT = {"spec.shutdownAfterJobFinishes": True}
SELECT = {"spec.clusterSelector": {"ray.io/cluster": "c"}, "spec.rayClusterSpec": None}
DELETE = "spec.deletionStrategy"


def rule(policy, ttl=0, status="SUCCEEDED"):
    return {"policy": policy, "condition": {"jobStatus": status, "ttlSeconds": ttl}}


JOBSETS = [
    Row("JobSet", {}),
    Row("JobSet", {"metadata.name": "a" * 43}),
    Row("JobSet", {"metadata.name": "a" * 47}, "rejected-by-operator: `" + "a" * 47 + "` has 47 characters"),
    Row("JobSet", {"metadata.name": "a" * 47}, operators={"jobset": "0.2.0"}),
    Row("JobSet", {"metadata.name": "a" * 50, f"{JOB}.completions": None, f"{JOB}.parallelism": None}, "rejected-by"),
    Row("JobSet", {"metadata.name": "1bert"}, "rejected-by-operator: `1bert` is the start of the names"),
    Row("JobSet", {"metadata.name": "bert.v2"}, "rejected-by-operator: `bert.v2` is the start of the names"),
    Row("JobSet", {"spec.replicatedJobs.1.name": "Workers"}, "rejected-by-operator: `Workers` is part of the names"),
    Row("JobSet", {"spec.replicatedJobs.0.dependsOn": []}, "rejected-by-operator: `leader` is the first"),
    Row("JobSet", {"spec.replicatedJobs.1.dependsOn": [{"name": "leader", "status": "Ready"}]}),
    Row("JobSet", {"spec.replicatedJobs.1.dependsOn": [{"name": "ledaer"}]}, "rejected-by-operator: `ledaer` does not"),
    Row("JobSet", {"spec.replicatedJobs.1.groupName": "A"}, "rejected-by-operator: `A` is not a valid group name"),
    Row("JobSet", {"spec.replicatedJobs.1.groupName": "A"}, operators={"jobset": "0.8.1"}),
    Row("JobSet", {f"{JOB}.parallelism": 2**30}, "rejected-by-operator: `replicas` times `parallelism` of `workers`"),
    Row("JobSet", {"spec.network": {"subdomain": "a.b"}}, "rejected-by-operator: `a.b` is also the name of a Service"),
    Row("JobSet", {"spec.managedBy": "me"}, "rejected-by-operator: `me` is not a domain and a path"),
    Row("JobSet", {"spec.managedBy": "example.com/" + "a" * 60}, "rejected-by-operator: `example.com/aaa"),
    Row("JobSet", {"spec.managedBy": "example.com/me"}),
    Row("JobSet", {"spec.successPolicy": {"targetReplicatedJobs": ["x"]}}, "rejected-by-operator: there is no repl"),
    Row(
        "JobSet",
        {"spec.failurePolicy": {"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["worker"]}]}},
        "rejected-by-operator: there is no replicated job `worker`; did you mean `workers`?",
    ),
    Row("JobSet", {"spec.failurePolicy": {"rules": [{"name": "a,"}]}}, "rejected-by-operator: `a,` is not a valid"),
    Row(
        "JobSet", {"spec.failurePolicy": {"rules": [{"name": "a"}, {"name": "a"}]}}, "rejected-by-operator: `a` is the"
    ),
    Row(
        "JobSet",
        {"spec.failurePolicy": {"rules": [{"onJobFailureReasons": ["DeadlineExceded"]}]}},
        "rejected-by-operator: `onJobFailureReasons` is `DeadlineExceded`",
    ),
    Row("JobSet", RESTART, "feature-gate-off: `RestartJob` requires the feature gate `RestartJob`"),
    Row("JobSet", RESTART, gates=("RestartJob",)),
    Row(
        "JobSet",
        {**RESTART, "spec.replicatedJobs.1.replicas": 1025},
        "rejected-by-operator: `replicas` must be at most 1024",
        gates=("RestartJob",),
    ),
    Row("JobSet", IN_PLACE, "feature-gate-off: `InPlaceRestart` requires"),
    Row(
        "JobSet",
        {
            **IN_PLACE,
            **{f"spec.replicatedJobs.{index}.template.spec.podReplacementPolicy": "Failed" for index in (0, 1)},
            "spec.replicatedJobs.0.template.spec.backoffLimit": 2**31 - 1,
            f"{JOB}.backoffLimit": 6,
        },
        "rejected-by-operator: `InPlaceRestart` requires `backoffLimit: 2147483647` in `workers`",
        gates=("InPlaceRestart",),
    ),
    Row("JobSet", {"spec.coordinator": {"replicatedJob": "x"}}, "rejected-by-operator: there is no replicated job `x`"),
    Row("JobSet", {"spec.coordinator": {"replicatedJob": "workers", "jobIndex": 3, "podIndex": 1}}),
    Row(
        "JobSet", {"spec.coordinator": {"replicatedJob": "workers", "jobIndex": 4}}, "rejected-by-operator: `jobIndex`"
    ),
    Row(
        "JobSet", {"spec.coordinator": {"replicatedJob": "workers", "podIndex": 2}}, "rejected-by-operator: `podIndex`"
    ),
    Row(
        "JobSet",
        {"spec.coordinator": {"replicatedJob": "workers"}, f"{JOB}.completionMode": "NonIndexed"},
        "rejected-by-operator: the Jobs of `workers` must be Indexed",
    ),
    Row(
        "JobSet",
        {"spec.coordinator": {"replicatedJob": "workers"}, "spec.network": {"subdomain": "a" * 50}},
        "rejected-by-operator: `bert-workers-0-0.aaa",
    ),
    Row(
        "JobSet",
        {"spec.volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}]},
        "rejected-by-operator: no container mounts the volume claim `data`",
    ),
    Row(
        "JobSet", {"spec.replicatedJobs.0.template.metadata": {"labels": {"a": "b c"}}}, "rejected-child: the API serv"
    ),
]
RAY_CLUSTERS = [
    Row("RayCluster", {}),
    Row("RayCluster", {"metadata.name": "a" * 54}, "never-starts: `" + "a" * 54 + "` has 54 characters"),
    Row("RayCluster", {"metadata.name": "a" * 54}, operators={"kuberay": "1.3.2"}),
    Row("RayCluster", {"metadata.name": "1a"}, "never-starts: `1a` is the start of the name of a Service"),
    Row("RayCluster", {f"{WORKER}.minReplicas": 5}, "never-starts: `minReplicas` of `small` is `5`"),
    Row("RayCluster", {f"{WORKER}.minReplicas": -1}, "never-starts: `minReplicas` must be at least 0"),
    Row("RayCluster", {f"{WORKER}.groupName": "large"}, "rejected-by-operator: `large` is the name of an earlier"),
    Row(
        "RayCluster",
        {f"{HEAD}.rayStartParams": {"num-cpus": "1"}, f"{HEAD}.resources": {"CPU": "1"}},
        "never-starts: `num-cpus` of `rayStartParams` and `resources` are both set",
    ),
    Row("RayCluster", {f"{HEAD}.rayStartParams": {"labels": "a=b"}}, "never-starts: `labels` in `rayStartParams`"),
    Row("RayCluster", {f"{WORKER}.labels": {"a b": "c"}}, "never-starts: `a b` is not a valid label key"),
    Row("RayCluster", {f"{WORKER}.labels": {"a": "b/c"}}, "never-starts: label `a` has the invalid value `b/c`"),
    Row("RayCluster", {f"{WORKER}.suspend": True}),
    Row("RayCluster", {f"{WORKER}.suspend": True}, "feature-gate-off: `suspend`", operators={"kuberay": "1.5.1"}),
    Row("RayCluster", {**V2, f"{WORKER}.suspend": True}, "never-starts: worker group `small` cannot be suspended"),
    Row("RayCluster", {**V2, f"{WORKER}.template.spec.restartPolicy": "Always"}, "never-starts: `restartPolicy` of"),
    Row("RayCluster", {f"{WORKER}.template.spec.restartPolicy": "Always"}),
    Row(
        "RayCluster", {f"{POD}.env": [{"name": "RAY_enable_autoscaler_v2", "value": "1"}]}, "never-starts: `RAY_enable"
    ),
    Row("RayCluster", {**V2, f"{POD}.env": [{"name": "RAY_enable_autoscaler_v2"}]}, "never-starts: `RAY_enable_auto"),
    Row("RayCluster", {f"{WORKER}.idleTimeoutSeconds": 9}, "never-starts: `idleTimeoutSeconds` of `small` requires"),
    Row("RayCluster", {**V2, f"{WORKER}.idleTimeoutSeconds": 9}),
    Row(
        "RayCluster", {**V2, f"{WORKER}.idleTimeoutSeconds": -9}, "never-starts: `idleTimeoutSeconds` must be at least"
    ),
    Row(
        "RayCluster", {"spec.autoscalerOptions": {"idleTimeoutSeconds": -1}}, "never-starts: `idleTimeoutSeconds` must"
    ),
    Row(
        "RayCluster",
        {"spec.autoscalerOptions": {"env": [{"name": "KUBERAY_GEN_AUTOSCALER_START_CMD"}]}},
        "never-starts: KubeRay sets `KUBERAY_GEN_AUTOSCALER_START_CMD`",
    ),
    Row("RayCluster", {f"{POD}.env": [{"name": "RAY_REDIS_ADDRESS"}]}, "never-starts: `RAY_REDIS_ADDRESS` enables"),
    Row(
        "RayCluster",
        {f"{POD}.env": [{"name": "RAY_REDIS_ADDRESS"}], "metadata.annotations": {"ray.io/ft-enabled": "true"}},
    ),
    Row(
        "RayCluster",
        {"spec.gcsFaultToleranceOptions": {"redisAddress": "a"}, "metadata.annotations": {"ray.io/ft-enabled": "true"}},
        "never-starts: `ray.io/ft-enabled` and `gcsFaultToleranceOptions` are both set",
    ),
    Row("RayCluster", {f"{HEAD}.rayStartParams": {"redis-username": "a"}}, "never-starts: `redis-username` is not"),
    Row(
        "RayCluster", {"spec.gcsFaultToleranceOptions": {"backend": "rocksdb"}}, "feature-gate-off: `rocksdb` requires"
    ),
    Row("RayCluster", {"spec.gcsFaultToleranceOptions": {"storage": {}}}, "never-starts: `storage` applies to"),
    Row(
        "RayCluster",
        {
            "spec.gcsFaultToleranceOptions": {"backend": "rocksdb"},
            f"{POD}.volumeMounts": [{"name": "x", "mountPath": "/data/gcs"}],
        },
        "never-starts: KubeRay mounts the volume `gcs-storage` at `/data/gcs`",
        gates=("GCSFaultToleranceEmbeddedStorage",),
    ),
    Row("RayCluster", {"spec.authOptions": {"mode": "token"}}),
    Row(
        "RayCluster", {"spec.authOptions": {"mode": "token"}, "spec.rayVersion": "2.51.0"}, "never-starts: `authOptions"
    ),
    Row("RayCluster", {"spec.authOptions": {"mode": "token"}, "spec.rayVersion": None}, "never-starts: `authOptions`"),
    Row(
        "RayCluster", {"spec.authOptions": {"enableK8sTokenAuth": True}}, "never-starts: `enableK8sTokenAuth` requires"
    ),
    Row("RayCluster", {f"{WORKER}.priority": 1}, "never-starts: `priority` of `small` requires version 2"),
    Row("RayCluster", {**V2, f"{WORKER}.priority": 1}),
    Row(
        "RayCluster", {**V2, f"{WORKER}.priority": 1, "spec.rayVersion": "2.55"}, "never-starts: `priority` of `small`"
    ),
    Row("RayCluster", {"spec.upgradeStrategy": {"type": "Recreate"}}),
    Row("RayCluster", {"spec.networkPolicy": {}}, "feature-gate-off: `networkPolicy` requires"),
    Row("RayCluster", {"spec.networkPolicy": {}}, gates=("RayClusterNetworkPolicy",)),
    Row(
        "RayCluster",
        {"spec.networkPolicy": {"mode": "DenyAllEgress", "head": {"ingressRules": [{}]}}},
        "never-starts: `ingressRules` has no effect with `mode: DenyAllEgress`",
        gates=("RayClusterNetworkPolicy",),
    ),
    Row(
        "RayCluster",
        {"spec.networkPolicy": {"workerGroups": [{"groupName": "x"}]}},
        "never-starts: there is no worker group `x`",
        gates=("RayClusterNetworkPolicy",),
    ),
    Row(
        "RayCluster",
        {"spec.tlsOptions": {"enabled": True}, f"{POD}.env": [{"name": "RAY_USE_TLS", "value": "1"}]},
        "never-starts: KubeRay sets the variable `RAY_USE_TLS`",
        gates=("RayClusterMTLS",),
    ),
    Row(
        "RayCluster",
        {"spec.historyServerOptions": {"collectorOptions": {"image": "a", "env": [{"name": "STORAGE_BACKEND"}]}}},
        "never-starts: the collector requires the variable `STORAGE_BACKEND`",
        gates=("RayClusterHistoryServer",),
    ),
]
RAY_JOBS = [
    Row("RayJob", {}),
    Row("RayJob", {"metadata.name": "a" * 48}, "never-starts: `aaa"),
    Row("RayJob", {"spec.rayClusterSpec": None}, "never-starts: a RayJob requires `rayClusterSpec`"),
    Row(
        "RayJob", {**SELECT, "spec.clusterSelector": {"app": "c"}}, "never-starts: `clusterSelector` requires the name"
    ),
    Row("RayJob", {"spec.suspend": True}, "never-starts: `suspend` requires `shutdownAfterJobFinishes: true`"),
    Row("RayJob", {**SHUT, **SELECT, "spec.suspend": True}, "never-starts: `suspend` is not supported"),
    Row("RayJob", {"spec.ttlSecondsAfterFinished": 60}, "never-starts: `ttlSecondsAfterFinished` requires"),
    Row("RayJob", {"spec.ttlSecondsAfterFinished": 60}, operators={"kuberay": "1.3.2"}),
    Row("RayJob", {**SHUT, "spec.ttlSecondsAfterFinished": 60}),
    Row("RayJob", {"spec.backoffLimit": -1}, "never-starts: `backoffLimit` must be at least 0"),
    Row(
        "RayJob", {"spec.backoffLimit": 1, "spec.submissionMode": "InteractiveMode"}, "never-starts: `backoffLimit` abo"
    ),
    Row("RayJob", {**SELECT, "spec.backoffLimit": 1}, "never-starts: `backoffLimit` above 0"),
    Row("RayJob", {"spec.activeDeadlineSeconds": 0}, "never-starts: `activeDeadlineSeconds` must be at least 1"),
    Row(
        "RayJob", {"spec.preRunningDeadlineSeconds": 0}, "never-starts: `preRunningDeadlineSeconds` must be at least 1"
    ),
    Row("RayJob", {"spec.submissionMode": "K8SJobMode"}, "never-starts: `submissionMode` is `K8SJobMode`"),
    Row(
        "RayJob", {"spec.submissionMode": "SidecarMode", "spec.submitterConfig": {}}, "never-starts: `submitterConfig`"
    ),
    Row("RayJob", {"spec.runtimeEnvYAML": "pip: ["}, "never-starts: `runtimeEnvYAML` is not a mapping"),
    Row("RayJob", {"spec.runtimeEnvYAML": "torch"}, "never-starts: `runtimeEnvYAML` is not a mapping"),
    Row("RayJob", {"spec.runtimeEnvYAML": "pip: [torch]"}),
    Row("RayJob", {DELETE: {}}, "never-starts: `deletionStrategy` requires"),
    Row("RayJob", {DELETE: {"deletionRules": [rule("DeleteWorkers", 5), rule("DeleteCluster", 5)]}}),
    Row(
        "RayJob", {DELETE: {"deletionRules": [rule("DeleteSelf")]}}, "feature-gate-off", operators={"kuberay": "1.5.0"}
    ),
    Row("RayJob", {**SHUT, DELETE: {"deletionRules": [rule("DeleteSelf")]}}, "never-starts: `deletionRules` and"),
    Row("RayJob", {DELETE: {"deletionRules": [rule("DeleteSelf")] * 2}}, "never-starts: `DeleteSelf` for `jobStatus"),
    Row(
        "RayJob",
        {DELETE: {"deletionRules": [rule("DeleteSelf", 4), rule("DeleteCluster", 5)]}},
        "never-starts: `ttlSec",
    ),
    Row(
        "RayJob", {**SELECT, DELETE: {"deletionRules": [rule("DeleteCluster")]}}, "never-starts: `DeleteCluster` is not"
    ),
    Row(
        "RayJob",
        {**SHUT, DELETE: {"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteSelf"}}},
        "never-starts: `DeleteNone` contradicts `shutdownAfterJobFinishes: true`",
    ),
    Row("RayJob", {f"spec.rayClusterSpec.{WORKER[5:]}.minReplicas": 5}, "never-starts: `minReplicas` of `small`"),
    Row("RayJob", {"spec.rayClusterSpec.upgradeStrategy": {"type": "None"}}, "never-starts: `upgradeStrategy`"),
    Row(
        "RayJob",
        {"spec.rayClusterSpec.authOptions": {"enableK8sTokenAuth": True}},
        "never-starts: `enableK8sTokenAuth`",
    ),
]
INCREMENTAL = {
    "spec.rayClusterConfig.enableInTreeAutoscaling": True,
    "spec.upgradeStrategy": {
        "type": "NewClusterWithIncrementalUpgrade",
        "clusterUpgradeOptions": {"stepSizePercent": 5, "intervalSeconds": 10, "gatewayClassName": "istio"},
    },
}
OPTIONS = "spec.upgradeStrategy.clusterUpgradeOptions"
RAY_SERVICES = [
    Row("RayService", {}),
    Row("RayService", {"metadata.name": "a" * 48}, "never-starts: `aaa"),
    Row("RayService", {"metadata.annotations": {"ray.io/initializing-timeout": "5m"}}),
    Row(
        "RayService",
        {"metadata.annotations": {"ray.io/initializing-timeout": "5 m"}},
        "never-starts: annotation `ray.io",
    ),
    Row(
        "RayService", {"metadata.annotations": {"ray.io/initializing-timeout": "0"}}, "never-starts: annotation `ray.io"
    ),
    Row(
        "RayService",
        {"spec.rayClusterConfig.headGroupSpec.headService": {"metadata": {"name": "x"}}},
        "never-starts: KubeRay names the Service of the head itself; remove `x`",
    ),
    Row("RayService", {"spec.upgradeStrategy": {"type": "Newcluster"}}, "never-starts: `type` is `Newcluster`"),
    Row("RayService", INCREMENTAL),
    Row("RayService", INCREMENTAL, "feature-gate-off: `NewClusterWith", operators={"kuberay": "1.6.0"}),
    Row(
        "RayService", {**INCREMENTAL, f"{OPTIONS}.intervalSeconds": 0}, "never-starts: `intervalSeconds` must be at lea"
    ),
    Row("RayService", {**INCREMENTAL, f"{OPTIONS}.gatewayClassName": None}, "never-starts: `NewClusterWithIncremental"),
    Row("RayService", {**INCREMENTAL, f"{OPTIONS}.maxSurgePercent": 4}, "never-starts: `stepSizePercent` is `5`"),
]
ROWS = [*JOBSETS, *RAY_CLUSTERS, *RAY_JOBS, *RAY_SERVICES]


def changed(kind, change):
    """A copy of an object with values set at dotted paths; None deletes."""
    obj = json.loads(json.dumps(BASES[kind]))
    for path, value in change.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        holder = obj
        for step in steps:
            holder = holder[step]
        if value is None:
            del holder[last]
        else:
            holder[last] = json.loads(json.dumps(value))
    return obj


def find(obj, operators=(), gates=()):
    cluster = Cluster(operators=dict(operators), feature_gates=tuple(gates))
    return [f"{problem.rule}: {problem.message}" for problem in RUNNER.find_problems(Manifest(obj, None, cluster))]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.kind} {row.change} {row.expected[:40]}"[:120] for row in ROWS])
def test_operator_finds_one_fault(row):
    found = find(changed(row.kind, row.change), row.operators, row.gates)

    assert [text[: len(row.expected)] for text in found] == ([row.expected] if row.expected else [])
