"""Workers that stay after their job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest, Role
from jobgen.model.suggest import find_key

# Roles whose program runs until it is stopped: servers, and pods that wait for the launcher.
_ENDLESS = {"MPIJob": ("worker",), "TFJob": ("ps",)}


@rule("job", WARNING, kinds=tuple(_ENDLESS))
def workers_outlive_job(manifest: Manifest) -> Iterator[Violation]:
    """Workers of an MPIJob, or parameter servers, that keep their GPUs after the job has ended.

    Workers of an MPIJob wait for the launcher, and parameter servers for workers: they never end by themselves. The
    default of `cleanPodPolicy` is `None`, so the operator leaves them running, and no other job can use their GPUs
    until somebody deletes the job. A job with a TTL is deleted after that time, and not reported.

    Set `runPolicy.cleanPodPolicy: Running`.
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
            message = f"`cleanPodPolicy` is not set, so `{role.replica_type}` pods, which never end by themselves, keep"
            node = policy if as_text(policy) else find_key(manifest.spec, "runPolicy") or role.key
            yield Violation(node, f"{message} their GPUs after the job; set `runPolicy.cleanPodPolicy: Running`")
            return


def _has_devices(role: Role) -> bool:
    return role.count > 0 and any(role.pod.devices.values())
