"""TTL of jobs that Argo CD or Flux applies."""

from collections.abc import Iterator

from jobgen.check.original_messages import original_message
from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook
from jobgen.k8s.objects import Manifest, as_text, get_path
from jobgen.model.data import Node, value_of
from jobgen.model.finding import FixStep

_FIELD = "ttlSecondsAfterFinished"
_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("manifest", ERROR)
def ttl_reruns_job(manifest: Manifest) -> Iterator[Violation]:
    """A `ttlSecondsAfterFinished` on a job that Argo CD or Flux keeps in sync with Git.

    The cluster deletes the finished job, but Git still has it, so it is recreated and trains again: with Argo CD within
    seconds if self-heal is on, else at the next commit; with Flux at the next interval.

    Remove it. `cleanPodPolicy` cleans up the pods.
    """
    engine = _ENGINES.get(manifest.cluster.gitops)
    if engine is None or is_hook(manifest):
        return
    holder = _find_holder(manifest)
    if isinstance(holder, dict) and value_of(holder.get(_FIELD)) is not None:
        message = f"`{_FIELD}` deletes the finished job; {engine} recreates it, so training runs again; remove it"
        fix_steps = (FixStep("remove", holder[_FIELD], key=_FIELD),)
        evidence = original_message("ttl-reruns-job", engine)
        yield Violation(holder[_FIELD], message, fix_steps=fix_steps, safe=False, evidence=evidence)


def _find_holder(manifest: Manifest) -> Node:
    """Return the mapping that may have the field; mpi-operator keeps the job and deletes the launcher's pods only."""
    if manifest.kind is not None:
        return None if manifest.kind.operator == "mpi-operator" else get_path(manifest.spec, "runPolicy")
    group = as_text(manifest.object.get("apiVersion")).partition("/")[0]
    return manifest.spec if (group, manifest.kind_name) in (("batch", "Job"), ("jobset.x-k8s.io", "JobSet")) else None
