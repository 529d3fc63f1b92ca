"""Objects that wait for what Argo CD applies later."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.argocd_annotations import HOOK, SYNC_WAVE, split_annotation
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

_PHASES = {"PreSync": 0, "": 1, "Sync": 1, "PostSync": 2}
_NEEDED = frozenset(("ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"))
# Argo CD waits until their pods are ready, or have ended, before it goes on.
_AWAITED = {("", "Pod"), ("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "StatefulSet"), ("batch", "Job")}


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield when Argo CD applies an object, and the names of what its pods need."""
    key = (manifest.group, manifest.kind_name)
    is_needed = not manifest.group and manifest.kind_name in _NEEDED
    if not is_needed and key not in _AWAITED:
        return
    phases = [word for word in split_annotation(manifest, HOOK) if word in _PHASES]
    wave = as_text(manifest.annotations.get(SYNC_WAVE))
    number = int(wave) if wave.removeprefix("-").isdecimal() and len(wave) < 10 else 0
    step = (min((_PHASES[word] for word in phases), default=1), number)
    own = (manifest.namespace, manifest.kind_name, manifest.name)
    path = ("metadata", "annotations", HOOK if phases else SYNC_WAVE)
    if is_needed:
        yield Fact((step, own, ()), ("metadata", "name"))
    elif step < (1, 0) or (step[0] == 1 and wave):
        # Imported late: few objects are hooks.
        from jobgen.check.cluster.references import list_references

        found = {(each.kind, as_text(each.node)) for each in list_references(manifest) if each.kind in _NEEDED}
        yield Fact((step, own, tuple(sorted(found))), path)


@rule("fleet", WARNING, collect=collect)
def needs_later_object(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A hook, or an object in an early sync wave, whose pods need an object that Argo CD applies later.

    Argo CD applies the next phase or wave when everything in the one before is healthy. A `PreSync` Job that uses a
    ConfigMap of the same application never starts, because the ConfigMap is applied after the Job has ended: the first
    sync of the application waits forever.

    Give both the same hook, and the needed object an earlier wave.
    """
    if cluster.gitops == "flux":
        return
    needed = {fact.value[1]: fact for fact in facts if fact.value[1][1] in _NEEDED}
    for fact in (each for each in facts if each.value[2]):
        step, (namespace, _, name), uses = fact.value
        for kind, used in uses:
            other = needed.get((namespace, kind, used))
            if other is not None and other.value[0] > step:
                when = "phase" if other.value[0][0] > step[0] else "sync wave"
                message = f"`{name}` needs {kind} `{used}`, which Argo CD applies in a later {when}, so the first"
                advice = "apply it in the same phase, in an earlier wave"
                related = ((other, f"the {kind}"),)
                yield FactViolation(fact, f"{message} sync waits forever; {advice}", related)
                break
