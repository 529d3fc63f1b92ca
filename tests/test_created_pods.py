"""The pods that operators create, by kind and version, and the comparison of two sets of pods.

The expected values are facts of the sources that are named at each table.
"""

import copy
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws
from sharedfiles import shared_folder

from jobgen.features.convert.operators.compare import compare_pods
from jobgen.features.convert.operators.create import create_all, create_pods
from jobgen.features.convert.operators.created import MAX_PODS, Restarts
from jobgen.features.convert.operators.trainer_runtimes import merge_strategically
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import count_pods
from jobgen.spec.overlay import Cluster

GPUS = {"limits": {"nvidia.com/gpu": 2}}


def _trains_alike(differences):
    """Return True if the same containers run in the same world: nodes, processes, ranks and restarts are equal."""
    return not any(difference.training for difference in differences)


def template(name="pytorch", **container):
    """A pod template with one container."""
    return {"spec": {"containers": [{"name": name, "image": "train:1", **container}]}}


def pytorch_job(workers=2, *, master=True, spec=(), role=(), **container):
    """A PyTorchJob."""
    roles = {"Worker": {"replicas": workers, "template": template(**container), **dict(role)}} if workers else {}
    if master:
        roles = {"Master": {"replicas": 1, "template": template(**container), **dict(role)}, **roles}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "mnist", "namespace": "team"},
        "spec": {"pytorchReplicaSpecs": roles, **dict(spec)},
    }


def train_job(runtime="torch-distributed", trainer=None, **spec):
    """A TrainJob."""
    reference = {"name": runtime, **spec.pop("reference", {})}
    own = {} if trainer is None else {"trainer": trainer}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "mnist", "namespace": "team"},
        "spec": {"runtimeRef": reference, **own, **spec},
    }


def cluster(**operators):
    """A cluster with declared versions of operators."""
    return Cluster(operators={name.replace("_", "-"): version for name, version in operators.items()})


def env_of(pod, container=0, field="containers"):
    """The variables of a container, in order; the path of a field stands for its value."""
    return [
        f"{entry['name']}={entry.get('value', entry.get('valueFrom', {}).get('fieldRef', {}).get('fieldPath'))}"
        for entry in pod.spec[field][container].get("env", [])
    ]


MASTER = ["MASTER_PORT=23456", "PET_MASTER_PORT=23456", "MASTER_ADDR=mnist-master-0", "PET_MASTER_ADDR=mnist-master-0"]
WORKER_PORT = {"ports": [{"name": "pytorchjob-port", "containerPort": 4000}]}

# The source is training-operator 1.7.0, 1.8.1 and 1.9.4: envvar.go, master.go and elastic.go in controller.v1/pytorch
PYTORCH_ENV = [
    pytest.param(
        pytorch_job(),
        "1.9.4",
        0,
        [
            "PYTHONUNBUFFERED=1",
            *MASTER,
            "WORLD_SIZE=3",
            "RANK=0",
            "PET_NODE_RANK=0",
            "PET_NPROC_PER_NODE=auto",
            "PET_NNODES=3",
        ],
        id="master",
    ),
    pytest.param(
        pytorch_job(spec={"nprocPerNode": "4"}.items()),
        "",
        2,
        [
            "PYTHONUNBUFFERED=1",
            *MASTER,
            "WORLD_SIZE=12",
            "RANK=2",
            "PET_NODE_RANK=2",
            "PET_NPROC_PER_NODE=4",
            "PET_NNODES=3",
        ],
        id="second worker, four processes",
    ),
    pytest.param(
        pytorch_job(),
        "1.7.0",
        1,
        [
            "PYTHONUNBUFFERED=1",
            *MASTER,
            "WORLD_SIZE=3",
            "RANK=1",
            "PET_NPROC_PER_NODE=auto",
            "PET_NODE_RANK=1",
            "PET_NNODES=3",
        ],
        id="1.7 sets the processes before the rank",
    ),
    pytest.param(
        pytorch_job(master=False), "1.7.0", 0, ["PYTHONUNBUFFERED=1", "PET_NNODES=2"], id="1.7 without a master"
    ),
    pytest.param(
        pytorch_job(master=False),
        "1.8.1",
        1,
        ["PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_NNODES=2"],
        id="without a master",
    ),
    pytest.param(
        pytorch_job(0, env=[{"name": "PYTHONUNBUFFERED", "value": "0"}], **WORKER_PORT),
        "",
        0,
        [
            *("PYTHONUNBUFFERED=0", "PYTHONUNBUFFERED=1", *(each.replace("23456", "4000") for each in MASTER)),
            *("WORLD_SIZE=1", "RANK=0", "PET_NODE_RANK=0", "PET_NPROC_PER_NODE=auto", "PET_NNODES=1"),
        ],
        id="own port, and a variable that is set twice",
    ),
    pytest.param(
        pytorch_job(3, master=False, spec={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 5}}.items()),
        "",
        0,
        [
            *("PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_RDZV_ENDPOINT=mnist-worker-0:23456"),
            *("PET_RDZV_BACKEND=c10d", "PET_NNODES=1:5"),
        ],
        id="elastic",
    ),
    pytest.param(
        pytorch_job(
            3,
            master=False,
            spec={
                "elasticPolicy": {
                    "rdzvBackend": "etcd",
                    "rdzvHost": "etcd",
                    "rdzvPort": 2379,
                    "rdzvId": "run",
                    "rdzvConf": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
                    "nProcPerNode": 2,
                    "maxRestarts": 9,
                    "standalone": True,
                }
            }.items(),
        ),
        "",
        0,
        [
            *("PYTHONUNBUFFERED=1", "PET_RDZV_ENDPOINT=etcd:2379", "PET_RDZV_BACKEND=etcd", "PET_NNODES=3:3"),
            *("PET_MAX_RESTARTS=9", "PET_NPROC_PER_NODE=2", "PET_RDZV_ID=run", "PET_RDZV_CONF=a=1,b=2"),
            "PET_STANDALONE=",
        ],
        id="all of the elastic policy",
    ),
]


@pytest.mark.parametrize(("job", "version", "index", "expected"), PYTORCH_ENV)
def test_variables_of_pytorch_jobs(job, version, index, expected):
    pods = create_pods(job, (), cluster(training_operator=version))

    assert env_of(pods[index]) == expected


# The source is training-operator v1.9.4: common/pod.go, common/service.go and pytorch/initcontainer.go in controller.v1
def test_names_and_labels_of_pytorch_jobs():
    created = create_all(pytorch_job())

    assert [(pod.name, pod.hostname, pod.address, pod.rank) for pod in created.pods] == [
        (f"mnist-{role}", f"mnist-{role}", f"mnist-{role}", rank)
        for rank, role in enumerate(("master-0", "worker-0", "worker-1"))
    ]
    assert [(each.kind, each.name, dict(each.ports)) for each in created.objects] == [
        ("Service", f"mnist-{role}", {"pytorchjob-port": 23456}) for role in ("master-0", "worker-0", "worker-1")
    ]
    assert created.pods[0].labels == {
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/job-name": "mnist",
        "training.kubeflow.org/replica-type": "master",
        "training.kubeflow.org/replica-index": "0",
        "training.kubeflow.org/job-role": "master",
    }
    assert "training.kubeflow.org/job-role" not in created.pods[1].labels
    assert "initContainers" not in created.pods[0].spec
    (waiting,) = created.pods[1].spec["initContainers"]
    assert (waiting["name"], waiting["image"]) == ("init-pytorch", "alpine:3.10")
    assert "nslookup mnist-master-0;" in waiting["command"][2]


def test_the_first_worker_is_the_master_if_there_is_no_other():
    first, second = create_pods(pytorch_job(master=False))

    assert first.labels["training.kubeflow.org/job-role"] == "master"
    assert "training.kubeflow.org/job-role" not in second.labels
    assert "initContainers" not in second.spec


# The source is training-operator v1.9.4: pkg/core/pod.go, and pytorch_defaults.go for the default
@pytest.mark.parametrize(
    ("written", "policy", "restarts"),
    [
        (None, "OnFailure", Restarts("OnFailure", "always", 3)),
        ("Always", "Always", Restarts("Always", "always", 3)),
        ("Never", "Never", Restarts("Never", "never", None)),
        ("ExitCode", "Never", Restarts("Never", "retryable", 3)),
    ],
)
def test_restart_policies_of_pytorch_jobs(written, policy, restarts):
    role = {"restartPolicy": written} if written else {}
    pod = create_pods(pytorch_job(role=role.items(), spec={"runPolicy": {"backoffLimit": 3}}.items()))[0]

    assert (pod.spec["restartPolicy"], pod.restarts) == (policy, restarts)


INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
TORCH = ["PET_MASTER_ADDR=mnist-node-0-0.mnist", "PET_MASTER_PORT=29500"]
LAST = ["JOB_COMPLETION_INDEX=metadata.labels['batch.kubernetes.io/job-completion-index']"]

# The source is trainer v2.0.0 to v2.3.0: pkg/runtime/framework/plugins/torch/torch.go
TORCH_PROCESSES = [
    ("2.3.0", {}, "1"),
    ("2.3.0", {"resourcesPerNode": GPUS}, "auto"),
    ("2.3.0", {"resourcesPerNode": {"limits": {"cpu": "1500m"}}}, "2"),
    ("2.3.0", {"resourcesPerNode": {"limits": {"cpu": 8}, "requests": {"cpu": 3}}}, "3"),
    ("2.3.0", {"numProcPerNode": 4}, "4"),
    ("2.1.0", {"numProcPerNode": "cpu", "resourcesPerNode": {"limits": {"cpu": 8, "nvidia.com/gpu": 2}}}, "8"),
    ("2.1.0", {"numProcPerNode": "gpu"}, "gpu"),
    ("2.0.0", {}, "auto"),
    ("2.0.0", {"resourcesPerNode": {"limits": {"cpu": 8}}}, "8"),
    ("2.0.0", {"resourcesPerNode": {}}, "1"),
    ("2.0.0", {"numProcPerNode": 3, "resourcesPerNode": {"requests": {"cpu": 8}}}, "3"),
    ("2.0.0", {"resourcesPerNode": {"requests": {"cpu": "2500m"}}}, "3"),
    ("2.0.0", {"numProcPerNode": "cpu", "resourcesPerNode": {"requests": {"cpu": 6, "nvidia.com/gpu": 2}}}, "6"),
    ("2.0.0", {"resourcesPerNode": GPUS}, "1"),
    ("2.0.0", {"resourcesPerNode": {**GPUS, "requests": {"nvidia.com/gpu": 2}}}, "auto"),
    ("2.0.0", {"numProcPerNode": 4, "resourcesPerNode": {**GPUS, "requests": {"cpu": 1}}}, "4"),
]


@pytest.mark.parametrize(("version", "trainer", "processes"), TORCH_PROCESSES)
def test_variables_of_torch_train_jobs(version, trainer, processes):
    job = train_job(trainer={"numNodes": 2, "env": [{"name": "A", "value": "1"}], **trainer})
    pod = create_pods(job, (), cluster(trainer=version))[1]
    expected = ["A=1", "PET_NNODES=2", f"PET_NPROC_PER_NODE={processes}", f"PET_NODE_RANK={INDEX}", *TORCH, *LAST]

    assert env_of(pod) == expected
    assert (pod.processes, pod.annotations["batch.kubernetes.io/job-completion-index"]) == (processes, "1")


# The source is trainer v2.3.0: pkg/runtime/framework/plugins/jax/jax.go and xgboost/xgboost.go
OTHER_POLICIES = [
    (
        "jax-distributed",
        {},
        ["JAX_NUM_PROCESSES=2", f"JAX_PROCESS_ID={INDEX}", "JAX_COORDINATOR_ADDRESS=mnist-node-0-0.mnist:29500"],
    ),
    (
        "xgboost-distributed",
        {"resourcesPerNode": GPUS},
        [
            "DMLC_TRACKER_URI=mnist-node-0-0.mnist",
            "DMLC_TRACKER_PORT=29500",
            f"DMLC_TASK_ID={INDEX}",
            "DMLC_NUM_WORKER=4",
        ],
    ),
]


@pytest.mark.parametrize(("runtime", "trainer", "expected"), OTHER_POLICIES)
def test_variables_of_other_policies(runtime, trainer, expected):
    job = train_job(runtime, {"numNodes": 2, "env": [{"name": "A", "value": "1"}], **trainer})

    assert env_of(create_pods(job)[0]) == [*expected, "A=1", *LAST]


def test_names_of_train_jobs():
    created = create_all(train_job(trainer={"numNodes": 2}))

    assert [(pod.name, pod.hostname, pod.address, pod.rank) for pod in created.pods] == [
        (f"mnist-node-0-{index}-<random>", f"mnist-node-0-{index}", f"mnist-node-0-{index}.mnist", index)
        for index in range(2)
    ]
    assert [(each.kind, each.name) for each in created.objects] == [("Service", "mnist")]
    pod = created.pods[1]
    assert (pod.spec["subdomain"], pod.spec["restartPolicy"]) == ("mnist", "OnFailure")
    assert pod.spec["containers"][0]["ports"] == [{"containerPort": 29500}]
    assert pod.restarts == Restarts("OnFailure", "always", 6)


def test_a_train_job_without_trainer_gets_no_variables():
    assert env_of(create_pods(train_job())[0]) == LAST


# The source is trainer v2.0.0 to v2.3.0: manifests/base/runtimes
@pytest.mark.parametrize(
    ("runtime", "version", "image"),
    [
        ("torch-distributed", "", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"),
        ("torch-distributed", "2.2.0", "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"),
        ("torch-distributed", "2.0.1", "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"),
        ("jax-distributed", "2.1.0", None),
        ("jax-distributed", "2.2.0", "nvcr.io/nvidia/jax:25.10-py3"),
        ("deepspeed-distributed", "2.1", "ghcr.io/kubeflow/trainer/deepspeed-runtime:v2.1.0"),
        ("mlx-distributed", "2.2.1", "ghcr.io/kubeflow/trainer/mlx-runtime:v2.2.1"),
        ("mpi-distributed", "2.0.0", "mpioperator/mpi-pi:openmpi"),
        ("mpi-distributed", "2.1.0", None),
        ("xgboost-distributed", "2.3.0", "ghcr.io/kubeflow/trainer/xgboost-runtime:v2.3.0"),
        ("unknown", "", None),
    ],
)
def test_shipped_runtimes(runtime, version, image):
    pods = create_pods(train_job(runtime, {}), (), cluster(trainer=version))

    assert {pod.spec["containers"][0]["image"] for pod in pods} == ({image} if image else set())


# The source is trainer v2.3.0: pkg/runtime/framework/plugins/mpi/mpi.go
def test_mpi_train_jobs():
    created = create_all(train_job("deepspeed-distributed", {"numNodes": 3, "resourcesPerNode": GPUS}))
    launcher = next(pod for pod in created.pods if pod.role == "launcher")
    hosts = ["mnist-node-0-0.mnist", "mnist-node-0-1.mnist", "mnist-launcher-0-0.mnist"]

    assert [(pod.address, pod.rank) for pod in created.pods] == list(zip(hosts, range(3), strict=True))
    assert env_of(launcher)[:4] == [
        "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames=true",
        "OMPI_MCA_orte_set_default_slots=2",
        "OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10",
    ]
    assert [(each.kind, each.name) for each in created.objects] == [
        ("Service", "mnist"),
        ("Secret", "mnist-mpi-ssh-auth"),
        ("ConfigMap", "mnist-mpi-hostfile"),
    ]
    assert created.objects[2].data["hostfile"] == "".join(f"{host} slots=2\n" for host in hosts)
    assert [mount["mountPath"] for mount in launcher.spec["containers"][0]["volumeMounts"]] == [
        "/home/mpiuser/.ssh",
        "/etc/mpi",
    ]
    assert all(pod.spec["containers"][0]["resources"] == GPUS for pod in created.pods)


def runtime(policy, *, pod=(), job=(), kind="TrainingRuntime", **container):
    """A runtime with one replicated Job."""
    spec = {"template": {"spec": {"containers": [{"name": "node", "image": "runtime:1", **container}], **dict(pod)}}}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    jobs = [{"name": "node", "template": {"metadata": {"labels": labels}, "spec": {**spec, **dict(job)}}}]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "own", "namespace": "team"},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": jobs}}},
    }


OWN = {"reference": {"kind": "TrainingRuntime"}}


def test_a_runtime_of_the_repository():
    found = runtime({"numNodes": 3, "torch": {}}, job={"backoffLimit": 0}.items(), env=[{"name": "A", "value": "1"}])
    job = train_job("own", {"image": "train:2", "env": [{"name": "A", "value": "2"}]}, **OWN)
    pods = create_pods(job, [found])

    assert len(pods) == 3
    assert (pods[0].spec["containers"][0]["image"], env_of(pods[0])[0]) == ("train:2", "A=2")
    assert pods[0].restarts == Restarts("OnFailure", "never", None)
    assert pods[0].template["spec"]["containers"][0]["env"] == [{"name": "A", "value": "2"}]
    assert create_pods(train_job("own", {}), [found]) == ()
    assert create_pods(train_job("own", {}), [{**found, "kind": "ClusterTrainingRuntime"}])


# Trainer v2.3.0 merges resources (pkg/util/trainingruntime), v2.2.0 replaces them (plugins/jobset/builder.go)
@pytest.mark.parametrize(("version", "limits"), [("2.3.0", {"cpu": 4, "memory": "1Gi"}), ("2.2.0", {"cpu": 4})])
def test_resources_of_train_jobs(version, limits):
    found = runtime({"torch": {}}, resources={"limits": {"cpu": 1, "memory": "1Gi"}})
    job = train_job("own", {"resourcesPerNode": {"limits": {"cpu": 4}}}, **OWN)
    pod = create_pods(job, [found], cluster(trainer=version))[0]

    assert pod.spec["containers"][0]["resources"]["limits"] == limits


POD_PATCH = {"nodeSelector": {"pool": "a"}, "containers": [{"name": "node", "volumeMounts": [{"mountPath": "/d"}]}]}
JOB_PATCH = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": POD_PATCH}}}}]}
PATCHES = {
    "runtimePatches": [{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": JOB_PATCH}}}],
    "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": POD_PATCH}],
    "podSpecOverrides": [{"targetJobs": [{"name": "node"}], **POD_PATCH}],
}


# The source is trainer v2.0.0, v2.1.0 and v2.2.0: pkg/runtime/core/trainingruntime.go
@pytest.mark.parametrize(
    ("version", "field"),
    [
        ("2.0.0", "podSpecOverrides"),
        ("2.1.0", "podTemplateOverrides"),
        ("2.2.0", "runtimePatches"),
        ("2.3.0", "runtimePatches"),
        ("", "runtimePatches"),
    ],
)
def test_patches_of_train_jobs(version, field):
    for name, patch in PATCHES.items():
        pod = create_pods(train_job(trainer={}, **{name: patch}), (), cluster(trainer=version))[0]

        assert (pod.spec.get("nodeSelector") == {"pool": "a"}) is (name == field)
        assert ("volumeMounts" in pod.spec["containers"][0]) is (name == field)
        assert ("nodeSelector" in pod.template["spec"]) is (name == field)


# The source is kubernetes: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go
@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": 1, "b": {"c": 1}}, {"b": {"d": 2}}, {"a": 1, "b": {"c": 1, "d": 2}}),
        ({"env": [{"name": "A"}]}, {"env": [{"name": "B"}]}, {"env": [{"name": "B"}, {"name": "A"}]}),
        (
            {"env": [{"name": "A"}, {"name": "B"}, {"name": "C"}]},
            {"env": [{"name": "N"}, {"name": "B", "value": "1"}]},
            {"env": [{"name": "N"}, {"name": "A"}, {"name": "B", "value": "1"}, {"name": "C"}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        (
            {"ports": [{"containerPort": 1}]},
            {"ports": [{"containerPort": 1, "name": "a"}]},
            {"ports": [{"containerPort": 1, "name": "a"}]},
        ),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({"a": 1}, {"b": {"c": None, "d": [None, {"e": None}]}}, {"a": 1, "b": {"d": [None, {}]}}),
    ],
)
def test_strategic_merge(target, patch, merged):
    assert merge_strategically(target, patch) == merged


def v1_job(kind, field, container, roles, **spec):
    """A job of training-operator."""
    replicas = {
        role: {"template": template(container), **({} if count is None else {"replicas": count})}
        for role, count in roles.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "mnist", "namespace": "team"},
        "spec": {field: replicas, **spec},
    }


def tf_job(roles, **spec):
    """A TFJob."""
    return v1_job("TFJob", "tfReplicaSpecs", "tensorflow", roles, **spec)


def tf_hosts(role, count=1):
    """The addresses of a role in TF_CONFIG."""
    return [f"mnist-{role}-{index}.team.svc:2222" for index in range(count)]


# The source is training-operator 1.9.4: pkg/controller.v1/tensorflow/tensorflow.go
@pytest.mark.parametrize(
    ("job", "index", "expected"),
    [
        (tf_job({"Worker": 1}), 0, None),
        (
            tf_job({"Worker": 2, "PS": 1}),
            1,
            {
                "cluster": {"ps": tf_hosts("ps"), "worker": tf_hosts("worker", 2)},
                "task": {"type": "worker", "index": 1},
                "environment": "cloud",
            },
        ),
        (
            tf_job({"Chief": 1, "Worker": 1, "Evaluator": None}),
            2,
            {
                "cluster": {
                    "chief": tf_hosts("chief"),
                    "evaluator": tf_hosts("evaluator"),
                    "worker": tf_hosts("worker"),
                },
                "task": {"type": "evaluator", "index": 0},
                "environment": "cloud",
            },
        ),
        (
            tf_job({"Worker": 2, "PS": 1}, enableDynamicWorker=True),
            1,
            {
                "cluster": {"worker": {"1": tf_hosts("worker", 2)[1]}, "ps": tf_hosts("ps")},
                "task": {"type": "worker", "index": 1},
            },
        ),
        (
            tf_job({"Worker": 2, "PS": 1}, enableDynamicWorker=True),
            2,
            {"cluster": {"worker": {}, "ps": tf_hosts("ps")}, "task": {"type": "ps", "index": 0}},
        ),
    ],
)
def test_tf_config(job, index, expected):
    pod = create_pods(job)[index]

    assert env_of(pod) == ([f"TF_CONFIG={json.dumps(expected, separators=(',', ':'))}"] if expected else [])
    assert pod.spec["restartPolicy"] == "Never"


V1_JOBS = [
    # The source is training-operator 1.9.4: pkg/controller.v1/xgboost/xgboost.go
    (
        v1_job("XGBoostJob", "xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 2}),
        2,
        "mnist-worker-1",
        [
            *("MASTER_PORT=9999", "MASTER_ADDR=mnist-master-0", "WORLD_SIZE=3", "RANK=2", "PYTHONUNBUFFERED=1"),
            *("WORKER_PORT=9999", "WORKER_ADDRS=mnist-worker-0,mnist-worker-1"),
        ],
    ),
    (
        v1_job("XGBoostJob", "xgbReplicaSpecs", "xgboost", {"Master": 1}),
        0,
        "mnist-master-0",
        ["MASTER_PORT=9999", "MASTER_ADDR=mnist-master-0", "WORLD_SIZE=1", "RANK=0", "PYTHONUNBUFFERED=1"],
    ),
    # The source is training-operator 1.9.4: pkg/controller.v1/paddlepaddle/envvar.go
    (
        v1_job("PaddleJob", "paddleReplicaSpecs", "paddle", {"Worker": 2}),
        0,
        "mnist-worker-0",
        [
            *("PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=mnist", "PADDLE_NNODES=2", "POD_IP_DUMMY=status.podIP"),
            "PADDLE_MASTER=$(POD_IP_DUMMY):36543",
        ],
    ),
    (
        v1_job("PaddleJob", "paddleReplicaSpecs", "paddle", {"Master": 1, "Worker": 1}),
        1,
        "mnist-worker-0",
        [
            *("PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=mnist", "PADDLE_NNODES=2", "PADDLE_MASTER=mnist-master-0:36543"),
            "PADDLE_TRAINER_NUM=1",
        ],
    ),
    # The source is training-operator 1.9.4: pkg/controller.v1/jax/envvar.go
    (
        v1_job("JAXJob", "jaxReplicaSpecs", "jax", {"Worker": 2}),
        1,
        "mnist-worker-1",
        [
            *("PYTHONUNBUFFERED=1", "COORDINATOR_PORT=6666", "COORDINATOR_ADDRESS=mnist-worker-0"),
            *("NUM_PROCESSES=2", "PROCESS_ID=1"),
        ],
    ),
]


@pytest.mark.parametrize(("job", "index", "name", "expected"), V1_JOBS)
def test_variables_of_other_v1_jobs(job, index, name, expected):
    pod = create_pods(job)[index]

    assert (pod.name, pod.rank, env_of(pod)) == (name, index, expected)


# The source is IsMasterRole in the controllers of training-operator 1.9.4
@pytest.mark.parametrize(
    ("job", "masters"),
    [
        (tf_job({"Worker": 2, "Chief": 1}), ["mnist-chief-0"]),
        (tf_job({"Worker": 2, "PS": 1}), ["mnist-worker-0"]),
        (v1_job("XGBoostJob", "xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 2}), ["mnist-master-0"]),
        (v1_job("PaddleJob", "paddleReplicaSpecs", "paddle", {"Worker": 2}), []),
        (v1_job("JAXJob", "jaxReplicaSpecs", "jax", {"Worker": 2}), ["mnist-worker-0"]),
    ],
)
def test_masters_of_v1_jobs(job, masters):
    found = [pod.name for pod in create_pods(job) if pod.labels.get("training.kubeflow.org/job-role") == "master"]

    assert found == masters


def mpi_job(version="v1", launcher=(), worker=(), **spec):
    """An MPIJob."""
    job = v1_job("MPIJob", "mpiReplicaSpecs", "main", {"Launcher": 1, "Worker": 2}, **spec)
    for role, fields in (("Launcher", launcher), ("Worker", worker)):
        job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0].update(fields)
    return {**job, "apiVersion": f"kubeflow.org/{version}"}


# The source is training-operator 1.9.4: pkg/controller.v1/mpi/mpijob_controller.go
def test_mpi_jobs_v1():
    created = create_all(mpi_job(slotsPerWorker=4))
    launcher, first, second = created.pods

    assert [(pod.name, pod.rank, pod.processes) for pod in created.pods] == [
        ("mnist-launcher", None, ""),
        ("mnist-worker-0", 0, "4"),
        ("mnist-worker-1", 1, "4"),
    ]
    assert env_of(launcher) == [
        "OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
        "NVIDIA_VISIBLE_DEVICES=",
        "NVIDIA_DRIVER_CAPABILITIES=",
        "I_MPI_HYDRA_BOOTSTRAP=rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh",
    ]
    assert launcher.spec["serviceAccountName"] == "mnist-launcher"
    assert launcher.spec["initContainers"][0]["image"] == "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest"
    assert first.spec["containers"][0]["command"] == ["sleep"]
    assert second.spec["volumes"][0]["configMap"]["name"] == "mnist-config"
    assert created.objects[0].data["hostfile"] == "mnist-worker-0 slots=4\nmnist-worker-1 slots=4\n"
    assert [each.kind for each in created.objects] == ["ConfigMap", "ServiceAccount", "Role", "RoleBinding"]


def test_mpi_launchers_with_gpus_train():
    created = create_all(mpi_job(launcher={"resources": GPUS}, worker={"command": ["run"]}))

    assert [pod.rank for pod in created.pods] == [0, 1, 2]
    assert not any("NVIDIA" in entry for entry in env_of(created.pods[0]))
    assert created.pods[1].spec["containers"][0]["command"] == ["run"]
    assert created.objects[0].data["hostfile"].startswith("mnist-launcher slots=1\n")


SSH = "-o ConnectionAttempts=10"


# The source is mpi-operator 0.4.0 to 0.8.0: pkg/controller/mpi_job_controller.go
@pytest.mark.parametrize(
    ("implementation", "variables", "line"),
    [
        (
            None,
            [
                *("OMPI_MCA_orte_keep_fqdn_hostnames=true", "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile"),
                *(f"OMPI_MCA_plm_rsh_args={SSH}", "OMPI_MCA_orte_set_default_slots=2"),
            ],
            "mnist-worker-0.mnist.team.svc slots=2",
        ),
        (
            "Intel",
            [
                *("I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile", f"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS={SSH}"),
                "I_MPI_PERHOST=2",
            ],
            "mnist-worker-0.mnist.team.svc:2",
        ),
        (
            "MPICH",
            ["HYDRA_HOST_FILE=/etc/mpi/hostfile", f"HYDRA_LAUNCH_EXTRA_ARGS={SSH}"],
            "mnist-worker-0.mnist.team.svc:2",
        ),
    ],
)
def test_mpi_jobs_v2(implementation, variables, line):
    own = {"mpiImplementation": implementation} if implementation else {}
    created = create_all(mpi_job("v2beta1", slotsPerWorker=2, **own))
    launcher, worker, _ = created.pods

    expected = ["K_MPI_JOB_ROLE=launcher", *variables, "NVIDIA_VISIBLE_DEVICES=None", "NVIDIA_DRIVER_CAPABILITIES=None"]
    assert env_of(launcher) == expected
    assert (launcher.name, launcher.hostname, launcher.rank) == ("mnist-launcher-<random>", "mnist-launcher", None)
    assert (launcher.spec["restartPolicy"], worker.spec["restartPolicy"]) == ("OnFailure", "Never")
    assert (worker.name, worker.address, worker.rank, worker.processes) == (
        "mnist-worker-0",
        "mnist-worker-0.mnist",
        0,
        "2",
    )
    assert worker.spec["containers"][0]["command"] == ["/usr/sbin/sshd", "-De"]
    assert worker.spec["dnsConfig"] == {"searches": ["mnist.team.svc.cluster.local"]}
    assert [(each.kind, each.name) for each in created.objects] == [
        ("Service", "mnist"),
        ("ConfigMap", "mnist-config"),
        ("Secret", "mnist-ssh"),
    ]
    assert created.objects[1].data["hostfile"].splitlines()[0] == line


def test_mpi_launchers_as_workers():
    created = create_all(mpi_job("v2beta1", runLauncherAsWorker=True))

    assert [pod.rank for pod in created.pods] == [0, 1, 2]
    assert [pod.labels["training.kubeflow.org/replica-index"] for pod in created.pods] == ["0", "1", "2"]
    assert created.objects[1].data["hostfile"].startswith("mnist-launcher.mnist.team.svc slots=1\n")
    old = create_pods(mpi_job("v2beta1"), (), cluster(mpi_operator="0.4.0"))[1]
    assert (old.address, "dnsConfig" in old.spec) == ("mnist-worker-0.mnist-worker", False)


def volcano_job(plugins=(), tasks=(("master", 1), ("worker", 2)), **spec):
    """A Job of Volcano."""
    items = [{"name": name, "replicas": count, "template": template("main")} for name, count in tasks]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "mnist", "namespace": "team"},
        "spec": {"tasks": items, "plugins": dict(plugins), **spec},
    }


HOSTS = ["mnist-worker-0.mnist", "mnist-worker-1.mnist"]
SVC = ["VC_MASTER_HOSTS=None", "VC_MASTER_NUM=None", "VC_WORKER_HOSTS=None", "VC_WORKER_NUM=None"]

# The source is volcano 1.14.0: pkg/controllers/job/plugins and pkg/webhooks/admission/jobs/mutate
VOLCANO_ENV = [
    pytest.param({}, 2, [], id="none"),
    pytest.param({"env": []}, 2, ["VK_TASK_INDEX=1", "VC_TASK_INDEX=1"], id="env"),
    pytest.param({"svc": []}, 1, SVC, id="svc"),
    pytest.param(
        {"pytorch": ["--port=5000"]},
        2,
        [*SVC, "MASTER_ADDR=mnist-master-0.mnist", "MASTER_PORT=5000", "WORLD_SIZE=3", "RANK=2"],
        id="pytorch, which needs svc",
    ),
    pytest.param(
        {"pytorch": ["--master=worker", "-worker", "master"]},
        1,
        [*SVC, "MASTER_ADDR=mnist-worker-0.mnist", "MASTER_PORT=23456", "WORLD_SIZE=3", "RANK=0"],
        id="pytorch with other tasks",
    ),
    pytest.param({"mpi": []}, 0, [*SVC, f"MPI_HOST={','.join(HOSTS)}"], id="mpi, master"),
    pytest.param({"mpi": []}, 1, SVC, id="mpi, worker"),
    pytest.param(
        {"tensorflow": ["--chief=master"]},
        0,
        [
            *SVC,
            (
                'TF_CONFIG={"cluster":{"worker":["mnist-worker-0.mnist:2222","mnist-worker-1.mnist:2222"],'
                '"chief":["mnist-master-0.mnist:2222"]},"task":{"type":"chief","index":0}}'
            ),
        ],
        id="tensorflow",
    ),
]


@pytest.mark.parametrize(("plugins", "index", "expected"), VOLCANO_ENV)
def test_variables_of_volcano_jobs(plugins, index, expected):
    assert env_of(create_pods(volcano_job(plugins))[index]) == expected


# The source is volcano 1.14.0: pkg/controllers/job/job_controller_util.go and plugins/svc/svc.go
def test_volcano_jobs():
    created = create_all(volcano_job({"svc": [], "ssh": []}, queue="gpus", priorityClassName="high"))
    pod = created.pods[2]

    assert [(each.name, each.address, each.rank) for each in created.pods] == [
        ("mnist-master-0", "mnist-master-0.mnist", 0),
        ("mnist-worker-0", HOSTS[0], 1),
        ("mnist-worker-1", HOSTS[1], 2),
    ]
    assert (pod.spec["schedulerName"], pod.spec["priorityClassName"]) == ("volcano", "high")
    assert (pod.spec["hostname"], pod.spec["subdomain"]) == ("mnist-worker-1", "mnist")
    assert pod.labels == {
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "mnist",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-namespace": "team",
        "volcano.sh/queue-name": "gpus",
    }
    assert [mount["mountPath"] for mount in pod.spec["containers"][0]["volumeMounts"]] == ["/etc/volcano", "/root/.ssh"]
    assert [(each.kind, each.name) for each in created.objects] == [
        ("PodGroup", "mnist-<random>"),
        ("ConfigMap", "mnist-svc"),
        ("Service", "mnist"),
        ("NetworkPolicy", "mnist"),
        ("Secret", "mnist-ssh"),
    ]
    assert created.objects[1].data["worker.host"] == "\n".join(HOSTS)
    assert created.objects[4].data["config"].endswith("Host mnist-worker-1\n  HostName mnist-worker-1.mnist\n")
    assert [each.rank for each in create_pods(volcano_job({"mpi": []}))] == [None, 0, 1]
    assert [each.address for each in create_pods(volcano_job())] == ["", "", ""]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, Restarts("Never", "never")),
        ({"policies": [{"event": "PodFailed", "action": "RestartJob"}]}, Restarts("Never", "always", 2)),
        ({"policies": [{"events": ["*"], "action": "RestartTask"}], "maxRetry": 5}, Restarts("Never", "always", 4)),
        ({"policies": [{"event": "PodEvicted", "action": "RestartJob"}]}, Restarts("Never", "never")),
        ({"policies": [{"event": "PodFailed", "action": "AbortJob"}]}, Restarts("Never", "never")),
    ],
)
def test_restarts_of_volcano_jobs(spec, expected):
    job = volcano_job(**spec)
    assert create_pods(job)[0].restarts.policy == "Always"
    job["spec"]["tasks"][0]["template"]["spec"]["restartPolicy"] = "Never"

    assert create_pods(job)[0].restarts == expected


def test_ray_in_volcano():
    job = volcano_job({"ray": []}, (("head", 1), ("worker", 1)))
    for task in job["spec"]["tasks"]:
        task["template"]["spec"]["containers"][0]["name"] = task["name"]
    created = create_all(job)
    head, worker = (pod.spec["containers"][0]["command"][2] for pod in created.pods)

    assert head.startswith("ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265")
    assert worker == "ray start --block --address=mnist-head-0.mnist:6379"
    assert created.objects[-1].ports == {"gcs": 6379, "dashboard": 8265, "client-server": 10001}


def ray_job(groups=(("gpu", {"replicas": 2}),), head=(), cluster=(), container=(), **spec):
    """A RayJob."""
    pod = {"spec": {"containers": [{"name": "ray", "image": "ray:1", **dict(container)}]}}
    workers = [{"groupName": name, "rayStartParams": {}, "template": pod, **group} for name, group in groups]
    own = {
        "headGroupSpec": {"rayStartParams": {}, "template": pod, **dict(head)},
        "workerGroupSpecs": workers,
        **dict(cluster),
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "tune", "namespace": "team"},
        "spec": {"entrypoint": "python train.py", "rayClusterSpec": own, **spec},
    }


RAY_ADDRESS = "tune-<random>-head-svc.team.svc.cluster.local"
RAY_OPTIONS = " --dashboard-agent-listen-port=52365 "
RAY_HEAD = {"port": "1", "num-cpus": "0", "include-dashboard": "true", "no": "false"}
RAY_LIMITS = {"resources": {"limits": {"cpu": "1500m", "memory": "1Ki", "nvidia.com/gpu": 2}}}


def test_pods_of_ray_restart_as_their_template_says():
    job = ray_job()
    group = job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    group["template"] = {"spec": {**group["template"]["spec"], "restartPolicy": "Never"}}
    head, worker, *_ = create_pods(job)

    assert (head.role, head.restarts.policy) == ("head", "Always")
    assert (worker.role, worker.restarts.policy) == ("gpu", "Never")


# The source is kuberay 1.6.0: ray-operator/controllers/ray/common/pod.go
@pytest.mark.parametrize(
    ("job", "index", "expected"),
    [
        (ray_job(), 0, f"--head  --block {RAY_OPTIONS} --dashboard-host=0.0.0.0  --metrics-export-port=8080 "),
        (ray_job(), 1, f" --address={RAY_ADDRESS}:6379  --block {RAY_OPTIONS} --metrics-export-port=8080 "),
        (
            ray_job(head={"rayStartParams": RAY_HEAD}.items(), container=RAY_LIMITS.items()),
            0,
            (
                f"--head  --block {RAY_OPTIONS} --dashboard-host=0.0.0.0  --include-dashboard=true  --memory=1024 "
                " --metrics-export-port=8080  --num-cpus=0  --num-gpus=2  --port=1 "
            ),
        ),
        (
            ray_job(head={"rayStartParams": RAY_HEAD}.items(), container=RAY_LIMITS.items()),
            1,
            (
                f" --address={RAY_ADDRESS}:1  --block {RAY_OPTIONS} --memory=1024  --metrics-export-port=8080 "
                " --num-cpus=2  --num-gpus=2 "
            ),
        ),
    ],
)
def test_start_commands_of_ray(job, index, expected):
    container = create_pods(job)[index].spec["containers"][0]

    assert container["args"] == [f"ulimit -n 65536; ray start {expected}"]
    assert container["command"] == ["/bin/bash", "-c", "--"]


# The source is kuberay 1.6.0: common/pod.go, common/job.go, common/service.go and rayjob_controller.go
def test_ray_jobs():
    groups = (("gpu", {"replicas": 9, "maxReplicas": 2, "numOfHosts": 2}), ("cpu", {"minReplicas": 1}))
    created = create_all(ray_job(groups))

    assert [(pod.role, pod.rank, pod.name) for pod in created.pods] == [
        ("head", 0, "tune-<random>-head-<random>"),
        *(("gpu", rank, "tune-<random>-gpu-worker-<random>") for rank in range(1, 5)),
        ("cpu", 5, "tune-<random>-cpu-worker-<random>"),
        ("submitter", None, "tune-<random>"),
    ]
    head, worker, submitter = created.pods[0], created.pods[1], created.pods[-1]
    assert head.address == "tune-<random>-head-svc"
    assert (head.labels["ray.io/group"], worker.labels["ray.io/group"]) == ("headgroup", "gpu")
    assert [entry.partition("=")[0] for entry in env_of(worker)] == [
        *("FQ_RAY_IP", "RAY_IP", "RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_CLOUD_INSTANCE_ID"),
        *("RAY_NODE_TYPE_NAME", "KUBERAY_GEN_RAY_START_CMD", "RAY_PORT", "RAY_ADDRESS"),
        *("RAY_USAGE_STATS_KUBERAY_IN_USE", "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE"),
    ]
    assert f"RAY_ADDRESS={RAY_ADDRESS}:6379" in env_of(worker)
    assert "RAY_ADDRESS=127.0.0.1:6379" in env_of(head)
    assert worker.spec["initContainers"][0]["name"] == "wait-gcs-ready"
    assert worker.spec["volumes"] == [{"name": "shared-mem", "emptyDir": {"medium": "Memory"}}]
    assert {"livenessProbe", "readinessProbe"} < set(head.spec["containers"][0])
    assert " -- python train.py ;" in submitter.spec["containers"][0]["args"][0]
    assert (submitter.spec["containers"][0]["image"], submitter.restarts) == ("ray:1", Restarts("Never", "always", 2))
    assert [(each.kind, each.name) for each in created.objects] == [
        ("Service", "tune-<random>-head-svc"),
        ("Service", "tune-head-svc"),
    ]
    assert created.objects[0].ports["gcs-server"] == 6379


@pytest.mark.parametrize(("mode", "containers"), [("HTTPMode", 1), ("SidecarMode", 2)])
def test_submission_modes_of_ray_jobs(mode, containers):
    pods = create_pods(ray_job(submissionMode=mode))

    assert [pod.role for pod in pods] == ["head", "gpu", "gpu"]
    assert len(pods[0].spec["containers"]) == containers


def test_autoscalers_and_commands_of_ray():
    job = ray_job(cluster={"enableInTreeAutoscaling": True}.items(), container={"command": ["echo", "hi"]}.items())
    head = create_pods(job)[0]

    assert [each["name"] for each in head.spec["containers"]] == ["ray", "autoscaler"]
    assert head.spec["serviceAccountName"] == "tune-<random>"
    assert head.spec["containers"][0]["args"][0].startswith(" echo  hi  && ulimit -n 65536; ray start --head ")
    assert " --no-monitor " in head.spec["containers"][0]["args"][0]
    own = ray_job(container={"command": ["bash", "-c", "ray start --head"]}.items())
    assert create_pods(own)[0].spec["containers"][0]["command"] == ["bash", "-c", "ray start --head"]


def tensorstack_job(kind, roles=(("worker", 2),), container="worker", line=(), **spec):
    """A job of TensorStack."""
    items = [{"type": role, "replicas": count, "template": template(container, **dict(line))} for role, count in roles]
    shape = {"worker": {**items[0]}} if kind == "DeepSpeedJob" else {"replicaSpecs": items}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": "mnist", "namespace": "team"},
        "spec": {**shape, **spec},
    }


NODES = [("mnist-worker-0", 0), ("mnist-worker-1", 1)]
LAUNCHED = [("mnist-launcher", None), *NODES]
BOTH = (("launcher", 1), ("worker", 2))
SCRIPT = {"script": ["python", "train.py"], "extraArgs": ["-N", "2"], "procPerWorker": 2}
ARGS = {"args": ["train.py"]}.items()
UNKNOWN = "<undocumented>"

# The source is t9k/ucman d21c640: the guides and references of each kind
TENSORSTACK = [
    (tensorstack_job("PyTorchTrainingJob", container="pytorch", line=ARGS), NODES, None, ""),
    (
        tensorstack_job("PyTorchTrainingJob", line=ARGS, torchrunConfig={"enabled": True, "procPerNode": "4"}),
        NODES,
        ["torchrun", UNKNOWN],
        "4",
    ),
    (tensorstack_job("TensorFlowTrainingJob", container="tensorflow"), NODES, None, ""),
    (tensorstack_job("XGBoostTrainingJob", container="xgboost"), NODES, None, ""),
    (tensorstack_job("MPIJob", BOTH, mpiConfig=SCRIPT), LAUNCHED, ["/usr/sbin/sshd", "-D"], ""),
    (tensorstack_job("MPIJob", BOTH, ssh={"sshdPath": "/sshd"}), LAUNCHED, ["/sshd", "-D"], ""),
    (tensorstack_job("ColossalAIJob", BOTH, torchConfig=SCRIPT), LAUNCHED, ["/usr/sbin/sshd", "-D"], "2"),
    (
        tensorstack_job("DeepSpeedJob", config={"slotsPerWorker": 4, "run": {"python": ["train.py"]}}),
        NODES,
        ["/usr/sbin/sshd", "-D"],
        "4",
    ),
    (
        tensorstack_job("GenericJob", line={"command": ["run", "$(rank)/$(replicas[worker])"]}.items()),
        NODES,
        ["run", "1/2"],
        "",
    ),
]


@pytest.mark.parametrize(("job", "names", "command", "processes"), TENSORSTACK)
def test_tensorstack_jobs(job, names, command, processes):
    pods = create_pods(job)

    assert [(pod.name, pod.rank) for pod in pods] == names
    assert pods[-1].spec["containers"][0].get("command") == command
    assert (pods[-1].spec["restartPolicy"], pods[-1].processes) == ("Never", processes)


def test_commands_of_tensorstack_launchers():
    jobs = [
        tensorstack_job(kind, BOTH, "launcher", mpiConfig=SCRIPT, torchConfig=SCRIPT)
        for kind in ("MPIJob", "ColossalAIJob")
    ]
    mpi, colossal = (create_pods(job)[0] for job in jobs)
    deepspeed = create_pods(TENSORSTACK[7][0])[0]
    script = [UNKNOWN, "-N", "2", "python", "train.py"]

    assert mpi.spec["containers"][0]["command"] == ["mpirun", *script]
    assert colossal.spec["containers"][0]["command"] == ["colossalai", "run", *script]
    assert deepspeed.spec["containers"][0]["command"] == ["deepspeed", UNKNOWN, "train.py"]
    old = {"worker": {"replicas": 2, "template": template("mpi-worker")}}
    pods = create_pods({**tensorstack_job("MPIJob"), "spec": old})
    assert [(pod.name, pod.rank) for pod in pods] == LAUNCHED


def test_services_of_generic_jobs():
    env = [{"name": "A", "value": "$(service.worker[0].host):$(service.port[rpc])"}]
    service = {"ports": [{"name": "rpc", "port": 2222}]}
    created = create_all(tensorstack_job("GenericJob", line={"env": env}.items(), service=service))

    assert env_of(created.pods[1]) == ["A=mnist-worker-0:2222"]
    assert [(each.name, dict(each.ports)) for each in created.objects] == [
        (name, {"rpc": 2222}) for name in ("mnist-worker-0", "mnist-worker-1")
    ]
    assert created.pods[1].address == "mnist-worker-1"


@pytest.mark.parametrize(
    ("kind", "policy", "run", "expected"),
    [
        ("PyTorchTrainingJob", None, {}, Restarts("Never", "always", 3)),
        ("PyTorchTrainingJob", "ExitCode", {"backoffLimit": 5}, Restarts("Never", "retryable", 5)),
        ("PyTorchTrainingJob", "Never", {}, Restarts("Never", "never")),
        ("PyTorchTrainingJob", "OnFailure", {"backoffLimit": 0}, Restarts("Never", "never")),
        ("GenericJob", None, {}, Restarts("Never", "never")),
        ("GenericJob", {"policy": "OnFailure", "limit": 2}, {}, Restarts("Never", "always", 2)),
        ("GenericJob", {"policy": "Never", "limit": 2}, {}, Restarts("Never", "never")),
    ],
)
def test_restarts_of_tensorstack_jobs(kind, policy, run, expected):
    job = tensorstack_job(kind, runPolicy=run)
    if policy is not None:
        job["spec"]["replicaSpecs"][0]["restartPolicy"] = policy

    assert create_pods(job)[0].restarts == expected


JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}}


# The source is kubernetes: pkg/controller/job/job_controller.go and indexed_job_utils.go
@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, ["train-<random>"]),
        ({"completionMode": "Indexed", "completions": 2, "parallelism": 2}, ["train-0-<random>", "train-1-<random>"]),
        ({"completionMode": "Indexed", "completions": 2, "parallelism": 5}, ["train-0-<random>", "train-1-<random>"]),
        ({"parallelism": 2}, ["train-<random>", "train-<random>"]),
        ({"parallelism": 0}, []),
    ],
)
def test_names_of_jobs(spec, names):
    pods = create_pods({**JOB, "spec": {"template": template("main"), **spec}})

    assert [pod.name for pod in pods] == names


def test_indexed_jobs():
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    pod = create_pods({**JOB, "spec": {"template": {"spec": {**template()["spec"], "subdomain": "set"}}, **spec}})[1]

    assert (pod.hostname, pod.address, pod.rank, env_of(pod)) == ("train-1", "train-1.set", 1, LAST)
    assert pod.labels["batch.kubernetes.io/job-name"] == "train"
    long = create_pods({**JOB, "metadata": {"name": "a" * 60}, "spec": {"template": template(), **spec}})[0]
    assert long.name == "a" * 55 + "-0-<random>"


def job_set(jobs, **spec):
    """A JobSet."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set", "namespace": "team"},
        "spec": {"replicatedJobs": jobs, **spec},
    }


def replicated(name, replicas=1, pods=1, **fields):
    """A replicated Job."""
    spec = {"parallelism": pods, "completions": pods, "template": template("main")}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **fields}


# The source is jobset v0.5.2 to v0.12.0: pkg/controllers/jobset_controller.go and api/jobset/v1alpha2/jobset_types.go
def test_job_sets():
    coordinator = {"replicatedJob": "leader", "jobIndex": 0, "podIndex": 0}
    created = create_all(job_set([replicated("leader"), replicated("workers", 2, 2)], coordinator=coordinator))

    assert [(pod.name, pod.address, pod.rank) for pod in created.pods] == [
        (f"set-{host}-<random>", f"set-{host}.set", rank)
        for rank, host in enumerate(("leader-0-0", "workers-0-0", "workers-0-1", "workers-1-0", "workers-1-1"))
    ]
    labels = {key.partition("/")[2]: value for key, value in created.pods[4].labels.items() if "jobset" in key}
    assert {key: value for key, value in labels.items() if key not in ("jobset-uid", "job-key")} == {
        "jobset-name": "set",
        "replicatedjob-name": "workers",
        "restart-attempt": "0",
        "replicatedjob-replicas": "2",
        "global-replicas": "3",
        "job-index": "1",
        "job-global-index": "2",
        "group-name": "default",
        "group-replicas": "3",
        "job-group-index": "2",
        "coordinator": "set-leader-0-0.set",
    }
    old = create_pods(job_set([replicated("a")]), (), cluster(jobset="0.5.2"))[0]
    assert not {"jobset.sigs.k8s.io/global-replicas", "jobset.sigs.k8s.io/group-name"} & set(old.labels)


def test_networks_and_restarts_of_job_sets():
    jobs = [replicated("load"), replicated("train", dependsOn=[{"name": "load", "status": "Complete"}])]
    pods = create_pods(job_set(jobs, network={"subdomain": "net"}, failurePolicy={"maxRestarts": 2}))

    assert [(pod.address, pod.rank) for pod in pods] == [("set-load-0-0.net", None), ("set-train-0-0.net", 0)]
    hidden = create_all(job_set(jobs, network={"enableDNSHostnames": False}))
    assert (hidden.objects, hidden.pods[0].address) == ((), "")


def test_large_roles_are_not_listed_pod_by_pod():
    pods = create_pods(pytorch_job(2_000_000_000))

    assert len(pods) == 1 + MAX_PODS
    assert sum(pod.count for pod in pods) == 2_000_000_001


def change(job, **fields):
    """A copy of a job with other fields in all containers."""
    changed = copy.deepcopy(job)
    for role in changed["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0].update(fields)
    return changed


BASE = pytorch_job(command=["python", "train.py"], env=[{"name": "A", "value": "1"}], resources=GPUS)
DATA = [{"name": "data", "mountPath": "/data"}]
COMPARED = [
    pytest.param(BASE, [], id="same"),
    pytest.param(change(BASE, image="train:2"), ["image image"], id="image"),
    pytest.param(change(BASE, command=["python"], args=["train.py"]), [], id="command and args are one line"),
    pytest.param(change(BASE, args=["--fast"]), ["command command"], id="args"),
    pytest.param(change(BASE, env=[]), ["env env A"], id="variable lost"),
    pytest.param(change(BASE, env=[{"name": "A", "value": "2"}]), ["env env A"], id="variable changed"),
    pytest.param(
        change(BASE, env=[{"name": "B", "value": "1"}, {"name": "A", "value": "$(B)"}]), ["env env B"], id="reference"
    ),
    pytest.param(change(BASE, resources={**GPUS, "requests": {"nvidia.com/gpu": "2"}}), [], id="requests are limits"),
    pytest.param(change(BASE, resources={"limits": {"nvidia.com/gpu": 4}}), ["resources resources"], id="resources"),
    pytest.param(change(BASE, volumeMounts=DATA), ["mounts mount /data"], id="mount"),
    pytest.param(change(BASE, securityContext={"runAsUser": 1}), ["container securityContext"], id="security context"),
    pytest.param(change(BASE, workingDir=""), [], id="empty"),
    pytest.param(
        pytorch_job(
            3,
            **BASE["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0] | {"name": "pytorch"},
        ),
        ["nodes nodes"],
        id="nodes",
    ),
]


@pytest.mark.parametrize(("after", "expected"), COMPARED)
def test_comparison(after, expected):
    found = compare_pods(create_pods(BASE), create_pods(after))

    assert [f"{each.kind} {each.field}" for each in found if each.training] == expected
    assert _trains_alike(found) is (not expected)


def edit_worker(**spec):
    """A PyTorchJob whose workers have other fields in their pod spec."""
    changed = copy.deepcopy(BASE)
    changed["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"].update(spec)
    return changed


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeSelector": {"a": "b"}}, ("scheduling", "ranks 1-2", "nodeSelector", None, {"a": "b"})),
        ({"serviceAccountName": "s"}, ("pod", "ranks 1-2", "serviceAccountName", None, "s")),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            ("volumes", "ranks 1-2", "volume emptyDir", None, {"emptyDir": {}}),
        ),
        (
            {"initContainers": [{"name": "i", "image": "j"}]},
            ("initContainers", "ranks 1-2", "initContainers i", None, "j"),
        ),
        ({"automountServiceAccountToken": False}, ("pod", "ranks 1-2", "automountServiceAccountToken", None, False)),
    ],
)
def test_comparison_names_the_ranks(spec, expected):
    assert [tuple(each)[:5] for each in compare_pods(create_pods(BASE), create_pods(edit_worker(**spec)))] == [expected]


def test_pods_of_a_migrated_job():
    trainer = {"numNodes": 3, "image": "train:1", "command": ["python", "train.py"], "resourcesPerNode": GPUS}
    after = train_job(trainer={**trainer, "env": [{"name": "A", "value": "1"}]})
    found = compare_pods(create_pods(BASE), create_pods(after))

    assert _trains_alike(found)
    assert {(each.kind, each.field) for each in found} == {
        ("retries", "backoffLimit"),
        ("name", "container"),
        ("name", "name"),
        ("host", "hostname"),
        ("host", "address"),
        ("ports", "ports"),
        ("injected", "initContainers init-pytorch"),
        *(("injected", f"env {name}") for name in "PYTHONUNBUFFERED MASTER_PORT MASTER_ADDR WORLD_SIZE RANK".split()),
        *(("injected", f"env {name}") for name in "PET_MASTER_PORT PET_MASTER_ADDR JOB_COMPLETION_INDEX".split()),
    }
    rank = next(each for each in found if each.field == "env RANK")
    assert tuple(rank) == ("injected", "all nodes", "env RANK", "0", None, False)


@pytest.mark.parametrize(
    ("argument", "equal"),
    [("$(PET_MASTER_ADDR)", True), ("$(MASTER_ADDR)", False), ("$(A)", True), ("$$(MASTER_ADDR)", True)],
)
def test_arguments_that_refer_to_variables_of_the_operator(argument, equal):
    env = [{"name": "A", "value": "1"}]
    before = pytorch_job(command=["python", argument], env=env)
    after = train_job(trainer={"numNodes": 3, "image": "train:1", "command": ["python", argument], "env": env})

    assert _trains_alike(compare_pods(create_pods(before), create_pods(after))) is equal


# A job must set the variables of its nodes itself where no operator does; losing one that users wrote is different.
@pytest.mark.parametrize(
    ("before", "after", "kind"), [([], ["RANK"], "injected"), (["RANK"], [], "env"), ([], ["A"], "env")]
)
def test_variables_of_nodes_that_a_job_sets(before, after, kind):
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    jobs = [
        {**JOB, "spec": {**spec, "template": template(env=[{"name": name, "value": "0"} for name in names])}}
        for names in (before, after)
    ]
    found = compare_pods(*map(create_pods, jobs))

    assert [(each.kind, each.training) for each in found] == [(kind, kind == "env")]


# Addresses of nodes are in texts that users wrote: they must be those of the same nodes.
@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("mnist-master-0", "mnist-node-0-0.mnist", {"host"}),
        ("tcp://mnist-worker-0:1", "tcp://mnist-node-0-1.mnist:1", {"host"}),
        ("mnist-master-0.team.svc", "mnist-node-0-0.mnist.team.svc", {"host"}),
        ("mnist-master-0", "mnist-master-0", {"env", "command"}),
        ("mnist-master-0", "mnist-node-0-1.mnist", {"env", "command"}),
        ("mnist-worker-10", "mnist-worker-10", set()),
    ],
)
def test_addresses_in_texts(before, after, kinds):
    old = pytorch_job(command=["python", before], env=[{"name": "A", "value": before}])
    trainer = {"numNodes": 3, "image": "train:1", "command": ["python", after], "env": [{"name": "A", "value": after}]}
    found = compare_pods(create_pods(old), create_pods(train_job(trainer=trainer)))

    assert {each.kind for each in found if each.field in ("env A", "command")} == kinds
    assert _trains_alike(found) is (kinds <= {"host"})


def test_a_lost_variable_that_refers_to_the_operator():
    env = [{"name": "A", "value": "$(PET_NNODES)"}]
    before = train_job(trainer={"numNodes": 2, "image": "train:1", "env": env})
    found = compare_pods(create_pods(before), create_pods(train_job(trainer={"numNodes": 2, "image": "train:1"})))

    assert [(each.kind, each.field) for each in found] == [("env", "env A")]


@pytest.mark.parametrize(
    ("command", "resources", "equal"),
    [
        (["torchrun", "train.py"], {}, False),
        (["torchrun", "train.py"], GPUS, True),
        (["torchrun", "--nproc_per_node=4", "train.py"], {}, True),
        (["bash", "train.sh"], {}, False),
        (["python", "train.py"], {}, True),
    ],
)
def test_processes_matter_to_launchers(command, resources, equal):
    before = pytorch_job(command=command, resources=resources)
    after = train_job(trainer={"numNodes": 3, "image": "train:1", "command": command, "resourcesPerNode": resources})

    assert _trains_alike(compare_pods(create_pods(before), create_pods(after))) is equal


@pytest.mark.parametrize(
    ("command", "equal"),
    [
        (["torchrun", "train.py"], False),
        (["torchrun", "--nnodes=1:4", "train.py"], True),
        (["python", "train.py"], True),
    ],
)
def test_elastic_nodes_matter_to_launchers(command, equal):
    after = train_job(trainer={"numNodes": 3, "image": "train:1", "command": command, "resourcesPerNode": GPUS})
    for elastic, same in (({"minReplicas": 1, "maxReplicas": 4}, equal), ({}, True)):
        spec = {"elasticPolicy": elastic}.items()
        before = pytorch_job(3, master=False, spec=spec, command=command, resources=GPUS)

        assert _trains_alike(compare_pods(create_pods(before), create_pods(after))) is same


def test_autoscalers_of_elastic_jobs():
    created = create_all(pytorch_job(spec={"elasticPolicy": {"metrics": [{"type": "Resource"}]}}.items()))

    assert [(each.kind, each.name) for each in created.objects[3:]] == [("HorizontalPodAutoscaler", "mnist")]


# Trainer 2.3 reads resources only with a policy, and knows JAX since 2.2.
def test_runtimes_without_a_known_policy():
    found = runtime({"numNodes": 2, "jax": {}})
    job = train_job("own", {"resourcesPerNode": GPUS, "numNodes": 3}, **OWN)

    assert env_of(create_pods(job, [found], cluster(trainer="2.1.0"))[2]) == LAST
    plain = {**found, "spec": {"template": found["spec"]["template"]}}
    assert "resources" not in create_pods(job, [plain])[2].spec["containers"][0]


@pytest.mark.parametrize(
    ("policy", "job", "pod", "equal"),
    [
        ("OnFailure", {}, {}, True),
        ("Never", {}, {}, False),
        ("Never", {"backoffLimit": 0}, {"restartPolicy": "Never"}, True),
        ("ExitCode", {}, {"restartPolicy": "Never"}, False),
        (
            "ExitCode",
            {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}},
            {"restartPolicy": "Never"},
            True,
        ),
    ],
)
def test_restarts_of_a_migrated_job(policy, job, pod, equal):
    before = pytorch_job(command=["python"], role={"restartPolicy": policy}.items())
    found = runtime({"numNodes": 3, "torch": {}}, pod=pod.items(), job=job.items(), image="train:1", command=["python"])
    after = create_pods(train_job("own", {}, **OWN), [found])

    assert _trains_alike(compare_pods(create_pods(before), after)) is equal


CORPUS_KINDS = """PyTorchJob TrainJob TFJob MPIJob XGBoostJob PaddleJob JAXJob PyTorchTrainingJob TensorFlowTrainingJob
XGBoostTrainingJob MPIJob.batch.tensorstack.dev ColossalAIJob DeepSpeedJob GenericJob""".split()


def read_objects(text):
    """The objects in a YAML text, as plain data; none if it is not YAML."""
    try:
        documents = list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError:
        return []
    return json.loads(json.dumps([each for each in documents if isinstance(each, dict)], default=str))


@pytest.mark.stress
def test_public_manifests():
    count = 0
    for kind in CORPUS_KINDS:
        for path in sorted((shared_folder("corpus") / kind).iterdir()):
            objects = read_objects(path.read_text("utf-8"))
            for obj in objects:
                pods = create_pods(obj, objects)
                count += len(pods)
                assert compare_pods(pods, pods) == []
    assert count > 100


def test_numbers_of_pods():
    """The totals of budgets and quotas count the same pods, in objects that the API server accepts."""
    seen = set()
    lines = (shared_folder("kind-cases") / "cases.jsonl").read_text("utf-8").splitlines()
    for case in map(json.loads, lines):
        if case["kind"] in ("Job", "JobSet", "RayCluster") and case["verdict"] == "accept":
            (obj,) = read_objects(case["manifest"])
            obj["spec"].pop("suspend", None)
            pods = create_pods(obj)
            assert compare_pods(pods, pods) == []
            total = sum(count for _, count in count_pods(Manifest(obj, None, Cluster())))
            assert sum(pod.count for pod in pods) == total, case["id"]
            seen.add(obj["apiVersion"])
    assert len(seen) == 4


SAMPLES = [
    pytorch_job(spec={"elasticPolicy": {"minReplicas": 1, "rdzvConf": [{"key": "a", "value": "b"}]}}.items()),
    train_job(trainer={"numNodes": 2, "env": [{"name": "A", "value": "1"}]}, **PATCHES),
    train_job("deepspeed-distributed", {"numNodes": 2, "resourcesPerNode": GPUS}),
    {**JOB, "spec": {"template": template("main"), "completionMode": "Indexed", "podFailurePolicy": {"rules": [{}]}}},
    job_set([replicated("a", 2, 2), replicated("b", dependsOn=[{"name": "a"}])], coordinator={"replicatedJob": "a"}),
]
SAMPLES += [
    tf_job({"Chief": 1, "Worker": 2}, enableDynamicWorker=True),
    *(job for job, *_ in V1_JOBS),
    mpi_job(slotsPerWorker=2, launcher={"resources": GPUS}),
    mpi_job("v2beta1", slotsPerWorker=2, mpiImplementation="Intel"),
    *(volcano_job(each.values[0], policies=[{"event": "*", "action": "RestartJob"}]) for each in VOLCANO_ENV),
    volcano_job({"ray": [], "hcclrank": []}, (("head", 1), ("worker", 1)), volumes=[{"mountPath": "/data"}]),
    ray_job(runtimeEnvYAML="a: b", entrypointNumCpus=1, metadata={"a": "b"}, container=RAY_LIMITS.items()),
    *(job for job, *_ in TENSORSTACK),
    ray_job(submissionMode="SidecarMode", cluster={"enableInTreeAutoscaling": True, "autoscalerOptions": {}}.items()),
]
WRONG = st.sampled_from(
    [None, 0, -1, 1.5, True, "", "text", [], [None], [[]], {}, {"name": None}, [{"name": 1}], {"a": []}]
)


def list_paths(node, path=()):
    """The paths of all nodes."""
    yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from list_paths(value, (*path, key))


@laws(13)
@given(st.data())
def test_wrong_types_do_not_raise(data):
    sample = data.draw(st.sampled_from(SAMPLES))
    obj = copy.deepcopy(sample)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(
            st.sampled_from([each for each in list_paths(obj) if each and each[0] not in ("apiVersion", "kind")])
        )
        node = obj
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = copy.deepcopy(data.draw(WRONG))
    version = data.draw(st.sampled_from(["", "2.0.0", "2.1.0", "1.7.0"]))
    pods = create_pods(obj, [obj, {}], cluster(trainer=version, training_operator=version))

    assert compare_pods(pods, pods) == []
    compare_pods(create_pods(sample), pods)
    compare_pods(pods, create_pods(BASE))
