"""Migrate overlays: remove the fields that a TrainJob does not have, and patches of the old object."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.draft import BuiltRuntime, Draft, MigrationNote, Surroundings
from jobgen.features.convert.migrate.steps import LAYER_STEPS
from jobgen.spec.kinds import Kind

PatchName = tuple[str, int]


class PatchUse(NamedTuple):
    """The jobs that a patch applies to."""

    migrated: frozenset[str] = frozenset()
    split: frozenset[str] = frozenset()
    """The migrated jobs whose runtime has the workers, so that they have no roles."""
    others: frozenset[str] = frozenset()
    """The kinds of jobs that stay as they are."""


class LayerNote(NamedTuple):
    """What happens to a field of an overlay."""

    path: tuple[str | int, ...]
    note: MigrationNote


class LayerMigration(NamedTuple):
    """How overlays change: from one kind to another, for jobs of one framework."""

    source: Kind
    target: Kind
    framework: str
    version: str
    injected: frozenset[str]
    """Variables that the old operator sets."""


def migrate_overlay(
    spec: Fields,
    migration: LayerMigration,
    uses: Sequence[PatchUse],
    others: frozenset[str],
    notes: list[LayerNote],
) -> Fields:
    """The spec of an overlay document after the migration; `uses` has an entry for each of its patches.

    Jobs of `others`, kinds that stay, keep the fields that a TrainJob does not have: defaults become a patch for them.
    """
    new: Fields = copy.deepcopy(spec)
    patches: list[Fields] = []
    if "defaults" in new:
        block = new.pop("defaults")
        kept = strip_block(block, migration, ("defaults",), notes)
        if kept:
            new["defaults"] = kept
        removed = _subtract(block, kept)
        if removed and others:
            patches.append({"match": {"kinds": sorted(others)}, "merge": removed})
    for place, (patch, use) in enumerate(zip(new.pop("patches", ()), uses, strict=True)):
        patches += _migrate_patch(patch, use, migration, place, notes)
    if patches:
        new["patches"] = patches
    return {key: new[key] for key in (*(key for key in spec if key in new), *(key for key in new if key not in spec))}


def _subtract(block: Fields, kept: Fields) -> Fields:
    """The fields of a block that were not kept."""
    left: Fields = {}
    for key, value in block.items():
        if key not in kept:
            left[key] = value
        elif isinstance(value, dict) and isinstance(kept[key], dict) and (below := _subtract(value, kept[key])):
            left[key] = below
    return left


def strip_block(
    block: Fields, migration: LayerMigration, path: tuple[str | int, ...], notes: list[LayerNote]
) -> Fields:
    """The fields of a block that a TrainJob has; the runtimes have the others."""
    runtime = BuiltRuntime({}, (), migration.injected, False, False, (), "of each job")
    surroundings = Surroundings(target_version=migration.version, runtime=runtime)
    draft = Draft(
        copy.deepcopy(block), "", migration.framework, migration.source, migration.target, surroundings=surroundings
    )
    for step in LAYER_STEPS:
        step(draft)
    for note in draft.notes:
        reason = "it is in patches of the runtimes now" if note.change == "moved" else note.reason
        notes.append(LayerNote((*path, *note.field), note._replace(reason=reason)))
    roles = draft.spec.get("roles")
    if isinstance(roles, dict):
        kept = {name: role for name, role in roles.items() if role or not (block.get("roles") or {}).get(name)}
        draft.spec["roles"] = kept
        if not kept:
            del draft.spec["roles"]
    return draft.spec


def _migrate_patch(
    patch: Fields, use: PatchUse, migration: LayerMigration, place: int, notes: list[LayerNote]
) -> Iterator[Fields]:
    """The patches that replace a patch: one for other kinds, and one for TrainJobs."""
    if not use.migrated or _stays(patch, use, migration):
        yield patch
        return
    if use.others:
        yield {**patch, "match": {**patch.get("match", {}), "kinds": sorted(use.others)}}
    path: tuple[str | int, ...] = ("patches", place)
    new = {key: value for key, value in patch.items() if key not in ("manifest", "jsonPatch", "merge")}
    if "merge" in patch:
        kept = strip_block(patch["merge"], migration, (*path, "merge"), notes)
        if kept:
            new["merge"] = kept
    for key in ("manifest", "jsonPatch"):
        if key in patch:
            reason = f"it patches a {migration.source.name}; its effect is in patches of the runtimes and TrainJobs now"
            notes.append(LayerNote((*path, key), MigrationNote((key,), "moved", reason)))
    if "merge" not in new:
        return
    match = dict(new.get("match", {}))
    if use.others:
        match["kinds"] = [migration.target.name]
    elif "kinds" in match:
        kinds = match["kinds"]
        names = [migration.target.name if kind == migration.source.name else kind for kind in kinds]
        match["kinds"] = list(dict.fromkeys(names))
    new = {**new, **({"match": match} if match or "match" in new else {})}
    yield from _split_roles(new, use) if use.split and "roles" in new["merge"] else (new,)


def _stays(patch: Fields, use: PatchUse, migration: LayerMigration) -> bool:
    """Return True if a patch applies to TrainJobs as it is."""
    if "merge" not in patch or {"manifest", "jsonPatch"} & patch.keys() or (use.split and "roles" in patch["merge"]):
        return False
    names_kind = migration.source.name in patch.get("match", {}).get("kinds", ())
    return not names_kind and strip_block(patch["merge"], migration, (), []) == patch["merge"]


def _split_roles(patch: Fields, use: PatchUse) -> Iterator[Fields]:
    """The patches without roles for jobs that have none: their only node is the master."""
    common = {key: value for key, value in patch["merge"].items() if key != "roles"}
    master = (patch["merge"]["roles"] or {}).get("master") or {}
    if common:
        yield {**patch, "merge": common}
    for names, merge in ((use.migrated - use.split, {"roles": patch["merge"]["roles"]}), (use.split, master)):
        if names and merge:
            yield {**patch, "match": {**patch.get("match", {}), "names": sorted(names)}, "merge": merge}


def set_platform(cluster: Mapping[str, Any], old: str, new: str, *, is_mixed: bool) -> Fields:
    """The properties of a cluster with the new platform, and also with the old one if some jobs stay there.

    The new platform takes the place of the old one: jobs of platforms that come before it stay there.
    """
    kept = {key: value for key, value in cluster.items() if key not in ("platform", "platforms")}
    first = (cluster["platform"],) if cluster.get("platform") else ()
    named = [str(name) for name in (*first, *(cluster.get("platforms") or ()))] or [old]
    place = named.index(old) if old in named else 0
    rest = [name for name in named[place:] if is_mixed or name != old]
    names = list(dict.fromkeys([*named[:place], new, *rest]))
    return {"platforms": names, **kept} if len(names) > 1 else {"platform": new, **kept}
