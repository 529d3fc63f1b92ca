"""A list that Kueue and Git both write."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.objects import Pod, as_list


@rule("pod", INFO, fields=("tolerations",))
def queued_tolerations(pod: Pod) -> Iterator[Violation]:
    """Tolerations of a queued job that Argo CD keeps in step with Git.

    Kueue adds those of the flavor when it admits the job. The list is compared as a whole, so Argo CD sees a
    difference, and one that heals itself undoes it, which stops the job. Move them to the ResourceFlavor, or ignore
    the difference.
    """
    manifest = pod.role.manifest
    if manifest.cluster.gitops != "argocd" or get_kueue_queue(manifest) is None:
        return
    if as_list(pod.spec["tolerations"]):
        key = next(key for key in pod.spec if key == "tolerations")
        yield Violation(
            key, "Kueue adds to this list and Argo CD undoes it; move the tolerations to the ResourceFlavor"
        )
