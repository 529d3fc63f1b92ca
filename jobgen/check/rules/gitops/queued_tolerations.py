"""Tolerations that both Kueue and Git set."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_list
from jobgen.k8s.objects import Pod


@rule("pod", INFO, fields=("tolerations",))
def queued_tolerations(pod: Pod) -> Iterator[Violation]:
    """Tolerations of a queued job that Argo CD keeps in sync with Git.

    Kueue adds the tolerations of the flavor when it admits the job. Argo CD compares the list as a whole and sees a
    difference; with self-heal it reverts the list, which stops the job.

    Move the tolerations to the ResourceFlavor, or ignore the difference in Argo CD.
    """
    manifest = pod.manifest
    if manifest.cluster.gitops != "argocd" or get_kueue_queue(manifest) is None:
        return
    if as_list(pod.spec["tolerations"]):
        key = next(key for key in pod.spec if key == "tolerations")
        message = "Kueue adds to `tolerations`, and Argo CD can revert that; move them to the ResourceFlavor"
        yield Violation(key, message)
