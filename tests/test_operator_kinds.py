"""What operators reject, never start, or cannot create: objects of their kinds, each with one change."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml

from jobgen.api.lint import lint
from jobgen.check.rule_runner import RuleRunner
from jobgen.check.rules import all_rules
from jobgen.check.rules.fleet.budgets import collect_gpus
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

RULES = (
    "rejected-by-operator",
    "never-starts",
    "rejected-child",
    "feature-gate-off",
    "admits-nothing",
    "bad-topology-request",
)
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
---
apiVersion: ray.io/v1
kind: RayCronJob
metadata: {name: bert, namespace: ml}
spec: {schedule: "0 3 * * *"}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: bert, namespace: ml}
spec:
  minAvailable: 3
  plugins: {env: []}
  tasks:
    - name: master
      replicas: 1
      template: {spec: {containers: [{name: train, image: "registry.example.com/bert:1.4.2"}]}}
    - name: worker
      replicas: 4
      template: {spec: {containers: [{name: train, image: "registry.example.com/bert:1.4.2"}]}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: bert, namespace: ml}
spec: {schedule: "@daily"}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec:
  capability: {cpu: 8, nvidia.com/gpu: 8}
  deserved: {cpu: 4}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: bert, namespace: ml}
spec: {minMember: 2, networkTopology: {highestTierAllowed: 1}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack}
spec:
  tier: 1
  members: [{type: Node, selector: {regexMatch: {pattern: "node-[0-9]+"}}}]
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm, namespace: ml}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 5
    workerTemplate: {spec: {containers: [{name: serve, image: "registry.example.com/vllm:1.4.2"}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory]
      flavors:
        - name: spot
          resources: [{name: cpu, nominalQuota: 8}, {name: memory, nominalQuota: 8Gi}]
    - coveredResources: [nvidia.com/gpu]
      flavors:
        - name: a100
          resources: [{name: nvidia.com/gpu, nominalQuota: 8}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: all}
spec:
  parentName: root
  resourceGroups:
    - coveredResources: [cpu]
      flavors:
        - name: spot
          resources: [{name: cpu, nominalQuota: 8, lendingLimit: 9}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec:
  nodeLabels: {pool: spot}
  nodeTaints: [{key: spot, value: "true", effect: NoSchedule}]
---
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: bert, namespace: ml}
spec:
  components:
    - template:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: bert}
        spec:
          parallelism: 4
          completions: 2
          template:
            spec: {restartPolicy: Never, containers: [{name: train, image: "registry.example.com/bert:1.4.2"}]}
---
apiVersion: batch.tensorstack.dev/v1beta1
kind: GenericJob
metadata: {name: bert, namespace: ml}
spec:
  replicaSpecs: [{type: worker, replicas: 2, template: {spec: {containers: [{name: worker, image: a}]}}}]
---
apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata: {name: bert, namespace: ml}
spec:
  config: {slotsPerWorker: 8, run: {python: [train.py]}}
  worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: a}]}}}
---
apiVersion: batch.tensorstack.dev/v1beta1
kind: ColossalAIJob
metadata: {name: bert, namespace: ml}
spec:
  replicaSpecs:
    - {type: launcher, template: {}}
    - {type: worker, replicas: 2, template: {spec: {containers: [{name: worker, image: a}]}}}
""")
}
BASES["RayJob"]["spec"]["rayClusterSpec"] = BASES["RayCluster"]["spec"]
BASES["RayService"]["spec"]["rayClusterConfig"] = BASES["RayCluster"]["spec"]
BASES["RayCronJob"]["spec"]["jobTemplate"] = BASES["RayJob"]["spec"]
BASES["CronJob"]["spec"]["jobTemplate"] = {"spec": BASES["Job"]["spec"]}


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
    Row(
        "JobSet",
        {f"{JOB}.parallelism": 2**30, f"{JOB}.completionMode": "NonIndexed"},
        "rejected-by-operator: `replicas` times `parallelism` of `workers`",
    ),
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
        "JobSet",
        {"spec.failurePolicy": {"rules": [{"name": "a"}, {"name": "a"}]}},
        "rejected-by-operator: two rules are named",
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
    Row("RayCluster", {f"{WORKER}.groupName": "large"}, "rejected-by-operator: two worker groups are named `large`"),
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
CRON = ("RayCronJob",)
RAY_CRON_JOBS = [
    Row("RayCronJob", {}, gates=CRON),
    Row("RayCronJob", {}, "feature-gate-off: `RayCronJob` requires"),
    Row("RayCronJob", {"metadata.name": "a" * 37}, "never-starts: `aaa", gates=CRON),
    Row(
        "RayCronJob", {"spec.schedule": "0 3 * *"}, "never-starts: `schedule` is `0 3 * *`: it has 4 fields", gates=CRON
    ),
    Row("RayCronJob", {"spec.schedule": "TZ=UTC 0 3 * * *"}, "never-starts: `schedule` is `TZ=UTC", gates=CRON),
    Row("RayCronJob", {"spec.timeZone": "Berlin"}, "never-starts: `Berlin` is not a time zone", gates=CRON),
    Row("RayCronJob", {"spec.timeZone": "Berlin"}, gates=CRON, operators={"kuberay": "1.6.0"}),
    Row("RayCronJob", {"spec.jobTemplate.suspend": True}, "never-starts: `suspend` requires", gates=CRON),
]
TASK = "spec.tasks.1"
POLICY = {"event": "PodFailed", "action": "RestartJob"}
SVC = {"spec.plugins": {"svc": []}}
VOLCANO_JOBS = [
    Row("Job", {}),
    Row("Job", {"spec.tasks": None}, "rejected-by-operator: a Job of Volcano requires `tasks`"),
    Row("Job", {"spec.tasks": [], "spec.minAvailable": 0}),
    Row(
        "Job",
        {"spec.tasks": [], "spec.minAvailable": 0},
        "rejected-by-operator: a Job",
        operators={"volcano": "1.13.0"},
    ),
    Row("Job", {f"{TASK}.template": None}, "rejected-by-operator: task `worker` requires `template`"),
    Row("Job", {f"{TASK}.name": "master"}, "rejected-by-operator: two tasks are named `master`"),
    Row("Job", {f"{TASK}.minAvailable": 5}, "rejected-by-operator: `minAvailable` of task `worker` is `5`"),
    Row(
        "Job",
        {f"{TASK}.minAvailable": -1},
        "rejected-by-operator: `minAvailable` must be",
        operators={"volcano": "1.13"},
    ),
    Row("Job", {"spec.minAvailable": 6}, "rejected-by-operator: `minAvailable` is `6`, but all tasks"),
    Row("Job", {"spec.policies": [POLICY]}),
    Row(
        "Job",
        {"spec.policies": [POLICY, POLICY]},
        "rejected-by-operator: event `PodFailed` is also in an earlier policy",
    ),
    Row("Job", {f"{TASK}.policies": [{**POLICY, "exitCode": 3}]}, "rejected-by-operator: `event` and `exitCode` are"),
    Row("Job", {"spec.policies": [{"action": "RestartJob"}]}, "rejected-by-operator: a policy requires `event`"),
    Row("Job", {"spec.policies": [{**POLICY, "event": "OutOfSync"}]}, "rejected-by-operator: `event` is `OutOfSync`"),
    Row(
        "Job", {"spec.policies": [{**POLICY, "action": "Restartjob"}]}, "rejected-by-operator: `action` is `Restartjob`"
    ),
    Row(
        "Job",
        {"spec.policies": [{**POLICY, "action": "RestartPod"}]},
        "rejected-by-operator: `action` is `RestartPod`",
        operators={"volcano": "1.10.0"},
    ),
    Row("Job", {"spec.policies": [{"exitCode": 0, "action": "RestartJob"}]}, "rejected-by-operator: `exitCode` is `0`"),
    Row(
        "Job", {"spec.policies": [{**POLICY, "event": "*"}, POLICY]}, "rejected-by-operator: `*` stands for all events"
    ),
    Row(
        "Job", {"spec.plugins": {"pytroch": []}}, "rejected-by-operator: Volcano has no plugin `pytroch`; did you mean"
    ),
    Row("Job", {"spec.plugins": {"ray": []}}),
    Row("Job", {"spec.plugins": {"ray": []}}, "rejected-by-operator: Volcano has no", operators={"volcano": "1.12.0"}),
    Row(
        "Job",
        {"spec.plugins": {"mpi": ["--master=leader"]}},
        "rejected-by-operator: the plugin `mpi` requires a task `l",
    ),
    Row("Job", {"spec.plugins": {"mpi": []}}),
    Row("Job", {"spec.volumes": [{"mountPath": "/a"}]}, "rejected-by-operator: the volume at `/a` requires"),
    Row(
        "Job",
        {"spec.volumes": [{"mountPath": "/a", "volumeClaimName": "a"}, {"mountPath": "/a", "volumeClaimName": "b"}]},
        "rejected-by-operator: two volumes are mounted at `/a`",
    ),
    Row("Job", {"spec.queue": "root"}, "rejected-by-operator: no job can be submitted to the queue `root`"),
    Row("Job", {"spec.queue": "root"}, operators={"volcano": "1.10.0"}),
    Row("Job", {f"{TASK}.dependsOn": {"name": ["master"]}, "spec.minAvailable": 1}),
    Row("Job", {f"{TASK}.dependsOn": {"name": ["master"]}}, "never-starts: task `worker` waits for the tasks that it"),
    Row("Job", {f"{TASK}.dependsOn": {"name": ["mastr"]}}, "rejected-by-operator: there is no task `mastr`; did you"),
    Row(
        "Job", {f"{TASK}.dependsOn": {"name": ["worker"]}}, "rejected-by-operator: tasks depend on each other in a cyc"
    ),
    Row("Job", {f"{TASK}.topologyPolicy": "restricted"}, "rejected-by-operator: `topologyPolicy: restricted` requires"),
    Row(
        "Job",
        {
            f"{TASK}.topologyPolicy": "restricted",
            f"{TASK}.template.spec.containers.0.resources": {"limits": {"cpu": "2"}},
        },
    ),
    Row("Job", {f"{TASK}.partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}),
    Row(
        "Job",
        {f"{TASK}.partitionPolicy": {"totalPartitions": 2, "partitionSize": 3}},
        "rejected-by-operator: `replicas` of task `worker` is `4`",
    ),
    Row(
        "Job",
        {"spec.networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}},
        "rejected-by-operator: `highestTierAllowed` and `highestTierName` are mutually exclusive",
    ),
    Row("Job", {"metadata.name": "a" * 54}),
    Row("Job", {"metadata.name": "a" * 55}, "rejected-by-operator: `" + "a" * 55),
    Row("Job", {**SVC, "metadata.name": "a" * 53, f"{TASK}.replicas": 101}, "rejected-child: `aaa"),
    Row("Job", {"metadata.name": "a" * 53, f"{TASK}.replicas": 101}),
    Row("Job", {**SVC, "metadata.name": "bert.v2"}, "rejected-child: `bert.v2` is the name of a Service"),
    Row("CronJob", {}),
    Row("CronJob", {"metadata.name": "a" * 53}, "rejected-by-operator: `aaa"),
    Row("CronJob", {"spec.schedule": "daily"}, "rejected-by-operator: `schedule` is `daily`"),
    Row("CronJob", {"spec.timeZone": ""}, "rejected-by-operator: `` is not a time zone"),
    Row(
        "CronJob", {"spec.jobTemplate.spec.minAvailable": 9}, "rejected-child: Volcano rejects its Jobs: `minAvailable`"
    ),
    Row("CronJob", {"metadata.name": "a" * 44}, "rejected-child: Volcano rejects its Jobs: `aaa"),
    Row("Queue", {}),
    Row("Queue", {"spec.deserved": {"cpu": 9}}, "rejected-by-operator: `cpu` of `deserved` is `9`"),
    Row("Queue", {"spec.deserved": {"cpu": 9}}, operators={"volcano": "1.14.0"}),
    Row("Queue", {"spec.guarantee": {"resource": {"memory": "1Gi"}}}, "rejected-by-operator: `guarantee` has `memory`"),
    Row(
        "Queue",
        {"spec.capability": {"cpu": -1}, "spec.deserved": {}},
        "rejected-by-operator: `cpu` of `capability` must",
    ),
    Row("Queue", {"spec.capability": {"nvidia.com/gpu": "500m"}}, "rejected-by-operator: `nvidia.com/gpu` of"),
    Row("Queue", {"spec.parent": "research"}, "rejected-by-operator: queue `research` cannot be its own parent"),
    Row("Queue", {"status": {"state": "Closing"}}, "rejected-by-operator: `state` is `Closing`"),
    Row(
        "Queue", {"metadata.annotations": {"volcano.sh/hierarchy": "a/b"}}, "rejected-by-operator: annotation `volcano"
    ),
    Row(
        "Queue",
        {"metadata.annotations": {"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "1/0"}},
        "rejected-by-operator: `0` in annotation",
    ),
    Row("PodGroup", {}),
    Row("PodGroup", {"spec.networkTopology.highestTierName": "rack"}, "rejected-by-operator: `highestTierAllowed` and"),
    Row("HyperNode", {}),
    Row("HyperNode", {"spec.members": None}, "rejected-by-operator: a HyperNode requires `members`"),
    Row(
        "HyperNode", {"spec.members.0.selector.regexMatch.pattern": "a["}, "rejected-by-operator: `a[` is not a regular"
    ),
    Row(
        "HyperNode",
        {"spec.members.0.selector": {}},
        "rejected-by-operator: `selector`",
        operators={"volcano": "1.13.0"},
    ),
]
TEMPLATE = "spec.leaderWorkerTemplate"
ROLLOUT = "spec.rolloutStrategy"
LEADER_WORKER_SETS = [
    Row("LeaderWorkerSet", {}),
    Row("LeaderWorkerSet", {"metadata.name": "1a"}, "rejected-by-operator: `1a` is also the name of a Service"),
    Row("LeaderWorkerSet", {"metadata.name": "a" * 50}),
    Row("LeaderWorkerSet", {"metadata.name": "a" * 51}, "rejected-child: `aaa"),
    Row("LeaderWorkerSet", {f"{TEMPLATE}.size": 0}, "rejected-by-operator: `size` must be at least 1"),
    Row("LeaderWorkerSet", {f"{TEMPLATE}.size": 2**31 - 1}, "rejected-by-operator: `replicas` times `size`"),
    Row("LeaderWorkerSet", {"spec.replicas": -1}, "rejected-by-op", operators={"leaderworkerset": "0.9.0"}),
    Row(
        "LeaderWorkerSet", {ROLLOUT: {"rollingUpdateConfiguration": {"maxUnavailable": "101%"}}}, "rejected-by-operator"
    ),
    Row(
        "LeaderWorkerSet",
        {ROLLOUT: {"rollingUpdateConfiguration": {"maxUnavailable": 0}}},
        "rejected-by-operator: `max",
    ),
    Row("LeaderWorkerSet", {ROLLOUT: {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": "1%"}}}),
    Row(
        "LeaderWorkerSet",
        {ROLLOUT: {"rollingUpdateConfiguration": {"partition": -1}}},
        "rejected-by-operator: `partiti",
    ),
    Row("LeaderWorkerSet", {f"{TEMPLATE}.subGroupPolicy": {"subGroupSize": 2}}),
    Row(
        "LeaderWorkerSet",
        {f"{TEMPLATE}.subGroupPolicy": {"subGroupSize": 3}},
        "rejected-by-operator: `subGroupSize` is",
    ),
    Row(
        "LeaderWorkerSet",
        {f"{TEMPLATE}.subGroupPolicy": {"subGroupSize": 6}},
        "rejected-by-operator: `subGroupSize` mu",
    ),
    Row(
        "LeaderWorkerSet",
        {f"{TEMPLATE}.subGroupPolicy": {"subGroupSize": 5, "subGroupPolicyType": "LeaderExcluded"}},
        "rejected-by-operator: `subGroupSize` is `5`, which does not divide 4",
    ),
    Row(
        "LeaderWorkerSet",
        {"metadata.annotations": {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"}},
        "rejected-by-operator: annotation `leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology` requires",
    ),
    Row(
        "LeaderWorkerSet", {f"{TEMPLATE}.workerTemplate.spec.restartPolicy": "Never"}, "rejected-child: the API server"
    ),
    Row(
        "LeaderWorkerSet",
        {f"{TEMPLATE}.workerTemplate.spec.activeDeadlineSeconds": 9},
        "rejected-child: the API server",
    ),
]
QUOTA = "spec.resourceGroups.0.flavors.0.resources.0"
V1BETA1 = {"apiVersion": "kueue.x-k8s.io/v1beta1", "spec.cohort": "all", "spec.cohortName": None}
CHECK = {"admissionChecks": [{"name": "a", "onFlavors": ["spto"]}]}
CONCURRENT = {"spec.concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}}}
KUEUE = [
    Row("ClusterQueue", {}),
    Row(
        "ClusterQueue",
        {"spec.resourceGroups.1.coveredResources": ["cpu"], "spec.resourceGroups.1.flavors": []},
        "rejected-by-operator: `cpu` is covered mo",
    ),
    Row(
        "ClusterQueue",
        {"spec.resourceGroups.0.coveredResources": ["memory", "cpu"]},
        "rejected-by-operator: `cpu` is listed wh",
    ),
    Row(
        "ClusterQueue",
        {"spec.resourceGroups.1.flavors.0.name": "spot"},
        "rejected-by-operator: flavor `spot` is also in",
    ),
    Row(
        "ClusterQueue", {f"{QUOTA}.nominalQuota": "-1"}, "rejected-by-operator: `nominalQuota` of `cpu` must not be neg"
    ),
    Row("ClusterQueue", {f"{QUOTA}.lendingLimit": 9}, "rejected-by-operator: `lendingLimit` of `cpu` is `9`"),
    Row("ClusterQueue", {f"{QUOTA}.lendingLimit": "8000m"}),
    Row(
        "ClusterQueue", {f"{QUOTA}.lendingLimit": 1, "spec.cohortName": None}, "rejected-by-operator: `lendingLimit` of"
    ),
    Row(
        "ClusterQueue", {"spec.namespaceSelector": {"matchLabels": {"a b": "c"}}}, "rejected-by-operator: `a b` is not"
    ),
    Row("ClusterQueue", {"spec.fairSharing": {"weight": "-1"}}, "rejected-by-operator: `weight` must not be negative"),
    Row("ClusterQueue", {"spec.fairSharing": {"weight": "1n"}}, "rejected-by-operator: `weight` is `1n`"),
    Row("ClusterQueue", {"spec.fairSharing": {"weight": "1n"}}, operators={"kueue": "0.13.0"}),
    Row(
        "ClusterQueue", {"spec.admissionChecksStrategy": CHECK}, "rejected-by-operator: the queue has no flavor `spto`"
    ),
    Row("ClusterQueue", {"spec.admissionChecksStrategy": CHECK}, operators={"kueue": "0.17.0"}),
    Row(
        "ClusterQueue",
        {**V1BETA1, "spec.admissionChecks": ["a"], "spec.admissionChecksStrategy": {}},
        "rejected-by-operator: `admissionChecks` cannot be set beside `admissionChecksStrategy`",
        operators={"kueue": "0.14.8"},
    ),
    Row(
        "ClusterQueue",
        {**V1BETA1, "spec.admissionChecks": ["a"], "spec.admissionChecksStrategy": {}},
        operators={"kueue": "0.15.0"},
    ),
    Row(
        "ClusterQueue",
        {**V1BETA1, "spec.admissionChecks": [], "spec.admissionChecksStrategy": {}},
        operators={"kueue": "0.14.8"},
    ),
    Row("ClusterQueue", CONCURRENT),
    Row("ClusterQueue", CONCURRENT, "rejected-by-operator: `concurrentAdmission", gates=("ConcurrentAdmission",)),
    Row("ClusterQueue", {"spec.namespaceSelector": None}, "admits-nothing: a ClusterQueue without `namespaceSelector`"),
    Row("ClusterQueue", {"spec.resourceGroups": [], "spec.cohortName": None}, "admits-nothing: the queue has no quota"),
    Row("Cohort", {}),
    Row("Cohort", {"spec.parentName": "all"}, "admits-nothing: cohort `all` is its own parent"),
    Row("Cohort", {"spec.parentName": None}, "rejected-by-operator: `lendingLimit` of `cpu` requires `parentName`"),
    Row("ResourceFlavor", {}),
    Row("ResourceFlavor", {"spec.nodeLabels": {"a": "b c"}}, "rejected-by-operator: label `a` has the invalid value"),
    Row(
        "ResourceFlavor", {"spec.nodeTaints.0.key": "a b"}, "rejected-by-operator: `a b` is not a valid key of a taint"
    ),
    Row(
        "ResourceFlavor",
        {"spec.nodeTaints": [{"key": "a", "effect": "NoSchedule"}] * 2},
        "rejected-by-operator: two taints have the key `a` and the effect `NoSchedule`",
    ),
]
COMPONENT = "spec.components.0"
POD_SET = {"path": "template.spec.template", "replicas": 2}
APP_WRAPPERS = [
    Row("AppWrapper", {}),
    Row("AppWrapper", {f"{COMPONENT}.podSets": [POD_SET]}),
    Row(
        "AppWrapper",
        {f"{COMPONENT}.podSets": [{"path": "template.spec"}]},
        "rejected-by-operator: `template.spec` leads",
    ),
    Row(
        "AppWrapper",
        {f"{COMPONENT}.podSets": [{**POD_SET, "replicas": 4}]},
        "rejected-by-operator: `replicas` of `templ",
    ),
    Row(
        "AppWrapper",
        {f"{COMPONENT}.podSets": [POD_SET, POD_SET]},
        "rejected-by-operator: two pod sets have the path",
    ),
    Row(
        "AppWrapper",
        {f"{COMPONENT}.template.metadata.namespace": "x"},
        "rejected-by-operator: the namespace `x` differs",
    ),
    Row("AppWrapper", {f"{COMPONENT}.template.kind": "CronJob"}, "rejected-by-operator: no component has pods"),
]
TENSORSTACK = [
    Row("GenericJob", {}),
    Row("GenericJob", {"spec.replicaSpecs": []}, "rejected-by-operator: a GenericJob requires at least one item"),
    Row("GenericJob", {"spec.successRules": [{"worker": [0, 1]}]}),
    Row(
        "GenericJob", {"spec.successRules": [{"worker": [2]}]}, "rejected-by-operator: `successRules` must be at most 1"
    ),
    Row(
        "GenericJob", {"spec.failureRules": [{"wroker": [0]}]}, "rejected-by-operator: there is no replica spec of type"
    ),
    Row("GenericJob", {"spec.cleanUpPolicy": "none"}, "rejected-by-operator: `cleanUpPolicy` is `none`"),
    Row(
        "GenericJob", {"spec.replicaSpecs.0.restartPolicy": {"policy": "ExitCode"}}, "rejected-by-operator: `policy` is"
    ),
    Row(
        "GenericJob",
        {"spec.scheduler": {"t9kScheduler": {"priority": 101}}},
        "rejected-by-operator: `priority` must be",
    ),
    Row("DeepSpeedJob", {}),
    Row("DeepSpeedJob", {"spec.config.run.module": ["a"]}, "rejected-by-operator: `run` requires exactly one of"),
    Row("DeepSpeedJob", {"spec.config.run.python": "train.py"}, "rejected-by-operator: `python` must be a list"),
    Row(
        "DeepSpeedJob",
        {"spec.config.otherArgs": ["--autotuning=run"]},
        "rejected-by-operator: `--autotuning` is set by",
    ),
    Row("DeepSpeedJob", {"spec.config": None}, "rejected-by-operator: `run` requires exactly one of"),
    Row("DeepSpeedJob", {"spec.config": None, "spec.runMode": {"debug": {"enabled": True}}}),
    Row("ColossalAIJob", {}),
    Row(
        "ColossalAIJob",
        {"spec.replicaSpecs": None, "spec.launcher": {}, "spec.worker": {}},
        "rejected-by-operator: `launcher` and `worker` belong to the format that ColossalAIJob had before March 2025",
    ),
    Row(
        "ColossalAIJob", {"spec.worker": {}}, "rejected-by-operator: `worker` was a field of ColossalAIJob before March"
    ),
    Row("ColossalAIJob", {"spec.replicaSpecs.0.type": "lancher"}, "rejected-by-operator: `type` is `lancher`"),
]
QUEUED = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "research"}}
ELASTIC = {"metadata.annotations": {"kueue.x-k8s.io/elastic-job": "true"}}
GROUPS = [{"groupName": f"g{index}"} for index in range(8)]
QUEUED_JOBS = [
    Row("RayJob", {**QUEUED, **SHUT}),
    Row("RayJob", QUEUED, "rejected-by-operator: a RayJob with a queue requires `shutdownAfterJobFinishes: true`"),
    Row(
        "RayJob",
        {**QUEUED, **SHUT, "spec.clusterSelector": {"ray.io/cluster": "c"}},
        "rejected-by-operator: a RayJob with a queue cannot have `clusterSelector`",
    ),
    Row(
        "RayCluster", {**QUEUED, "spec.enableInTreeAutoscaling": True}, "rejected-by-operator: a RayCluster with a que"
    ),
    Row("RayCluster", {**QUEUED, **ELASTIC, "spec.enableInTreeAutoscaling": True}),
    Row("RayCluster", {**QUEUED, f"{WORKER}.groupName": "head"}, "rejected-by-operator: Kueue names the pods of the"),
    Row("RayCluster", {f"{WORKER}.groupName": "head"}),
    Row("RayCluster", {**QUEUED, "spec.workerGroupSpecs": GROUPS}),
    Row(
        "RayCluster",
        {**QUEUED, "spec.workerGroupSpecs": GROUPS},
        "rejected-by-operator: `workerGroupSpecs` has 8 groups, but a Kueue workload can have at most 8 pod sets, with",
        operators={"kueue": "0.17.0"},
    ),
]


def topology(first=None, second=None, **more):
    """A JobSet with topology requests in the pod templates of both of its jobs."""
    change: dict[str, Any] = {"spec.replicatedJobs.1.replicas": 1, **more}
    for index, request in enumerate((first, second)):
        annotations = {f"kueue.x-k8s.io/podset-{key}": value for key, value in (request or {}).items()}
        change[f"spec.replicatedJobs.{index}.template.spec.template.metadata"] = {"annotations": annotations}
    return change


ONE = {"spec.replicatedJobs.0.template.spec.parallelism": 1, "spec.replicatedJobs.0.template.spec.completions": 1}
SAME = {"required-topology": "rack", "group-name": "a"}
TOPOLOGIES = [
    Row("JobSet", topology({"required-topology": "rack"})),
    Row("JobSet", topology({"required-topology": "a b"}), "bad-topology-request: `a b` is not a label of nodes"),
    Row(
        "JobSet",
        topology({"required-topology": "a", "preferred-topology": "b"}),
        "bad-topology-request: `kueue.x-k8s.io",
    ),
    Row(
        "JobSet", topology({"unconstrained-topology": "yes"}), "bad-topology-request: `kueue.x-k8s.io/podset-unconstra"
    ),
    Row("JobSet", topology({"unconstrained-topology": "true"})),
    Row(
        "JobSet", topology({"unconstrained-topology": "False"}), "bad-topology-request: `kueue.x-k8s.io/podset-unconstr"
    ),
    Row(
        "JobSet",
        topology({"unconstrained-topology": "false", "slice-required-topology": "a", "slice-size": "2"}),
    ),
    Row("JobSet", topology({"slice-size": "1"}), "bad-topology-request: `kueue.x-k8s.io/podset-slice-size` requires"),
    Row(
        "JobSet",
        topology({"slice-required-topology": "a", "slice-size": "3"}),
        "bad-topology-request: `kueue.x-k8s.io/",
    ),
    Row("JobSet", topology({"slice-required-topology": "a", "slice-size": "2"})),
    Row("JobSet", topology(SAME, SAME, **ONE)),
    Row(
        "LeaderWorkerSet",
        {
            f"{TEMPLATE}.leaderTemplate": {
                "metadata": {"annotations": {f"kueue.x-k8s.io/podset-{key}": value for key, value in SAME.items()}}
            },
            f"{TEMPLATE}.workerTemplate.metadata": {
                "annotations": {f"kueue.x-k8s.io/podset-{key}": value for key, value in SAME.items()}
            },
        },
    ),
    Row("JobSet", topology(SAME, SAME), "bad-topology-request: group `a` has no pod set with a single pod"),
    Row("JobSet", topology(SAME), "bad-topology-request: group `a` has 1 pod sets, but must have 2"),
    Row(
        "JobSet",
        topology(SAME, {**SAME, "required-topology": "b"}, **ONE),
        "bad-topology-request: the pod sets of grou",
    ),
    Row(
        "JobSet", topology({"group-name": "a"}, SAME, **ONE), "bad-topology-request: `kueue.x-k8s.io/podset-group-name`"
    ),
]
ROWS = [
    *QUEUED_JOBS,
    *TOPOLOGIES,
    *JOBSETS,
    *RAY_CLUSTERS,
    *RAY_JOBS,
    *RAY_SERVICES,
    *RAY_CRON_JOBS,
    *VOLCANO_JOBS,
    *LEADER_WORKER_SETS,
    *KUEUE,
    *APP_WRAPPERS,
    *TENSORSTACK,
]


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
    cluster = Cluster(operators=dict(operators), feature_gates=tuple(gates) or None)
    return [f"{problem.rule}: {problem.sentence}" for problem in RUNNER.find_problems(Manifest(obj, None, cluster))]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.kind} {row.change} {row.expected[:40]}"[:120] for row in ROWS])
def test_operator_finds_one_fault(row):
    found = find(changed(row.kind, row.change), row.operators, row.gates)

    assert [text[: len(row.expected)] for text in found] == ([row.expected] if row.expected else [])


WRONG_VALUES: list[Any] = [None, [], {}, "x", -1, 1.5, True, [None], [{}], {"x": None}]
OLD = {"jobset": "0.4.0", "kueue": "0.9.0", "kuberay": "1.5.0", "leaderworkerset": "0.4.0", "volcano": "1.9.0"}


def list_paths(node, path=()):
    """The paths to all nodes of an object."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from list_paths(child, (*path, key))


@pytest.mark.parametrize("kind", BASES)
def test_no_value_raises_an_exception(kind):
    for path in list_paths(BASES[kind]):
        for value in WRONG_VALUES:
            obj = changed(kind, {})
            holder = obj
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = value
            for operators in ({}, OLD):
                assert [text for text in find(obj, operators) if "internal-error" in text] == [], (path, value)


WRAPPED = """
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: bert, namespace: ml, labels: {kueue.x-k8s.io/queue-name: research}}
spec:
  components:
    - template:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: bert}
        spec:
          paralelism: 4 # unknown-field
          template:
            spec:
              restartPolicy: Always # invalid-value
              containers:
                - name: Train # invalid-container-name
                  image: registry.example.com/bert:1.4.2
    - template:
        apiVersion: jobset.x-k8s.io/v1alpha2
        kind: JobSet
        metadata: {name: bert}
        spec:
          managedBy: me # rejected-by-operator
          replicatedJobs: []
    - template:
        apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        metadata: {name: bert, namespace: mi} # rejected-by-operator
        spec:
          pytorchReplicaSpecs:
            Wroker: # unknown-role
              template: {spec: {containers: [{name: pytorch, image: "registry.example.com/bert:1.4.2"}]}}
"""
# Webhooks name the rules and the policy; controllers add the claims to the volumes of pods.
COMPLETED = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: bert, namespace: ml}
spec:
  failurePolicy: {maxRestarts: 1, rules: [{action: FailJobSet}, {action: RestartJobSet}]}
  volumeClaimPolicies:
    - templates:
        - metadata: {name: data}
          spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  replicatedJobs:
    - name: workers
      template:
        spec:
          template:
            spec:
              containers:
                - name: train
                  image: registry.example.com/bert:1.4.2
                  volumeMounts: [{name: data, mountPath: /data}]
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm, namespace: ml}
spec:
  networkConfig: {}
  leaderWorkerTemplate:
    volumeClaimTemplates:
      - metadata: {name: data}
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
    workerTemplate:
      spec:
        containers:
          - name: serve
            image: registry.example.com/vllm:1.4.2
            volumeMounts: [{name: data, mountPath: /data}]
"""


def lint_errors(folder, text):
    (folder / "a.yaml").write_text(text)
    findings = [found for found in lint(folder, ["."]).findings if found.severity == "error"]
    return sorted((found.location.line, found.rule) for found in findings)


def test_objects_in_an_app_wrapper_are_checked_in_place(tmp_path):
    marks = [(number, line.partition(" # ")[2]) for number, line in enumerate(WRAPPED.split("\n"), 1)]

    assert lint_errors(tmp_path, WRAPPED) == [(number, rule) for number, rule in marks if rule]


def test_what_operators_fill_in_is_not_missing(tmp_path):
    assert lint_errors(tmp_path, COMPLETED) == []


def test_rules_about_applied_objects_ignore_those_in_an_app_wrapper(tmp_path):
    (tmp_path / "a.yaml").write_text(WRAPPED)

    assert {found.category for found in lint(tmp_path, ["."]).findings}.isdisjoint(("gitops", "scheduling"))


def test_gpus_in_an_app_wrapper_count(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "overlays/prod").mkdir(parents=True)
    (tmp_path / "overlays/prod/overlay.yaml").write_text("""
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec: {cluster: {budgets: {namespaces: {ml: {gpus: 8}}}}}
""")
    (tmp_path / "jobs/a.yaml").write_text("""
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: bert, namespace: ml}
spec:
  components:
    - template:
        apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        metadata: {name: bert}
        spec:
          pytorchReplicaSpecs:
            Worker:
              replicas: 2
              template:
                spec:
                  containers:
                    - name: pytorch
                      image: registry.example.com/bert:1.4.2
                      resources: {limits: {nvidia.com/gpu: 8}}
""")
    found = [finding for finding in lint(tmp_path).findings if finding.rule == "gpu-budget-exceeded"]

    assert [finding.location.line for finding in found] == [10]
    assert "request 16 GPUs" in found[0].message
    assert [related.location.line for related in found[0].related] == [14]


@pytest.mark.parametrize(("gates", "severity"), [(None, "warning"), ((), "error"), (("RayClusterMTLS",), "")])
def test_a_gate_that_is_off_is_an_error_if_gates_are_declared(gates, severity):
    obj = changed("RayCluster", {"spec.tlsOptions": {"enabled": True}})
    found = RUNNER.find_problems(Manifest(obj, None, Cluster(feature_gates=gates)))

    assert [problem.severity for problem in found] == ([severity] if severity else [])


JOB_ANNOTATIONS = [
    ({"job-min-parallelism": "3"}, ""),
    ({"job-min-parallelism": "4"}, "rejected-by-operator: `kueue.x-k8s.io/job-min-parallelism` is `4`"),
    ({"job-min-parallelism": "x"}, "rejected-by-operator: `kueue.x-k8s.io/job-min-parallelism` is `x`"),
    ({"job-completions-equal-parallelism": "yes"}, "rejected-by-operator: `kueue.x-k8s.io/job-completions-equal"),
    ({"job-completions-equal-parallelism": "true"}, "rejected-by-operator: `kueue.x-k8s.io/job-completions-equal"),
]


@pytest.mark.parametrize(("annotations", "expected"), JOB_ANNOTATIONS)
def test_annotations_of_a_queued_job(annotations, expected):
    named = {f"kueue.x-k8s.io/{key}": value for key, value in annotations.items()}
    metadata = {"name": "bert", "labels": {"kueue.x-k8s.io/queue-name": "research"}, "annotations": named}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"parallelism": 4, "completions": 9}}

    assert [text[: len(expected)] for text in find(job)] == ([expected] if expected else [])


COUNTED = {
    "GenericJob": ("spec.replicaSpecs.0.template.spec.containers.0.resources", 2),
    "DeepSpeedJob": ("spec.worker.template.spec.containers.0.resources", 2),
    "ColossalAIJob": ("spec.replicaSpecs.1.template.spec.containers.0.resources", 2),
    "JobSet": ("spec.replicatedJobs.1.template.spec.template.spec.containers.0.resources", 8),
    "RayCluster": ("spec.workerGroupSpecs.0.template.spec.containers.0.resources", 1),
    "Job": ("spec.tasks.1.template.spec.containers.0.resources", 4),
    "LeaderWorkerSet": ("spec.leaderWorkerTemplate.workerTemplate.spec.containers.0.resources", 10),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_gpus_of_all_pods_count(kind):
    path, pods = COUNTED[kind]
    obj = changed(kind, {path: {"limits": {"nvidia.com/gpu": 8}}, "metadata.namespace": "ml"})
    cluster = Cluster(budgets={"namespaces": {"ml": {"gpus": 4}}})
    facts = list(collect_gpus(Manifest(obj, None, cluster)))

    assert [fact.value[1] for fact in facts] == [8 * pods]
