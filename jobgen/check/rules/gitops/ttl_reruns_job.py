"""TTL of jobs that Argo CD or Flux applies."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import find_ttl_path
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep

_FIELD = "ttlSecondsAfterFinished"
_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("manifest", ERROR)
def ttl_reruns_job(manifest: Manifest) -> Iterator[Violation]:
    """A `ttlSecondsAfterFinished` on a job that Argo CD or Flux keeps in sync with Git.

    The cluster deletes the finished job, but Git still has it, so it is recreated and trains again: with Argo CD within
    seconds if self-heal is on, else at the next commit; with Flux at the next interval.

    Remove it. `cleanPodPolicy` cleans up the pods. The TTL of a RayJob deletes only its RayCluster, so it can stay.
    """
    engine = _ENGINES.get(manifest.cluster.gitops)
    if engine is None or is_hook(manifest):
        return
    path = find_ttl_path(manifest.group, manifest.kind_name, manifest.kind.operator if manifest.kind else "")
    ttl = get_path(manifest.object, *path) if path else None
    if value_of(ttl) is not None:
        message = f"`{_FIELD}` deletes the finished job; {engine} recreates it, so training runs again; remove it"
        fix_steps = (FixStep("remove", ttl, key=_FIELD),)
        yield Violation(ttl, message, fix_steps=fix_steps, safe=False)
