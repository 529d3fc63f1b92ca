"""Explain a value by its path in the job spec: the layers that set it, and where it is in the rendered object."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from jobgen.model.data import Location, Node, TracedKey, untraced, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.rendering.expand import RoleSpec
from jobgen.rendering.pod import CONTAINER_FIELDS, METADATA_FIELDS, POD_FIELDS
from jobgen.rendering.provenance import CHOICES, Assignment, ExplainedValue, MarkedSpec, NoSuchFieldError, explain_path
from jobgen.spec.merge import LIST_KEYS, merge
from jobgen.spec.normalize import FIELDS, ROLE_FIELDS

_SIDES = ("limits", "requests")
_MAIN_CONTAINER: tuple[Step, ...] = ("spec", "containers", 0)
_KEYS = {**LIST_KEYS, "sidecars": ("name",)}


def expand_path(path: tuple[Step, ...], written: Node, gpu_resource: str) -> list[tuple[Step, ...]]:
    """The paths in the expanded fields of a role for a path in its fields; `written` are those of the job itself."""
    path = _name_items(path, written)
    match path:
        case ("env", item, *rest):
            # `env` is a map after normalization, whose values are texts or `{valueFrom: …}`.
            if rest in (["value"], ["name"]):
                rest = []
            below = ["valueFrom", *rest] if rest and rest[0] != "valueFrom" else rest
            return [("env", _name_of(item), *below)]
        case ("ports", str() as name):
            # `ports` is a list after normalization.
            return [("ports", NamedItem("name", name), "containerPort")]
        case ("resources", name, *rest) if name not in (*_SIDES, "claims"):
            # An amount outside of `limits` and `requests` counts for both.
            return [("resources", side, gpu_resource if name == "gpu" else name, *rest) for side in _SIDES]
        case ("resources", side, "gpu", *rest):
            return [("resources", side, gpu_resource, *rest)]
        case ("initContainers" | "sidecars" as field, item, *rest):
            # Containers are a map by name after normalization, each with the short forms of a role.
            below = [] if rest == ["name"] else rest
            return [(field, _name_of(item), *steps) for steps in expand_path(tuple(below), None, gpu_resource)]
        case _:
            return [path]


def _name_of(item: Step) -> str:
    return item.value if isinstance(item, NamedItem) else str(item)


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
        case (field, *_) if field == "resources" or field in CONTAINER_FIELDS:
            return (*_MAIN_CONTAINER, *path)
        case (field, *_) if field in POD_FIELDS:
            return ("spec", *path)
        case (field, *_) if field in METADATA_FIELDS:
            return ("metadata", *path)
        case _:
            return ()


def _name_items(path: tuple[Step, ...], written: Node) -> tuple[Step, ...]:
    """The path with names for items of lists that merge by key, as their numbers change with the layers."""
    steps: list[Step] = []
    node: Any = written
    for step in path:
        named: Step = step
        if isinstance(step, int) and isinstance(node, list) and step < len(node):
            node = node[step]
            keys = _KEYS.get(str(steps[-1]), ()) if steps else ()
            # An item that is a text is its name.
            key = keys[0] if keys and isinstance(node, dict) else "name"
            name = value_of(node.get(key) if isinstance(node, dict) else node)
            if keys and isinstance(name, (str, int)):
                named = NamedItem(key, str(name))
        else:
            node = node.get(str(step)) if isinstance(node, dict) else None
        steps.append(named)
    return tuple(steps)


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
        # Some roles may not have the field.
        leaves = _explain_any(_explain_role(marked, name, path, marked.written) for name in marked.spec.roles)
    else:
        leaves = _explain_job_field(marked, path)
    for group in _group(leaves, lambda leaf: leaf.short):
        yield from _merge_leaves(group, len(marked.spec.roles) if field in ROLE_FIELDS else 1)


def list_spec_paths(marked: MarkedSpec) -> Iterator[tuple[Step, ...]]:
    """The paths of all values of a job spec."""
    for field in (*CHOICES, *marked.spec.fields, *sorted(ROLE_FIELDS), "roles", "manifest"):
        with suppress(NoSuchFieldError):
            yield from (value.path for value in explain_spec_path(marked, (field,)))


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


def _explain_any(attempts: Iterable[Iterable[_Leaf]]) -> Iterator[_Leaf]:
    """Yield the leaves of all attempts; raise the last NoSuchFieldError if there are none."""
    failure, found = None, False
    for leaves in attempts:
        try:
            for leaf in leaves:
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
    # An amount may be set for one of the two sides only.
    attempts = (_explain_expanded(marked, name, steps) for steps in expand_path(path, written, gpu_resource))
    for leaf in _explain_any(attempts):
        yield leaf if is_long else leaf._replace(short=shorten_path(leaf.path, gpu_resource))


def _explain_expanded(marked: MarkedSpec, name: str, steps: tuple[Step, ...]) -> Iterator[_Leaf]:
    try:
        for leaf in explain_path(_role_fields(marked.spec.roles[name]), steps):
            yield _Leaf(name, leaf.path, leaf.path, _find_in_joined(marked, name, leaf))
    except NoSuchFieldError:
        found = list(_explain_template(marked, name, steps))
        if not found:
            raise
        yield from found


def _find_in_joined(marked: MarkedSpec, name: str, leaf: ExplainedValue) -> tuple[ExplainedSpecValue, ...]:
    """Explain a leaf of a role; if its pods are joined with those of another role, the object has that role's leaf."""
    kind, roles = marked.spec.kind, marked.spec.roles
    values = tuple(_find_rendered(marked, _role_fields(roles[name]), leaf))
    described = kind.find_role(name)
    spelling = value_of(described.spelling) if described else name
    is_joined = kind.shape == "item" or spelling not in [value_of(item.key) for item in kind.list_items(marked.object)]
    if any(value.rendered for value in values) or not is_joined:
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
    for field in ("apiVersion", "kind") if leaf.path[0] in CHOICES else ():
        yield (field,), [], next(explain_path(marked.object, (field,))).assignments[0].value
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
