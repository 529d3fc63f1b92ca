"""How Argo CD orders, waits for and forces a sync."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, Violation, rule
from jobgen.k8s.argocd_annotations import (
    DELETE_POLICY,
    DOMAIN,
    HELM_HOOK,
    HOOK,
    SYNC_OPTIONS,
    SYNC_WAVE,
    is_hook,
    is_training_job,
    lacks_health_check,
    split_annotation,
)
from jobgen.k8s.kueue import QUEUE_LABEL, can_be_queued, find_suspend, get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import find_ttl_path
from jobgen.model.finding import FixStep
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import find_closest
from jobgen.spec.overlay import Cluster

_KNOWN = {
    HOOK: ["PreSync", "Sync", "Skip", "PostSync", "SyncFail", "PreDelete", "PostDelete"],
    DELETE_POLICY: ["HookSucceeded", "HookFailed", "BeforeHookCreation"],
    SYNC_OPTIONS: [
        *("Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm", "Replace=true", "Force=true"),
        *("Validate=false", "SkipDryRunOnMissingResource=true", "PruneLast=true", "ServerSideApply=true"),
        *("ServerSideApply=false", "ApplyOutOfSyncOnly=true", "ClientSideApplyMigration=false"),
    ],
}
# Values that state the default.
_DEFAULTS = frozenset(
    """Prune=true Delete=true Replace=false Force=false Validate=true PruneLast=false ApplyOutOfSyncOnly=false
    SkipDryRunOnMissingResource=false ClientSideApplyMigration=true""".split()
)


@rule("manifest", WARNING, fields=("annotations",))
def argocd_typo(manifest: Manifest) -> Iterator[Violation]:
    """A misspelled hook, delete policy or sync option of Argo CD.

    Argo CD ignores values that it does not know: a job that was meant to be kept is pruned, or a hook becomes an
    ordinary object.

    Correct the value. Case matters: `Prune=false`.

    When to turn it off: a word that a plugin of your Argo CD understands can be accepted on its line; Argo CD
    itself ignores it.
    """
    # Imported late: most names are right.
    from jobgen.model.meant import is_same_name

    annotations = manifest.annotations
    for key in annotations:
        if not key.startswith(DOMAIN) or key not in _KNOWN:
            continue
        for word in split_annotation(manifest, key):
            meant = find_closest(word, _KNOWN[key]) if word not in _KNOWN[key] and word not in _DEFAULTS else ""
            if meant:
                node = annotations[key]
                message = Sentence("Argo CD ignores the unknown value `{}`; did you mean `{}`?", word, meant)
                fix_steps = (FixStep("set", At(annotations, key), as_text(node).replace(word, meant, 1)),)
                yield Violation(At(annotations, key), message, fix_steps=fix_steps, safe=is_same_name(word, meant))


@rule("manifest", WARNING, fields=("annotations",))
def bad_sync_wave(manifest: Manifest) -> Iterator[Violation]:
    """A sync wave of Argo CD that is not an integer.

    Argo CD ignores the value without an error and uses wave 0.

    Write an integer as a string: `"-1"`.

    When to turn it off: never for Argo CD, which silently sorts the object into wave 0. If Helm computes the
    number, check its rendered output.
    """
    annotations = manifest.annotations
    if SYNC_WAVE not in annotations:
        return
    wave = as_text(annotations[SYNC_WAVE])
    digits = wave[1:] if wave[:1] in ("-", "+") else wave
    if not (digits.isascii() and digits.isdigit()):
        yield Violation(
            At(annotations, SYNC_WAVE),
            Sentence("`{}` is not an integer, so Argo CD uses wave 0; write an integer in quotes", wave),
        )


_PATH = ("metadata", "annotations", SYNC_WAVE)


def collect_waves(manifest: Manifest) -> Iterator[Fact]:
    """Yield the sync wave and the name of a training job."""
    annotations = manifest.metadata.get("annotations")
    wave = as_text(annotations.get(SYNC_WAVE)) if isinstance(annotations, dict) else ""
    if wave and lacks_health_check(manifest) and not is_hook(manifest) and wave.removeprefix("-").isdecimal():
        yield Fact((manifest.namespace, int(wave), manifest.name), _PATH)


@rule("fleet", WARNING, collect=collect_waves)
def wave_without_health(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A training job in a later sync wave than another training job, which Argo CD does not wait for.

    Argo CD ships no health check for these kinds and continues with the next wave as soon as the first job is created.
    A job that evaluates a model starts before the model is trained.

    Install a health check, or start the second job in another way.

    When to turn it off: with the health checks of `jobgen gitops argocd` installed, waves wait for jobs; then turn
    the rule off in that environment.
    """
    if cluster.gitops == "flux":
        return
    first: dict[str, Fact] = {}
    for fact in sorted(facts, key=lambda fact: fact.value):
        namespace, wave, _ = fact.value
        earlier = first.setdefault(namespace, fact)
        if earlier.value[1] < wave:
            message = Sentence(
                "wave {} does not wait until `{}` in wave {} ends", wave, earlier.value[2], earlier.value[1]
            )
            message += ", because Argo CD has no health check for it; install one"
            yield FactViolation(fact, message, ((earlier, "the earlier wave"),))


_HOOKS_BEFORE_OBJECTS = ("PreSync", "Sync")


@rule("manifest", WARNING, fields=("annotations",))
def hook_without_health(manifest: Manifest) -> Iterator[Violation]:
    """A training job as an Argo CD hook, although Argo CD cannot tell when the job ends.

    Argo CD ships no health check for these kinds and treats such a hook as done at once. The sync continues while the
    job has hardly started, and `HookSucceeded` deletes the job immediately.

    Install a health check, or do not use a hook.

    When to turn it off: once `jobgen gitops argocd --only health` is installed in the cluster, set the rule to
    `off` for the environments of that cluster.
    """
    annotations = manifest.annotations
    if HOOK not in annotations or not lacks_health_check(manifest):
        return
    kind = manifest.kind_name
    awaited = [word for word in split_annotation(manifest, HOOK) if word in _HOOKS_BEFORE_OBJECTS]
    if awaited:
        message = Sentence(
            "Argo CD has no health check for {}, so `{}` does not wait until the job ends", kind, awaited[0]
        )
        yield Violation(At(annotations, HOOK), Sentence("{}; install one or do not use a hook", message))
    if "HookSucceeded" in split_annotation(manifest, DELETE_POLICY):
        message = Sentence("Argo CD has no health check for {}, so `HookSucceeded` deletes the job immediately", kind)
        yield Violation(At(annotations, DELETE_POLICY), Sentence("{}; install one or remove it", message))


_HOOKS = ("PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete")
_KUSTOMIZATION = ("kustomize.toolkit.fluxcd.io", "Kustomization")
_GROUPS = {
    **dict.fromkeys(("CronJob", "Job"), "batch"),
    **dict.fromkeys(("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"), "apps"),
}
_FIELD = "ttlSecondsAfterFinished"
# Argo CD reads the state of its hooks from events; a Job that is gone within seconds can be missed.
_SHORT = 10


@rule("manifest", WARNING, fields=("annotations", "healthChecks", "dependsOn"))
def endless_sync(manifest: Manifest) -> Iterator[Violation]:
    """A sync of Argo CD or Flux that waits forever: for a hook that never ends, or a check that never succeeds.

    Argo CD waits until a hook has ended. A Job with `suspend: true` gets no pods. A Job in a queue of Kueue is
    suspended until Kueue admits it. A Job with `ttlSecondsAfterFinished: 0` is deleted before Argo CD reads its result.
    Meanwhile, the application cannot be synced again. Flux waits for the objects in `healthChecks` of a Kustomization;
    one with the API group of another kind is never found. A Kustomization that depends on itself is never applied.

    Remove the field or the hook. To clean up, use `argocd.argoproj.io/hook-delete-policy: HookSucceeded`.

    When to turn it off: a hook that an operator resumes by hand, as an approval step, waits on purpose: suppress it
    on the field and describe who continues it.
    """
    if (manifest.group, manifest.kind_name) == _KUSTOMIZATION:
        yield from _check_kustomization(manifest)
    phase = _find_phase(manifest)
    if not phase or (manifest.group, manifest.kind_name) not in (("batch", "Job"), ("jobset.x-k8s.io", "JobSet")):
        return
    yield from _check_suspension(manifest, phase)
    path = find_ttl_path(manifest.group, manifest.kind_name, "")
    ttl = find_at(manifest.object, *path)
    seconds = as_integer(ttl.node) if ttl is not None else None
    if seconds is not None and seconds < _SHORT:
        effect = "deletes the Job before Argo CD reads its result, so the sync waits forever"
        advice = "remove it; use `argocd.argoproj.io/hook-delete-policy: HookSucceeded`"
        yield Violation(ttl, Sentence("`{}: {}` on a `{}` hook {}; {}", _FIELD, seconds, phase, effect, advice))


def _check_kustomization(manifest: Manifest) -> Iterator[Violation]:
    """Check what Flux waits for before and after it applies a Kustomization."""
    for check in map(as_mapping, as_list(manifest.spec.get("healthChecks"))):
        version, kind = as_text(check.get("apiVersion")), as_text(check.get("kind"))
        wanted = _GROUPS.get(kind, "")
        if version and wanted and version.rpartition("/")[0] != wanted:
            message = Sentence("no {} has `apiVersion: {}`, so the health check times out at every sync", kind, version)
            yield Violation(At(check, "apiVersion"), Sentence("{}; write `{}/v1`", message, wanted))
    for other in map(as_mapping, as_list(manifest.spec.get("dependsOn"))):
        place = as_text(other.get("namespace")) or manifest.namespace
        if manifest.name and (as_text(other.get("name")), place) == (manifest.name, manifest.namespace):
            message = Sentence("the Kustomization depends on itself, so Flux never applies it")
            yield Violation(At(other, "name"), Sentence("{}; remove it from `dependsOn`", message))


def _find_phase(manifest: Manifest) -> str:
    """Return the phase of a hook that Argo CD waits for; empty if the object is not such a hook."""
    phases = [word for word in split_annotation(manifest, HOOK) if word in _HOOKS]
    if not phases and manifest.cluster.gitops == "argocd":
        phases = [word for word in split_annotation(manifest, HELM_HOOK) if word not in ("test", "crd-install")]
    return phases[0] if phases else ""


def _check_suspension(manifest: Manifest, phase: str) -> Iterator[Violation]:
    suspend = find_suspend(manifest)
    if suspend is not None and suspend.node is True:
        message = Sentence(
            "a suspended Job gets no pods, so the `{}` hook never ends and the sync waits forever", phase
        )
        yield Violation(suspend, Sentence("{}; remove `suspend`, or the hook annotation", message))
    elif (queue := as_text(get_kueue_queue(manifest))) and can_be_queued(manifest):
        labels = as_mapping(manifest.metadata.get("labels"))
        place = find_at(manifest.annotations, HOOK, is_key=True) or find_at(labels, QUEUE_LABEL, is_key=True)
        message = Sentence(
            "Kueue suspends the Job until queue `{}` has quota, and the `{}` hook waits for it", queue, phase
        )
        yield Violation(place, Sentence("{}: no sync can run until then; remove the hook annotation", message))


_FLUX = "kustomize.toolkit.fluxcd.io/force"
# Kinds whose pod templates cannot be changed: without `Force=true`, Argo CD does not delete the object.
_IMMUTABLE = (
    ("batch", "Job"),
    ("batch.volcano.sh", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
    ("trainer.kubeflow.org", "TrainJob"),
)


@rule("job", WARNING, fields=("annotations",))
def forced_sync(manifest: Manifest) -> Iterator[Violation]:
    """A training job that is deleted and recreated when Git is applied.

    With `Force=true` and `Replace=true`, Argo CD deletes and restarts the job at each sync of its app, even if only
    another object changed, which is an error. With one of them, it does so at some changes, and with `force`, Flux does
    so at each change that the API server rejects. With only `Replace=true`, the sync of a changed Job, JobSet, TrainJob
    or Job of Volcano fails, because the template of its pods is immutable.

    Remove the options, and give a changed job a new name.

    When to turn it off: for jobs without state, for which a restart is the purpose of each sync, such as a smoke
    test, accept it on the annotation.
    """
    annotations = manifest.annotations
    if not is_training_job(manifest):
        return
    if SYNC_OPTIONS in annotations:
        forced = [word for word in split_annotation(manifest, SYNC_OPTIONS) if word in ("Force=true", "Replace=true")]
        if len(forced) == 2:
            message = Sentence(
                "each sync of the app deletes and restarts the running job; remove `Force=true` and `Replace=true`"
            )
            yield Violation(At(annotations, SYNC_OPTIONS), message, severity=ERROR)
        elif forced:
            effect = "can stop the running job when the app is synced"
            if forced == ["Replace=true"] and (manifest.group, manifest.kind_name) in _IMMUTABLE:
                effect = "makes each sync of a changed job fail, because the template of its pods is immutable"
            message = Sentence("`{}` {}; remove it", forced[0], effect)
            yield Violation(At(annotations, SYNC_OPTIONS), message)
    if as_text(annotations.get(_FLUX)).lower() == "enabled":
        message = Sentence("with `{}`, Flux deletes the running job if a change is rejected; remove it", _FLUX)
        yield Violation(At(annotations, _FLUX), message)


_PHASES = {"PreSync": 0, "": 1, "Sync": 1, "PostSync": 2}
_NEEDED = frozenset(("ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"))
# Argo CD waits until their pods are ready, or have ended, before it goes on.
_WITH_HEALTH = {
    ("", "Pod"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
}


def collect_needs(manifest: Manifest) -> Iterator[Fact]:
    """Yield when Argo CD applies an object, and the names of what its pods need."""
    key = (manifest.group, manifest.kind_name)
    is_needed = not manifest.group and manifest.kind_name in _NEEDED
    if not is_needed and key not in _WITH_HEALTH:
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

        found = {(each.kind, each.name) for each in list_references(manifest) if each.kind in _NEEDED}
        yield Fact((step, own, tuple(sorted(found))), path)


@rule("fleet", WARNING, collect=collect_needs)
def needs_later_object(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A hook, or an object in an early sync wave, whose pods need an object that Argo CD applies later.

    Argo CD applies the next phase or wave when everything in the one before is healthy. A `PreSync` Job that uses a
    ConfigMap of the same application never starts, because the ConfigMap is applied after the Job has ended: the first
    sync of the application waits forever.

    Give both the same hook, and the needed object an earlier wave.

    When to turn it off: if the needed object exists from an earlier installation or is created by another
    Application, suppress the finding on the reference.
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
                message = Sentence(
                    "`{}` needs {} `{}`, which Argo CD applies in a later {}, so the first", name, kind, used, when
                )
                advice = "apply it in the same phase, in an earlier wave"
                related = ((other, f"the {kind}"),)
                yield FactViolation(fact, Sentence("{} sync waits forever; {}", message, advice), related)
                break
