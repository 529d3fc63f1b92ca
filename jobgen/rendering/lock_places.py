"""Where a locked field can be set: in a job or role, in a pod template, in the item of a role, and in an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.model.data import value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.rendering import pod
from jobgen.rendering.sources import SOURCE_TYPES, SourceType
from jobgen.spec.field_patterns import (
    ANY,
    AnyStep,
    MainContainer,
    Pattern,
    PatternStep,
    Place,
    Valued,
)
from jobgen.spec.kinds import Kind, TemplateDescription, TemplateShape
from jobgen.spec.normalize import ROLE_FIELDS, is_job_field

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
