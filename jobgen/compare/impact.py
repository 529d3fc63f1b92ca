"""What a merge does to one object: whether it starts, stops or changes, and the outcome of each changed field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from jobgen.check.schema.cel_types import Conversion, compile_conversion
from jobgen.compare.defaults import drop_defaults, format_steps
from jobgen.compare.immutable_fields import Edit, find_immutable_field
from jobgen.compare.operator_behavior import Effect, JobState, Manner, Outcome, predict_outcome, select_worst
from jobgen.compare.snapshot import Snapshot
from jobgen.k8s.argocd_annotations import HELM_HOOK, HOOK, SYNC_OPTIONS, is_training_job, split_annotation
from jobgen.k8s.compare import FieldChange, FieldPath, compare_objects, narrow_change
from jobgen.k8s.kinds import parse_release
from jobgen.k8s.kueue import DOMAIN, can_be_queued, find_suspend_path, get_kueue_queue, is_suspended
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import ResourceTotals
from jobgen.k8s.workloads import find_workload
from jobgen.model.budget import Budget, BudgetExceededError, Work
from jobgen.model.data import Plain
from jobgen.model.limits import MALFORMED_DATA_ERRORS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem
from jobgen.pipeline.object_summary import ObjectSummary
from jobgen.rendering.environment import Rendered
from jobgen.rendering.runs import SOURCE_ANNOTATION

_EACH = "*"


class Rejection(NamedTuple):
    """A node whose change the API server rejects, and the message of the rule."""

    path: FieldPath
    message: str


_Steps: TypeAlias = tuple[str | tuple[str], ...]
"""Where a node of a schema is; a step is a property, `*`, or the key field of list items."""


class _RuleSite(NamedTuple):
    """A node of a schema that has transition rules."""

    steps: _Steps
    rules: tuple[dict[str, Any], ...]
    shape: Conversion


def find_rejections(schema: bytes, old: Plain, new: Plain) -> list[Rejection]:
    """Evaluate the transition rules of a schema; a node that only one side has is not compared."""
    sites, budget = _find_rule_sites(schema)
    budget.reset()
    found: list[Rejection] = []
    try:
        for site in sites:
            for path, before, after in _select_nodes(site.steps, old, new, ()):
                if before is after or before is None or after is None:
                    continue
                values = site.shape(before), site.shape(after)
                for rule in site.rules:
                    if not _passes(rule["rule"], *values):
                        failed = f"failed rule: `{' '.join(rule['rule'].split())}`"
                        found.append(Rejection(path, str(rule.get("message") or failed)))
    except (BudgetExceededError, *MALFORMED_DATA_ERRORS):
        # `jobgen lint` reports what is wrong with the schema.
        return []
    return found


def _passes(rule: str, old: object, new: object) -> bool:
    if " ".join(rule.split()) == "self == oldSelf":
        return bool(old == new)
    # Most rules are `self == oldSelf`; only the others need the CEL library.
    from jobgen.check.cel import Expression, available, compile_cel

    expression = None if available() else compile_cel(rule, ("self", "oldSelf"))
    return not isinstance(expression, Expression) or expression({"self": new, "oldSelf": old}) is not False


def _select_nodes(steps: _Steps, old: Plain, new: Plain, path: FieldPath) -> Iterator[tuple[FieldPath, Plain, Plain]]:
    """The pairs of nodes at a path of the schema that both sides have."""
    if not steps:
        yield path, old, new
        return
    step, *rest = steps
    if isinstance(step, tuple):
        before, after = _index_items(step[0], old), _index_items(step[0], new)
        for key in before.keys() & after.keys():
            yield from _select_nodes(tuple(rest), before[key], after[key], (*path, NamedItem(step[0], key)))
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in (old.keys() & new.keys()) if step == _EACH else (step,):
            yield from _select_nodes(tuple(rest), old.get(key), new.get(key), (*path, str(key)))


def _index_items(key: str, items: Plain) -> dict[str, Plain]:
    found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {str(item[key]): item for item in found if key in item}


@lru_cache(maxsize=64)
def _find_rule_sites(schema: bytes) -> tuple[tuple[_RuleSite, ...], Budget]:
    budget = Budget(200_000, Work.COMPARISON)  # the largest CRDs have about ten thousand nodes
    if b"oldSelf" not in schema:
        return (), budget
    try:
        root = json.loads(schema)
        return tuple(_walk_schema(root, root, (), (), budget)), budget
    except (BudgetExceededError, *MALFORMED_DATA_ERRORS):
        return (), budget


def _walk_schema(node: Any, root: Any, steps: _Steps, refs: tuple[str, ...], budget: Budget) -> Iterator[_RuleSite]:
    if not isinstance(node, dict):
        return
    budget.spend()
    known = node.get("x-kubernetes-validations", ())
    rules = tuple(rule for rule in known if "oldSelf" in rule.get("rule", "") and not rule.get("optionalOldSelf"))
    if rules:
        yield _RuleSite(steps, rules, compile_conversion(node, root, budget))
    ref = node.get("$ref", "").rpartition("/")[2]
    if ref and ref not in refs:
        # Recursive types are not followed; a CRD cannot have one.
        yield from _walk_schema(root["$defs"][ref], root, steps, (*refs, ref), budget)
    for variant in node.get("anyOf", ())[:1]:
        yield from _walk_schema(variant, root, steps, refs, budget)
    for name, child in node.get("properties", {}).items():
        yield from _walk_schema(child, root, (*steps, name), refs, budget)
    yield from _walk_schema(node.get("additionalProperties"), root, (*steps, _EACH), refs, budget)
    keys = node.get("x-kubernetes-list-map-keys")
    if keys:
        # Items of other lists have no identity, so the API server does not compare them.
        yield from _walk_schema(node.get("items"), root, (*steps, (keys[0],)), refs, budget)


Action = Literal["added", "removed", "changed", "unchanged"]

_NOTHING_CHANGED = Outcome(Effect.IN_PLACE, "nothing changed")
_HOOKS = (HOOK, HELM_HOOK)
_FLUX = "kustomize.toolkit.fluxcd.io/"
_ELASTIC, _MIN_PARALLELISM = DOMAIN + "elastic-job", DOMAIN + "job-min-parallelism"


class FieldImpact(NamedTuple):
    """A changed field and its outcome."""

    change: FieldChange
    outcome: Outcome


class Impact(NamedTuple):
    """What happens to one object; `stops` if pods that may be running are deleted."""

    action: Action
    old: Rendered | None
    new: Rendered | None
    before: ResourceTotals
    after: ResourceTotals
    outcome: Outcome
    fields: tuple[FieldImpact, ...] = ()
    stops: bool = False

    @property
    def current(self) -> Rendered:
        """The new object, or the old one if it is removed."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def is_replaced(self) -> bool:
        """Return True if an object with another identity replaces the old one."""
        return self.old is not None and self.new is not None and self.old.identity[1:] != self.new.identity[1:]

    @property
    def effects(self) -> tuple[Effect, ...]:
        """All effects, the most severe first.

        A change that is rejected has no other effect, and pods that are created again have all new values.
        """
        worst = self.outcome.effect
        if self.is_replaced and self.stops:
            return (Effect.STOPS_RUNNING, worst)
        if worst not in (Effect.NO_EFFECT, Effect.IN_PLACE):
            return (worst,)
        outcomes = (field.outcome for field in self.fields)
        found = {each.effect for each in outcomes if each.manner is not Manner.IGNORED} or {worst}
        return tuple(effect for effect in reversed(Effect) if effect in found)


def assess_addition(new: Snapshot, rendered: Rendered) -> Impact:
    """The impact of an object that only the new side has."""
    manifest = new.manifest(rendered)
    outcome = Outcome(Effect.IN_PLACE, "the object is created")
    workload = find_workload(manifest.group, manifest.kind_name)
    if workload is not None and workload.scheduled:
        outcome = Outcome(Effect.IN_PLACE, "the object is created; its runs start on schedule")
    elif runs_pods(manifest):
        reason = "the job is created suspended and waits" if is_suspended(manifest) else "the job starts"
        outcome = Outcome(Effect.NEW_RUN, reason)
    return Impact("added", None, rendered, ResourceTotals(), new.sum_resources(rendered), outcome)


def assess_removal(old: Snapshot, rendered: Rendered) -> Impact:
    """The impact of an object that only the old side has."""
    manifest = old.manifest(rendered)
    kept = _why_kept(manifest)
    stops = not kept and _may_be_running(manifest)
    if kept:
        outcome = Outcome(Effect.NO_EFFECT, f"{kept}, so the object stays in the cluster", Manner.IGNORED)
    elif stops:
        outcome = Outcome(Effect.STOPS_RUNNING, "the object and its pods are deleted")
    else:
        outcome = Outcome(Effect.IN_PLACE, "the object is deleted")
    return Impact("removed", rendered, None, old.sum_resources(rendered), ResourceTotals(), outcome, stops=stops)


def assess_change(old: Snapshot, new: Snapshot, before: Rendered, after: Rendered) -> Impact:
    """The impact of an object that both sides have."""
    summary = before.object
    if before is after and isinstance(summary, ObjectSummary):
        return Impact("unchanged", before, after, summary.totals, summary.totals, _NOTHING_CHANGED)
    new_manifest, resources = new.manifest(after), new.sum_resources(after)
    is_same = before.object == after.object
    old_manifest = new_manifest if is_same else old.manifest(before)
    changes = [] if is_same else list(compare_objects(_without_source(before.object), _without_source(after.object)))
    completed = [side.complete(one) for side, one in ((old, before), (new, after))] if changes else []
    if changes and before.identity.kind == after.identity.kind:
        changes = list(drop_defaults(changes, (new_manifest.group, new_manifest.kind_name), *completed))
    if not changes:
        # Its claims may request other devices than before.
        previous = old.sum_resources(before) if new_manifest.claims_devices else resources
        return Impact("unchanged", before, after, previous, resources, _NOTHING_CHANGED)
    impact = Impact("changed", before, after, old.sum_resources(before), resources, Outcome(Effect.IN_PLACE, ""))
    operators = {manifest.kind.operator for manifest in (old_manifest, new_manifest) if manifest.kind}
    if impact.is_replaced or len(operators) > 1:
        return _assess_replacement(impact, old_manifest, new_manifest, changes)
    rejections = find_rejections(new.schema(after), *completed)
    fields = tuple(
        FieldImpact(narrow_change(change), _assess_field(change, old_manifest, new_manifest, rejections))
        for change in changes
    )
    # Of equal effects, that of the spec counts: it says what happens to pods.
    ordered = sorted(fields, key=lambda field: field.change.path[:1] == ("metadata",))
    worst = select_worst(field.outcome for field in ordered)
    stops = worst.effect in (Effect.STOPS_RUNNING, Effect.RESTART) and _may_be_running(old_manifest)
    return impact._replace(fields=fields, outcome=worst, stops=stops)


def _without_source(node: Plain) -> Plain:
    """The object without the path of its file, because moving a job to another file does not change it."""
    metadata = node.get("metadata") if isinstance(node, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not (isinstance(node, dict) and isinstance(metadata, dict) and isinstance(annotations, dict)):
        return node
    if SOURCE_ANNOTATION not in annotations:
        return node
    kept = {key: value for key, value in annotations.items() if key != SOURCE_ANNOTATION}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**node, "metadata": {**rest, "annotations": kept} if kept else rest}


def _assess_replacement(
    impact: Impact, old_manifest: Manifest, new_manifest: Manifest, changes: list[FieldChange]
) -> Impact:
    """Another name, namespace or kind is another object, which has all changed fields from the start."""
    kept = _why_kept(old_manifest)
    old_object = f"{kept}, so the old one stays beside it" if kept else "the old one is deleted"
    effect = Effect.NEW_RUN if runs_pods(new_manifest) else Effect.IN_PLACE
    outcome = Outcome(effect, "the new object is created with this value")
    return impact._replace(
        fields=tuple(FieldImpact(narrow_change(change), outcome) for change in changes),
        outcome=Outcome(effect, f"a new object is created; {old_object}"),
        stops=not kept and _may_be_running(old_manifest),
    )


def _assess_field(
    change: FieldChange, old_manifest: Manifest, new_manifest: Manifest, rejections: list[Rejection]
) -> Outcome:
    """The outcome of a changed field: by the rules of the CRD, else by the operator; forced replacement overrides."""
    rejection = next((found for found in rejections if _overlaps(found.path, change.path)), None)
    if rejection:
        outcome = Outcome(Effect.REJECTED, f"a rule of the CRD rejects it: {rejection.message}")
    else:
        outcome = _assess_by_operator(change, old_manifest, new_manifest)
    gitops = new_manifest.cluster.gitops
    if any(name in new_manifest.annotations and name in old_manifest.annotations for name in _HOOKS):
        return Outcome(Effect.IN_PLACE, "a hook is deleted and created again each time that it runs")
    if gitops in ("argocd", "") and {"Force=true", "Replace=true"} <= set(split_annotation(new_manifest, SYNC_OPTIONS)):
        return Outcome(Effect.RESTART, "Argo CD deletes the object and creates it again (`Force=true,Replace=true`)")
    is_forced = as_text(new_manifest.annotations.get(_FLUX + "force")).lower() == "enabled"
    if outcome.effect is Effect.REJECTED and is_forced and gitops in ("flux", ""):
        return Outcome(Effect.RESTART, "the update is rejected, so Flux deletes the object and creates it again")
    return outcome


def _assess_by_operator(change: FieldChange, old_manifest: Manifest, new_manifest: Manifest) -> Outcome:
    was_suspended, suspended = is_suspended(old_manifest), is_suspended(new_manifest)
    queued = can_be_queued(new_manifest) and bool(get_kueue_queue(old_manifest) or get_kueue_queue(new_manifest))
    suspend_path = find_suspend_path(new_manifest)
    if was_suspended != suspended and suspend_path and _overlaps(suspend_path, change.path):
        if suspended:
            return Outcome(Effect.STOPS_RUNNING, "the job is suspended and its pods are deleted")
        if queued:
            return Outcome(Effect.IN_PLACE, "Kueue decides when the job runs")
        return Outcome(Effect.NEW_RUN, "the job is resumed and its pods are created")
    operator = _get_operator(new_manifest)
    state = JobState(
        operator,
        new_manifest.kind_name,
        new_manifest.cluster.find_version(operator),
        new_manifest.cluster.find_version("kueue"),
        # Kueue's webhook reads the new object for changes of metadata. For other fields, a job that is or was suspended
        # has no pods yet. A queued job may have been admitted, whatever `suspend` says in Git.
        suspended=suspended if change.path[:1] == ("metadata",) else (was_suspended or suspended) and not queued,
        queued=queued,
        # Pods can be added to the running job: by its operator, or by Kueue.
        elastic="elasticPolicy" in new_manifest.spec or as_text(new_manifest.annotations.get(_ELASTIC)) == "true",
        on_both_sides=change.op == "changed",
        partial=_MIN_PARALLELISM in old_manifest.annotations,
        upgrade=as_text(get_path(new_manifest.spec, "upgradeStrategy", "type")),
    )
    release, gates = parse_release(new_manifest.cluster.kubernetes), new_manifest.cluster.feature_gates
    objects = old_manifest.object, new_manifest.object
    edit = Edit("", change.op, *objects, state.suspended, release, queued, frozenset(gates or ()))
    outcomes: list[Outcome] = []
    for path, old, new in _list_edits(change, old_manifest, new_manifest):
        edit = edit._replace(path=path, values=(old, new))
        found = find_immutable_field(new_manifest.group, new_manifest.kind_name, edit)
        outcomes.append(Outcome(Effect.REJECTED, found.reason) if found else predict_outcome(path, state))
    return select_worst(outcomes)


def _get_operator(manifest: Manifest) -> str:
    """The operator of an object, as the tables of behavior name it; `-` if it is not a job."""
    workload = find_workload(manifest.group, manifest.kind_name)
    if workload is not None:
        return workload.operator
    return manifest.kind.operator if manifest.kind else "unknown" if _is_unknown_job(manifest) else "-"


def _overlaps(one: FieldPath, other: FieldPath) -> bool:
    """Return True if one path is a prefix of the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _list_edits(
    change: FieldChange, old_manifest: Manifest, new_manifest: Manifest
) -> Iterator[tuple[str, Plain, Plain]]:
    """All fields that a change adds, removes or changes: the path as the tables have it, the old and the new value."""
    path, roles = change.path, _find_roles(new_manifest)
    if roles and path[: len(roles)] == roles:
        inside = path[len(roles) + 1 :]
        if not inside:
            # Adding or removing a role changes its replicas.
            yield "role/replicas", change.old, change.new
            return
        path = ("role", *inside)
    elif path[-2:-1] == ("workerGroupSpecs",):
        mark = "-" if change.op == "removed" else "+" if _is_appended(path[:-1], old_manifest, new_manifest) else "*"
        yield f"{format_steps(path[:-1])}/{mark}", change.old, change.new
        return
    value = change.new if change.op == "added" else change.old if change.op == "removed" else None
    for steps, leaf in _list_leaves(value, path):
        old = leaf if change.op == "removed" else None
        new = leaf if change.op == "added" else None
        values = (change.old, change.new) if change.op == "changed" else (old, new)
        yield format_steps(steps), *values


def _find_roles(manifest: Manifest) -> FieldPath:
    """The path of the roles, which the tables call `role`; empty for kinds whose own paths the tables have."""
    kind, workload = manifest.kind, find_workload(manifest.group, manifest.kind_name)
    has_own_paths = workload is not None and workload.operator != "tensorstack"
    return tuple(map(str, kind.replicas_at)) if kind and kind.shape in ("map", "list") and not has_own_paths else ()


def _is_appended(path: FieldPath, old_manifest: Manifest, new_manifest: Manifest) -> bool:
    """Return True if all items that a list of worker groups gets are after those that it had."""
    old, new = (
        [as_mapping(item).get("groupName") for item in as_list(get_path(manifest.object, *map(str, path)))]
        for manifest in (old_manifest, new_manifest)
    )
    return new[: len(old)] == old


def _list_leaves(node: Plain, path: FieldPath) -> Iterator[tuple[FieldPath, Plain]]:
    if isinstance(node, dict) and node:
        for key, child in node.items():
            yield from _list_leaves(child, (*path, str(key)))
    else:
        yield path, node


def runs_pods(manifest: Manifest) -> bool:
    """Return True if an object is a job, or another workload with pods."""
    workload = find_workload(manifest.group, manifest.kind_name)
    return is_training_job(manifest) or _is_unknown_job(manifest) or workload is not None


def _is_unknown_job(manifest: Manifest) -> bool:
    """Return True if the kind is named like a job, but no kind file describes it."""
    name = manifest.kind_name
    is_known = manifest.kind is not None or find_workload(manifest.group, name) is not None
    return name.endswith("Job") and not name.endswith("CronJob") and not is_known


def _may_be_running(manifest: Manifest) -> bool:
    """Return True if pods of the object may be running; Kueue resumes suspended jobs of its queues in the cluster."""
    is_held = is_suspended(manifest) and get_kueue_queue(manifest) is None
    return runs_pods(manifest) and not is_held


def _why_kept(manifest: Manifest) -> str:
    """Why an object stays in the cluster after it is removed from Git; empty if it is deleted."""
    gitops = manifest.cluster.gitops
    if gitops == "kubectl":
        return "kubectl does not delete objects that are removed from Git"
    if gitops in ("argocd", "") and "Prune=false" in split_annotation(manifest, SYNC_OPTIONS):
        return "`Prune=false` keeps it"
    if gitops in ("flux", "") and as_text(manifest.annotations.get(_FLUX + "prune")).lower() == "disabled":
        return "`prune: disabled` keeps it"
    return ""
