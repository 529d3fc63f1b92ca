"""What a merge does to one object: it starts, stops, stays or changes, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from jobgen.diff.immutability import Rejection, find_rejections
from jobgen.diff.operator_behavior import Effect, JobState, Outcome, predict_outcome, worst
from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.argocd_annotations import SYNC_OPTIONS, is_training_job, split_annotation
from jobgen.k8s.compare import FieldChange, FieldPath, compare_objects, narrow_change
from jobgen.k8s.kueue import can_be_queued, get_kueue_queue, is_suspended
from jobgen.k8s.objects import Manifest, as_mapping, as_text, get_path
from jobgen.k8s.resources import ResourceTotals, sum_resources
from jobgen.model.data import Data
from jobgen.model.path import Named, pointer
from jobgen.pipeline.environment import Rendered
from jobgen.render.runs import SOURCE_ANNOTATION

Happening = Literal["added", "removed", "changed", "unchanged"]

_FLUX = "kustomize.toolkit.fluxcd.io/"
# Kinds of Kubernetes itself, whose ways are known.
_WELL_KNOWN = ("Job", "JobSet", "CronJob")


class FieldImpact(NamedTuple):
    """A field that changed, and what comes of it."""

    change: FieldChange
    outcome: Outcome


class Impact(NamedTuple):
    """What happens to one object; `stops` if pods that may be running are deleted."""

    happening: Happening
    old: Rendered | None
    new: Rendered | None
    before: ResourceTotals
    after: ResourceTotals
    outcome: Outcome
    fields: tuple[FieldImpact, ...] = ()
    stops: bool = False

    @property
    def made(self) -> Rendered:
        """The object as it is now, or as it was last."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def moved(self) -> bool:
        """Whether another object takes the place of the old one."""
        return self.old is not None and self.new is not None and self.old.identity[1:] != self.new.identity[1:]


def added(side: Snapshot, made: Rendered) -> Impact:
    """An object that was not there before."""
    manifest = side.manifest(made)
    said = Outcome(Effect.IN_PLACE, "the object is created")
    if _runs(manifest):
        said = Outcome(
            Effect.NEW_RUN, "the job waits until it is resumed" if is_suspended(manifest) else "the job starts"
        )
    return Impact("added", None, made, ResourceTotals(), sum_resources(manifest), said)


def removed(side: Snapshot, made: Rendered) -> Impact:
    """An object that is not there any more."""
    manifest = side.manifest(made)
    kept = _kept(manifest)
    stops = _runs(manifest) and not kept and not _waits(manifest)
    if kept:
        said = Outcome(Effect.NO_EFFECT, f"{kept}, so it stays in the cluster as it is")
    elif stops:
        said = Outcome(Effect.STOPS_RUNNING, "the object is deleted, and its pods with it")
    else:
        said = Outcome(Effect.IN_PLACE, "the object is deleted")
    return Impact("removed", made, None, sum_resources(manifest), ResourceTotals(), said, stops=stops)


def changed(old: Snapshot, new: Snapshot, before: Rendered, after: Rendered) -> Impact:
    """An object that both sides have."""
    then, now = old.manifest(before), new.manifest(after)
    size = sum_resources(now)
    same = before.object == after.object
    found = [] if same else list(compare_objects(_wherever(before.object), _wherever(after.object)))
    if not found:
        said = Outcome(Effect.IN_PLACE, "nothing changed")
        return Impact("unchanged", before, after, size, size, said)
    blank = Impact("changed", before, after, sum_resources(then), size, Outcome(Effect.IN_PLACE, ""))
    if blank.moved or _another_operator(then, now):
        return _replaced(blank, then, now, found)
    refused = find_rejections(new.schema(after), before.object, after.object)
    fields = tuple(FieldImpact(narrow_change(change), _verdict(change, then, now, refused)) for change in found)
    total = worst(field.outcome for field in fields)
    stops = total.effect in (Effect.STOPS_RUNNING, Effect.RESTART) and _runs(then) and not _waits(then)
    return blank._replace(fields=fields, outcome=total, stops=stops)


def _wherever(made: Data) -> Data:
    """The object without the path of its file: a job that is moved is the job that it was."""
    metadata = as_mapping(made.get("metadata"))
    notes = get_path(metadata, "annotations")
    if not isinstance(notes, dict) or SOURCE_ANNOTATION not in notes:
        return made
    kept = {key: value for key, value in notes.items() if key != SOURCE_ANNOTATION}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**made, "metadata": {**rest, "annotations": kept} if kept else rest}


def _replaced(blank: Impact, then: Manifest, now: Manifest, found: list[FieldChange]) -> Impact:
    """Another name, namespace or kind is another object, and all that changed holds for it."""
    assert blank.old is not None
    kept = _kept(then)
    fate = f"{kept}, so `{blank.old.identity}` stays beside it" if kept else f"`{blank.old.identity}` is deleted"
    effect = Effect.NEW_RUN if _runs(now) else Effect.IN_PLACE
    fields = tuple(FieldImpact(narrow_change(change), Outcome(effect, "the new object has it")) for change in found)
    stops = _runs(then) and not kept and not _waits(then)
    return blank._replace(fields=fields, outcome=Outcome(effect, f"a new object is created; {fate}"), stops=stops)


def _another_operator(then: Manifest, now: Manifest) -> bool:
    operators = {manifest.kind.operator for manifest in (then, now) if manifest.kind}
    return len(operators) > 1


def _verdict(change: FieldChange, then: Manifest, now: Manifest, refused: list[Rejection]) -> Outcome:
    said = next((refusal for refusal in refused if _overlap(refusal.path, change.path)), None)
    found = Outcome(Effect.REJECTED, f"its CRD says: {said.message}") if said else _by_law(change, then, now)
    options = split_annotation(now, SYNC_OPTIONS)
    if now.cluster.gitops in ("argocd", "") and {"Force=true", "Replace=true"} <= set(options):
        return Outcome(Effect.RESTART, "Argo CD deletes the object and creates it again (`Force=true,Replace=true`)")
    forced = as_text(now.annotations.get(_FLUX + "force")).lower() == "enabled"
    if found.effect is Effect.REJECTED and forced and now.cluster.gitops in ("flux", ""):
        return Outcome(Effect.RESTART, "Flux deletes the object and creates it again where an update is refused")
    return found


def _by_law(change: FieldChange, then: Manifest, now: Manifest) -> Outcome:
    waited, waits = is_suspended(then), is_suspended(now)
    queued = can_be_queued(now) and bool(get_kueue_queue(then) or get_kueue_queue(now))
    if waited != waits and _is_suspend(change, now):
        if waits:
            return Outcome(Effect.STOPS_RUNNING, "the job is suspended, and its pods are deleted")
        if queued:
            return Outcome(Effect.IN_PLACE, "Kueue decides when the job runs")
        return Outcome(Effect.NEW_RUN, "the job is resumed, and its pods are made")
    kind = now.kind
    state = JobState(
        kind.operator if kind else "unknown" if _is_foreign_job(now) else "-",
        now.kind_name,
        now.operator_version,
        # Kueue's webhook asks the new object. Else, whether a job waits now or waited till now, pods are made with what
        # is new; but a queued one may long have been admitted, whatever Git says.
        suspended=waits if change.path[:1] == ("metadata",) else (waited or waits) and not queued,
        queued=queued,
        elastic="elasticPolicy" in now.spec,
        both=change.op == "changed",
    )
    return worst(predict_outcome(place, state) for place in _places(change, now))


def _is_suspend(change: FieldChange, manifest: Manifest) -> bool:
    field = manifest.kind.fields.get("suspend") if manifest.kind else None
    return field is not None and _overlap(tuple(map(str, field.at)), change.path)


def _overlap(one: FieldPath, other: FieldPath) -> bool:
    """Whether one path leads to the other, or past it."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _places(change: FieldChange, manifest: Manifest) -> Iterator[str]:
    """The places of all that changed, as the laws call them; a role that comes or goes is a matter of replicas."""
    path = change.path
    roles = (
        tuple(map(str, manifest.kind.replicas_at)) if manifest.kind and manifest.kind.shape in ("map", "list") else ()
    )
    if roles and path[: len(roles)] == roles:
        inside = path[len(roles) + 1 :]
        path = ("role", *inside) if inside else ("role", "replicas")
        if not inside:
            yield "role/replicas"
            return
    whole = change.new if change.op == "added" else change.old if change.op == "removed" else None
    for steps in _leaves(whole, path):
        yield pointer("*" if isinstance(step, Named) else step for step in steps)[1:]


def _leaves(node: Data, path: FieldPath) -> Iterator[FieldPath]:
    if isinstance(node, dict) and node:
        for key, child in node.items():
            yield from _leaves(child, (*path, str(key)))
    else:
        yield path


def _runs(manifest: Manifest) -> bool:
    return is_training_job(manifest) or _is_foreign_job(manifest) or manifest.kind_name in ("Job", "JobSet")


def _is_foreign_job(manifest: Manifest) -> bool:
    """Whether it is a job by its name, of an operator that nothing is known of."""
    name = manifest.kind_name
    return manifest.kind is None and name.endswith("Job") and name not in _WELL_KNOWN


def _waits(manifest: Manifest) -> bool:
    """Whether nothing of it can be running; what a queue admits, runs whatever Git says of `suspend`."""
    return is_suspended(manifest) and get_kueue_queue(manifest) is None


def _kept(manifest: Manifest) -> str:
    """Why an object stays in the cluster when it is gone from Git, or nothing."""
    gitops = manifest.cluster.gitops
    if gitops == "kubectl":
        return "kubectl deletes nothing that Git no longer has"
    if gitops in ("argocd", "") and "Prune=false" in split_annotation(manifest, SYNC_OPTIONS):
        return "`Prune=false` keeps it"
    if gitops in ("flux", "") and as_text(manifest.annotations.get(_FLUX + "prune")).lower() == "disabled":
        return "`prune: disabled` keeps it"
    return ""


def queue_name(manifest: Manifest) -> str:
    """The queue that a job waits in: Kueue's, or that of a gang scheduler."""
    field = manifest.kind.fields.get("queue") if manifest.kind else None
    named = as_text(get_path(manifest.object, *map(str, field.at))) if field else ""
    return named or as_text(get_path(manifest.run_policy, "schedulingPolicy", "queue"))
