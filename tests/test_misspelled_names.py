"""A misspelled queue or runtime is a warning where the same file has what is meant, or Trainer ships it."""

from __future__ import annotations

import pytest
from lintfiles import lint_with_infos as lint_files

TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: ml}
spec:
  runtimeRef: {name: NAME}
  trainer: {image: "registry.example.com/bert:1.4.2", command: [torchrun, train.py], numNodes: 2}
"""
RUNTIME = """\
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: NAME, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template: {spec: {restartPolicy: Never, containers: [{name: node, image: "registry.example.com/t:1.0.0"}]}}
"""
VOLCANO_JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: bert, namespace: ml}
spec:
  minAvailable: 1
  schedulerName: volcano
  queue: NAME
  tasks:
  - name: worker
    replicas: 1
    template:
      spec:
        restartPolicy: OnFailure
        containers:
        - {name: worker, image: "registry.example.com/bert:1.4.2", command: [python, a.py]}
"""
POD_GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: bert, namespace: ml}
spec: {minMember: 2, queue: NAME}
"""
LABELED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: bert, namespace: ml, labels: {LABEL: NAME}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: t, image: "r.example.com/t:1.0.0", command: [python, t.py], resources: {requests: {cpu: 1}}}]
"""
KUEUE_JOB = LABELED.replace("LABEL", "kueue.x-k8s.io/queue-name")
VOLCANO_LABELED = LABELED.replace("LABEL", "volcano.sh/queue-name")
PYTORCH_JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  runPolicy: {schedulingPolicy: {queue: NAME}}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: {spec: {containers: [{name: pytorch, image: "r.example.com/t:1.0.0", command: [python, t.py]}]}}
"""
QUEUE = """\
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: NAME}
spec: {weight: 1, capability: {cpu: 64}}
"""
LOCAL_QUEUE = """\
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: NAME, namespace: ml}
spec: {clusterQueue: all}
"""
CASES = {
    # The object, the name in it, others, their names; the rule, the line and what is meant.
    "a runtime that Trainer ships": (
        TRAIN_JOB,
        "torch-distribuited",
        "",
        [],
        ("unknown-runtime", 5, "torch-distributed"),
    ),
    "a runtime of the file": (
        TRAIN_JOB,
        "torch-sharde",
        RUNTIME,
        ["torch-sharded"],
        ("unknown-runtime", 5, "torch-sharded"),
    ),
    "a digit is missing": (TRAIN_JOB, "torch-a10", RUNTIME, ["torch-a100"], ("unknown-runtime", 5, "torch-a100")),
    "a queue of Volcano": (VOLCANO_JOB, "trainning", QUEUE, ["training"], ("unknown-queue", 7, "training")),
    "one of two queues": (VOLCANO_JOB, "reserch", QUEUE, ["training", "research"], ("unknown-queue", 7, "research")),
    "a PodGroup": (POD_GROUP, "trainning", QUEUE, ["training"], ("unknown-queue", 4, "training")),
    "a label of Volcano": (VOLCANO_LABELED, "trainning", QUEUE, ["training"], ("unknown-queue", 3, "training")),
    "a policy of training-operator": (PYTORCH_JOB, "trainning", QUEUE, ["training"], ("unknown-queue", 5, "training")),
    "a LocalQueue": (KUEUE_JOB, "teama", LOCAL_QUEUE, ["team-a"], ("unknown-queue", 3, "team-a")),
    "a letter too many": (KUEUE_JOB, "visionn", LOCAL_QUEUE, ["vision", "speech"], ("unknown-queue", 3, "vision")),
}
RIGHT = {
    "shipped": (TRAIN_JOB, "torch-distributed", "", []),
    "shipped for torchtune": (TRAIN_JOB, "torchtune-llama3.2-1b", "", []),
    "a runtime of the cluster": (TRAIN_JOB, "torch-sharded", "", []),
    "a runtime of the file": (TRAIN_JOB, "torch-a100", RUNTIME, ["torch-a100", "torch-a10"]),
    "another GPU": (TRAIN_JOB, "torch-h100", RUNTIME, ["torch-a100"]),
    "a queue of the file": (VOLCANO_JOB, "training", QUEUE, ["training"]),
    "another queue": (VOLCANO_JOB, "research", QUEUE, ["training"]),
    "the default queue": (VOLCANO_JOB, "default", QUEUE, ["defaults"]),
    "no queue in the file": (VOLCANO_JOB, "trainning", "", []),
    "the queue of another team": (KUEUE_JOB, "team-b", LOCAL_QUEUE, ["team-a"]),
    "a queue that is filled in": (KUEUE_JOB, "team$A", LOCAL_QUEUE, ["team-a"]),
    "Kueue's label and a queue of Volcano": (KUEUE_JOB, "trainning", QUEUE, ["training"]),
}
RULES = ("unknown-queue", "unknown-runtime")


def find_names(folder, text, name, other, names):
    text = text.replace("NAME", name) + "".join(other.replace("NAME", each) for each in names)
    return [each for each in lint_files(folder, {"a.yaml": text}) if each["rule"] in RULES]


@pytest.mark.parametrize("case", CASES)
def test_a_misspelled_name_is_a_warning(case, tmp_path):
    *given, (rule, line, meant) = CASES[case]
    [found] = find_names(tmp_path, *given)
    assert (found["rule"], found["severity"], found["line"]) == (rule, "warning", line)
    assert found["message"].endswith(f"; did you mean `{meant}`?")
    assert f"`{given[1]}`" in found["message"]


@pytest.mark.parametrize("case", RIGHT)
def test_another_name_may_be_in_the_cluster(case, tmp_path):
    assert find_names(tmp_path, *RIGHT[case]) == []


def test_a_queue_of_another_namespace_is_not_meant(tmp_path):
    other = LOCAL_QUEUE.replace("namespace: ml", "namespace: web")
    assert find_names(tmp_path, KUEUE_JOB, "teama", other, ["team-a"]) == []


def test_a_misspelled_queue_is_one_finding_beside_its_cluster_queue(tmp_path):
    cluster = """\
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 8}]}]
"""
    text = KUEUE_JOB.replace("NAME", "teama") + LOCAL_QUEUE.replace("NAME", "team-a") + cluster
    found = [each["rule"] for each in lint_files(tmp_path, {"a.yaml": text}) if "`teama`" in each["message"]]
    assert found == ["inadmissible-job"]


OWN = RUNTIME.replace("Cluster", "").replace("{name: NAME,", "{name: NAME, namespace: ml,")


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("torch-distributed", "", ["info"]),
        ("torch-distributed", OWN, []),
        ("torch-distributed", OWN.replace("NAME", "other"), ["info"]),
        ("our-own", "", []),
    ],
)
def test_a_runtime_of_trainer_is_one_of_the_cluster(tmp_path, name, more, expected):
    text = (TRAIN_JOB.replace("{name: NAME}", "{name: NAME, kind: TrainingRuntime}") + more).replace("NAME", name)
    found = [each for each in lint_files(tmp_path, {"a.yaml": text}) if each["rule"] == "unknown-runtime"]

    assert [each["severity"] for each in found] == expected
    assert all("write `kind: ClusterTrainingRuntime`, or remove `kind`" in each["message"] for each in found)
