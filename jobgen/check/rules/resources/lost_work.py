"""What is lost, or stays, when pods end."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook
from jobgen.k8s.injected_volumes import is_unmounted
from jobgen.k8s.kinds import Release, format_release, parse_release
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Pod, Role
from jobgen.k8s.workloads import find_ttl_path
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.spec.kinds import parse_version

_NAME = lazy_pattern(r"(?:\A|[-_/.])(?:ckpts?|checkpoints?)(?=\Z|[-_/.])")


@rule("pod", WARNING, fields=("volumes",), words=("emptyDir", "ephemeral"))
def lost_checkpoints(pod: Pod) -> Iterator[Violation]:
    """Checkpoints or results of a job in a volume that is deleted with its pod.

    An `emptyDir` lives as long as its pod. When the pod is replaced after a failure, a preemption or the loss of its
    node, the training starts again from the beginning. A volume that another container also mounts, such as one that
    uploads the checkpoints, is not reported.

    Write checkpoints to a persistent volume or to object storage.

    When to turn it off: for runs so short that a restart from zero is cheaper than a volume, accept it on the
    argument; a program that uploads its checkpoints itself is another reason.
    """
    deleted = [volume for volume in pod.volumes if "emptyDir" in volume or "ephemeral" in volume]
    if not deleted or pod.manifest.kind is None or not any(container.devices for container in pod.containers):
        return
    written = {name: text for each in pod.containers for name, text in _find_written(each)}
    for volume in deleted:
        name, field = as_text(volume.get("name")), "emptyDir" if "emptyDir" in volume else "ephemeral"
        if name in written and _count_mounts(pod, name) == 1:
            message = Sentence(
                "checkpoints in `{}` are in an `{}`, which is deleted with the pod", written[name], field
            )
            advice = "write them to a persistent volume, so that a restarted job continues"
            yield Violation(At(volume, field, is_key=True), Sentence("{}; {}", message, advice))


def _find_written(container: Container) -> Iterator[tuple[str, str]]:
    """Yield the volumes that a container plainly writes checkpoints to, with the path."""
    # Imported late: few pods have volumes that are deleted with them.
    from jobgen.k8s.output_paths import find_written_volumes

    yield from find_written_volumes(container)
    for mount in container.volume_mounts:
        name, path = as_text(mount.get("name")), as_text(mount.get("mountPath"))
        if _NAME.search(f"{path}/{name}".lower()):
            yield name, path


def _count_mounts(pod: Pod, volume: str) -> int:
    """Return how many containers mount a volume."""
    mounts = (container.volume_mounts for container in pod.all_containers)
    return sum(any(as_text(mount.get("name")) == volume for mount in each) for each in mounts)


_BATCH = {"CronJob": ("spec", "jobTemplate", "spec"), "Job": ("spec",)}
_KUBEFLOW = "JAXJob PaddleJob PyTorchJob TFJob XGBoostJob".split()
# Since then, training-operator respects `cleanPodPolicy` when a limit is reached.
_FIXED = (1, 9, 4)


@rule("manifest", WARNING, kinds=(*_BATCH, *_KUBEFLOW, "JobSet"))
def lost_logs(manifest: Manifest) -> Iterator[Violation]:
    """A job with GPUs whose pods are deleted when it fails, and with them the logs that say why.

    With `restartPolicy: OnFailure`, a Job deletes its pod when `backoffLimit` is reached; with `Never`, failed pods
    stay. A TTL of 0 deletes a job as soon as it has ended, and `failedJobsHistoryLimit: 0` a failed run of a CronJob.
    training-operator before 1.9.4 deletes all pods when `backoffLimit` or `activeDeadlineSeconds` is reached, whatever
    `cleanPodPolicy` says.

    Use the policy, the limit or the TTL that the message names, or ship logs to another place.

    When to turn it off: where a collector such as Fluent Bit or Loki keeps the logs of all pods, set the rule to
    `off` for that environment.
    """
    found = list(_find_lost_logs(manifest))
    if found and any(any(pod.devices.values()) for pod in manifest.pods):
        yield from found


def _find_lost_logs(manifest: Manifest) -> Iterator[Violation]:
    """Yield what deletes the pods of a job, whatever devices they have."""
    if manifest.group == "kubeflow.org":
        if manifest.operator_version:
            yield from _check_training_operator(manifest, manifest.operator_version)
    elif manifest.group == "batch":
        yield from _check_job(as_mapping(get_path(manifest.object, *_BATCH[manifest.kind_name])))
        limit = manifest.spec.get("failedJobsHistoryLimit")
        if manifest.kind_name == "CronJob" and as_integer(limit) == 0:
            message = "`failedJobsHistoryLimit: 0` deletes a failed run at once, with its pods and logs"
            yield Violation(At(manifest.spec, "failedJobsHistoryLimit"), Sentence("{}; keep at least 1", message))
    elif manifest.group == "jobset.x-k8s.io":
        for item in map(as_mapping, as_list(manifest.spec.get("replicatedJobs"))):
            yield from _check_job(as_mapping(get_path(item, "template", "spec")))
    yield from _check_ttl(manifest)


def _check_job(job: Mapping[str, Plain]) -> Iterator[Violation]:
    policy = find_at(job, "template", "spec", "restartPolicy")
    # The API server refuses this policy beside a policy for failed pods.
    if policy is not None and as_text(policy.node) == "OnFailure" and "podFailurePolicy" not in job:
        message = "with `OnFailure`, the Job deletes its pod when `backoffLimit` is reached, and the logs of all"
        yield Violation(policy, Sentence("{} attempts are lost; use `Never`, which keeps failed pods", message))


def _check_ttl(manifest: Manifest) -> Iterator[Violation]:
    path = find_ttl_path(manifest.group, manifest.kind_name, manifest.kind.operator if manifest.kind else "")
    ttl = find_at(manifest.object, *path) if path else None
    # `ttl-reruns-job` and `endless-sync` report what else a TTL does.
    if ttl is None or as_integer(ttl.node) != 0:
        return
    if not manifest.cluster.gitops and not is_hook(manifest):
        message = "`ttlSecondsAfterFinished: 0` deletes the job as soon as it has ended, with its pods and logs"
        yield Violation(ttl, Sentence("{}; leave time to read them, such as 86400", message))


def _check_training_operator(manifest: Manifest, version: str) -> Iterator[Violation]:
    cleaned = as_text(manifest.run_policy.get("cleanPodPolicy"))
    if parse_version(version) >= _FIXED or cleaned == "All":
        return
    limit, deadline = (manifest.run_policy.get(name) for name in ("backoffLimit", "activeDeadlineSeconds"))
    restarts = any(role.restart_policy not in ("", "Never") for role in manifest.roles)
    # Without restarts, `backoff-without-restarts` reports the limit.
    reached = "backoffLimit" if limit is not None and restarts else "activeDeadlineSeconds"
    if (limit if reached == "backoffLimit" else deadline) is not None:
        message = Sentence("training-operator {} deletes all pods when `{}` is reached, and ignores", version, reached)
        message += f" `cleanPodPolicy: {cleaned or 'None'}`, so the logs of the failure are lost"
        advice = "use 1.9.4, or `restartPolicy: Never` without a limit" if reached == "backoffLimit" else "use 1.9.4"
        yield Violation(At(manifest.run_policy, reached), Sentence("{}; {}", message, advice))


@rule("pod", WARNING, fields=("volumes",))
def unmounted_volume(pod: Pod) -> Iterator[Violation]:
    """A volume that no container of the pod mounts.

    The data that the container expects is not there, and the pod still waits for the volume before it starts.

    Mount the volume (`mountPath` in a job), or remove it.

    When to turn it off: a volume that a mutating webhook mounts into its own container, such as a cache for an
    agent, can be accepted on the volume.
    """
    for volume in pod.volumes:
        name = as_text(volume.get("name"))
        if is_unmounted(name, pod):
            message = Sentence("no container mounts the volume `{}`; add `mountPath`, or remove it", name)
            yield Violation(At(volume, "name"), message)


# The kubelet's feature gate GitRepoVolumeDriver is off since the first, and cannot be turned on since the second.
_OFF, _GONE = (1, 33), (1, 36)


@rule("pod", WARNING, fields=("volumes",), words=("gitRepo",))
def git_repo_volume(pod: Pod) -> Iterator[Violation]:
    """A `gitRepo` volume, which Kubernetes no longer mounts.

    The API server accepts it, but since 1.33 the kubelet does not mount it unless its feature gate
    `GitRepoVolumeDriver` is turned on, and since 1.36 the gate cannot be turned on. Such a pod stays in
    `ContainerCreating` and never starts. This is an error if `cluster.kubernetes` declares 1.36 or later, and a warning
    otherwise.

    Clone the repository in an init container into an `emptyDir`, or put the files into the image.

    When to turn it off: no cluster from 1.36 on can mount it. For an older one with the gate turned on, declare
    `cluster.kubernetes` and suppress the warning on the volume.
    """
    declared = pod.manifest.cluster.kubernetes
    release = parse_release(declared) if declared else None
    for volume in pod.volumes:
        if "gitRepo" in volume and isinstance(volume["gitRepo"], dict):
            message = Sentence("{}; clone the repository in an init container into an `emptyDir`", _describe(release))
            severity = ERROR if release is not None and release >= _GONE else None
            yield Violation(At(volume, "gitRepo", is_key=True), message, severity=severity)


def _describe(release: Release | None) -> str:
    """Return what a release does with such a volume; None if the release is not declared."""
    if release is not None and release >= _GONE:
        return f"Kubernetes {format_release(release)} cannot mount `gitRepo`, so the pod never starts"
    if release is not None and release >= _OFF:
        return f"`gitRepo` is off by default in Kubernetes {format_release(release)}, and is gone in 1.36"
    return "`gitRepo` is off by default since Kubernetes 1.33, and is gone in 1.36"


_JOBS = {"RayCronJob": ("spec", "jobTemplate"), "RayJob": ("spec",)}
_FIELD = "shutdownAfterJobFinishes"
_INTERACTIVE = "InteractiveMode"


@rule("manifest", WARNING, kinds=tuple(_JOBS))
def cluster_outlives_job(manifest: Manifest) -> Iterator[Violation]:
    """A RayJob that does not say whether KubeRay deletes its RayCluster when the job ends.

    The default of `shutdownAfterJobFinishes` is false: the pods keep running after the job, and no other job can use
    their GPUs until the RayJob is deleted. Without GPUs or other devices it is an info. A job with
    `clusterSelector` uses a cluster that exists, and is not reported.

    Set `shutdownAfterJobFinishes: true`. To keep the cluster on purpose, set it to false.

    When to turn it off: a cluster that serves several jobs one after another is not a RayJob's but a RayCluster's;
    for a debugging session, set the field to false, which is silent.
    """
    spec = as_mapping(get_path(manifest.object, *_JOBS[manifest.kind_name]))
    if (
        manifest.group != "ray.io"
        or "rayClusterSpec" not in spec
        or spec.get(_FIELD) is not None
        or spec.get("clusterSelector")
    ):
        return
    # Other rules report that these need the field; an interactive job ends when its user says so.
    is_required = spec.get("suspend") is True or (as_integer(spec.get("ttlSecondsAfterFinished")) or 0) > 0
    is_queued = manifest.kind_name == "RayJob" and get_kueue_queue(manifest) is not None
    if is_required or is_queued or spec.get("deletionStrategy") or as_text(spec.get("submissionMode")) == _INTERACTIVE:
        return
    gpus = any(pod.gpus for pod in manifest.pods)
    devices = gpus or any(any(pod.devices.values()) for pod in manifest.pods)
    what = f"its pods keep their {'GPUs' if gpus else 'devices'}" if devices else "its pods keep running"
    message = Sentence("`{}` is not set, so {} after the job; set it to true", _FIELD, what)
    yield Violation(At(spec, "rayClusterSpec", is_key=True), message, severity=None if devices else INFO)


# Roles whose program runs until it is stopped: servers, and pods that wait for the launcher.
_ENDLESS = {"MPIJob": ("worker",), "TFJob": ("ps",)}


@rule("job", WARNING, kinds=tuple(_ENDLESS))
def workers_outlive_job(manifest: Manifest) -> Iterator[Violation]:
    """Workers of an MPIJob, or parameter servers, that keep their GPUs after the job has ended.

    Workers of an MPIJob wait for the launcher, and parameter servers for workers: they never end by themselves. The
    default of `cleanPodPolicy` is `None`, so the operator leaves them running, and no other job can use their GPUs
    until the job is deleted. A job with a TTL is deleted after that time, and not reported.

    Set `runPolicy.cleanPodPolicy: Running`.

    When to turn it off: keep the pods for a look at their state with a TTL, which ends them later, and which the
    rule accepts; without one, they hold GPUs over the weekend.
    """
    if manifest.group != "kubeflow.org" or "ttlSecondsAfterFinished" in manifest.run_policy:
        return
    # The first version of the MPIJob has the field in its spec.
    policy = manifest.run_policy.get("cleanPodPolicy", manifest.spec.get("cleanPodPolicy"))
    # Who writes `None` keeps the pods on purpose.
    if as_text(policy) not in ("", "Undefined"):
        return
    for role in manifest.roles:
        if role.name in _ENDLESS[manifest.kind_name] and _has_devices(role):
            message = Sentence(
                "`cleanPodPolicy` is not set, so `{}` pods, which never end by themselves, keep", role.replica_type
            )
            place = find_at(manifest.spec, "runPolicy", is_key=True) or role.place
            if as_text(policy):
                holder = manifest.run_policy if "cleanPodPolicy" in manifest.run_policy else manifest.spec
                place = At(holder, "cleanPodPolicy")
            yield Violation(
                place, Sentence("{} their GPUs after the job; set `runPolicy.cleanPodPolicy: Running`", message)
            )
            return


def _has_devices(role: Role) -> bool:
    return role.count > 0 and any(role.pod.devices.values())
