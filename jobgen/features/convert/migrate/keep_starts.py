"""Keep how often training starts: on a node, and again after a failure. Other operators have other defaults."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping

from jobgen.features.convert.importing.comments import KeyPath
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.compare_jobs import PROCESSES, Rendered, compare_jobs
from jobgen.features.convert.migrate.draft import Draft, put_at
from jobgen.features.convert.operators.compare import PodDifference
from jobgen.spec.replicas import get_at

_POLICY: KeyPath = ("restartPolicy",)
_LIMIT: KeyPath = ("runPolicy", "backoffLimit")
_TRIES = 6
"""How often a Job of Kubernetes retries by default."""

_DELETES = "with `OnFailure`, a Job deletes the failed pod, and its logs"
_EFFECTS = {
    **dict.fromkeys(("jobset", "kubernetes"), _DELETES),
    "volcano": "with `OnFailure`, pods never fail, and the policy for failed pods has no effect",
}
"""What a policy that other platforms need does where pods are those of a Job, or a policy restarts them."""

Edits = Mapping[KeyPath, object]
Render = Callable[[Fields], Rendered | None]
"""Returns what a spec renders to; None if it cannot be rendered."""


def keep_starts(draft: Draft, before: Rendered, render: Render) -> bool:
    """Write what the target needs to start as many processes as before, and to retry as before; True if it changes.

    What users wrote stays.
    """
    if draft.target.platform == "ray" or draft.surroundings.runtime:
        return False
    is_changed = False
    for is_meant, list_edits in ((_is_restart, _list_restarts), (_is_process, _list_processes)):
        after = render(draft.spec)
        differing = [each for each in compare_jobs(before, after) if is_meant(each)] if after else []
        for edits in list_edits(draft, differing) if differing else ():
            spec = copy.deepcopy(draft.spec)
            for path, value in edits.items():
                put_at(spec, path, value)
            after = render(spec)
            if after is not None and not any(map(is_meant, compare_jobs(before, after))):
                draft.spec, is_changed = spec, True
                _note(draft, edits)
                break
    return is_changed


def let_pods_fail(draft: Draft, before: Rendered, render: Render) -> bool:
    """Write `Never` where the operator starts the job again, and `OnFailure` does harm; True if it changes."""
    effect = _EFFECTS.get(draft.target.platform)
    if effect is None or _EFFECTS.get(draft.source.platform) == effect:
        return False
    spec, paths = copy.deepcopy(draft.spec), [*_find_restarted(draft.spec)]
    for path in paths:
        put_at(spec, path, "Never")
    after = render(spec) if paths else None
    if after is None or not _find_other_starts(before, after) <= _find_other_starts(before, render(draft.spec)):
        return False
    draft.spec = spec
    # That another policy was written first is not of interest.
    draft.notes = [note for note in draft.notes if note.change != "changed" or note.field not in paths]
    for path in paths:
        draft.note(path, "changed", f"it is `Never` now: {effect}")
    return True


def _find_other_starts(before: Rendered, after: Rendered | None) -> frozenset[tuple[str, str]]:
    """Return the pods that start again where they did not before, or the other way around."""
    found = compare_jobs(before, after) if after else ()
    return frozenset((each.where, each.field) for each in found if _is_restart(each))


def _find_restarted(spec: Fields) -> Iterator[KeyPath]:
    """Yield the paths of the policies with which failed containers start again."""
    roles = spec.get("roles")
    holders = [((), spec), *((("roles", name), role) for name, role in (roles or {}).items())]
    for path, holder in holders:
        if isinstance(holder, dict) and holder.get("restartPolicy") == "OnFailure":
            yield (*path, "restartPolicy")


def _note(draft: Draft, edits: Edits) -> None:
    for path, value in edits.items():
        starts = "does not start" if value in (0, "Never") else "starts"
        reason = f"it is `{value}` now, so that a failed {draft.target.name} {starts} again, as before"
        if path not in (_POLICY, _LIMIT):
            reason = f"it is `{value}` now, so that {draft.target.name} starts as many processes as before"
        draft.note(path, "changed", reason)


def _is_restart(difference: PodDifference) -> bool:
    return difference.kind in ("restart", "retries") and difference.training


def _is_process(difference: PodDifference) -> bool:
    return difference.kind == "processes" or difference.field == f"env {PROCESSES}"


def _list_restarts(draft: Draft, differing: list[PodDifference]) -> Iterator[Edits]:
    """Yield what can be set of the policy and the limit, the smallest edits first."""
    has_policy = any("restartPolicy" in holder for _, holder in draft.holders())
    is_written = any(note.field[-1] == "restartPolicy" and note.change == "changed" for note in draft.notes)
    policies = () if has_policy and not is_written else ("OnFailure", "Never")
    is_own = get_at(draft.spec, _LIMIT) is not None and _LIMIT not in draft.surroundings.absorbed
    # A kind can have the whole policy as one field; that it has the limit is proven by rendering it.
    has_limit = is_own or draft.target.fields.keys().isdisjoint((".".join(_LIMIT), _LIMIT[0]))
    wanted = [each.before for each in differing if each.kind == "retries"]
    limits = () if has_limit else tuple(dict.fromkeys((*wanted, _TRIES, 0)))
    yield from ({_LIMIT: limit} for limit in limits)
    if not any(path and "restartPolicy" in holder for path, holder in draft.holders()):
        yield from ({_POLICY: policy} for policy in policies)
        yield from ({_POLICY: policy, _LIMIT: limit} for policy in policies for limit in limits)


def _list_processes(draft: Draft, differing: list[PodDifference]) -> Iterator[Edits]:
    """Yield the number of processes of before, in the types that kinds have for it, or as the variable of torchrun."""
    path: KeyPath = (draft.framework, "nprocPerNode")
    number = str(differing[0].before)
    if ".".join(path) in draft.target.fields and get_at(draft.spec, path) is None and number:
        yield {path: number}
        yield from ({path: int(number)},) if number.isdigit() else ()
    # A job with one pod has no variables of its operator, but torchrun reads this one all the same.
    env = draft.spec.get("env") or {}
    if draft.target.template is None and number.isdigit() and isinstance(env, dict) and PROCESSES not in env:
        yield {("env", PROCESSES): number}
