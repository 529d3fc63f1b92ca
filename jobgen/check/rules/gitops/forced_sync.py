"""Syncs that replace a running job."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import SYNC_OPTIONS, is_training_job, split_annotation
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest

_FLUX = "kustomize.toolkit.fluxcd.io/force"
# Kinds whose pod templates cannot be changed: without `Force=true`, Argo CD does not delete the object.
_IMMUTABLE = (
    ("batch", "Job"),
    ("batch.volcano.sh", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
    ("trainer.kubeflow.org", "TrainJob"),
)


@rule("job", WARNING)
def forced_sync(manifest: Manifest) -> Iterator[Violation]:
    """A training job that is deleted and recreated when Git is applied.

    With `Force=true` and `Replace=true`, Argo CD deletes and restarts the job at each sync of its app, even if only
    another object changed, which is an error. With one of them, it does so at some changes, and with `force`, Flux does
    so at each change that the API server rejects. With only `Replace=true`, the sync of a changed Job, JobSet, TrainJob
    or Job of Volcano fails, because the template of its pods is immutable.

    Remove the options, and give a changed job a new name.
    """
    annotations = manifest.metadata.get("annotations")
    if not isinstance(annotations, dict) or not is_training_job(manifest):
        return
    if SYNC_OPTIONS in annotations:
        forced = [word for word in split_annotation(manifest, SYNC_OPTIONS) if word in ("Force=true", "Replace=true")]
        if len(forced) == 2:
            message = (
                "each sync of the app deletes and restarts the running job; remove `Force=true` and `Replace=true`"
            )
            yield Violation(annotations[SYNC_OPTIONS], message, severity=ERROR)
        elif forced:
            effect = "can stop the running job when the app is synced"
            if forced == ["Replace=true"] and (manifest.group, manifest.kind_name) in _IMMUTABLE:
                effect = "makes each sync of a changed job fail, because the template of its pods is immutable"
            message = f"`{forced[0]}` {effect}; remove it"
            yield Violation(annotations[SYNC_OPTIONS], message)
    if as_text(annotations.get(_FLUX)).lower() == "enabled":
        message = f"with `{_FLUX}`, Flux deletes the running job if a change is rejected; remove it"
        yield Violation(annotations[_FLUX], message)
