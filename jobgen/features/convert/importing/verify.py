"""Render a spec, and compare the object with the manifest that the spec came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jobgen.model.data import Node, Plain, value_of
from jobgen.model.finding import Problem
from jobgen.model.path import NamedItem, Step, format_dotted
from jobgen.model.quantity import canonicalize_quantity
from jobgen.rendering import config
from jobgen.rendering.build import build_objects
from jobgen.rendering.expand import Expander, JobDocument
from jobgen.spec.frameworks import collect_frameworks
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import LIST_KEYS, Deletion, merge
from jobgen.spec.overlay import Cluster, Environment, Patch
from jobgen.yamlio.write import to_inline_yaml

_QUANTITY_MAPS = frozenset(("limits", "requests"))
# Lists without a meaningful order, and the key of their items.
_UNORDERED = {"volumes": "name", "volumeMounts": "mountPath"}
_KEYED = {**_UNORDERED, "containers": "name", "initContainers": "name", "env": "name", "replicaSpecs": "type"}

NO_VERSIONS: Mapping[str, str] = MappingProxyType({})

Difference = tuple[tuple[Step, ...], Plain, Plain]
"""A path, the expected value and the actual value; None for a missing value."""


def renderer_for(platform: str, kinds: Sequence[Kind], operators: Mapping[str, str] = NO_VERSIONS) -> Expander:
    """An expander for an environment of which only the platform is known, and maybe the versions of its operators."""
    return Expander(Environment("", Cluster(platform=platform, operators=operators)), list(kinds))


def render_spec(
    document: dict[str, Plain], renderer: Expander, *, alone: bool = True, patches: Sequence[Patch] = ()
) -> tuple[dict[str, Plain] | None, list[str]]:
    """The object that a spec renders to, and error messages.

    A null that deletes nothing is an error if the spec is `alone`; otherwise it may be meant for an overlay. `patches`
    are those of overlays for this job.
    """
    objects, messages = render_objects(document, renderer, alone=alone, patches=patches)
    return next(iter(objects), None), messages


def render_objects(
    document: dict[str, Plain],
    renderer: Expander,
    *,
    alone: bool = True,
    patches: Sequence[Patch] = (),
    file: str = "",
) -> tuple[tuple[dict[str, Plain], ...], list[str]]:
    """The object that a spec in a file renders to and its companions, and error messages."""
    errors = config.find_errors(document, "trainingjob", collect_frameworks(tuple(renderer.kinds)))
    if errors:
        return (), [str(error.sentence) for error in errors]
    problems: list[Problem] = []
    deletions: list[Deletion] = []
    rendered: Any = build_objects(JobDocument(document, file), renderer, list(patches), problems, deletions)
    hits = {(id(deletion.asked_by), deletion.key) for deletion in deletions if deletion.found}
    missed = [each for each in deletions if not each.found and (id(each.asked_by), each.key) not in hits]
    failed = [
        each.fault or f"`{each.key}` cannot be deleted, because it is not set" for each in missed if alone or each.fault
    ]
    return rendered, [*(str(problem.sentence) for problem in problems), *failed]


def leave_out_namespace(rendered: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return an object without its namespace."""
    metadata = rendered.get("metadata")
    if not isinstance(metadata, dict):
        return dict(rendered)
    return {**rendered, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}


def is_equivalent(one: Plain, other: Plain, name: str = "", parent: str = "") -> bool:
    """Return True if two nodes mean the same: quantities by value, volumes and mounts in any order, all else exactly.

    `name` is the key of the nodes, `parent` the key above it.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equivalent(one[key], other[key], str(key), name) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        by = _UNORDERED.get(name)
        pairs = zip(_sort_items(one, by), _sort_items(other, by), strict=True)
        return all(is_equivalent(first, second, "", name) for first, second in pairs)
    if name == "sizeLimit" or parent in _QUANTITY_MAPS:
        return _normalize_quantity(one) == _normalize_quantity(other)
    return type(one) is type(other) and one == other


def _sort_items(items: list[Any], by: str | None) -> list[Any]:
    if by is None or not all(isinstance(item, dict) and isinstance(item.get(by), str) for item in items):
        return items
    return sorted(items, key=lambda item: str(item[by]))


def _normalize_quantity(value: Plain) -> object:
    is_number = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return (canonicalize_quantity(str(value)) or value) if is_number else (type(value).__name__, value)


def find_differences(
    expected: Plain, actual: Plain, path: tuple[Step, ...] = (), name: str = ""
) -> Iterator[Difference]:
    """The places where two objects are not equivalent."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            if key not in expected or key not in actual:
                yield (*path, key), expected.get(key), actual.get(key)
            elif not is_equivalent(expected[key], actual[key], str(key), name):
                yield from find_differences(expected[key], actual[key], (*path, key), str(key))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        by = _UNORDERED.get(name)
        for index, (one, other) in enumerate(zip(_sort_items(expected, by), _sort_items(actual, by), strict=True)):
            if not is_equivalent(one, other, "", name):
                yield from find_differences(one, other, (*path, _step_to(one, name, index)), name)
    elif not is_equivalent(expected, actual, name):
        yield path, expected, actual


def format_differences(differences: Iterable[Difference]) -> Iterator[str]:
    """Return a line for each difference: the path, what the manifest has, and what is rendered."""
    for path, expected, actual in differences:
        yield f"`{format_dotted(path)}`: {to_inline_yaml(expected)} would become {to_inline_yaml(actual)}"


def _step_to(item: Plain, name: str, index: int) -> Step:
    by = _KEYED.get(name)
    value = item.get(by) if by and isinstance(item, dict) else None
    return NamedItem(by, value) if by and isinstance(value, str) else index


_REPLACE = {"$patch": "replace"}


def create_patch(base: Plain, wanted: Mapping[str, Plain], name: str = "") -> dict[str, Plain]:
    """The smallest patch that makes `base` equivalent to `wanted`; nulls delete. `name` is the key of both."""
    old = base if isinstance(base, dict) else {}
    patch: dict[str, Plain] = {key: None for key in old if key not in wanted}
    for key, value in wanted.items():
        if key in old and is_equivalent(old[key], value, key, name):
            continue
        below = old.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            patch[key] = create_patch(below, value, key)
        elif isinstance(value, list):
            patch[key] = _create_list_patch(below, value, key)
        else:
            patch[key] = value
    return patch


def _create_list_patch(base: Any, wanted: list[Any], name: str) -> list[Any]:
    """A patch by item keys where Kubernetes has them; the whole list otherwise, or if that patch does not suffice."""
    keys = LIST_KEYS.get(name)
    if keys and isinstance(base, list) and _have_unique_keys(base, keys) and _have_unique_keys(wanted, keys):
        patch = _create_item_patches(base, wanted, name, keys)
        if is_equivalent(merge({name: base}, {name: patch}, [])[name], wanted, name):
            return patch
    # A list without keys is replaced as a whole anyway.
    return [_REPLACE, *wanted] if keys and base and _are_keyed(wanted, keys) else wanted


def _create_item_patches(base: list[Any], wanted: list[Any], name: str, keys: tuple[str, ...]) -> list[Any]:
    old_items = {_identity(item, keys): item for item in base}
    new_items = {_identity(item, keys): item for item in wanted}
    patch: list[Any] = [
        {**_select_keys(item, keys), "$patch": "delete"} for key, item in old_items.items() if key not in new_items
    ]
    for key, item in new_items.items():
        if key not in old_items:
            patch.append(item)
        elif not is_equivalent(old_items[key], item, "", name):
            patch.append({**_select_keys(item, keys), **create_patch(old_items[key], item)})
    return patch


def _have_unique_keys(items: list[Any], keys: tuple[str, ...]) -> bool:
    return _are_keyed(items, keys) and len({_identity(item, keys) for item in items}) == len(items)


def _are_keyed(items: list[Any], keys: tuple[str, ...]) -> bool:
    """Return True if `merge` merges a list by keys; otherwise it replaces the list."""
    return all(isinstance(item, dict) and keys[0] in item and not _has_nested_key(item, keys) for item in items)


def _has_nested_key(item: dict[str, Any], keys: tuple[str, ...]) -> bool:
    return any(isinstance(item.get(key), (dict, list)) for key in keys)


def find_duplicate_items(tree: Node, name: str = "") -> Iterator[tuple[Node, str]]:
    """List items with the same key as another item, and the name of their list; no patch can distinguish them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from find_duplicate_items(value, str(key))
    elif isinstance(tree, list):
        keys = LIST_KEYS.get(name)
        seen: set[tuple[str, ...]] = set()
        for item in tree:
            if keys and isinstance(item, dict) and keys[0] in item:
                identity = _identity({key: value_of(item[key]) for key in keys if key in item}, keys)
                if identity in seen:
                    yield item[keys[0]], name
                seen.add(identity)
            yield from find_duplicate_items(item)


def _identity(item: dict[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(repr(item.get(key, "TCP" if key == "protocol" else None)) for key in keys)


def _select_keys(item: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: item[key] for key in keys if key in item}
