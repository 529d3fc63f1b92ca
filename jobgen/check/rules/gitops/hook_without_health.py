"""Training jobs as Argo CD hooks."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import DELETE_POLICY, HOOK, lacks_health_check, split_annotation
from jobgen.k8s.objects import Manifest

_AWAITED = ("PreSync", "Sync")


@rule("manifest", WARNING)
def hook_without_health(manifest: Manifest) -> Iterator[Violation]:
    """A training job as an Argo CD hook, although Argo CD cannot tell when the job ends.

    Argo CD ships no health check for these kinds and treats such a hook as done at once. The sync continues while the
    job has hardly started, and `HookSucceeded` deletes the job immediately.

    Install a health check, or do not use a hook.
    """
    annotations = manifest.metadata.get("annotations")
    if not isinstance(annotations, dict) or HOOK not in annotations or not lacks_health_check(manifest):
        return
    kind = manifest.kind_name
    awaited = [word for word in split_annotation(manifest, HOOK) if word in _AWAITED]
    if awaited:
        message = f"Argo CD has no health check for {kind}, so `{awaited[0]}` does not wait until the job ends"
        yield Violation(annotations[HOOK], f"{message}; install one or do not use a hook")
    if "HookSucceeded" in split_annotation(manifest, DELETE_POLICY):
        message = f"Argo CD has no health check for {kind}, so `HookSucceeded` deletes the job immediately"
        yield Violation(annotations[DELETE_POLICY], f"{message}; install one or remove it")
