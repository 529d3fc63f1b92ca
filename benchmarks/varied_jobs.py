"""Manifests as a real repository has them: all kinds, many shapes, no two from one template.

`make_manifest(random, number)` returns the data of a valid manifest; benchmarks/yaml_styles.py decides how it is
written and benchmarks/faults.py what is wrong with it. The same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from varied_pods import Data, Job, command, environment, new_job, resources, scheduling, template


class Role(NamedTuple):
    """A role of a kind: how many pods it may have, and whether they train."""

    name: str
    least: int
    most: int
    trains: bool = True
    share: float = 1
    """The share of jobs that have it."""


class Kind(NamedTuple):
    """What differs between kinds whose roles have pod templates."""

    kind: str
    api_version: str
    replicas: str
    container: str
    roles: tuple[Role, ...]
    restart_policies: tuple[str, ...] = ("OnFailure", "Never", "ExitCode")
    port: int = 0
    """The port that the operator adds to the main container."""
    is_queued: bool = True
    """Whether the label of a queue is common: Kueue manages the kind for good."""


QUEUE = "kueue.x-k8s.io/queue-name"
V1 = "kubeflow.org/v1"
T9K = "batch.tensorstack.dev/v1beta1"
MASTER, WORKER = Role("Master", 1, 1), Role("Worker", 1, 16)
PYTORCH = Kind("PyTorchJob", V1, "pytorchReplicaSpecs", "pytorch", (MASTER, WORKER), port=23456)
TENSORFLOW = Kind(
    "TFJob",
    V1,
    "tfReplicaSpecs",
    "tensorflow",
    (
        Role("Chief", 1, 1, share=0.5),
        Role("PS", 1, 4, trains=False, share=0.5),
        WORKER,
        Role("Evaluator", 1, 1, trains=False, share=0.2),
    ),
    port=2222,
)
LAUNCHER = Role("Launcher", 1, 1, trains=False)
MPI_V1 = Kind("MPIJob", V1, "mpiReplicaSpecs", "", (LAUNCHER, WORKER), is_queued=False)
MPI_V2 = Kind("MPIJob", "kubeflow.org/v2beta1", "mpiReplicaSpecs", "", (LAUNCHER, WORKER), ("OnFailure", "Never"))
PADDLE = Kind("PaddleJob", V1, "paddleReplicaSpecs", "paddle", (Role("Master", 1, 1, share=0.5), WORKER), port=36543)
XGBOOST = Kind("XGBoostJob", V1, "xgbReplicaSpecs", "xgboost", (MASTER, WORKER), port=9999)
JAX = Kind("JAXJob", V1, "jaxReplicaSpecs", "jax", (WORKER,), port=6666)
MXNET = Kind(
    "MXJob",
    V1,
    "mxReplicaSpecs",
    "mxnet",
    (Role("Scheduler", 1, 1, trains=False), Role("Server", 1, 4, trains=False), WORKER),
    port=9091,
    is_queued=False,
)
LISTED = (
    Kind("PyTorchTrainingJob", T9K, "", "pytorch", (Role("master", 1, 1), Role("worker", 1, 8)), is_queued=False),
    Kind(
        "TensorFlowTrainingJob",
        T9K,
        "",
        "tensorflow",
        (Role("chief", 1, 1, share=0.4), Role("ps", 1, 3, trains=False, share=0.5), Role("worker", 1, 8)),
        is_queued=False,
    ),
    Kind("XGBoostTrainingJob", T9K, "", "xgboost", (Role("master", 1, 1), Role("worker", 1, 6)), is_queued=False),
)


def metadata(job: Job, *, is_queued: bool) -> Data:
    made: Data = {"name": job.name}
    if job.chance(0.85):
        made["namespace"] = job.choose((f"team-{job.team}", "ml-prod", "training", "kubeflow"))
    labels = job.some(
        {
            "team": job.team,
            "app": job.model,
            "app.kubernetes.io/part-of": "training",
            "experiment": f"{job.model}-{job.random.randint(1, 99)}",
            "git-sha": f"{job.random.getrandbits(28):07x}",
        },
        0.35,
    )
    if is_queued and job.chance(0.2):
        labels[QUEUE] = f"{job.team}-queue"
    annotations = job.some(
        {
            "example.com/owner": f"{job.team}@example.com",
            "description": f"Train {job.model} again, {job.random.randint(2, 9)}th try, see the wiki",
            "example.com/tags": "[nightly, gpu]",
            "example.com/approved": "yes",
            "notes": "line one\nline two: with a colon\n",
        },
        0.08,
    )
    return {**made, **({"labels": labels} if labels else {}), **({"annotations": annotations} if annotations else {})}


def run_policy(job: Job, *, counts_restarts: bool, pods: int, is_queued: bool) -> Data:
    gang = {"minAvailable": pods} if is_queued else {"minAvailable": pods, "queue": job.team}
    made = job.some(
        {
            "cleanPodPolicy": job.choose(("None", "Running", "All")),
            "ttlSecondsAfterFinished": job.choose((3600, 86400, 604800)),
            "activeDeadlineSeconds": job.choose((7200, 259200)),
            "schedulingPolicy": gang,
            "suspend": False,
        },
        0.3,
    )
    return {**made, **({"backoffLimit": job.random.randint(1, 10)} if counts_restarts and job.chance(0.5) else {})}


def replicas(
    job: Job, kind: Kind, *, memory: bool, is_queued: bool = False
) -> tuple[dict[str, Data], dict[str, int], str]:
    """Return the roles of a job, how many pods each has, and their restart policy."""
    shared, policy = scheduling(job), job.choose(kind.restart_policies)
    roles: dict[str, Data] = {}
    counts: dict[str, int] = {}
    for role in kind.roles:
        if not job.chance(role.share):
            continue
        gpus = job.gpus if role.trains else 0
        counts[role.name] = job.random.randint(role.least, role.most)
        roles[role.name] = {
            "replicas": counts[role.name],
            "restartPolicy": policy,
            "template": template(
                job, kind.container, gpus, kind.port, shared, memory=memory and gpus > 1, is_queued=is_queued
            ),
        }
    return roles, counts, policy


def replicated(kind: Kind, own: Callable[[Job], Data] | None = None) -> Callable[[Job], Data]:
    """Return the maker of a kind whose roles are a mapping; `own` adds what only the kind has."""

    def make(job: Job) -> Data:
        about = metadata(job, is_queued=kind.is_queued)
        is_queued = QUEUE in about.get("labels", {})
        roles, counts, restart = replicas(job, kind, memory=kind is PYTORCH, is_queued=is_queued)
        counts_restarts = restart != "Never" or kind is MPI_V2
        spec = own(job) if own else {}
        pods = sum(counts.values())
        if policy := run_policy(job, counts_restarts=counts_restarts, pods=pods, is_queued=is_queued):
            spec["runPolicy"] = policy
        spec[kind.replicas] = roles
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": about, "spec": spec}

    return make


def listed(kind: Kind) -> Callable[[Job], Data]:
    """Return the maker of a TensorStack kind, whose roles are a list."""

    def make(job: Job) -> Data:
        roles, _, _ = replicas(job, kind, memory=kind.container == "pytorch")
        policy = job.some(
            {
                "cleanUpPolicy": job.choose(("None", "All", "Unfinished")),
                "backoffLimit": 3,
                "activeDeadlineSeconds": 86400,
            },
            0.4,
        )
        spec: Data = {"runPolicy": policy} if policy else {}
        if job.chance(0.3):
            spec["scheduler"] = {"t9kScheduler": {"queue": job.team, "priority": job.random.randint(0, 100)}}
        spec["replicaSpecs"] = [{"type": name, **role} for name, role in roles.items()]
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        return {**head, "metadata": metadata(job, is_queued=False), "spec": spec}

    return make


def pytorch_fields(job: Job) -> Data:
    return {"nprocPerNode": job.choose((str(job.gpus), "gpu", "auto"))} if job.gpus > 1 and job.chance(0.6) else {}


def mpi_fields(job: Job) -> Data:
    return {"slotsPerWorker": job.gpus} if job.gpus else job.some({"slotsPerWorker": 1}, 0.5)


def mpi_operator_fields(job: Job) -> Data:
    made = mpi_fields(job)
    more = {"sshAuthMountPath": "/home/mpi/.ssh", "mpiImplementation": job.choose(("OpenMPI", "Intel", "MPICH"))}
    return {**made, **job.some({**more, "launcherCreationPolicy": "WaitForWorkersReady"}, 0.3)}


def mxnet_fields(job: Job) -> Data:
    return {"jobMode": "MXTrain"}


def elastic_pytorch(job: Job) -> Data:
    """Return a PyTorchJob without a master, whose workers come and go."""
    least, most = job.random.randint(1, 3), job.random.randint(4, 12)
    policy: Data = {"minReplicas": least, "maxReplicas": most, "rdzvBackend": job.choose(("c10d", "etcd-v2"))}
    policy |= job.some(
        {"maxRestarts": job.random.randint(1, 100), "rdzvConf": [{"key": "timeout", "value": "900"}]}, 0.5
    )
    pods = template(job, "pytorch", job.gpus, 23456, scheduling(job), memory=job.gpus > 1)
    worker = {"replicas": job.random.randint(least, most), "restartPolicy": "OnFailure", "template": pods}
    spec = {"elasticPolicy": policy, "pytorchReplicaSpecs": {"Worker": worker}}
    return {"apiVersion": V1, "kind": "PyTorchJob", "metadata": metadata(job, is_queued=False), "spec": spec}


def train_job(job: Job) -> Data:
    """Return a TrainJob: a reference to a runtime, and what differs from it."""
    framework = job.choose(("torch", "torch", "jax", "xgboost"))
    trainer: Data = {"numNodes": job.random.randint(1, 16), **job.some({"image": job.image}, 0.8), **command(job)}
    if env := environment(job):
        trainer["env"] = env
    if job.gpus:
        trainer["resourcesPerNode"] = resources(job, job.gpus)
    fetches = framework == "torch" and job.chance(0.3)
    reference: Data = {"name": "torchtune-llama3.2-1b" if fetches else f"{framework}-distributed"}
    reference |= job.some({"kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"}, 0.4)
    spec: Data = {"runtimeRef": reference, "trainer": trainer}
    if fetches:
        store = job.choose((f"hf://acme/{job.model}", f"s3://models/{job.model}"))
        secret = {"name": f"{job.team}-hub"}
        spec["initializer"] = job.choose(
            ({"model": {"storageUri": store}}, {"dataset": {"storageUri": store, "secretRef": secret}})
        )
    if job.chance(0.3):
        pod = {"template": {"spec": {"nodeSelector": {"pool": job.team}}}}
        target = [{"name": "node", "template": {"spec": pod}}]
        patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": target}}}}
        spec["runtimePatches"] = [{"manager": "example.com/platform", **patch}]
    head = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    return {**head, "metadata": metadata(job, is_queued=True), "spec": spec}


def runtime(kind: str) -> Callable[[Job], Data]:
    """Return the maker of a runtime: a JobSet below a policy for machine learning."""

    def make(job: Job) -> Data:
        policy = {"numNodes": job.random.randint(1, 8), job.choose(("torch", "jax", "xgboost")): {}}
        step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
        pods = template(job, "node", job.gpus, 0, scheduling(job), memory=job.gpus > 1)
        node = {"name": "node", "template": {"metadata": {"labels": step}, "spec": {"template": pods}}}
        jobset: Data = {"replicatedJobs": [node]}
        if job.chance(0.4):
            jobset |= {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["node"]}}
            jobset |= {"failurePolicy": {"maxRestarts": job.random.randint(1, 5)}}
        spec: Data = {"mlPolicy": policy, "template": {"spec": jobset}}
        if job.chance(0.3):
            spec["podGroupPolicy"] = {"coscheduling": {"scheduleTimeoutSeconds": 120}}
        about = metadata(job, is_queued=False)
        if kind.startswith("Cluster"):
            about.pop("namespace", None)
        return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": about, "spec": spec}

    return make


def indexed_job(job: Job) -> Data:
    """Return a Job of Kubernetes, with an index for each pod."""
    pods = {**template(job, "main", job.gpus, 0, scheduling(job), memory=job.gpus > 1)}
    pods["spec"] = {**pods["spec"], "restartPolicy": "Never"}
    count = job.random.randint(1, 8)
    spec: Data = {"completionMode": "Indexed", "completions": count, "parallelism": count, "template": pods}
    spec |= job.some({"backoffLimit": job.random.randint(0, 6), "activeDeadlineSeconds": 86400}, 0.4)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(job, is_queued=False), "spec": spec}


def job_set(job: Job) -> Data:
    """Return a JobSet with one or two groups of Jobs."""
    inner = {key: value for key, value in indexed_job(job)["spec"].items() if key != "activeDeadlineSeconds"}
    names = ("node",) if job.chance(0.6) else ("leader", "worker")
    spec: Data = {"replicatedJobs": [{"name": name, "replicas": 1, "template": {"spec": inner}} for name in names]}
    spec |= job.some({"failurePolicy": {"maxRestarts": job.random.randint(1, 5)}}, 0.5)
    about = metadata(job, is_queued=False)
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": about, "spec": spec}


def ray_job(job: Job) -> Data:
    """Return a RayJob with a head and a group of workers."""
    head = {"rayStartParams": {"num-cpus": "0"}, "template": template(job, "ray-head", 0, 0, {}, memory=False)}
    count = job.random.randint(1, 8)
    pods = template(job, "ray-worker", job.gpus, 0, scheduling(job), memory=job.gpus > 1)
    counts = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), count)
    group = {"groupName": "worker", **counts, "rayStartParams": {}, "template": pods}
    spec: Data = {"entrypoint": "python train.py", "shutdownAfterJobFinishes": True}
    spec["rayClusterSpec"] = {"headGroupSpec": head, "workerGroupSpecs": [group]}
    spec |= job.some({"activeDeadlineSeconds": 86400, "ttlSecondsAfterFinished": 3600}, 0.4)
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata(job, is_queued=False), "spec": spec}


def volcano_job(job: Job) -> Data:
    """Return a Job of Volcano with tasks."""
    counts = {"master": 1, "worker": job.random.randint(1, 8)}
    tasks = []
    for name, count in counts.items():
        pods = {**template(job, "main", job.gpus, 0, scheduling(job), memory=job.gpus > 1)}
        pods["spec"] = {**pods["spec"], "restartPolicy": "Never"}
        tasks.append({"name": name, "replicas": count, "minAvailable": count, "maxRetry": 3, "template": pods})
    spec: Data = {"minAvailable": sum(counts.values()), "schedulerName": "volcano", "tasks": tasks}
    spec |= job.some({"plugins": {"svc": []}, "queue": job.team, "ttlSecondsAfterFinished": 3600}, 0.5)
    about = metadata(job, is_queued=False)
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": about, "spec": spec}


def launched(kind: str, settings: str) -> Callable[[Job], Data]:
    """Return the maker of a TensorStack kind with a launcher and workers."""

    def make(job: Job) -> Data:
        roles = []
        for name, gpus in (("launcher", 0), ("worker", job.gpus)):
            pods = template(job, name, gpus, 0, scheduling(job), memory=gpus > 1)
            count = 1 if name == "launcher" else job.random.randint(1, 6)
            roles.append({"type": name, "replicas": count, "template": pods})
        spec: Data = {settings: {"script": ["python", "train.py"]}, "replicaSpecs": roles}
        spec |= job.some({"runPolicy": {"cleanUpWorkers": True}}, 0.4)
        return {"apiVersion": T9K, "kind": kind, "metadata": metadata(job, is_queued=False), "spec": spec}

    return make


def generic_job(job: Job) -> Data:
    """Return a GenericJob of TensorStack."""
    pods = template(job, "main", job.gpus, 0, scheduling(job), memory=job.gpus > 1)
    restart = {"policy": job.choose(("OnFailure", "Never")), "limit": job.random.randint(0, 3)}
    role = {"type": "worker", "replicas": job.random.randint(1, 6), "restartPolicy": restart, "template": pods}
    spec: Data = {"replicaSpecs": [role], **job.some({"cleanUpPolicy": "Unfinished"}, 0.4)}
    return {"apiVersion": T9K, "kind": "GenericJob", "metadata": metadata(job, is_queued=False), "spec": spec}


def deepspeed_job(job: Job) -> Data:
    """Return a DeepSpeedJob of TensorStack."""
    pods = template(job, "worker", job.gpus, 0, scheduling(job), memory=job.gpus > 1)
    config = {"run": {"python": ["train.py"]}, **({"slotsPerWorker": job.gpus} if job.gpus else {})}
    spec: Data = {"config": config, "worker": {"replicas": job.random.randint(1, 6), "template": pods}}
    return {"apiVersion": T9K, "kind": "DeepSpeedJob", "metadata": metadata(job, is_queued=False), "spec": spec}


MAKERS: tuple[tuple[Callable[[Job], Data], int], ...] = (
    (replicated(PYTORCH, pytorch_fields), 24),
    (elastic_pytorch, 5),
    (replicated(TENSORFLOW), 14),
    (replicated(MPI_V2, mpi_operator_fields), 14),
    (replicated(MPI_V1, mpi_fields), 5),
    (replicated(PADDLE), 5),
    (replicated(XGBOOST), 6),
    (replicated(JAX), 5),
    (train_job, 12),
    (runtime("TrainingRuntime"), 3),
    (runtime("ClusterTrainingRuntime"), 2),
    *((listed(kind), 2) for kind in LISTED),
    (replicated(MXNET, mxnet_fields), 1),
    (indexed_job, 8),
    (job_set, 5),
    (ray_job, 6),
    (volcano_job, 5),
    (generic_job, 2),
    (deepspeed_job, 2),
    (launched("MPIJob", "mpiConfig"), 2),
    (launched("ColossalAIJob", "torchConfig"), 2),
)
"""How to make each kind, and how common it is."""


def make_manifest(random: Random, number: int) -> Data:
    """Return the data of a valid manifest."""
    makers, weights = zip(*MAKERS, strict=True)
    [make] = random.choices(makers, weights)
    made: Data = make(new_job(random, number))
    return made


def make_companion(random: Random, data: Data) -> Data:
    """Return an object that people keep in the file of a job: its settings or its claim."""
    place = {key: data["metadata"][key] for key in ("namespace",) if key in data["metadata"]}
    name = {"name": f"{data['metadata']['name']}-files", **place}
    if random.random() < 0.5:
        text = "epochs: 3\noptimizer:\n  name: adamw\n  lr: 3e-4\n"
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": name,
            "data": {"config.yaml": text, "debug": "false"},
        }
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "200Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": name, "spec": claim}
