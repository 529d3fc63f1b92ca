"""A hook that nobody waits for."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import DELETE_POLICY, HOOK, is_training_job, split_annotation
from jobgen.k8s.objects import Manifest

_AWAITED = ("PreSync", "Sync")


@rule("job", WARNING)
def hook_without_health(manifest: Manifest) -> Iterator[Violation]:
    """A training job as a hook of Argo CD, which cannot tell whether it has ended.

    Argo CD ships no health check for these kinds and takes such a hook as done at once: the sync goes on while the job
    has hardly begun, and `HookSucceeded` deletes it there and then. Install a health check, or use no hook.
    """
    annotations = manifest.metadata.get("annotations")
    if not isinstance(annotations, dict) or HOOK not in annotations or not is_training_job(manifest):
        return
    kind = manifest.kind_name
    awaited = [word for word in split_annotation(manifest, HOOK) if word in _AWAITED]
    if awaited:
        message = f"Argo CD has no health check for a {kind}, so `{awaited[0]}` does not wait for its end"
        yield Violation(annotations[HOOK], message)
    if "HookSucceeded" in split_annotation(manifest, DELETE_POLICY):
        message = f"Argo CD has no health check for a {kind}: it counts as done, and is deleted, at once"
        yield Violation(annotations[DELETE_POLICY], message)
