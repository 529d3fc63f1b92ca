"""What moves, changes and is lost between platforms: data, for the steps in this package to follow."""

from __future__ import annotations

from collections.abc import Mapping

# Fields with another name on the other side; what is left of a block is looked at afterwards.
MOVES: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
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
}

# Roles that are called otherwise on the other side, by framework.
ROLES: Mapping[tuple[str, str, str], Mapping[str, str]] = {
    ("kubeflow", "tensorstack", "tensorflow"): {"master": "chief"},
}

# Why a platform has no place for a field, and what to do about it; the longest prefix speaks.
WHY: Mapping[str, Mapping[str, str]] = {
    "trainer": {
        "runPolicy.cleanPodPolicy": "pods stay until the TrainJob is deleted",
        "runPolicy.ttlSecondsAfterFinished": "set `ttlSecondsAfterFinished` in the JobSet of the runtime",
        "runPolicy.backoffLimit": "set `failurePolicy.maxRestarts` in the JobSet of the runtime",
        "runPolicy.schedulingPolicy": "set `podGroupPolicy` in the runtime",
        "restartPolicy": "the runtime's template says what happens when a node fails",
        "priority": "set `priorityClassName` in the runtime's template",
        "pytorch.elasticPolicy": "Trainer has no elastic jobs: the number of nodes is fixed",
        "pytorch.nprocPerNode": "Trainer takes a number of processes here",
        "imagePullPolicy": "the runtime's template has it",
        "workingDir": "the runtime's template has it; or let the command change the folder",
        "envFrom": "the runtime's template has it; or write the variables in `env`",
        "ports": "the runtime's template has them",
        "containerName": "the container of a TrainJob is called `node`",
        "mpi.mpiImplementation": "the runtime's `mlPolicy.mpi` says it",
        "mpi.sshAuthMountPath": "the runtime's `mlPolicy.mpi` says it",
        "mpi.runLauncherAsWorker": "the runtime's `mlPolicy.mpi.runLauncherAsNode` says it",
        "mpi.launcherCreationPolicy": "the runtime says in which order its jobs start",
        "mpi.mainContainer": "the container of a TrainJob is called `node`",
        "mpi.cleanPodPolicy": "pods stay until the TrainJob is deleted",
        "podTemplate": "only the runtime's template can say it",
    },
    "tensorstack": {
        "runPolicy.ttlSecondsAfterFinished": "jobs of TensorStack stay until somebody deletes them",
        "runPolicy.schedulingPolicy": "its own scheduler gangs the pods; see `queue` and `priority`",
        "runPolicy.managedBy": "there is one controller",
        "priority": "its scheduler counts from 0 to 100",
        "pytorch.elasticPolicy": "its elastic jobs have no such setting",
    },
    "mpi-operator": {
        "mpi.mainContainer": "the first container is the main one",
        "mpi.cleanPodPolicy": "`runPolicy.cleanPodPolicy` says it, and wins already",
    },
    "kubeflow": {
        "mpi.sshAuthMountPath": "the launcher reaches its workers by kubectl, not by SSH",
        "mpi.mpiImplementation": "the launcher always has the hostfile and the agent of Open MPI",
        "mpi.launcherCreationPolicy": "the launcher waits for its workers in an init container",
        "mpi.runLauncherAsWorker": "the launcher is never a node; count one worker more",
        "tensorboard": "run TensorBoard as a workload of its own",
        "priority": "it is the name of a PriorityClass here",
        "pytorch.runtime": "write image, command and resources that came from the runtime in the job",
        "jax.runtime": "write image, command and resources that came from the runtime in the job",
        "xgboost.runtime": "write image, command and resources that came from the runtime in the job",
        "mpi.runtime": "write image, command and resources that came from the runtime in the job",
        "pytorch.torchrunConfig": "start torchrun in the command",
        "pytorch.elastic": "`pytorch.elasticPolicy` says it",
    },
}

# What changes although no field says so, by kinds.
MEANINGS: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("kubeflow PyTorchJob", "trainer TrainJob"): (
        ("env", "the operator sets PET_* for torchrun, and no MASTER_ADDR, WORLD_SIZE or RANK: start with torchrun"),
        ("restartPolicy", "what happens when a node fails is said by the runtime, not by the job"),
    ),
    ("kubeflow MPIJob", "trainer TrainJob"): (
        ("mpi.runtime", "the launcher and the MPI implementation come from the runtime; see that it is yours"),
    ),
    ("kubeflow MPIJob", "mpi-operator MPIJob"): (
        ("image", "workers are reached by SSH: the image needs sshd and the launcher's user its keys"),
        ("runPolicy", "the launcher is a Job: `backoffLimit` counts its pods and not containers that start again"),
    ),
    ("mpi-operator MPIJob", "kubeflow MPIJob"): (
        ("image", "workers are reached by kubectl: they need no sshd, and without a command they sleep"),
    ),
    ("trainer TrainJob", "kubeflow PyTorchJob"): (
        ("env", "the operator also sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK"),
    ),
    ("kubeflow TFJob", "tensorstack TensorFlowTrainingJob"): (),
    ("kubeflow MXJob", "PyTorch"): (
        ("image", "this is MXNet's image: take one with PyTorch"),
        ("command", "the program is written for MXNet: port it to torch.distributed, one process group of all nodes"),
        ("env", "there is no DMLC_* and no MX_CONFIG; torchrun reads PET_*, programs MASTER_ADDR, WORLD_SIZE and RANK"),
    ),
}

# Whom a job says it is managed by.
MANAGERS: Mapping[str, str] = {
    "kubeflow": "kubeflow.org/training-operator",
    "mpi-operator": "kubeflow.org/mpi-operator",
    "trainer": "trainer.kubeflow.org/trainjob-controller",
}

# Variables that the operator of a kind sets itself, so that a job's own are there twice or are overwritten.
RESERVED: Mapping[str, tuple[str, ...]] = {
    "PyTorchJob": tuple(
        """MASTER_ADDR MASTER_PORT WORLD_SIZE RANK PET_NNODES PET_NODE_RANK PET_NPROC_PER_NODE PET_RDZV_ENDPOINT
        PET_RDZV_BACKEND PET_RDZV_ID PET_RDZV_CONF PET_MAX_RESTARTS PET_STANDALONE""".split()
    ),
    "TFJob": ("TF_CONFIG",),
    "XGBoostJob": ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_PORT", "WORKER_ADDRS"),
    "JAXJob": ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"),
    "TensorFlowTrainingJob": ("TF_CONFIG",),
}

# The runtime for a framework that Trainer has none of its own for.
NEAREST_RUNTIME: Mapping[str, str] = {"mpi": "deepspeed-distributed"}
EXIT_CODES = "exit codes that start a pod again: 128 and above for Kubeflow, 130, 137, 138 and 143 for TensorStack"
