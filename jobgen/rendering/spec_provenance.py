"""Explain a value by its path in the job spec: the layers that set it, and where it is in the rendered object."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from jobgen.model.data import Location, Node, TracedKey, untraced, value_of
from jobgen.model.path import NamedItem, Step
from jobgen.rendering.expand import RoleSpec
from jobgen.rendering.provenance import CHOICES, Assignment, ExplainedValue, MarkedSpec, NoSuchFieldError, explain_path
from jobgen.spec.merge import LIST_KEYS, merge
from jobgen.spec.normalize import FIELDS, ROLE_FIELDS

_SIDES = ("limits", "requests")
_PARTS_OF_RESOURCES = (*_SIDES, "claims")
_MAIN_CONTAINER: tuple[Step, ...] = ("spec", "containers", 0)
_PARTS_OF_CONTAINER = frozenset("image imagePullPolicy command args workingDir envFrom ports resources".split())
_PARTS_OF_POD = frozenset("nodeSelector tolerations affinity imagePullSecrets".split())
_KEYS = {**LIST_KEYS, "sidecars": ("name",)}


def expand_path(path: tuple[Step, ...], written: Node, gpu_resource: str) -> list[tuple[Step, ...]]:
    """The paths in the expanded fields of a role for a path in its fields; `written` are those of the job itself."""
    named = _name_items(path, written)
    expand = _EXPANSIONS.get(str(path[0])) if path else None
    return expand(named, gpu_resource) if expand else [named]


def shorten_path(path: tuple[Step, ...], gpu_resource: str) -> tuple[Step, ...]:
    """The short form of a path in the expanded fields: `resources.gpu` for both of its sides."""
    match path:
        case (*container, "resources", side, name) if side in _SIDES and "podTemplate" not in container:
            return (*container, "resources", "gpu" if name == gpu_resource else name)
        case _:
            return path


def find_template_path(path: tuple[Step, ...]) -> tuple[Step, ...]:
    """The path in a pod template for a path in the expanded fields of a role; empty if it has none of its own."""
    match path:
        case ("env", str() as name, *rest):
            return (*_MAIN_CONTAINER, "env", NamedItem("name", name), *(rest or ["value"]))
        case ("serviceAccount",) | ("serviceAccount", "name"):
            return ("spec", "serviceAccountName")
        case (field, *_) if field in _PARTS_OF_CONTAINER:
            return (*_MAIN_CONTAINER, *path)
        case (field, *_) if field in _PARTS_OF_POD:
            return ("spec", *path)
        case (field, *_) if field in ("labels", "annotations"):
            return ("metadata", *path)
        case _:
            return ()


def _name_items(path: tuple[Step, ...], written: Node) -> tuple[Step, ...]:
    """The path with names for items of lists that merge by key, as their numbers change with the layers."""
    steps: list[Step] = []
    node: Any = written
    for step in path:
        if isinstance(step, int) and isinstance(node, list) and step < len(node):
            node = node[step]
            steps.append(_name_item(node, _KEYS.get(str(steps[-1]), ()) if steps else ()) or step)
        else:
            node = node.get(str(step)) if isinstance(node, dict) else None
            steps.append(step)
    return tuple(steps)


def _name_item(item: Node, keys: tuple[str, ...]) -> NamedItem | None:
    """The name of an item in a list that merges by key; an item that is a text is its name."""
    if not keys:
        return None
    key = keys[0] if isinstance(item, dict) else "name"
    name = value_of(item.get(key) if isinstance(item, dict) else item)
    return NamedItem(key, str(name)) if isinstance(name, (str, int)) else None


def _expand_env(path: tuple[Step, ...], _: str) -> list[tuple[Step, ...]]:
    """`env` is a map after normalization, whose values are texts or `{valueFrom: …}`."""
    field, *rest = path
    if not rest:
        return [path]
    name = rest[0].value if isinstance(rest[0], NamedItem) else str(rest[0])
    below = tuple(rest[1:])
    if below in (("value",), ("name",)):
        return [(field, name)]
    return [(field, name, *(("valueFrom", *below) if below and below[0] != "valueFrom" else below))]


def _expand_ports(path: tuple[Step, ...], _: str) -> list[tuple[Step, ...]]:
    """`ports` is a list after normalization."""
    match path:
        case (field, str() as name):
            return [(field, NamedItem("name", name), "containerPort")]
        case _:
            return [path]


def _expand_resources(path: tuple[Step, ...], gpu_resource: str) -> list[tuple[Step, ...]]:
    """An amount outside of `limits` and `requests` counts for both."""
    field, *rest = path
    if rest and rest[0] not in _PARTS_OF_RESOURCES:
        return [(field, side, *_resource_name(rest, gpu_resource)) for side in _SIDES]
    return [(field, *rest[:1], *_resource_name(rest[1:], gpu_resource))]


def _resource_name(steps: list[Step], gpu_resource: str) -> list[Step]:
    return [gpu_resource, *steps[1:]] if steps and steps[0] == "gpu" else steps


def _expand_containers(path: tuple[Step, ...], gpu_resource: str) -> list[tuple[Step, ...]]:
    """Containers are a map by name after normalization, each with the short forms of a role."""
    match path:
        case (field, container, *rest):
            name = container.value if isinstance(container, NamedItem) else str(container)
            below = () if rest == ["name"] else tuple(rest)
            return [(field, name, *steps) for steps in expand_path(below, None, gpu_resource)]
        case _:
            return [path]


_EXPANSIONS: dict[str, Callable[[tuple[Step, ...], str], list[tuple[Step, ...]]]] = {
    "env": _expand_env,
    "ports": _expand_ports,
    "resources": _expand_resources,
    "initContainers": _expand_containers,
    "sidecars": _expand_containers,
}


# What `framework` and `platform` select in the object.
_SELECTED: tuple[tuple[Step, ...], ...] = (("apiVersion",), ("kind",))


class ExplainedSpecValue(NamedTuple):
    """A value of the job spec, its assignments, the last first, and the leaves of the object that come from it."""

    path: tuple[Step, ...]
    assignments: tuple[Assignment, ...]
    rendered: tuple[tuple[tuple[Step, ...], Node], ...]


class _Leaf(NamedTuple):
    """A leaf of the expanded spec: of a role, or of the job if the role is empty."""

    role: str
    short: tuple[Step, ...]
    path: tuple[Step, ...]
    values: tuple[ExplainedSpecValue, ...]


def explain_spec_path(marked: MarkedSpec, path: tuple[Step, ...]) -> Iterator[ExplainedSpecValue]:
    """Explain every value at or below a path of a job spec; raise NoSuchFieldError if no layer sets any."""
    field = str(path[0])
    if field == "roles":
        leaves = _explain_roles(marked, path)
    elif field in ROLE_FIELDS:
        leaves = _explain_for_roles(marked, path)
    else:
        leaves = _explain_job_field(marked, path)
    for group in _group(leaves, lambda leaf: leaf.short):
        yield from _merge_leaves(group, len(marked.spec.roles) if field in ROLE_FIELDS else 1)


def list_spec_paths(marked: MarkedSpec) -> Iterator[tuple[Step, ...]]:
    """The paths of all values of a job spec."""
    for field in (*CHOICES, *marked.spec.fields, *sorted(ROLE_FIELDS), "roles", "manifest"):
        try:
            yield from (value.path for value in explain_spec_path(marked, (field,)))
        except NoSuchFieldError:
            continue


def _group(leaves: Iterable[_Leaf], key: Callable[[_Leaf], Hashable]) -> Iterable[list[_Leaf]]:
    groups: dict[Hashable, list[_Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(key(leaf), []).append(leaf)
    return groups.values()


def _merge_leaves(leaves: Sequence[_Leaf], roles: int) -> Iterator[ExplainedSpecValue]:
    """One value if all leaves have the same one from the same layers; else one for each role, or for each leaf."""
    if len({leaf.role for leaf in leaves}) == roles and _has_one_value(leaves):
        yield _join(leaves[0].short, leaves)
        return
    for own in _group(leaves, lambda leaf: leaf.role):
        prefix = ("roles", own[0].role) if own[0].role else ()
        if _has_one_value(own):
            yield _join((*prefix, *own[0].short), own)
        else:
            yield from (value._replace(path=(*prefix, *leaf.path)) for leaf in own for value in leaf.values)


def _has_one_value(leaves: Iterable[_Leaf]) -> bool:
    histories = [_list_history(value.assignments) for leaf in leaves for value in leaf.values]
    return all(history == histories[0] for history in histories)


def _join(path: tuple[Step, ...], leaves: Sequence[_Leaf]) -> ExplainedSpecValue:
    values = [value for leaf in leaves for value in leaf.values]
    rendered = dict.fromkeys(place for value in values for place, _ in value.rendered)
    nodes = {place: node for value in values for place, node in value.rendered}
    return ExplainedSpecValue(path, values[0].assignments, tuple((place, nodes[place]) for place in rendered))


def _explain_roles(marked: MarkedSpec, path: tuple[Step, ...]) -> Iterator[_Leaf]:
    roles = marked.spec.roles
    names = [str(path[1])] if len(path) > 1 else list(roles)
    written = marked.written.get("roles")
    for name in names:
        if name not in roles:
            raise NoSuchFieldError(name, list(roles))
        own = written.get(name) if isinstance(written, dict) else None
        for leaf in _explain_role(marked, name, path[2:], own):
            yield leaf._replace(role="", short=("roles", name, *leaf.short), path=("roles", name, *leaf.path))


def _explain_for_roles(marked: MarkedSpec, path: tuple[Step, ...]) -> Iterator[_Leaf]:
    """Explain a field in each role that has it."""
    failure, found = None, False
    for name in marked.spec.roles:
        try:
            for leaf in _explain_role(marked, name, path, marked.written):
                found = True
                yield leaf
        except NoSuchFieldError as error:
            failure = error
    if failure and not found:
        raise failure


def _explain_role(marked: MarkedSpec, name: str, path: tuple[Step, ...], written: Any) -> Iterator[_Leaf]:
    gpu_resource = marked.spec.cluster.gpu_resource
    # A path that names `limits` or `requests` is shown as it is.
    is_long = "limits" in path or "requests" in path
    failure, found = None, False
    for steps in expand_path(path, written, gpu_resource):
        try:
            leaves = _explain_expanded(marked, name, steps)
        except NoSuchFieldError as error:
            # An amount may be set for one of the two sides only.
            failure = error
            continue
        found = True
        yield from (leaf if is_long else leaf._replace(short=shorten_path(leaf.path, gpu_resource)) for leaf in leaves)
    if failure and not found:
        raise failure


def _explain_expanded(marked: MarkedSpec, name: str, steps: tuple[Step, ...]) -> list[_Leaf]:
    try:
        return [
            _Leaf(name, leaf.path, leaf.path, _find_in_joined(marked, name, leaf))
            for leaf in explain_path(_role_fields(marked.spec.roles[name]), steps)
        ]
    except NoSuchFieldError:
        found = list(_explain_template(marked, name, steps))
        if not found:
            raise
        return found


def _find_in_joined(marked: MarkedSpec, name: str, leaf: ExplainedValue) -> tuple[ExplainedSpecValue, ...]:
    """Explain a leaf of a role; if its pods are joined with those of another role, the object has that role's leaf."""
    roles = marked.spec.roles
    values = tuple(_find_rendered(marked, _role_fields(roles[name]), leaf))
    if any(value.rendered for value in values) or not _is_joined(marked, name):
        return values
    history = _list_history(_resolve(marked, leaf.assignments))
    for fields in (_role_fields(role) for other, role in roles.items() if other != name):
        with suppress(NoSuchFieldError):
            for twin in explain_path(fields, leaf.path):
                found = tuple(_find_rendered(marked, fields, twin))
                same = _list_history(_resolve(marked, twin.assignments)) == history
                if same and any(value.rendered for value in found):
                    return found
    return values


def _is_joined(marked: MarkedSpec, name: str) -> bool:
    """Return True if the object has no pod template of its own for a role of the job."""
    kind = marked.spec.kind
    described = kind.find_role(name)
    spelling = value_of(described.spelling) if described else name
    return kind.shape == "item" or spelling not in [value_of(item.key) for item in kind.list_items(marked.object)]


def _list_history(assignments: Iterable[Assignment]) -> list[tuple[Any, Location | None]]:
    return [(untraced(each.value), each.location) for each in assignments]


def _explain_template(marked: MarkedSpec, name: str, path: tuple[Step, ...]) -> Iterator[_Leaf]:
    """Explain a field of a role in its pod template, where only `podTemplate` or a patch of the manifest sets it."""
    kind, below = marked.spec.kind, find_template_path(path)
    described = kind.find_role(name)
    spelling = value_of(described.spelling) if described else None
    for item in kind.list_items(marked.object) if below else ():
        at = (*item.path, *kind.replicas.template, *below)
        if value_of(item.key) == spelling:
            with suppress(NoSuchFieldError):
                for leaf in explain_path(marked.object, at):
                    yield _take_leaf(marked, name, (*path, *leaf.path[len(at) :]), leaf)


def _take_leaf(marked: MarkedSpec, role: str, path: tuple[Step, ...], leaf: ExplainedValue) -> _Leaf:
    """A leaf of the object as a value of the spec."""
    history = tuple(_resolve(marked, leaf.assignments))
    value = ExplainedSpecValue(path, history, ((leaf.path, history[0].value),))
    return _Leaf(role, path, path, (value,))


def _role_fields(role: RoleSpec) -> dict[str, Any]:
    blocks = {"podTemplate": role.templates, "manifest": role.manifests}
    return {**role.replica, **role.pod, **{name: _merge_blocks(each) for name, each in blocks.items() if each}}


def _merge_blocks(blocks: Iterable[Any]) -> Any:
    merged: Any = {}
    for block in blocks:
        merged = merge(merged, block, [])
    return merged


def _explain_job_field(marked: MarkedSpec, path: tuple[Step, ...]) -> Iterator[_Leaf]:
    """Explain a field of the job, also where only a patch of the manifest sets it."""
    spec = marked.spec
    fields = {**spec.fields, **marked.choice}
    if spec.manifests:
        fields["manifest"] = _merge_blocks(spec.manifests)
    failure, seen = None, set[tuple[Step, ...]]()
    try:
        for leaf in explain_path(fields, path):
            values = tuple(_find_rendered(marked, fields, leaf))
            seen.update(place for value in values for place, _ in value.rendered)
            yield _Leaf("", leaf.path, leaf.path, values)
    except NoSuchFieldError as error:
        failure = error if len(path) > 1 else NoSuchFieldError(error.step, [*FIELDS, *spec.fields])
    others = [leaf for leaf in _explain_mapped(marked, path) if leaf.values[0].rendered[0][0] not in seen]
    yield from others
    if failure and not others:
        raise failure


def _explain_mapped(marked: MarkedSpec, path: tuple[Step, ...]) -> Iterator[_Leaf]:
    """Explain the fields of the object to which the kind maps a field of the job."""
    names = [str(step) for step in path]
    for length in range(len(names), 0, -1):
        mapping = marked.spec.kind.fields.get(".".join(names[:length]))
        if mapping is None or mapping.at[0] == "template":
            continue
        at = (*mapping.at, *path[length:])
        with suppress(NoSuchFieldError):
            for leaf in explain_path(marked.object, at):
                yield _take_leaf(marked, "", (*path, *leaf.path[len(at) :]), leaf)
        return


def _find_rendered(marked: MarkedSpec, fields: Mapping[str, Any], leaf: ExplainedValue) -> Iterator[ExplainedSpecValue]:
    """Explain a leaf of the spec: with later patches, once for each value that it has in the object."""
    own = tuple(_resolve(marked, leaf.assignments))
    by_patches: dict[tuple[Location | None, ...], tuple[list[Assignment], list[Any]]] = {}
    for path, patches, node in _find_places(marked, fields, leaf):
        key = tuple(each.location for each in patches)
        by_patches.setdefault(key, (patches, []))[1].append((path, node))
    if not by_patches:
        yield ExplainedSpecValue(leaf.path, own, ())
    for patches, rendered in by_patches.values():
        yield ExplainedSpecValue(leaf.path, (*patches, *own), tuple(rendered))


def _find_places(
    marked: MarkedSpec, fields: Mapping[str, Any], leaf: ExplainedValue
) -> Iterator[tuple[tuple[Step, ...], list[Assignment], Node]]:
    """The leaves of the object that come from a leaf of the spec, and the assignments that override it there.

    A value that only says how another is rendered, such as `env: true` of a Secret, is where the keys around it are.
    """
    marks = [leaf.assignments[0].location, *_list_keys(fields, leaf.path)]
    mark = next((mark for mark in marks if mark in marked.places), None)
    for path in _SELECTED if leaf.path[0] in CHOICES else ():
        yield path, [], next(explain_path(marked.object, path)).assignments[0].value
    for path, assignments in marked.places.get(mark, ()) if mark else ():
        at = next(index for index, each in enumerate(assignments) if mark in (each.location, *each.others))
        yield path, list(_resolve(marked, assignments[:at])), assignments[0].value


def _list_keys(tree: Any, path: tuple[Step, ...]) -> list[Location]:
    """The locations of the keys on a path, the last first."""
    found: list[Location] = []
    for step in path:
        if isinstance(tree, dict):
            found += [key.location for key in tree if key == step and isinstance(key, TracedKey)]
            tree = tree.get(str(step))
        elif isinstance(tree, list) and isinstance(step, int):
            tree = tree[step]
    return found[::-1]


def _resolve(marked: MarkedSpec, assignments: Iterable[Assignment]) -> Iterator[Assignment]:
    for each in assignments:
        yield Assignment(each.value, each.layer, marked.marks.resolve(each.location))
