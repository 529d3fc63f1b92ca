"""A wish about topology where nobody reads it."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.objects import Manifest

_TOPOLOGY = frozenset(f"{DOMAIN}podset-{how}-topology" for how in ("required", "preferred", "unconstrained"))


@rule("job", WARNING)
def topology_on_job(manifest: Manifest) -> Iterator[Violation]:
    """An annotation about Kueue's topology on the job rather than on its pod templates.

    Kueue reads `kueue.x-k8s.io/podset-…-topology` of each pod template; on the job it changes nothing, and the workers
    may be spread over racks. Put it into the `metadata.annotations` of the templates.
    """
    annotations = manifest.metadata.get("annotations")
    if not isinstance(annotations, dict) or not manifest.roles or manifest.roles[0].pod.partial:
        return
    for key in annotations:
        if key in _TOPOLOGY:
            yield Violation(key, f"Kueue reads `{key}` of pod templates, not of the job; put it there")
