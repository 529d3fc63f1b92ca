"""How fields, roles and meanings differ between platforms: the data of the migration steps."""

from __future__ import annotations

from collections.abc import Mapping

_SCHEDULING = (
    ("runPolicy.schedulingPolicy.minAvailable", "volcano.minAvailable"),
    ("runPolicy.schedulingPolicy.queue", "queue"),
    ("runPolicy.schedulingPolicy.priorityClass", "priority"),
)

VOLCANO_MOVES: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("kubeflow", "volcano"): _SCHEDULING,
    ("mpi-operator", "volcano"): _SCHEDULING,
    ("tensorstack", "volcano"): (("pytorch.torchrunConfig.procPerNode", "pytorch.nprocPerNode"),),
    ("volcano", "kubeflow"): (("volcano.minAvailable", "runPolicy.schedulingPolicy.minAvailable"),),
    ("volcano", "mpi-operator"): (("volcano.minAvailable", "runPolicy.schedulingPolicy.minAvailable"),),
}

TO_VOLCANO: Mapping[str, str] = {
    "suspend": "stop the job with `vcctl job suspend`",
    "runPolicy.suspend": "stop the job with `vcctl job suspend`",
    "runPolicy.activeDeadlineSeconds": "set `activeDeadlineSeconds` of the pods in `podTemplate.spec`",
    "runPolicy.cleanPodPolicy": "finished pods are kept, and running ones are deleted when the job ends",
    "runPolicy.managedBy": "Volcano has only one controller",
    "runPolicy.schedulingPolicy": "all pods start together; see `volcano.minAvailable`, `queue` and `priority`",
    "pytorch.elasticPolicy": "the number of pods is fixed; see `minReplicas` of a role",
    "pytorch.elastic": "the number of pods is fixed; see `minReplicas` of a role",
    "pytorch.torchrunConfig": "start torchrun in the command",
    "mpi.slotsPerWorker": "give the number of processes to `mpirun`, such as `-N 4`",
    "mpi.sshAuthMountPath": "the plugin `ssh` mounts the keys; see `--ssh-key-file-path` in `volcano.plugins`",
    "mpi.mpiImplementation": "`mpirun` finds the workers by variables of Open MPI; set those of others in `env`",
    "mpi.launcherCreationPolicy": "the launcher tries again until its workers listen",
    "mpi.runLauncherAsWorker": "the launcher is never a node; add one worker",
    "mpi.mainContainer": "the first container is the main one",
    "tensorboard": "run TensorBoard as a separate workload",
    "priority": "Volcano expects the name of a PriorityClass",
}

FROM_VOLCANO: Mapping[str, str] = {
    "volcano.plugins": "the operator connects the pods itself",
    "volcano.policies": "the operator decides what happens when a pod fails; see `restartPolicy`",
    "volcano.schedulerName": "set `schedulerName` in `podTemplate.spec`",
    "volcano.minAvailable": "no gang of this size; see `queue`",
    "volcano.minSuccess": "the operator decides which pods must succeed",
    "volcano.maxRetry": "use `runPolicy.backoffLimit`, which is one less",
    "volcano.networkTopology": "use the topology of the scheduler, or `affinity`",
    "volcano.runningEstimate": "the scheduler has no such estimate",
    "volcano.volumes": "use `volumes`",
    "volcano.variables": "the operator sets the variables",
}

FROM_TENSORSTACK: Mapping[str, str] = {
    "tensorstack.runMode": "use `suspend` to pause, and another command to debug",
    "tensorstack.service": "see `ports` and Services of your own",
    "tensorstack.successRules": "the operator decides which pods must succeed",
    "tensorstack.failureRules": "the operator decides which failures end the job",
    "tensorstack.sshdPath": "the image runs its own sshd",
    "deepspeed.config": "give the options to `deepspeed` or `torchrun` in the command",
    "deepspeed.disableCustomEnv": "variables of the pods reach their processes",
    "deepspeed.elastic": "the number of pods is fixed",
    "mpi.mca": "give the parameters to `mpirun`",
    "mpi.home": "give it to `mpirun` with `--prefix`",
}

_RESTARTS = "the whole job restarts if a pod fails or is evicted, twice if it is not set"
_VARIABLES = "a plugin of Volcano or jobgen sets the variables of the framework; what the command sets must agree"

VOLCANO_MEANINGS: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("", "volcano Job"): (("runPolicy.backoffLimit", _RESTARTS), ("env", _VARIABLES)),
    ("kubeflow MPIJob", "volcano Job"): (
        ("image", "the launcher connects with SSH: the image needs sshd, and workers without a command run it"),
    ),
    ("mpi-operator MPIJob", "volcano Job"): (
        ("command", "hosts have no slots: give the number of processes on each worker to `mpirun`, such as `-N 4`"),
    ),
    ("volcano Job", "kubeflow PyTorchJob"): (("restartPolicy", "single pods restart, not the whole job"),),
    ("volcano Job", "kubeflow TFJob"): (("restartPolicy", "single pods restart, not the whole job"),),
    ("volcano Job", "kubeflow MPIJob"): (
        ("image", "the launcher connects with kubectl: workers need no sshd, and without a command they sleep"),
    ),
    ("", "tensorstack MPIJob"): (("command", "TensorStack runs `mpirun`, and Succeeded means only that it has ended"),),
}


# Fields of a Job that the Jobs of a JobSet have, too.
_JOB_POLICIES = (
    ("kubernetes.completionMode", "jobset.completionMode"),
    ("kubernetes.podFailurePolicy", "jobset.podFailurePolicy"),
)

# Fields with another name on the target platform.
MOVES: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    **VOLCANO_MOVES,
    ("kubeflow", "mpi-operator"): (("mpi.cleanPodPolicy", "runPolicy.cleanPodPolicy"),),
    ("kubeflow", "tensorstack"): (
        ("runPolicy.suspend", "suspend"),
        ("pytorch.elasticPolicy.minReplicas", "pytorch.elastic.minReplicas"),
        ("pytorch.elasticPolicy.maxReplicas", "pytorch.elastic.maxReplicas"),
        ("pytorch.elasticPolicy.maxRestarts", "pytorch.torchrunConfig.maxRestarts"),
        ("pytorch.elasticPolicy.rdzvBackend", "pytorch.torchrunConfig.rdzvBackend"),
    ),
    ("tensorstack", "kubeflow"): (
        ("pytorch.elastic.minReplicas", "pytorch.elasticPolicy.minReplicas"),
        ("pytorch.elastic.maxReplicas", "pytorch.elasticPolicy.maxReplicas"),
        ("pytorch.torchrunConfig.maxRestarts", "pytorch.elasticPolicy.maxRestarts"),
        ("pytorch.torchrunConfig.rdzvBackend", "pytorch.elasticPolicy.rdzvBackend"),
        ("pytorch.torchrunConfig.procPerNode", "pytorch.nprocPerNode"),
    ),
    ("kubernetes", "jobset"): _JOB_POLICIES,
    ("jobset", "kubernetes"): tuple((new, old) for old, new in _JOB_POLICIES),
    **{
        (source, target): (
            ("pytorch.torchrunConfig.procPerNode", "pytorch.nprocPerNode"),
            ("suspend", "runPolicy.suspend"),
        )
        for source in ("tensorstack",)
        for target in ("kubernetes", "jobset")
    },
}

# Roles with another name on the target platform, by framework.
ROLES: Mapping[tuple[str, str, str], Mapping[str, str]] = {
    ("kubeflow", "tensorstack", "tensorflow"): {"master": "chief"},
    ("kubeflow", "kubernetes", "tensorflow"): {"master": "chief"},
}

_WITHOUT_OPERATOR = {
    "runPolicy.cleanPodPolicy": "finished pods stay until the object is deleted; use `ttlSecondsAfterFinished`",
    "runPolicy.schedulingPolicy": "Kueue admits all pods together; see `queue`",
    "pytorch.elasticPolicy": "the number of pods is fixed; use `--max-restarts` of torchrun",
    "pytorch.elastic": "the number of pods is fixed; use `--max-restarts` of torchrun",
    "pytorch.torchrunConfig": "start torchrun in the command",
    **{
        f"{framework}.runtime": "set the image, command and resources of the runtime in the job"
        for framework in ("pytorch", "jax", "xgboost")
    },
    "tensorboard": "run TensorBoard as a separate workload",
    "priority": "Kubernetes expects the name of a PriorityClass",
}

# Why a platform does not support a field, and what to do instead; the longest prefix applies.
# `*` stands for all platforms.
REASONS: Mapping[str, Mapping[str, str]] = {
    "*": {
        "ray": "there is no Ray cluster",
        "ray.runtimeEnv": "install packages and files in the image",
        **FROM_VOLCANO,
        **FROM_TENSORSTACK,
    },
    "ray": {
        "runPolicy.cleanPodPolicy": "the end deletes the cluster, unless `ray.shutdownAfterJobFinishes` is false",
        "runPolicy.schedulingPolicy": "KubeRay itself is configured for a gang scheduler; see its `batch-scheduler`",
        "restartPolicy": "pods run Ray, not the program; `runPolicy.backoffLimit` runs it again on a new cluster",
        "pytorch.nprocPerNode": "`ScalingConfig` of Ray Train has the number of processes",
        "pytorch.elasticPolicy": "see `ray.autoscaling`, and `ScalingConfig` of Ray Train",
        "pytorch.elastic": "see `ray.autoscaling`, and `ScalingConfig` of Ray Train",
        "pytorch.torchrunConfig": "Ray Train starts the processes, not torchrun",
        "tensorboard": "run TensorBoard as a separate workload",
        "priority": "Kubernetes expects the name of a PriorityClass",
        **{
            f"{framework}.runtime": "set the image, command and resources of the runtime in the job"
            for framework in ("deepspeed", "jax", "pytorch", "xgboost")
        },
    },
    "volcano": TO_VOLCANO,
    "trainer": {
        "runPolicy.cleanPodPolicy": "pods stay until the TrainJob is deleted",
        "runPolicy.ttlSecondsAfterFinished": "set `ttlSecondsAfterFinished` in the JobSet of the runtime",
        "runPolicy.backoffLimit": "set `failurePolicy.maxRestarts` in the JobSet of the runtime",
        "runPolicy.schedulingPolicy": "set `podGroupPolicy` in the runtime",
        "restartPolicy": "the template of the runtime defines what happens when a node fails",
        "priority": "set `priorityClassName` in the runtime's template",
        "pytorch.elasticPolicy": "Trainer has no elastic jobs; the number of nodes is fixed",
        "pytorch.nprocPerNode": "Trainer requires a number of processes here",
        "imagePullPolicy": "set it in the template of the runtime",
        "workingDir": "set it in the template of the runtime, or let the command change the folder",
        "envFrom": "set it in the template of the runtime, or list the variables in `env`",
        "ports": "set them in the template of the runtime",
        "containerName": "the container of a TrainJob is called `node`",
        "mpi.mpiImplementation": "set it in `mlPolicy.mpi` of the runtime",
        "mpi.sshAuthMountPath": "set it in `mlPolicy.mpi` of the runtime",
        "mpi.runLauncherAsWorker": "set `mlPolicy.mpi.runLauncherAsNode` in the runtime",
        "mpi.launcherCreationPolicy": "the runtime defines the order in which its jobs start",
        "mpi.mainContainer": "the container of a TrainJob is called `node`",
        "mpi.cleanPodPolicy": "pods stay until the TrainJob is deleted",
        "podTemplate": "set it in the template of the runtime",
    },
    "tensorstack": {
        "runPolicy.ttlSecondsAfterFinished": "TensorStack keeps jobs until they are deleted",
        "runPolicy.schedulingPolicy": "its own scheduler starts all pods together; see `queue` and `priority`",
        "runPolicy.managedBy": "TensorStack has only one controller",
        "priority": "the scheduler of TensorStack expects a number from 0 to 100",
        "pytorch.elasticPolicy": "elastic jobs of TensorStack have no such setting",
    },
    "kubernetes": {
        **_WITHOUT_OPERATOR,
        "jobset.startupPolicy": "a Job has no order of its pods",
        "jobset.failurePolicy": "a Job replaces single pods; see `kubernetes.podFailurePolicy`",
        "jobset.backoffLimit": "see `runPolicy.backoffLimit`",
        "jobset.network": "the Service of the job has its name; see `subdomain` in `podTemplate`",
        "jobset.coordinator": "the first pod leads",
        "jobset.volumeClaimPolicies": "write the claims as manifests",
    },
    "jobset": {
        **_WITHOUT_OPERATOR,
        "kubernetes.service": "a JobSet has a Service of its own",
        "kubernetes.completions": "all pods of a JobSet run at the same time; set it in `manifest` of the role",
    },
    "mpi-operator": {
        "mpi.mainContainer": "the first container is the main one",
        "mpi.cleanPodPolicy": "`runPolicy.cleanPodPolicy` is set and takes precedence",
    },
    "kubeflow": {
        "mpi.sshAuthMountPath": "the launcher connects to its workers with kubectl, not with SSH",
        "mpi.mpiImplementation": "the launcher always uses the hostfile and the agent of Open MPI",
        "mpi.launcherCreationPolicy": "the launcher waits for its workers in an init container",
        "mpi.runLauncherAsWorker": "the launcher is never a node; add one worker",
        "tensorboard": "run TensorBoard as a separate workload",
        "priority": "Kubeflow expects the name of a PriorityClass",
        "pytorch.runtime": "set the image, command and resources of the runtime in the job",
        "jax.runtime": "set the image, command and resources of the runtime in the job",
        "xgboost.runtime": "set the image, command and resources of the runtime in the job",
        "mpi.runtime": "set the image, command and resources of the runtime in the job",
        "pytorch.torchrunConfig": "start torchrun in the command",
        "pytorch.elastic": "use `pytorch.elasticPolicy`",
    },
}

# What changes although the fields stay the same, by kinds.
MEANINGS: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    **VOLCANO_MEANINGS,
    ("kubeflow PyTorchJob", "trainer TrainJob"): (
        ("env", "the operator sets PET_* for torchrun, but not MASTER_ADDR, WORLD_SIZE or RANK: start with torchrun"),
        ("restartPolicy", "the runtime, not the job, defines what happens when a node fails"),
    ),
    ("kubeflow MPIJob", "trainer TrainJob"): (
        (
            "mpi.runtime",
            "the launcher and the MPI implementation come from the runtime; check that it is yours",
        ),
    ),
    ("kubeflow MPIJob", "mpi-operator MPIJob"): (
        ("image", "the launcher connects with SSH: the image needs sshd, and the launcher's user needs the keys"),
        ("runPolicy", "the launcher is a Job: `backoffLimit` counts its pods, not container restarts"),
    ),
    ("mpi-operator MPIJob", "kubeflow MPIJob"): (
        ("image", "the launcher connects with kubectl: workers need no sshd, and without a command they sleep"),
    ),
    ("trainer TrainJob", "kubeflow PyTorchJob"): (
        ("env", "the operator also sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK"),
    ),
    ("kubeflow TFJob", "tensorstack TensorFlowTrainingJob"): (),
    ("", "kubernetes Job"): (
        ("runPolicy.backoffLimit", "a Job counts failed pods, at most 6 if it is not set, and replaces single pods"),
        ("env", "jobgen sets the variables of the framework in the manifest; what the command sets itself must agree"),
    ),
    ("", "jobset JobSet"): (
        ("runPolicy.backoffLimit", "a JobSet restarts all pods together; if it is not set, the first failure ends it"),
        ("env", "jobgen sets the variables of the framework in the manifest; what the command sets itself must agree"),
    ),
    ("kubeflow MXJob", "PyTorch"): (
        ("image", "this is an image with MXNet: use one with PyTorch"),
        ("command", "the program is written for MXNet: port it to torch.distributed, one process group of all nodes"),
        (
            "env",
            "there is no DMLC_* or MX_CONFIG; torchrun reads PET_*, programs read MASTER_ADDR, WORLD_SIZE and RANK",
        ),
    ),
}

# The values of `managedBy`.
MANAGERS: Mapping[str, str] = {
    "jobset": "jobset.sigs.k8s.io/jobset-controller",
    "kubeflow": "kubeflow.org/training-operator",
    "kubernetes": "kubernetes.io/job-controller",
    "mpi-operator": "kubeflow.org/mpi-operator",
    "ray": "ray.io/kuberay-operator",
    "trainer": "trainer.kubeflow.org/trainjob-controller",
}

# Variables that the operator of a kind sets itself, so that those of the job are duplicates or overwritten.
RESERVED_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "PyTorchJob": tuple(
        """MASTER_ADDR MASTER_PORT WORLD_SIZE RANK PET_NNODES PET_NODE_RANK PET_NPROC_PER_NODE PET_RDZV_ENDPOINT
        PET_RDZV_BACKEND PET_RDZV_ID PET_RDZV_CONF PET_MAX_RESTARTS PET_STANDALONE""".split()
    ),
    "TFJob": ("TF_CONFIG",),
    "XGBoostJob": ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_PORT", "WORKER_ADDRS"),
    "JAXJob": ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"),
    "TensorFlowTrainingJob": ("TF_CONFIG",),
}

# The runtime for a framework without a runtime of its own in Trainer.
NEAREST_RUNTIME: Mapping[str, str] = {"mpi": "deepspeed-distributed"}
EXIT_CODES = "exit codes that restart a pod differ: 128 and above for Kubeflow; 130, 137, 138 and 143 for TensorStack"
