"""Logs that are deleted with their pods."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import find_ttl_path
from jobgen.model.data import Node
from jobgen.spec.kinds import parse_version

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
    """
    if not any(any(pod.devices.values()) for pod in manifest.pods):
        return
    if manifest.group == "kubeflow.org":
        yield from _check_training_operator(manifest)
    elif manifest.group == "batch":
        yield from _check_job(as_mapping(get_path(manifest.object, *_BATCH[manifest.kind_name])))
        limit = manifest.spec.get("failedJobsHistoryLimit")
        if manifest.kind_name == "CronJob" and as_integer(limit) == 0:
            message = "`failedJobsHistoryLimit: 0` deletes a failed run at once, with its pods and logs"
            yield Violation(limit, f"{message}; keep at least 1")
    elif manifest.group == "jobset.x-k8s.io":
        for item in map(as_mapping, as_list(manifest.spec.get("replicatedJobs"))):
            yield from _check_job(as_mapping(get_path(item, "template", "spec")))
    yield from _check_ttl(manifest)


def _check_job(job: Mapping[str, Node]) -> Iterator[Violation]:
    policy = get_path(job, "template", "spec", "restartPolicy")
    # The API server refuses this policy beside a policy for failed pods.
    if as_text(policy) == "OnFailure" and "podFailurePolicy" not in job:
        message = "with `OnFailure`, the Job deletes its pod when `backoffLimit` is reached, and the logs of all"
        yield Violation(policy, f"{message} attempts are lost; use `Never`, which keeps failed pods")


def _check_ttl(manifest: Manifest) -> Iterator[Violation]:
    # `ttl-reruns-job` and `endless-sync` report what else a TTL does.
    if manifest.cluster.gitops or is_hook(manifest):
        return
    path = find_ttl_path(manifest.group, manifest.kind_name, manifest.kind.operator if manifest.kind else "")
    ttl = get_path(manifest.object, *path) if path else None
    if as_integer(ttl) == 0:
        message = "`ttlSecondsAfterFinished: 0` deletes the job as soon as it has ended, with its pods and logs"
        yield Violation(ttl, f"{message}; leave time to read them, such as 86400")


def _check_training_operator(manifest: Manifest) -> Iterator[Violation]:
    version = manifest.operator_version
    cleaned = as_text(manifest.run_policy.get("cleanPodPolicy"))
    if not version or parse_version(version) >= _FIXED or cleaned == "All":
        return
    limit, deadline = (manifest.run_policy.get(name) for name in ("backoffLimit", "activeDeadlineSeconds"))
    restarts = any(role.restart_policy not in ("", "Never") for role in manifest.roles)
    # Without restarts, `backoff-without-restarts` reports the limit.
    reached = ("backoffLimit", limit) if limit is not None and restarts else ("activeDeadlineSeconds", deadline)
    if reached[1] is not None:
        message = f"training-operator {version} deletes all pods when `{reached[0]}` is reached, and ignores"
        message += f" `cleanPodPolicy: {cleaned or 'None'}`, so the logs of the failure are lost"
        advice = "use 1.9.4, or `restartPolicy: Never` without a limit" if reached[1] is limit else "use 1.9.4"
        yield Violation(reached[1], f"{message}; {advice}")
