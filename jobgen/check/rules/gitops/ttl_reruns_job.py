"""A finished job that deletes itself, and is made again."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook
from jobgen.k8s.objects import Manifest, as_text, get_path
from jobgen.model.data import Data, value_of
from jobgen.model.finding import FixStep

_FIELD = "ttlSecondsAfterFinished"
_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("manifest", ERROR)
def ttl_reruns_job(manifest: Manifest) -> Iterator[Violation]:
    """A `ttlSecondsAfterFinished` on a job that Argo CD or Flux keeps in step with Git.

    The finished job is deleted, Git still has it, so it is made again and trains again: within seconds where Argo CD
    heals itself, else at the next commit; with Flux at the next interval. Leave it out; `cleanPodPolicy` frees the
    pods.
    """
    engine = _ENGINES.get(manifest.cluster.gitops)
    if engine is None or is_hook(manifest):
        return
    holder = _holder(manifest)
    if isinstance(holder, dict) and value_of(holder.get(_FIELD)) is not None:
        message = f"the finished job is deleted, and {engine} makes it again and trains anew"
        yield Violation(holder[_FIELD], message, fix_steps=(FixStep("remove", holder[_FIELD], key=_FIELD),), safe=False)


def _holder(manifest: Manifest) -> Data:
    """What would hold the field; mpi-operator deletes the launcher's pods alone, and keeps the job."""
    if manifest.kind is not None:
        return None if manifest.kind.operator == "mpi-operator" else get_path(manifest.spec, "runPolicy")
    group = as_text(manifest.object.get("apiVersion")).partition("/")[0]
    return manifest.spec if (group, manifest.kind_name) in (("batch", "Job"), ("jobset.x-k8s.io", "JobSet")) else None
