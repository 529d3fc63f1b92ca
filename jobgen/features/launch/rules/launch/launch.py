"""Arguments and settings of a launcher that do not fit its pods."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.features.launch.report import list_local_servers, list_settings, list_violations
from jobgen.features.launch.signs import CHECKED_WORDS, NAMED_WORDS
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR)
def launch_refused(manifest: Manifest) -> Iterator[Violation]:
    """Arguments that the launcher, the training script or the server refuses on these pods.

    The pods start, pull their images, and fail at once, or wait for processes that never start. jobgen reads the
    command as Kubernetes and a shell would run it, with the variables that the operator sets, and computes what the
    framework computes: world size, tensor, pipeline and data parallel sizes, batch sizes. What depends on an image, on
    files that are not in the repository or on other unknown values is not reported. The message has the error of the
    framework. GPUs that no process uses are a warning.

    Change the number that the error is about; for sizes that depend on each other, `jobgen explain JOB launch`
    shows all of them, and where they come from.

    When to turn it off: where the installed release of the framework accepts the arguments, for example a patched
    Megatron-LM, suppress it on the line of the command with that release, and look at `jobgen explain JOB launch`
    for the numbers.
    """
    return list_violations(manifest, "")


@rule("manifest", ERROR)
def launcher_without_script(manifest: Manifest) -> Iterator[Violation]:
    """A launcher, such as `torchrun` or `mpirun`, without a script or program to start.

    The launcher ends at once: `the following arguments are required: training_script`. A script in a variable that the
    image can set is not reported.

    Write the script after the options.

    When to turn it off: if the entry point of the image appends the script to the arguments, suppress it with the
    name of the image; the launcher alone can only print its usage.
    """
    return list_violations(manifest, "launcher-without-script")


@rule("manifest", ERROR)
def missing_mounted_file(manifest: Manifest) -> Iterator[Violation]:
    """A script or config file that the command names, and that the ConfigMap mounted there does not have.

    A ConfigMap hides everything that the image has in the folder, and no program can write to it. So the program does
    not find its file, and fails when it starts. An argument that can name something else than a file to read is a
    warning. A ConfigMap that is optional, or that the repository does not have, is not reported.

    Write the name of a file that the ConfigMap has, or add the file to it.

    When to turn it off: when an init container writes the ConfigMap's missing file into a shared `emptyDir` at that
    path, the path is not below the ConfigMap; otherwise only an exception for a file that another tool adds to the
    ConfigMap is right.
    """
    return list_violations(manifest, "missing-mounted-file")


@rule("manifest", WARNING)
def launcher_on_one_pod(manifest: Manifest) -> Iterator[Violation]:
    """A launcher such as `torchrun` that starts processes on one pod only, though the job has several.

    Ray runs the command of a job once, on the head: `torchrun` there starts no processes on the workers, whose GPUs
    stay idle. On other platforms every pod trains on its own: TensorStack sets no variables for `torchrun` unless
    `torchrunConfig` starts it, and `deepspeed` finds other pods by a hostfile only.

    Use what the platform offers: `ray job` with Ray Train on Ray, `torchrunConfig` on TensorStack, a hostfile for
    `deepspeed`, or an operator of Kubeflow, which sets the variables for `torchrun`.

    When to turn it off: when the other pods are there for something else, such as evaluation or data loading, and
    only the first one trains, suppress the finding on the command.
    """
    return list_violations(manifest, "launcher-on-one-pod")


@rule("manifest", WARNING, words=(*CHECKED_WORDS, *NAMED_WORDS))
def launch_variables(manifest: Manifest) -> Iterator[Violation]:
    """A variable of CUDA, NCCL, Gloo, OpenMP or MXNet that does not fit the devices, the network or the pods.

    The device plugin numbers the GPUs of a container from 0, so `CUDA_VISIBLE_DEVICES` can only hide some of them.
    `NCCL_SOCKET_IFNAME=lo` keeps pods from reaching each other. `NCCL_IB_DISABLE=1` beside RDMA devices holds them for
    nothing. `GLOO_SOCKET_IFNAME` takes one name, unlike NCCL's variable. `NCCL_IB_HCA` without RDMA devices, and more
    OpenMP threads than CPUs, are only slow, and reported as info. Variables such as `NCCL_DEBUG` know few values, and
    another value, or a misspelled name, has no effect.

    Remove the variable: the defaults of NCCL and the operator fit nearly every cluster. Otherwise, write one of the
    values that it knows.

    When to turn it off: variables that an image's entry point reads under the same name for another purpose can be
    accepted on their line; slow settings for a debugging session belong in the overlay of dev.
    """
    return list_settings(manifest)


@rule("manifest", ERROR)
def nnodes_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A number of nodes, or a meeting point, with which the pods do not form one job.

    A launcher such as `torchrun --nnodes=4` waits for that many nodes. With more nodes than pods it never starts, and
    fails after a timeout. With fewer, the other pods fail. Pods that meet at `localhost` wait for each other forever.
    It is a warning if each pod trains alone, which can be intended, and if an unknown condition decides whether the
    launcher starts.

    Remove the option if the operator gives the number, as `PET_NNODES`; otherwise, use the number of pods.

    When to turn it off: pods that each train a model of their own need no `torchrun` with several nodes; start
    `python` in each. A number that an entry point replaces at run time can be accepted on its line.
    """
    return list_violations(manifest, "nnodes-mismatch")


@rule("manifest", WARNING)
def nproc_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A number of processes, by an option or by a field, other than the number of GPUs of the pod.

    The launcher starts that many processes in every pod, and each uses the GPU of its local rank. With more processes
    than GPUs, a program that uses CUDA fails (`invalid device ordinal`), and one that trains on the CPU does not. It is
    an error if the command names NCCL, such as `--backend=nccl`: NCCL refuses two processes on one GPU. With fewer
    processes, some GPUs are never used.

    Use the number of GPUs, or `gpu`.

    When to turn it off: two processes that share a GPU by MPS or MIG on purpose are a case for a suppression on the
    option, with the name of the sharing in its reason.
    """
    return list_violations(manifest, "nproc-gpu-mismatch")


@rule("manifest", WARNING)
def slots_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`slotsPerWorker` with a number other than the number of GPUs of a worker.

    mpirun starts as many processes on a worker as it has slots. With more slots than GPUs, processes share a GPU or
    fail; with fewer, some GPUs are never used. The default is 1.

    Set it to the number of GPUs.

    When to turn it off: CPU ranks beside GPU ranks, as in some data pipelines with Horovod, need more slots than
    GPUs: accept it on `slotsPerWorker`.
    """
    return list_violations(manifest, "slots-gpu-mismatch")


@rule("manifest", WARNING)
def mpi_slots_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`mpirun -np` with a number other than the number of slots: workers times `slotsPerWorker`.

    With more processes than slots, Open MPI stops: `There are not enough slots available`. That is an error if the job
    certainly uses Open MPI: an MPIJob of `v2beta1` whose `mpiImplementation` is `OpenMPI`, the default, or a command
    with its options, such as `--allow-run-as-root` and `--mca`. MPICH and Intel MPI put several processes on a slot.
    With fewer processes than slots, some workers hold GPUs that are never used. With `replicas: 0` of the workers, the
    hostfile is empty, and Open MPI starts all processes in the launcher.

    Remove `-np`, which uses all slots, or keep it in line with the replicas.

    When to turn it off: to leave slots free on purpose, for example for one process with all memory of a node,
    suppress it on the line of `-np` and say for what they stay free.
    """
    return list_violations(manifest, "mpi-slots-mismatch")


@rule("manifest", WARNING, words=("sizeLimit",))
def small_shared_memory(manifest: Manifest) -> Iterator[Violation]:
    """Shared memory of a server of vLLM or SGLang that is small for its GPUs.

    The processes of a server pass tensors and requests through `/dev/shm`. If it is full, NCCL fails, and the group
    restarts again and again. With data parallelism, there is 1 GiB for each GPU, else 256 MiB.

    Raise `sizeLimit` of the volume that is mounted at `/dev/shm`.

    When to turn it off: small models with one request at a time can live with less. Measure `df /dev/shm` in the
    running pod before you suppress the line of `sizeLimit`.
    """
    return list_violations(manifest, "small-shared-memory")


@rule(
    "manifest", WARNING, words=("sglang", "text-generation", "vllm", "127.0.0.1", "localhost", "uvicorn", "tensorboard")
)
def failing_probe(manifest: Manifest) -> Iterator[Violation]:
    """A probe that a model server never passes, or that ends it before its model is loaded.

    vLLM listens to port 8000, SGLang to 30000 and the image of text-generation-inference to 80, if `--port` is not set.
    With another port, a pod is never ready, so that a roll-out does not go on, or it is restarted forever. Without a
    `startupProbe`, the kubelet restarts a server whose livenessProbe fails for 30 seconds, or 90 with a model of 30
    billion parameters or more: less than it takes to start. A server that listens to 127.0.0.1, as uvicorn and
    TensorBoard do without an option, is reached by no probe and by no other pod.

    Write the port of the server and the address `0.0.0.0`, and add a `startupProbe` that waits some minutes.

    When to turn it off: if the image starts the server with another port than its program usually has, write
    `--port` explicitly; otherwise suppress the finding on the probe and name the port's source.
    """
    yield from list_violations(manifest, "failing-probe")
    yield from list_local_servers(manifest)
