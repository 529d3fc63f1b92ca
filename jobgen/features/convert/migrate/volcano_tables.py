"""How Jobs of Volcano and the launched kinds of TensorStack differ from other kinds: data of the migration steps."""

from __future__ import annotations

from collections.abc import Mapping

_SCHEDULING = (
    ("runPolicy.schedulingPolicy.minAvailable", "volcano.minAvailable"),
    ("runPolicy.schedulingPolicy.queue", "queue"),
    ("runPolicy.schedulingPolicy.priorityClass", "priority"),
)

MOVES: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
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

MEANINGS: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
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
