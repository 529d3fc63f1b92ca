"""Settings of locked fields, in jobs, manifests and operations of patches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.budget import Work, charge
from jobgen.model.data import Node, is_null, value_of
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, format_dotted
from jobgen.model.sentence import Sentence
from jobgen.rendering.expand import Expander, JobDocument, JobSpec
from jobgen.rendering.lock_places import LockPlaces, find_lock_places
from jobgen.spec.field_patterns import (
    Setting,
    find_every_setting,
    find_first,
    find_settings,
)
from jobgen.spec.json_patch import apply_json_patch, resolve_pointer, step_through
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import is_deletion, merge
from jobgen.spec.overlay import FieldLock, Patch

_LOCK_STEPS = 60
"""The steps of a lock in a layer."""


class _Layer(NamedTuple):
    """What sets fields: a block with the fields of a job, or one that is merged into its object."""

    block: Any
    name: str
    """What the message calls it."""
    overlay: str = ""
    """The overlay that has it; empty if none does."""
    is_object: bool = False


class _Target(NamedTuple):
    """An object, as far as the places of fields depend on it."""

    kind: Kind | None
    containers: tuple[str, ...]
    """The names of its main container."""
    templates: tuple[tuple[Step, ...], ...] = ()
    """The paths of its pod templates that no role has."""


def find_locked_in_job(
    job: JobDocument, expander: Expander, patches: Sequence[Patch], spec: JobSpec | None
) -> Iterator[Problem]:
    """Report the locked fields that a job sets, or a layer that may not. Without its spec, only fields are known."""
    kind, roles = (spec.kind, spec.roles) if spec else (None, {})
    layers = [
        _Layer(job.data["spec"], "the job"),
        _Layer({"metadata": job.data["metadata"]}, "the job", is_object=True),
        *_list_layers_below(job, expander),
        *_list_patches(patches),
    ]
    target = _Target(kind, _name_containers(kind, job.name, layers))
    charge(Work.LOCKS, _LOCK_STEPS * len(layers) * len(expander.environment.locks))
    for lock in expander.environment.locks:
        places = _find_places(lock, target, expander)
        if places.role and places.role not in roles:
            # What is set for all roles does not concern a role that the job does not have.
            places = places._replace(spec=(), template=(), object=())
        allowed = [layer for layer in layers if layer.overlay in lock.allowed and not layer.is_object]
        for layer in layers:
            if layer.overlay not in lock.allowed:
                yield from (_report(lock, found.node, layer) for found in _find_in_layer(layer, places))
                yield from (_report(lock, key, layer) for key in _find_dropped_blocks(layer, allowed, places))


def find_locked_in_manifest(job: JobDocument, expander: Expander, patches: Sequence[Patch]) -> Iterator[Problem]:
    """Report the locked fields that a raw manifest sets, or a patch of it that may not."""
    if expander.environment.as_written:
        return
    own = _Layer(job.data, "the manifest", is_object=True)
    layers = [*_list_team_labels(job, expander), *(each for each in _list_patches(patches) if each.is_object)]
    objects: list[Mapping[str, Node]] = [job.data]
    if is_app_wrapper(job.data):
        objects += [wrapped for _, wrapped in list_wrapped_objects(job.data)]
    charge(Work.LOCKS, _LOCK_STEPS * len(objects) * (1 + len(layers)) * len(expander.environment.locks))
    for lock in expander.environment.locks:
        for obj in objects:
            places = _find_places(lock, _describe(obj, expander), expander)
            settings = find_settings(obj, places.object, merged=False)
            yield from (_report(lock, found.node, own) for found in settings)
            if places.template and not places.role:
                # Imported late: few repositories have locks and other kinds.
                from jobgen.rendering.embedded_locks import find_embedded

                yield from (_report(lock, node, own) for node in find_embedded(obj, places.template, expander.kinds))
        places = _find_places(lock, _describe(job.data, expander), expander)
        for layer in layers:
            if layer.overlay not in lock.allowed:
                yield from (_report(lock, found.node, layer) for found in _find_in_layer(layer, places))


def find_locked_operations(made: Mapping[str, Node], expander: Expander, patches: Sequence[Patch]) -> Iterator[Problem]:
    """Report operations of JSON patches that change locked fields. What they change depends on the object."""
    target = _describe(made, expander)
    for patch in patches:
        if patch.manifest is not None:
            made = merge(made, patch.manifest, [])
        if patch.json_patch is None:
            continue
        locks = [lock for lock in expander.environment.locks if patch.overlay not in lock.allowed]
        if locks:
            found = [(lock, _find_places(lock, target, expander)) for lock in locks]
            yield from _find_in_operations(made, patch, found)
        made = apply_json_patch(made, patch.json_patch, [])


def _find_in_operations(
    made: Mapping[str, Node], patch: Patch, locks: Sequence[tuple[FieldLock, LockPlaces]]
) -> Iterator[Problem]:
    block: Any = patch.node
    layer = _Layer(None, f"the patch of overlay `{patch.overlay}`", patch.overlay)
    states = step_through(made, block["jsonPatch"])
    state = next(states)
    before = [list(find_every_setting(state, places.object)) for _, places in locks]
    for operation in block["jsonPatch"]:
        name = value_of(operation["op"])
        # The field of the operation with the pointer to what it removes.
        source = {"move": "from", "remove": "path"}.get(name, "")
        removed = resolve_pointer(state, operation, source) if source else None
        at = None if name in ("remove", "test") else resolve_pointer(state, operation)
        if next(states, None) is None:
            # The operation fails, which is an error of its own.
            return
        after = [list(find_every_setting(state, places.object)) for _, places in locks]
        for (lock, _), old, new in zip(locks, before, after, strict=True):
            # To remove a part as a whole is not to remove the field.
            if removed and any(_overlaps(removed, each) and len(removed) > each.depth for each in old):
                yield _report(lock, operation[source], layer)
                continue
            candidates = (*new, *old) if name == "replace" else new
            found = next((each for each in candidates if at and _overlaps(at, each)), None)
            if found and at:
                yield _report(lock, _find_in_value(operation, found.path[len(at) :]), layer)
        before = after


def _report(lock: FieldLock, node: Node, layer: _Layer) -> Problem:
    message = Sentence("{}; remove it from {}", lock.describe(), layer.name)
    evidence = (format_dotted(lock.path), lock.overlay, *layer.name.split("`")[1:2])
    return Problem("locked-field", message, node, ((lock.node, "locked here"),), evidence=evidence)


def _list_layers_below(job: JobDocument, expander: Expander) -> Iterator[_Layer]:
    """Yield the defaults and labels that a job gets."""
    environment = expander.environment
    attributes = expander.attributes(job) if any(each.match for each in environment.defaults) else None
    for each in environment.defaults:
        if each.match is None or (attributes is not None and each.matches(attributes)):
            owner = f"overlay `{each.overlay}`" if each.overlay else f"team `{each.team}`"
            yield _Layer(each.block, f"the defaults of {owner}", each.overlay)
    yield from _list_team_labels(job, expander)


def _list_team_labels(job: JobDocument, expander: Expander) -> Iterator[_Layer]:
    team = expander.environment.teams.find(job.file)
    if team is not None and "labels" in team.spec:
        block = {"metadata": {"labels": team.spec["labels"]}}
        yield _Layer(block, f"the labels of team `{team.name}`", is_object=True)


def _list_patches(patches: Iterable[Patch]) -> Iterator[_Layer]:
    for patch in patches:
        block: Any = patch.node
        name = f"the patch of overlay `{patch.overlay}`"
        if patch.merge is not None:
            yield _Layer(block["merge"], name, patch.overlay)
        if patch.manifest is not None:
            yield _Layer(block["manifest"], name, patch.overlay, is_object=True)


def _describe(obj: Mapping[str, Node], expander: Expander) -> _Target:
    """Describe an object: by its kind description, or else by what is known of pods in other kinds."""
    api_version, name = str(value_of(obj.get("apiVersion"))), str(value_of(obj.get("kind")))
    kind = next((each for each in expander.kinds if each.describes(api_version, name)), None)
    if kind is None:
        known = list_template_paths(api_version.rpartition("/")[0], name)
        return _Target(None, (), known or tuple(dict.fromkeys(_find_templates(obj))))
    metadata = obj.get("metadata")
    own = str(value_of(metadata.get("name"))) if isinstance(metadata, dict) else ""
    return _Target(kind, _name_containers(kind, own, ()), kind.pods)


def _find_templates(obj: Mapping[str, Node]) -> Iterator[tuple[Step, ...]]:
    """Yield the paths of what has the form of a pod template, in an object of a kind that is not known."""
    below: list[tuple[tuple[Step, ...], Node]] = [((), obj)]
    while below:
        path, node = below.pop()
        if isinstance(node, list):
            below += (((*path, "*"), item) for item in node)
        elif isinstance(node, dict):
            spec = node.get("spec")
            if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
                yield path
            below += (((*path, str(key)), value) for key, value in node.items())


def _name_containers(kind: Kind | None, job: str, layers: Iterable[_Layer]) -> tuple[str, ...]:
    """Return the names that the main container can have."""
    described = [kind.container, *(role.container for role in kind.roles.values())] if kind else []
    names = {str(value_of(name)) for name in described if value_of(name)}
    for layer in layers:
        roles = layer.block.get("roles") if not layer.is_object else None
        blocks = [layer.block, *(roles.values() if isinstance(roles, dict) else ())]
        named = (each["containerName"] for each in blocks if isinstance(each, dict) and "containerName" in each)
        names |= set(map(str, map(value_of, named)))
    return tuple(sorted(job if name == "{job}" else name for name in names))


def _find_places(lock: FieldLock, target: _Target, expander: Expander) -> LockPlaces:
    key = (lock.path, target.kind and (target.kind.platform, target.kind.name), target.containers, target.templates)
    places: LockPlaces | None = expander.lock_places.get(key)
    if places is None:
        gpu_resource = expander.environment.cluster.gpu_resource
        places = find_lock_places(lock.path, target.kind, gpu_resource, target.containers, target.templates)
        expander.lock_places[key] = places
    return places


def _find_in_layer(layer: _Layer, places: LockPlaces) -> Iterator[Setting]:
    if layer.is_object:
        yield from find_settings(layer.block, places.object, merged=True)
        return
    block = layer.block
    yield from _find_in_fields(block, places, is_role=False)
    yield from find_settings(block.get("manifest"), places.object, merged=True)
    roles = block.get("roles")
    for name, role in roles.items() if isinstance(roles, dict) else ():
        if isinstance(role, dict) and places.role in ("", name):
            yield from _find_in_fields(role, places, is_role=True)
            found = find_first(role.get("manifest"), places.item, merged=True)
            yield from [found] if found else ()


def _find_dropped_blocks(layer: _Layer, allowed: Sequence[_Layer], places: LockPlaces) -> Iterator[Node]:
    """Yield the keys by which a layer deletes a `podTemplate` or `manifest` that sets a locked field."""
    for fields in () if layer.is_object else _list_fields(layer.block):
        for key, value in fields.items():
            if key not in ("podTemplate", "manifest") or not (is_null(value) or is_deletion(value)):
                continue
            others = [other.get(key) for each in allowed for other in _list_fields(each.block)]
            patterns = places.template if key == "podTemplate" else places.item
            if any(find_first(other, patterns, merged=True) for other in others) or (
                key == "manifest" and any(any(find_settings(other, places.object, merged=True)) for other in others)
            ):
                yield key


def _list_fields(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The fields of a layer: those of the job and of all roles, and those of each role."""
    roles = block.get("roles")
    return [block, *(role for role in (roles.values() if isinstance(roles, dict) else ()) if isinstance(role, dict))]


def _find_in_fields(block: Mapping[str, Node], places: LockPlaces, *, is_role: bool) -> Iterator[Setting]:
    """Yield where the fields of a job or of a role set a locked field, and where their pod template does."""
    written = find_first(block, places.roles if is_role else places.spec, merged=True)
    template = find_first(block.get("podTemplate"), places.template, merged=True)
    yield from (found for found in (written, template) if found)


def _overlaps(path: tuple[str | int, ...], setting: Setting) -> bool:
    shared = min(len(path), len(setting.path))
    return path[:shared] == setting.path[:shared]


def _find_in_value(operation: Any, path: tuple[str | int, ...]) -> Node:
    """Return the key of the value of an operation that sets a field; its pointer if the value as a whole does."""
    found: Node = operation["path"]
    node = operation.get("value")
    for step in path:
        if isinstance(node, dict) and step in node:
            found, node = next(key for key in node if key == step), node[step]
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            break
    return found
