"""Topology annotations on jobs."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.objects import Manifest

_TOPOLOGY = frozenset(f"{DOMAIN}podset-{how}-topology" for how in ("required", "preferred", "unconstrained"))


@rule("job", WARNING)
def topology_on_job(manifest: Manifest) -> Iterator[Violation]:
    """A topology annotation of Kueue on the job instead of its pod templates.

    Kueue reads `kueue.x-k8s.io/podset-…-topology` from each pod template. On the job it has no effect, and the workers
    can be spread over racks.

    Move it to the `metadata.annotations` of the pod templates.
    """
    annotations = manifest.metadata.get("annotations")
    if not isinstance(annotations, dict) or not manifest.roles or manifest.roles[0].pod.partial:
        return
    for key in annotations:
        if key in _TOPOLOGY:
            yield Violation(key, f"Kueue reads `{key}` only from pod templates; move it there")
