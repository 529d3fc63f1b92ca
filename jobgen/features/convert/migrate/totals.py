"""The declared number of pods: the roles that it stands for, and whether it can stand for the new roles."""

from __future__ import annotations

from typing import Any

from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.draft import Draft
from jobgen.model.data import value_of
from jobgen.rendering.expand import spread_total
from jobgen.spec.kinds import Framework, Kind


def spread_replicas(draft: Draft) -> None:
    """Write the roles of a spec that says only how many pods it has, as the source renders them."""
    total = draft.spec.get("replicas")
    if draft.spec.get("roles") or type(total) is not int or total < 2:
        return
    roles = _list_roles(total, draft.source.frameworks[draft.framework])
    if roles:
        draft.spec["roles"] = roles
        draft.is_spread = True


def fold_roles(draft: Draft) -> None:
    """Remove the roles that were written for a number of pods, if the target renders that number to the same pods."""
    if not draft.is_spread:
        return
    notes = [note for note in draft.notes if note.field[0] != "roles" or note.change == "check"]
    roles: dict[str, Any] = draft.spec.get("roles") or {}
    if all(set(role or {}) <= {"replicas"} for role in roles.values()) and _is_implied(draft, roles):
        total, runtime = draft.spec.get("replicas"), draft.surroundings.runtime
        draft.spec["replicas"] = count_replicas(draft)
        draft.spec.pop("roles", None)
        draft.notes[:] = notes
        if runtime is not None and draft.spec["replicas"] != total:
            draft.note(("replicas",), "moved", f"the other pods are in the runtime `{runtime.name}` now")
        return
    draft.note(("replicas",), "changed", f"its {_join(roles)} are written out now")


def _join(roles: Fields) -> str:
    return " and ".join(f"`{name}`" for name in roles)


def _is_implied(draft: Draft, roles: Fields) -> bool:
    """Return True if a number of pods alone gives the target these roles, or others with the same template."""
    framework, kind = draft.target.frameworks[draft.framework], draft.target
    counts = {name: (role or {}).get("replicas", default_count(kind, name)) for name, role in roles.items()}
    implied = _list_roles(count_replicas(draft), framework)
    if counts == {name: (role or {}).get("replicas", default_count(kind, name)) for name, role in implied.items()}:
        return True
    joined = {framework.single, *(name for name, role in kind.roles.items() if role.joins == framework.single)}
    return bool(implied) and (kind.shape == "one" or counts.keys() <= joined)


def _list_roles(total: int, framework: Framework) -> dict[str, Fields]:
    spread = spread_total(total, framework)
    return {str(name): dict(role.replica) if role else {} for name, role in spread.items()}


def default_count(kind: Kind, name: str) -> Any:
    """Return the number of pods of a role that does not say it."""
    role = kind.find_role(name)
    return value_of(role.replicas) if role else 1


def count_replicas(draft: Draft) -> int:
    """Return the number of pods of all roles."""
    framework = draft.target.frameworks[draft.framework]
    own = draft.spec.get("roles") or {framework.single: {}}
    names = [*own, *(name for name in framework.roles if draft.target.roles[name].required and name not in own)]
    # A role with a place of its own, such as the head of a Ray cluster, does not count.
    names = [name for name in names if not ((role := draft.target.find_role(name)) and role.at)]
    counts = [(own.get(name) or {}).get("replicas", default_count(draft.target, name)) for name in names]
    return sum(count for count in counts if isinstance(count, int))


def update_total(draft: Draft) -> None:
    """Update the declared total of replicas if the roles have changed; without roles, it stays what it is."""
    declared = draft.spec.get("replicas")
    if declared is None or not (draft.spec.get("roles") or declared == 1):
        return
    total = count_replicas(draft)
    if total != declared:
        draft.spec["replicas"] = total
        draft.note(("replicas",), "changed", f"the roles have {total} replicas now")
