"""Training jobs in sync waves."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.argocd_annotations import SYNC_WAVE, is_hook, lacks_health_check
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

_PATH = ("metadata", "annotations", SYNC_WAVE)


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the sync wave and the name of a training job."""
    annotations = manifest.metadata.get("annotations")
    wave = as_text(annotations.get(SYNC_WAVE)) if isinstance(annotations, dict) else ""
    if wave and lacks_health_check(manifest) and not is_hook(manifest) and wave.removeprefix("-").isdecimal():
        yield Fact((manifest.namespace, int(wave), manifest.name), _PATH)


@rule("fleet", WARNING, collect=collect)
def wave_without_health(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A training job in a later sync wave than another training job, which Argo CD does not wait for.

    Argo CD ships no health check for these kinds and continues with the next wave as soon as the first job is created.
    A job that evaluates a model starts before the model is trained.

    Install a health check, or start the second job in another way.
    """
    if cluster.gitops == "flux":
        return
    first: dict[str, Fact] = {}
    for fact in sorted(facts, key=lambda fact: fact.value):
        namespace, wave, _ = fact.value
        earlier = first.setdefault(namespace, fact)
        if earlier.value[1] < wave:
            message = f"wave {wave} does not wait until `{earlier.value[2]}` in wave {earlier.value[1]} ends"
            message += ", because Argo CD has no health check for it; install one"
            yield FactViolation(fact, message, ((earlier, "the earlier wave"),))
