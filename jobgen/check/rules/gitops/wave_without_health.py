"""Waves that do not wait for each other."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, Violation, rule
from jobgen.k8s.argocd_annotations import SYNC_WAVE, is_hook, is_training_job
from jobgen.k8s.objects import Manifest, as_text
from jobgen.spec.overlay import Cluster

_PATH = ("metadata", "annotations", SYNC_WAVE)


def collect(manifest: Manifest) -> Iterator[Fact]:
    """The wave and the name of a training job."""
    annotations = manifest.metadata.get("annotations")
    wave = as_text(annotations.get(SYNC_WAVE)) if isinstance(annotations, dict) else ""
    if wave and is_training_job(manifest) and not is_hook(manifest) and wave.removeprefix("-").isdecimal():
        yield Fact((manifest.namespace, int(wave), manifest.name), _PATH)


@rule("fleet", WARNING, collect=collect)
def wave_without_health(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """A training job in a later sync wave than another one, which Argo CD does not wait for.

    Argo CD ships no health check for these kinds and goes on to the next wave as soon as the job is made: what
    evaluates a model starts before it is trained. Install a health check, or start the second job otherwise.
    """
    if cluster.gitops == "flux":
        return
    first: dict[str, Fact] = {}
    for row in sorted(rows, key=lambda row: row.value):
        namespace, wave, _ = row.value
        earlier = first.setdefault(namespace, row)
        if earlier.value[1] < wave:
            message = f"wave {wave} does not wait for the end of `{earlier.value[2]}` in wave {earlier.value[1]}"
            yield Violation(row, f"{message}: Argo CD has no health check for it", ((earlier, "the earlier wave"),))
