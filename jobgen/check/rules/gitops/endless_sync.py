"""Syncs that wait for something that never ends."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import HOOK, split_annotation
from jobgen.k8s.kueue import can_be_queued, get_kueue_queue, get_suspend
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import find_ttl_path
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import find_key

_AWAITED = ("PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete")
# Argo CD runs hooks of Helm as its own.
_HELM = "helm.sh/hook"
_KUSTOMIZATION = ("kustomize.toolkit.fluxcd.io", "Kustomization")
_GROUPS = {
    **dict.fromkeys(("CronJob", "Job"), "batch"),
    **dict.fromkeys(("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"), "apps"),
}
_FIELD = "ttlSecondsAfterFinished"
# Argo CD reads the state of its hooks from events; a Job that is gone within seconds can be missed.
_SHORT = 10


@rule("manifest", WARNING)
def endless_sync(manifest: Manifest) -> Iterator[Violation]:
    """A sync of Argo CD or Flux that waits forever: for a hook that never ends, or a check that never succeeds.

    Argo CD waits until a hook has ended. A Job with `suspend: true` gets no pods. A Job in a queue of Kueue is
    suspended until Kueue admits it. A Job with `ttlSecondsAfterFinished: 0` is deleted before Argo CD reads its result.
    Meanwhile, the application cannot be synced again. Flux waits for the objects in `healthChecks` of a Kustomization;
    one with the API group of another kind is never found. A Kustomization that depends on itself is never applied.

    Remove the field or the hook. To clean up, use `argocd.argoproj.io/hook-delete-policy: HookSucceeded`.
    """
    if (manifest.group, manifest.kind_name) == _KUSTOMIZATION:
        yield from _check_kustomization(manifest)
    phase = _find_phase(manifest)
    if not phase or (manifest.group, manifest.kind_name) not in (("batch", "Job"), ("jobset.x-k8s.io", "JobSet")):
        return
    yield from _check_suspension(manifest, phase)
    path = find_ttl_path(manifest.group, manifest.kind_name, "")
    ttl = get_path(manifest.object, *path)
    seconds = as_integer(ttl)
    if seconds is not None and seconds < _SHORT:
        effect = "deletes the Job before Argo CD reads its result, so the sync waits forever"
        advice = "remove it; use `argocd.argoproj.io/hook-delete-policy: HookSucceeded`"
        yield Violation(ttl, f"`{_FIELD}: {seconds}` on a `{phase}` hook {effect}; {advice}")


def _check_kustomization(manifest: Manifest) -> Iterator[Violation]:
    """Check what Flux waits for before and after it applies a Kustomization."""
    for check in map(as_mapping, as_list(manifest.spec.get("healthChecks"))):
        version, kind = as_text(check.get("apiVersion")), as_text(check.get("kind"))
        wanted = _GROUPS.get(kind, "")
        if version and wanted and version.rpartition("/")[0] != wanted:
            message = f"no {kind} has `apiVersion: {version}`, so the health check times out at every sync"
            yield Violation(check.get("apiVersion"), f"{message}; write `{wanted}/v1`")
    for other in map(as_mapping, as_list(manifest.spec.get("dependsOn"))):
        place = as_text(other.get("namespace")) or manifest.namespace
        if manifest.name and (as_text(other.get("name")), place) == (manifest.name, manifest.namespace):
            message = "the Kustomization depends on itself, so Flux never applies it"
            yield Violation(other.get("name"), f"{message}; remove it from `dependsOn`")


def _find_phase(manifest: Manifest) -> str:
    """Return the phase of a hook that Argo CD waits for; empty if the object is not such a hook."""
    phases = [word for word in split_annotation(manifest, HOOK) if word in _AWAITED]
    if not phases and manifest.cluster.gitops == "argocd":
        phases = [word for word in split_annotation(manifest, _HELM) if word not in ("test", "crd-install")]
    return phases[0] if phases else ""


def _check_suspension(manifest: Manifest, phase: str) -> Iterator[Violation]:
    suspend: Node = get_suspend(manifest)
    if value_of(suspend) is True:
        message = f"a suspended Job gets no pods, so the `{phase}` hook never ends and the sync waits forever"
        yield Violation(suspend, f"{message}; remove `suspend`, or the hook annotation")
    elif (queue := as_text(get_kueue_queue(manifest))) and can_be_queued(manifest):
        labels = as_mapping(manifest.metadata.get("labels"))
        node = find_key(manifest.annotations, HOOK) or find_key(labels, "kueue.x-k8s.io/queue-name")
        message = f"Kueue suspends the Job until queue `{queue}` has quota, and the `{phase}` hook waits for it"
        yield Violation(node, f"{message}: no sync can run until then; remove the hook annotation")
