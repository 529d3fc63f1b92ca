"""Waves that do not wait for each other."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, Row, rule
from jobgen.k8s.argocd_annotations import SYNC_WAVE, is_hook, is_training
from jobgen.k8s.objects import Manifest, text
from jobgen.spec.overlay import Cluster

_PATH = ("metadata", "annotations", SYNC_WAVE)


def gather(manifest: Manifest) -> Iterator[Row]:
    """The wave and the name of a training job."""
    annotations = manifest.metadata.get("annotations")
    wave = text(annotations.get(SYNC_WAVE)) if isinstance(annotations, dict) else ""
    if wave and is_training(manifest) and not is_hook(manifest) and wave.removeprefix("-").isdecimal():
        yield Row((manifest.namespace, int(wave), manifest.name), _PATH)


@rule("fleet", WARNING, gather=gather)
def wave_without_health(rows: list[Row], cluster: Cluster) -> Iterator[Fault]:
    """A training job in a later sync wave than another one, which Argo CD does not wait for.

    Argo CD ships no health check for these kinds and goes on to the next wave as soon as the job is made: what
    evaluates a model starts before it is trained. Install a health check, or start the second job otherwise.
    """
    if cluster.gitops == "flux":
        return
    first: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row.fact):
        namespace, wave, _ = row.fact
        earlier = first.setdefault(namespace, row)
        if earlier.fact[1] < wave:
            message = f"wave {wave} does not wait for the end of `{earlier.fact[2]}` in wave {earlier.fact[1]}"
            yield Fault(row, f"{message}: Argo CD has no health check for it", ((earlier, "the earlier wave"),))
