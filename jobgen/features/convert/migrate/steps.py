"""The migration steps, in order: each changes the draft and notes what it did. Overlays take some of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from jobgen.features.convert.importing.comments import KeyPath
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.draft import (
    BuiltRuntime,
    Change,
    Draft,
    MigrationNote,
    Surroundings,
    iter_leaves,
    pop_path,
    put_at,
)
from jobgen.features.convert.migrate.roles import (
    convert_restart_policies,
    drop_replica_fields,
    enter_ray,
    fill_required_roles,
    join_roles,
    leave_ray,
    rename_roles,
    split_nodes,
    write_launch_commands,
    write_required_roles,
)
from jobgen.features.convert.migrate.runtime import VOLUME_FIELDS
from jobgen.features.convert.migrate.totals import fold_roles, update_total
from jobgen.model.data import untraced, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.pod import SHM
from jobgen.repo.shipped import read_data
from jobgen.spec.kinds import FieldMapping, Kind
from jobgen.spec.normalize import NOT_RENDERED, is_job_field
from jobgen.spec.replicas import get_at

_SOURCE_PARTS = (("container", "env"), ("pod", "volumes"), ("container", "volumeMounts"))
# Where each field of the spec goes in a pod template.
_TEMPLATE_PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "serviceAccount": (("pod", "serviceAccountName"),),
    "volumes": (("pod", "volumes"), ("container", "volumeMounts")),
    "shm": (("pod", "volumes"), ("container", "volumeMounts")),
    "secrets": _SOURCE_PARTS,
    "configs": _SOURCE_PARTS,
    "initContainers": (("pod", "initContainers"),),
    "sidecars": (("pod", "initContainers"),),
    "securityContext": (("pod", "securityContext"), ("container", "securityContext")),
    "labels": (("metadata", "labels"),),
    "annotations": (("metadata", "annotations"),),
    **{name: (("pod", name),) for name in ("nodeSelector", "tolerations", "affinity", "imagePullSecrets")},
    **{name: (("container", name),) for name in ("imagePullPolicy", "workingDir", "envFrom", "ports")},
    **{name: (("container", name),) for name in ("image", "command", "args", "env", "resources")},
}
_NOT_IN_TEMPLATES = frozenset(("roles", "manifest", "podTemplate", "containerName", "replicas", "restartPolicy"))


def convert_mxnet_to_pytorch(draft: Draft) -> None:
    """Convert an MXNet job to the skeleton of a PyTorch job: workers become nodes, other roles are lost."""
    spec = draft.spec
    draft.note(("framework",), "changed", "MXNet is archived, and its operator was removed in 1.9; it is `pytorch` now")
    spec["framework"] = draft.framework = "pytorch"
    if "mxnet" in spec:
        draft.drop(("mxnet",), "PyTorch has no such setting")
    if "ports" in spec:
        draft.drop(("ports",), "the operator adds the port of torch.distributed itself")
    own: dict[str, Any] = spec.pop("roles", None) or {}
    worker = dict(own.get("worker") or {})
    for name in own:
        if name != "worker":
            draft.note(("roles", name), "lost", "workers exchange gradients directly, so there is no such role")
    count = worker.pop("replicas", None) or 1
    for field, value in worker.items():
        if field == "ports":
            draft.note(("roles", "worker", field), "lost", "the operator adds the port of torch.distributed itself")
        else:
            draft.move_to_job(("roles", "worker"), field, value)
    if count > 1:
        draft.spec["roles"] = {"master": {}, "worker": {"replicas": count - 1}}
        draft.note(("roles", "worker"), "changed", "the first worker is the master")
    elif own:
        draft.note(("roles", "worker"), "moved", "the only node is the master")
    for field, reason in _list_meanings("kubeflow MXJob", "PyTorch"):
        draft.note(tuple(field.split(".")), "check", reason)


def _rename_fields(draft: Draft) -> None:
    """Rename fields that have another name on the target platform."""
    for source, target in _find("moves", draft.source.platform).get(draft.target.platform, {}).items():
        old, new = tuple(source.split(".")), tuple(target.split("."))
        value = get_at(draft.spec, old)
        if value is None or get_at(draft.spec, new) is not None:
            continue
        pop_path(draft.spec, old)
        put_at(draft.spec, new, value)
        draft.note(old, "moved", f"it is called `{target}` now")
        if new[:2] == ("pytorch", "elastic") and get_at(draft.spec, ("pytorch", "elastic", "enabled")) is None:
            put_at(draft.spec, ("pytorch", "elastic", "enabled"), True)


def _replace_nulls(draft: Draft) -> None:
    """Replace nulls by the default of the source operator, because the target operator may have another one."""
    for path, holder in list(draft.holders()):
        role = draft.source.roles.get(path[-1]) if path else None
        if role and "replicas" in holder and holder["replicas"] is None:
            holder["replicas"] = role.omitted
            reason = f"the default of {draft.source.name} is {role.omitted}; it is written out now"
            draft.note((*path, "replicas"), "changed", reason)
        if "restartPolicy" in holder and holder["restartPolicy"] is None:
            policy = (role.restart_default if role else "") or draft.source.restart_default
            del holder["restartPolicy"]
            reason = f"{draft.source.name} has no documented default, so it is not set"
            if policy:
                holder["restartPolicy"] = policy
                reason = f"the default of {draft.source.name} is `{policy}`; it is written out now"
            draft.note((*path, "restartPolicy"), "changed", reason)


def _replace_manager(draft: Draft) -> None:
    """Replace the name of the controller in `managedBy`."""
    path = ("runPolicy", "managedBy")
    value = get_at(draft.spec, path)
    managers = read_data("migrations.yaml")["managers"]
    own = managers.get(draft.target.platform, value)
    if value in managers.values() and value != own:
        put_at(draft.spec, path, own)
        draft.note(path, "changed", f"the controller is `{own}` now")


def _rename_main_container(draft: Draft) -> None:
    """Use the target's name of the main container in pod templates."""
    old, new = str(value_of(draft.source.container)), str(value_of(draft.target.container))
    for path, holder in list(draft.holders()):
        name = holder.get("containerName")
        if name is not None and draft.target.requirements.container and name != new:
            draft.drop((*path, "containerName"), f"the main container of a {draft.target.name} must be `{new}`")
            _rename_container(draft, (*path, "podTemplate"), str(name), new)
        elif old != new and "{job}" not in (old, new) and "containerName" not in draft.spec:
            _rename_container(draft, (*path, "podTemplate"), old, new)


def _rename_container(draft: Draft, path: KeyPath, old: str, new: str) -> None:
    containers = get_at(draft.spec, (*path, "spec", "containers"))
    for container in containers if isinstance(containers, list) else ():
        if isinstance(container, dict) and container.get("name") == old:
            container["name"] = new
            draft.note((*path, "spec", "containers"), "changed", f"the main container is `{new}` now, not `{old}`")


def _drop_pod_fields(draft: Draft) -> None:
    """Drop pod fields that a kind without pod templates does not support; its runtime has to set them."""
    if draft.target.template is None:
        return
    for path, holder in list(draft.holders()):
        for field in list(holder):
            if is_job_field(field) or field in _NOT_IN_TEMPLATES:
                continue
            if not all(_is_supported(draft, *part) for part in _TEMPLATE_PARTS.get(field, (("", ""),))):
                draft.drop((*path, field))
        if not _is_supported(draft, "container", "envFrom"):
            _drop_sources(draft, path, holder)
        if "containerName" in holder:
            draft.drop((*path, "containerName"))
        if isinstance(holder.get("podTemplate"), dict):
            _drop_template_fields(draft, (*path, "podTemplate"), holder["podTemplate"])


def _drop_sources(draft: Draft, path: KeyPath, holder: Fields) -> None:
    """Drop Secrets and ConfigMaps all of whose keys are variables."""
    for field in ("secrets", "configs"):
        for name, source in list((holder.get(field) or {}).items()):
            if isinstance(source, dict) and source.get("env") is True:
                variables = [(key,) for key in ("env", "prefix") if key in source]
                for below in variables if "mountPath" in source else [()]:
                    draft.drop((*path, field, name, *below))


def _is_supported(draft: Draft, part: str, name: str) -> bool:
    template = draft.target.template
    assert template is not None, "checked by _drop_pod_fields"
    version = draft.surroundings.target_version
    shape = [each for each in template.shapes if each.versions.contains(version)][-1]
    if part == "metadata":
        return shape.metadata is not None
    return name in (shape.pod_fields if part == "pod" else {*template.container, *shape.container_fields})


def _drop_template_fields(draft: Draft, path: KeyPath, template: Fields) -> None:
    for key in list(template):
        spec = template[key]
        if key == "metadata" and _is_supported(draft, "metadata", key):
            continue
        if key != "spec" or not isinstance(spec, dict):
            draft.drop((*path, key))
            continue
        for field in list(spec):
            if field != "containers" and not _is_supported(draft, "pod", field):
                draft.drop((*path, key, field))
        if "containers" in spec and not _keep_container(draft, (*path, key), spec):
            draft.drop((*path, key, "containers"), "set it in the template of the runtime")


def _keep_container(draft: Draft, path: KeyPath, spec: Fields) -> bool:
    """Keep what the target supports of the main container if a runtime takes the rest; False if there is nothing."""
    containers = spec["containers"] if draft.surroundings.runtime and isinstance(spec["containers"], list) else []
    name = str(value_of(draft.target.container))
    main = next((each for each in containers if isinstance(each, dict) and each.get("name") == name), {})
    kept = {field: value for field, value in main.items() if _is_supported(draft, "container", field)}
    if not kept:
        return False
    if len(kept) + 1 < len(main) or len(containers) > 1:
        draft.drop((*path, "containers"))
    put_at(draft.spec, (*path, "containers"), [{"name": name, **kept}])
    return True


def _move_resources(draft: Draft) -> None:
    """Drop the resources of nodes that the runtime has."""
    runtime = draft.surroundings.runtime
    for path, holder in list(draft.holders()) if runtime and runtime.has_resources else ():
        if "resources" in holder:
            draft.drop((*path, "resources"))


def _move_volumes(draft: Draft) -> None:
    """Drop the volumes that the runtime has, with their mounts: its own containers mount them."""
    moved = draft.surroundings.runtime.volumes if draft.surroundings.runtime else frozenset[str]()
    for path, holder in list(draft.holders()) if moved else ():
        for field in (*((*path, "volumes", name) for name in sorted(moved)), *([(*path, SHM)] if SHM in moved else [])):
            if get_at(draft.spec, field) is not None:
                draft.drop(field)
        pod = get_at(holder, ("podTemplate", "spec")) or {}
        parts = [pod, *(each for each in pod.get("containers") or () if isinstance(each, dict))]
        for part, key in [(part, key) for part in parts for key in VOLUME_FIELDS if isinstance(part.get(key), list)]:
            kept = [each for each in part[key] if get_at(each, ("name",)) not in moved]
            if len(kept) < len(part[key]):
                part[key] = kept
                top = "volumes" if part is pod else "containers"
                draft.note((*path, "podTemplate", "spec", top), "moved", "what the runtime mounts is there now")


def _drop_job_fields(draft: Draft) -> None:
    """Drop fields of the job that the target kind does not support."""
    own = {
        key: value
        for key, value in draft.spec.items()
        if is_job_field(key) and key not in NOT_RENDERED and key != "framework"
    }
    for path, value in list(_list_job_fields(own, draft.target)):
        mapping = _find_mapping(path, draft.target)
        if value is None and mapping is not None:
            continue
        if value is None:
            pop_path(draft.spec, path)
            draft.note(path, "changed", f"{draft.target.name} has no default that it could delete")
            continue
        if mapping is None:
            draft.drop(path)
        elif not mapping.versions.contains(draft.surroundings.target_version):
            version = f"{draft.target.operator} {draft.surroundings.target_version}"
            draft.drop(path, f"{version} does not support it: it {mapping.versions}")
        elif mapping.values is not None and value not in mapping.values:
            draft.drop(path, f"{draft.target.name} supports {', '.join(f'`{name}`' for name in mapping.values)}")
        elif not _has_type(value, mapping.as_type, path):
            draft.drop(path)
    if draft.spec.get("queue") and draft.name and draft.source.platform != draft.target.platform:
        draft.note(("queue",), "check", "make sure that the other platform has a queue of this name")


def _list_job_fields(fields: Fields, kind: Kind, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """The fields of the spec, each at the depth at which the kind maps it."""
    for key, value in fields.items():
        here = (*path, key)
        is_split = ".".join(here) in kind.branches or _find_mapping(here, kind) is None
        if isinstance(value, dict) and value and is_split:
            yield from _list_job_fields(value, kind, here)
        else:
            yield here, value


def _find_mapping(path: KeyPath, kind: Kind) -> FieldMapping | None:
    """How a kind maps a field: by its own mapping, or by that of its parent."""
    own, parent = kind.fields.get(".".join(path)), kind.fields.get(".".join(path[:-1]))
    return own or (FieldMapping((*parent.at, path[-1])) if parent else None)


def _has_type(value: Any, as_type: str, path: KeyPath) -> bool:
    """Return True if a value has the type that the target kind requires."""
    if as_type == "int":
        # A variable of a sweep has the type of its values, which the members show.
        return str(value).isdigit() or "${{" in str(value)
    return path != ("priority",) or isinstance(value, str)


def _set_runtime(draft: Draft) -> None:
    """Name a runtime in a TrainJob whose framework has no default runtime."""
    path = (draft.framework, "runtime")
    if draft.surroundings.runtime:
        put_at(draft.spec, path, draft.surroundings.runtime.name)
        return
    if draft.source.shape == "one" != draft.target.shape and not any("image" in each for _, each in draft.holders()):
        draft.note(("image",), "check", "it came from the runtime; set it in the job")
    if draft.target.shape != "one" or get_at(draft.spec, path) is not None:
        return
    if ".".join(path) in draft.target.fields and not untraced(draft.target.frameworks[draft.framework].defaults):
        nearest = read_data("migrations.yaml")["runtimes"].get(draft.framework, "")
        put_at(draft.spec, path, nearest)
        reason = f"Trainer ships no runtime for plain {draft.framework}; `{nearest}` is the nearest: use your own"
        draft.note(path, "check", reason)


def _drop_manifest_patch(draft: Draft) -> None:
    """Drop the patch for the old custom resource, except its metadata."""
    patch = draft.spec.get("manifest")
    for path, _ in list(iter_leaves(patch)) if isinstance(patch, dict) else ():
        if path and path[0] != "metadata":
            reason = f"it patches a {draft.source.name}; write a new patch for {draft.target.name}"
            draft.drop(("manifest", *path), reason)


def _drop_reserved_variables(draft: Draft) -> None:
    """Drop variables that the target's operator rejects, and note those that it sets itself."""
    if draft.surroundings.runtime:
        _replace_variables(draft, draft.surroundings.runtime)
        return
    named = draft.target.requirements.runtimes.get(str(get_at(draft.spec, (draft.framework, "runtime")) or ""))
    default = get_at(untraced(draft.target.frameworks[draft.framework].defaults), (draft.framework, "runtime"))
    runtime = named or draft.target.requirements.runtimes.get(str(default or ""))
    rejected = draft.target.requirements.reserved.get(runtime.policy, ()) if runtime else ()
    set_by_operator = read_data("migrations.yaml")["variables"].get(draft.target.name, "").split()
    for path, holder in list(draft.holders()):
        for name in _list_names(holder.get("env")):
            if name in rejected:
                _drop_variable(draft, (*path, "env"), name)
            elif name in set_by_operator:
                draft.note((*path, "env", name), "check", "the operator sets this variable itself")


def _replace_variables(draft: Draft, runtime: BuiltRuntime) -> None:
    """Drop variables that the old operator has always overridden, and add those that hold the number of nodes."""
    for path, holder in list(draft.holders()):
        for name in _list_names(holder.get("env")):
            if name in runtime.injected:
                reason = "the operator has always overridden it, so the value had no effect"
                _drop_variable(draft, (*path, "env"), name, "changed", reason)
    env = draft.spec.get("env")
    for variable in runtime.env:
        if isinstance(env, list):
            env.append(dict(variable))
        else:
            put_at(draft.spec, ("env", variable["name"]), variable["value"])
        reason = "it holds the number of nodes; change it together with `replicas`"
        draft.note(("env", variable["name"]), "changed", reason)


def _list_names(env: Any) -> list[str]:
    names = list(env) if isinstance(env, dict) else [item.get("name") for item in env or ()]
    return [str(name) for name in names]


def _drop_variable(
    draft: Draft,
    path: KeyPath,
    name: str,
    change: Change = "lost",
    reason: str = "the operator sets this variable and rejects jobs that set it",
) -> None:
    env = get_at(draft.spec, path)
    if isinstance(env, list):
        put_at(draft.spec, path, [item for item in env if item.get("name") != name])
    else:
        pop_path(draft.spec, (*path, name))
    draft.note((*path, name), change, reason)


def _find(table: str, key: str) -> Mapping[str, Any]:
    """Return an entry of a table of `jobgen/data/migrations.yaml`."""
    found: Mapping[str, Any] = read_data("migrations.yaml")[table].get(key, {})
    return found


def _list_meanings(source: str, target: str) -> Iterable[tuple[str, str]]:
    found: Mapping[str, str] = _find("meanings", source).get(target, {})
    return found.items()


def _note_changed_meanings(draft: Draft) -> None:
    """Note what changes although the fields stay the same; a runtime has notes of its own."""
    if draft.surroundings.runtime:
        return
    names = (f"{draft.source.platform} {draft.source.name}", f"{draft.target.platform} {draft.target.name}")
    for field, reason in (*_list_meanings(*names), *_list_meanings("*", names[1])):
        draft.note(tuple(field.split(".")), "check", reason)


LAYER_STEPS: tuple[Callable[[Draft], None], ...] = (
    convert_restart_policies,
    _rename_main_container,
    _drop_pod_fields,
    _drop_job_fields,
    _drop_reserved_variables,
)
"""The steps for the fields of an overlay, which are merged with those of jobs."""

STEPS: tuple[Callable[[Draft], None], ...] = (
    write_launch_commands,
    _rename_fields,
    _replace_nulls,
    _replace_manager,
    drop_replica_fields,
    leave_ray,
    write_required_roles,
    split_nodes,
    fill_required_roles,
    rename_roles,
    join_roles,
    enter_ray,
    convert_restart_policies,
    _rename_main_container,
    _drop_pod_fields,
    _move_resources,
    _move_volumes,
    _drop_job_fields,
    _set_runtime,
    _drop_manifest_patch,
    _drop_reserved_variables,
    fold_roles,
    update_total,
    _note_changed_meanings,
)

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
    if isinstance(new.get("defaults"), list):
        entries = [
            each
            for place, entry in enumerate(new.pop("defaults"))
            for each in _migrate_defaults(entry, migration, others, ("defaults", place), notes)
        ]
        if entries:
            new["defaults"] = entries
    elif "defaults" in new:
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


def _migrate_defaults(
    entry: Fields,
    migration: LayerMigration,
    others: frozenset[str],
    path: tuple[str | int, ...],
    notes: list[LayerNote],
) -> Iterator[Fields]:
    """The entries of a list of defaults that replace an entry: what TrainJobs have, and all of it for other kinds."""
    match, block = entry.get("match", {}), entry.get("merge", {})
    selected = _list_selected(match, migration)
    if not all(_selects(match[key], names[0]) for key, names in selected.items()):
        yield entry
        return
    kept = strip_block(block, migration, (*path, "merge"), notes)
    if kept == block and not _leaves_out_target(match, migration):
        yield entry
        return
    is_for_others = any(each != names[0] for key, names in selected.items() for each in match[key])
    if selected and (others or is_for_others):
        yield entry
    elif removed := _subtract(block, kept) if others else {}:
        yield {"match": {**match, "kinds": sorted(others)}, "merge": removed}
    if kept:
        own = {**match, **{key: [names[1]] for key, names in selected.items()}}
        yield {**({"match": own} if "match" in entry else {}), "merge": kept}


def _list_selected(match: Fields, migration: LayerMigration) -> dict[str, tuple[str, str]]:
    """The parts of a selector that a migration changes, each with the old value and the new one."""
    source, target = migration.source, migration.target
    names = {"platforms": (source.platform, target.platform), "kinds": (source.name, target.name)}
    return {key: pair for key, pair in names.items() if key in match}


def _leaves_out_target(match: Fields, migration: LayerMigration) -> bool:
    """Return True if a selector does not match a job any more after its migration."""
    return not all(_selects(match[key], names[1]) for key, names in _list_selected(match, migration).items())


def _selects(patterns: Sequence[str], name: str) -> bool:
    """Return True if one of the patterns of a selector matches a name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


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
    match = _retarget(new.get("match", {}), migration)
    if use.others:
        match["kinds"] = [migration.target.name]
    new = {**new, **({"match": match} if match or "match" in new else {})}
    yield from _split_roles(new, use) if use.split and "roles" in new["merge"] else (new,)


def _retarget(match: Fields, migration: LayerMigration) -> Fields:
    """Return a selector with the new platform and kind instead of the old ones."""
    changed = {
        key: list(dict.fromkeys(names[1] if each == names[0] else each for each in match[key]))
        for key, names in _list_selected(match, migration).items()
    }
    return {**match, **changed}


def _stays(patch: Fields, use: PatchUse, migration: LayerMigration) -> bool:
    """Return True if a patch applies to TrainJobs as it is."""
    if "merge" not in patch or {"manifest", "jsonPatch"} & patch.keys() or (use.split and "roles" in patch["merge"]):
        return False
    is_changed = _leaves_out_target(patch.get("match", {}), migration)
    return not is_changed and strip_block(patch["merge"], migration, (), []) == patch["merge"]


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
