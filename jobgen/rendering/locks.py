"""Where a locked field can be set: in a job or role, in a pod template, in the item of a role, and in an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.budget import Work, charge
from jobgen.model.data import Node, is_null, value_of
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step, format_dotted
from jobgen.rendering import pod
from jobgen.rendering.expand import Expander, JobDocument, JobSpec
from jobgen.rendering.sources import SOURCE_TYPES, SourceType
from jobgen.spec.field_patterns import (
    ANY,
    AnyStep,
    MainContainer,
    Pattern,
    PatternStep,
    Place,
    Setting,
    Valued,
    find_every_setting,
    find_first,
    find_settings,
)
from jobgen.spec.json_patch import apply_json_patch, resolve_pointer, step_through
from jobgen.spec.kinds import Kind, TemplateDescription, TemplateShape
from jobgen.spec.merge import is_deletion, merge
from jobgen.spec.normalize import ROLE_FIELDS, is_job_field
from jobgen.spec.overlay import FieldLock, Patch

_LOCK_STEPS = 60
"""The steps of a lock in a layer."""
_SIDES = ("limits", "requests")
_RESOURCE_BLOCKS = (*_SIDES, "claims")
_CONTAINERS = ("initContainers", "sidecars")
_SOURCES = {each.field: each for each in SOURCE_TYPES}
_NO_PLACE = ("code", "network")
"""The first step of paths of a kind description that code reads; they lead to no field of the object."""


class LockPlaces(NamedTuple):
    """The places of a locked field."""

    role: str
    """The role whose field is locked; empty for those of the job and of all roles."""
    spec: tuple[Pattern, ...]
    """In the fields of the job itself."""
    roles: tuple[Pattern, ...]
    """In the fields of a role."""
    template: tuple[Pattern, ...]
    item: tuple[Pattern, ...]
    object: tuple[Place, ...]


def find_lock_places(
    path: tuple[Step, ...],
    kind: Kind | None,
    gpu_resource: str,
    containers: tuple[str, ...],
    templates: Iterable[tuple[Step, ...]] = (),
) -> LockPlaces:
    """Return where a field can be set in jobs of a kind.

    `containers` are the names of the main container, `templates` the paths of pod templates that no role has.
    """
    steps: Pattern = tuple(path)
    role, below = (str(path[1]), steps[2:]) if path[:1] == ("roles",) and len(path) > 2 else ("", steps)
    template = tuple(_list_in_template(below, gpu_resource, MainContainer(containers)))
    mapped = list(_list_mapped(below, kind)) if kind else []
    template += tuple(at[1:] for at in mapped if at[0] == "template")
    item = tuple(at[1:] for at in mapped if at[0] == "item")
    item += tuple(_list_in_item(below, mapped, role, kind)) if kind else ()
    targets = [*mapped, *(("template", *each) for each in template)]
    aliases = _list_aliases(targets, kind) if kind and not role else ()
    written = tuple(dict.fromkeys((*_list_written(below, gpu_resource), *aliases)))
    # Blocks are merged later than the fields around them.
    is_in_block = below[:1] in (("podTemplate",), ("manifest",)) and len(below) > 1
    first = str(below[0]) if below else ""
    is_in_spec = not is_in_block and below != ("namespace",) and (not role or first in ROLE_FIELDS)
    is_of_roles = bool(below) and not is_job_field(first) and first != "roles"
    is_in_roles = not is_in_block and (bool(role) or is_of_roles)
    in_item = (*(((*kind.replicas.template, *each) for each in template) if kind else ()), *item)
    places = [*_list_in_object(below, role, kind)]
    places += (Place((), (at,)) for at in mapped if at[0] not in ("template", "item"))
    if kind is not None:
        places += _list_in_roles(template, in_item, role, kind)
    places += (Place(_to_pattern(each), template) for each in templates if template and not role)
    spec, roles = written if is_in_spec else (), written if is_in_roles else ()
    return LockPlaces(role, spec, roles, template, in_item, tuple(dict.fromkeys(places)))


def _to_pattern(path: tuple[Step, ...]) -> Pattern:
    return tuple(ANY if step == "*" else step for step in path)


def _list_written(path: Pattern, gpu_resource: str) -> Iterator[Pattern]:
    """Yield the ways to write a field in a job or role: its path first, then other forms of it."""
    yield path
    match path:
        case ("resources", *rest):
            yield from (("resources", *each) for each in _list_amounts(tuple(rest), gpu_resource))
        case ("env", name, *_):
            yield from (("env", name), ("env", NamedItem("name", str(name))))
            yield from ((source, ANY, "env", name) for source in _SOURCES)
        case ("ports", name):
            yield ("ports", NamedItem("name", str(name)))
        case (field, name, *rest) if field in _CONTAINERS:
            for below in _list_written(tuple(rest), gpu_resource) if rest else [()]:
                yield (field, name, *below)
                yield (field, NamedItem("name", str(name)), *below)
        case (field, *rest) if field in _SOURCES and len(rest) < 2:
            yield from _list_references(_SOURCES[str(field)], str(rest[0]) if rest else "")
        case (field,):
            yield from _OTHER_FORMS.get(str(field), ())


_OTHER_FORMS: dict[str, tuple[Pattern, ...]] = {
    "env": tuple((source, ANY, "env", ANY) for source in _SOURCES),
    "envFrom": tuple((source, ANY, Valued("env", value=True)) for source in _SOURCES),
    "shm": tuple((source, ANY, Valued("mountPath", pod.SHM_PATH)) for source in ("volumes", *_SOURCES)),
}
"""Other fields that do the same as a field."""


def _list_amounts(path: Pattern, gpu_resource: str) -> Iterator[Pattern]:
    """Yield the ways to write an amount in `resources`. One outside of `limits` and `requests` counts for both."""
    match path:
        case (side,) if side in _SIDES:
            yield (AnyStep(_RESOURCE_BLOCKS),)
        case (side, name) if side in _SIDES:
            for each in _name_resource(name, gpu_resource):
                yield from ((side, each), (each,))
        case (name,) if name not in _RESOURCE_BLOCKS:
            for each in _name_resource(name, gpu_resource):
                yield from ((each,), *((side, each) for side in _SIDES))


def _name_resource(name: PatternStep, gpu_resource: str) -> tuple[str, ...]:
    """The spellings of a resource in a job: `gpu` is that of the cluster."""
    return ("gpu", gpu_resource) if name in ("gpu", gpu_resource) else (str(name),)


def _list_in_template(path: Pattern, gpu_resource: str, main: MainContainer) -> Iterator[Pattern]:
    container: Pattern = ("spec", "containers", main)
    match path:
        case ("podTemplate", *rest) if rest:
            yield tuple(rest)
        case ("serviceAccount",) | ("serviceAccount", "name"):
            yield from (("spec", "serviceAccountName"), ("spec", "serviceAccount"))
        case ("securityContext", *_):
            yield from (("spec", *path), (*container, *path))
        case ("shm",):
            yield ("spec", "volumes", NamedItem("name", pod.SHM))
            yield (*container, "volumeMounts", NamedItem("mountPath", pod.SHM_PATH))
        case ("volumes", *rest):
            yield from _list_volumes(tuple(rest), container)
        case (field, *rest) if field in _CONTAINERS:
            yield from _list_in_containers(str(field), tuple(rest), gpu_resource)
        case (field, *rest) if field in _SOURCES:
            yield from _list_sources(_SOURCES[str(field)], str(rest[0]) if rest else "", container)
        case (field, *_) if field in pod.POD_FIELDS or path == ("restartPolicy",):
            yield ("spec", *path)
        case (field, *_) if field in pod.METADATA_FIELDS:
            yield ("metadata", *path)
        case _:
            yield from ((*container, *each) for each in _list_in_container(path, gpu_resource))


def _list_in_container(path: Pattern, gpu_resource: str) -> Iterator[Pattern]:
    match path:
        case ("env", name, *_):
            yield ("env", NamedItem("name", str(name)))
        case ("ports", name):
            yield ("ports", NamedItem("name", str(name)))
        case ("resources", str() as side, "gpu") if side in _SIDES:
            yield ("resources", side, gpu_resource)
        case ("resources", name, *_) if name not in _RESOURCE_BLOCKS:
            yield from (("resources", side, gpu_resource if name == "gpu" else name) for side in _SIDES)
        case ("mounts", name, *rest):
            yield ("volumeMounts", NamedItem("name", str(name)), *rest)
        case ("mounts",):
            yield ("volumeMounts",)
        case (field, *_) if field in pod.CONTAINER_FIELDS or field in ("env", "resources"):
            yield path


def _list_in_containers(field: str, rest: Pattern, gpu_resource: str) -> Iterator[Pattern]:
    """Yield the paths of init containers and sidecars; a sidecar may also be a container beside the main one."""
    if not rest:
        always = (NamedItem("restartPolicy", "Always"),) if field == "sidecars" else ()
        yield ("spec", "initContainers", *always)
        return
    lists = ("initContainers", "containers") if field == "sidecars" else ("initContainers",)
    known = tuple(_list_in_container(rest[1:], gpu_resource))
    for each in known or (rest[1:],):
        yield from (("spec", name, NamedItem("name", str(rest[0])), *each) for name in lists)


def _list_volumes(rest: Pattern, container: Pattern) -> Iterator[Pattern]:
    mounts: Pattern = (*container, "volumeMounts")
    if not rest:
        yield from (("spec", "volumes"), mounts)
        return
    name = NamedItem("name", str(rest[0]))
    if len(rest) == 1 or rest[1] not in pod.MOUNT_FIELDS:
        source = (pod.SHORT_SOURCES.get(str(each), (str(each),))[0] for each in rest[1:2])
        yield ("spec", "volumes", name, *source, *rest[2:])
    if len(rest) == 1 or rest[1] in pod.MOUNT_FIELDS:
        yield (*mounts, name, *rest[1:])


def _list_sources(source: SourceType, name: str, container: Pattern) -> Iterator[Pattern]:
    """Yield the paths of references to Secrets or ConfigMaps, or to one of them."""
    named, in_volume = ((Valued(field, name),) if name else () for field in ("name", source.name))
    yield (*container, "env", ANY, "valueFrom", source.of_key, *named)
    yield (*container, "envFrom", ANY, source.of_all, *named)
    yield ("spec", "volumes", ANY, source.volume, *in_volume)


def _list_references(source: SourceType, name: str) -> Iterator[Pattern]:
    """Yield other fields of a job that refer to Secrets or ConfigMaps, or to one of them."""
    named, in_volume = ((Valued(field, name),) if name else () for field in ("name", source.name))
    for between in ((), ("valueFrom",)):
        yield ("env", ANY, *between, source.of_key, *named)
    yield ("envFrom", ANY, source.of_all, *named)
    yield ("volumes", ANY, source.volume, *in_volume)
    if name:
        yield ("volumes", ANY, Valued(source.volume, name))


def _list_mapped(path: Pattern, kind: Kind) -> Iterator[Pattern]:
    """Yield the paths to which a kind maps a field of the job, its parts, or what is around it."""
    coded = {tuple(name.split(".")): paths for name, paths in kind.code_paths.items()}
    yield from (at for name, paths in coded.items() if name[: len(path)] == path for at in paths)
    if not path or not is_job_field(str(path[0])):
        return
    known = {tuple(name.split(".")): mapping.at for name, mapping in kind.fields.items()}
    parts = [at for name, at in known.items() if name[: len(path)] == path]
    around = [(*at, *path[len(name) :]) for name, at in known.items() if path[: len(name)] == name]
    yield from (at for at in parts or around[-1:] if at[0] not in _NO_PLACE)


def _list_aliases(targets: Iterable[Pattern], kind: Kind) -> Iterator[Pattern]:
    """Yield other fields of a job that a kind maps to the same place: `runPolicy.suspend` for `suspend`."""
    for target in targets:
        for name, mapping in kind.fields.items():
            at: Pattern = mapping.at
            steps: Pattern = tuple(name.split("."))
            if target[: len(at)] == at:
                yield (*steps, *target[len(at) :])
            elif at[: len(target)] == target:
                yield steps


def _list_in_item(path: Pattern, mapped: Iterable[Pattern], role: str, kind: Kind) -> Iterator[Pattern]:
    """Yield the paths of a field in the item of a role, also of fields of the object that are there, as in a Job."""
    layout = kind.replicas
    match path:
        case ("restartPolicy",) if layout.shape != "one":
            yield layout.restart_policy
        case ("replicas",) if role:
            yield from layout.counts
        case ("minReplicas",) if layout.least:
            yield layout.least
        case ("maxReplicas",) if layout.most:
            yield layout.most
    prefixes = list(_list_items(role, kind))
    for at in mapped:
        yield from (at[len(prefix) :] for prefix in prefixes if at[: len(prefix)] == prefix and at != prefix)


def _list_in_object(path: Pattern, role: str, kind: Kind | None) -> Iterator[Place]:
    """Yield the places of fields that concern the object as a whole."""
    match path:
        case ("namespace",) if not role:
            yield Place((), (("metadata", "namespace"),))
        case ("queue",) if not role and kind is None:
            yield Place((), (("metadata", "labels", QUEUE_LABEL),))
        case ("manifest", *rest) if rest and not role:
            yield Place((), (tuple(rest),))
        case ("roles",) if kind:
            yield Place((), ((*kind.replicas.at,), *(each.at for each in kind.roles.values() if each.at)))
        case ("roles", name) if kind:
            yield from (Place((), (prefix,)) for prefix in _list_items(str(name), kind))
        case ("replicas",) if role and kind and kind.shape == "one":
            yield Place((), (kind.replicas.at,))


def _list_items(role: str, kind: Kind) -> Iterator[Pattern]:
    """Yield the paths of the items of a role, or of all."""
    own = kind.find_role(role) if role else None
    joined = kind.find_role(own.joins) if own and own.joins else None
    known = [each for each in (own, joined) if each] if role else list(kind.roles.values())
    yield from (each.at for each in known if each.at)
    at, layout = tuple(kind.replicas.at), kind.replicas
    spellings = [str(value_of(each.spelling)) for each in known if not each.at]
    if layout.shape == "item" and spellings:
        yield at
    elif layout.shape == "map":
        yield from ((*at, each) for each in spellings) if role else ((*at, ANY),)
    elif layout.shape == "list":
        yield from ((*at, NamedItem(layout.key, each)) for each in spellings) if role else ((*at, ANY),)


def _list_in_roles(
    template: tuple[Pattern, ...], in_item: tuple[Pattern, ...], role: str, kind: Kind
) -> Iterator[Place]:
    """Yield the places of what pod templates and items of roles have."""
    if in_item:
        yield from (Place(prefix, in_item) for prefix in _list_items(role, kind))
    if template and not role:
        yield from (Place(_to_pattern(path), template) for path in kind.pods)
    if template and kind.template is not None:
        yield from _list_in_nodes(template, kind.template)


def _list_in_nodes(template: tuple[Pattern, ...], parts: TemplateDescription) -> Iterator[Place]:
    """Yield the places of what a pod template has in a kind without one."""
    for path in template:
        if path[:2] == ("spec", "containers") and len(path) > 3 and str(path[3]) in parts.container:
            yield Place((), ((*parts.container[str(path[3])], *path[4:]),))
    for shape in parts.shapes:
        places = {"spec": shape.spec, "metadata": shape.metadata}
        found = [(path, at) for path in template if (at := places.get(str(path[0]))) is not None]
        # A runtime may name the items of overrides otherwise.
        inside = tuple(
            (*(ANY if isinstance(step, NamedItem) else step for step in at), *path[1:]) for path, at in found
        )
        if any(_is_rendered_to(path, shape) for path, _ in found):
            # To delete or replace the overrides is to delete the field.
            yield Place((), tuple((*shape.at, AnyStep(is_whole=True), *each) for each in inside))
        elif inside:
            yield Place((*shape.at, ANY), inside)


def _is_rendered_to(path: Pattern, shape: TemplateShape) -> bool:
    """Return True if a field of a pod template becomes a field of the overrides, rather than of the object."""
    match path:
        case ("spec", "containers", _, field, *_):
            return field in shape.container_fields
        case ("spec", field, *_):
            return field in shape.pod_fields
        case _:
            return path[:1] == ("metadata",)


# Find locked fields that a job or a layer sets, in every form: fields, pod templates, manifests and patches.


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
    message = f"{lock.describe()}; remove it from {layer.name}"
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
