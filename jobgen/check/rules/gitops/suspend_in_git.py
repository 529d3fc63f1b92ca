"""The suspend field that both Kueue and Git set."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import can_be_queued, get_kueue_queue, get_suspend
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep

_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("manifest", WARNING)
def suspend_in_git(manifest: Manifest) -> Iterator[Violation]:
    """A queued job with `suspend` set in Git.

    Kueue sets `suspend` when it admits or stops a job. If Git also sets it, Argo CD or Flux reverts it: `true` stops a
    job that is training, `false` starts a job without quota.

    Remove `suspend`. Kueue suspends a queued job itself.
    """
    engine = _ENGINES.get(manifest.cluster.gitops)
    if engine is None or get_kueue_queue(manifest) is None or not can_be_queued(manifest):
        return
    suspend = get_suspend(manifest)
    if value_of(suspend) is not None:
        effect = "stops a job that Kueue has admitted" if value_of(suspend) else "starts the job before Kueue admits it"
        message = f"{engine} reverts `suspend` and {effect}; remove it"
        yield Violation(suspend, message, fix_steps=(FixStep("remove", suspend, key="suspend"),), safe=False)
