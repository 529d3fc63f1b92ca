"""Migrate `platform` of a job and `platforms` of its roles: the new platform takes the place of the old one."""

from __future__ import annotations

from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.migrate.draft import Draft


def take_platforms(draft: Draft) -> Fields:
    """Remove the names of platforms, and the roles that do not exist on the old platform; return what was removed."""
    taken: Fields = {"platform": draft.spec.pop("platform", None), "roles": {}}
    roles = draft.spec.get("roles")
    for name, role in list(roles.items()) if isinstance(roles, dict) else ():
        if isinstance(role, dict) and isinstance(role.get("platforms"), list):
            taken["roles"][name] = role
            kept = {key: value for key, value in role.items() if key != "platforms"}
            draft.spec["roles"][name] = kept
            if draft.source.platform not in role["platforms"]:
                del draft.spec["roles"][name]
    if roles == {} and taken["roles"]:
        del draft.spec["roles"]
    return taken


def restore_platforms(draft: Draft, taken: Fields) -> None:
    """Add what was removed, with the new platform instead of the old one."""
    old, new = draft.source.platform, draft.target.platform
    if taken["platform"] is not None:
        draft.spec["platform"] = new
        draft.note(("platform",), "changed", f"the job is for `{new}` now")
    elif preferred := draft.surroundings.preferred:
        draft.spec["platform"] = new
        draft.note(("platform",), "changed", f"the job is for `{new}` now; without it, the cluster uses `{preferred}`")
    for name, role in taken["roles"].items():
        roles: dict[str, Any] = draft.spec.get("roles") or {}
        if old not in role["platforms"]:
            draft.spec["roles"] = {**roles, name: roles.get(name, role)}
            continue
        if isinstance(roles.get(name), dict):
            platforms = list(dict.fromkeys(new if platform == old else platform for platform in role["platforms"]))
            draft.spec["roles"] = {**roles, name: {**roles[name], "platforms": platforms}}
        draft.note(("roles", name, "platforms"), "changed", f"`{new}` takes the place of `{old}`")
