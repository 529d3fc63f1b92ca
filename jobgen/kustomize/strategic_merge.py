"""Merge a strategic merge patch into an object as kustomize does.

Lists of Kubernetes' own kinds merge by the keys below, and new items come first; lists of other kinds are replaced,
unless an OpenAPI schema names their keys. `null` deletes, `$patch` deletes or replaces. The steps are those of
kustomize, also where a merge of Kubernetes has another result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from jobgen.kustomize.field_specs import KNOWN_TYPES
from jobgen.kustomize.kustomization import text_of
from jobgen.model.data import (
    Node,
    TracedList,
    TracedScalar,
    is_null,
    override,
    value_of,
)
from jobgen.model.limits import Budget

_DIRECTIVE = "$patch"
_MAX_SCHEMA_STEPS = 500_000
_CONTAINER_KEYS = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
}
_METADATA_KEYS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("metadata", "finalizers"): (),
    ("metadata", "ownerReferences"): ("uid",),
}
_POD_KEYS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("hostAliases",): ("ip",),
    ("imagePullSecrets",): ("name",),
    ("topologySpreadConstraints",): ("topologyKey", "whenUnsatisfiable"),
    ("volumes",): ("name",),
    **{(each,): ("name",) for each in ("containers", "initContainers", "ephemeralContainers")},
    **{
        (each, "[]", field): keys
        for each in ("containers", "initContainers", "ephemeralContainers")
        for field, keys in _CONTAINER_KEYS.items()
        if (each, field) != ("ephemeralContainers", "ports")
    },
    **{("volumes", "[]", "ephemeral", "volumeClaimTemplate", *path): keys for path, keys in _METADATA_KEYS.items()},
}
_TEMPLATE = ("spec", "template")
_POD_PATHS: dict[str, tuple[str, ...]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Job", "ReplicationController"), _TEMPLATE
    ),
}
_KIND_KEYS: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {
    "MutatingWebhookConfiguration": {("webhooks",): ("name",)},
    "ValidatingWebhookConfiguration": {("webhooks",): ("name",)},
    "Service": {("spec", "ports"): ("port", "protocol")},
    "ServiceAccount": {("secrets",): ("name",)},
    "CSINode": {("spec", "drivers"): ("name",)},
    "Node": {("spec", "podCIDRs"): ()},
}


def _list_keys(kind: str) -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of the lists of a known kind, by their paths."""
    keys = {**_METADATA_KEYS, ("status", "conditions"): ("type",), **_KIND_KEYS.get(kind, {})}
    if kind in _POD_PATHS:
        path = _POD_PATHS[kind]
        keys |= {(*path, "spec", *below): found for below, found in _POD_KEYS.items()}
        keys |= {(*path, *below): found for below, found in _METADATA_KEYS.items()}
    return MappingProxyType(keys)


class Schema(NamedTuple):
    """Which lists at a place of an object, and below it, merge by keys."""

    below: Mapping[str, Schema]
    """By the names of fields; `*` is any field, `[]` the items of a list."""
    keys: tuple[str, ...] | None = None
    """The keys of the list's items, none if they are scalars; None if the list is replaced."""

    def step(self, name: str) -> Schema | None:
        """Return the schema of a field, or of the items of a list (`[]`)."""
        return self.below.get(name) or (self.below.get("*") if name != "[]" else None)


Schemas = Mapping[tuple[str, str], Schema]
"""The schemas of objects, by apiVersion and kind."""


def _to_schema(keys: Mapping[tuple[str, ...], tuple[str, ...]]) -> Schema:
    """Return the schema of lists that are given by their paths."""
    names = dict.fromkeys(path[0] for path in keys if path)
    nested = {name: {path[1:]: found for path, found in keys.items() if path[:1] == (name,)} for name in names}
    return Schema(MappingProxyType({name: _to_schema(found) for name, found in nested.items()}), keys.get(()))


@lru_cache(maxsize=1)
def _built_in() -> Schemas:
    return MappingProxyType({each: _to_schema(_list_keys(each[1])) for each in KNOWN_TYPES})


class MergeError(Exception):
    """A patch that cannot be merged; the node at fault has the location."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


def merge_patch(
    base: dict[str, Any], patch: Mapping[str, Any], schemas: Schemas | None = None
) -> dict[str, Any] | None:
    """Return an object with a patch merged into it; None if the patch deletes it. Neither is changed.

    Raises:
        MergeError: kustomize cannot merge them.

    """
    merged = _Merge(_built_in() if schemas is None else schemas).merge(base, patch, None)
    return merged if isinstance(merged, dict) else None


class _Merge:
    """One merge; `None` is a field that is missing, as opposed to a `null`."""

    def __init__(self, schemas: Schemas) -> None:
        self.schemas = schemas

    def merge(self, base: Any, patch: Any, schema: Schema | None) -> Any:
        """Return the merged value; None deletes the field."""
        shape = _shape(base) or _shape(patch)
        if shape is None:
            # Only an explicit `null` that the patch does not mention is kept.
            return base if patch is None and base is not None and _is_written_null(base) else None
        for node in (base, patch):
            if node is not None and _shape(node) not in (None, shape):
                raise MergeError(f"the patch has {_name(patch)} where the object has {_name(base)}", patch)
        if shape is dict:
            return self.merge_mappings(base, patch, schema or self.find_schema(base, patch))
        if shape is list and schema is not None and schema.keys is not None:
            return self.merge_lists(base, patch, schema)
        if patch is None:
            return base
        if is_null(patch):
            return None
        return patch if base is None or base is patch else override(patch, base)

    def find_schema(self, base: Any, patch: Any) -> Schema | None:
        """Return the schema of an object that is not part of another schema."""
        for node in (base, patch):
            if isinstance(node, dict):
                found = self.schemas.get((text_of(node.get("apiVersion")), text_of(node.get("kind"))))
                if found is not None:
                    return found
        return None

    def merge_mappings(self, base: Any, patch: Any, schema: Schema | None) -> Any:
        if patch is not None and is_null(patch):
            return None
        directive = _directive(patch)
        if directive == "delete":
            return None
        if not isinstance(base, dict) or directive == "replace":
            # What is new is merged with itself, so that its own directives apply.
            base = patch
        merged: dict[str, Any] = {}
        for key in [*base, *(key for key in patch or () if key not in base)]:
            if key == _DIRECTIVE:
                continue
            below = schema.step(key) if schema else None
            value = self.merge(base.get(key), patch.get(key) if patch else None, below)
            if value is not None:
                merged[key] = value
        return merged or _like_empty(base)

    def merge_lists(self, base: Any, patch: Any, schema: Schema) -> Any:
        if patch is not None and is_null(patch):
            return None
        marker = next((item for item in patch or () if isinstance(item, dict) and list(item) == [_DIRECTIVE]), None)
        if marker is not None:
            patch = _like(patch, [item for item in patch if item is not marker])
            if base is not None and _directive(marker) == "delete":
                return None
            if _directive(marker) == "replace":
                base = patch
        if base is None or is_null(base):
            base = patch
        keys = schema.keys or ()
        result = self.merge_keyed(base, patch, keys, schema) if keys else _unite(base, patch)
        return _like(base, result)

    def merge_keyed(self, base: Any, patch: Any, keys: Sequence[str], schema: Schema) -> list[Any]:
        """Merge items by keys: those of the patch come first, in its order."""
        identities = _list_identities([*(patch or ()), *base], keys)
        if len(keys) > 1:
            _complete(identities)
        used = [key for at, key in enumerate(keys) if any(identity[at] for identity in identities)] or list(keys)
        items: list[Any] = []
        rest = list(base)
        for identity in identities:
            values = [value for key, value in zip(keys, identity, strict=True) if key in used]
            # An item is looked up by the keys that it has.
            wanted = [(key, value) for key, value in zip(used, values, strict=True) if value] or list(
                zip(used, values, strict=True)
            )
            found = _find_item(rest, wanted)
            value = self.merge(found, _find_item(patch or (), wanted), schema.step("[]"))
            if value is None or value == {}:
                rest = _set_item(rest, None, used, values)
                continue
            for key, text in zip(used, values, strict=True):
                if key not in value and text:
                    value[key] = next(item[key] for item in (*(patch or ()), *base) if text_of(item.get(key)) == text)
            if found is not None:
                rest = [value if item is found else item for item in rest]
            items = _set_item(items, value, used, values)
        return _append(items, rest, used)


def _append(items: list[Any], rest: list[Any], keys: Sequence[str]) -> list[Any]:
    """Put the items of the object into the list, in place of those with the same keys."""
    for item in rest:
        values: list[str] = []
        for key in keys:
            if isinstance(item, dict) and text_of(item.get(key)):
                values.append(text_of(item[key]))
            else:
                items = [*items, item]
        if len(keys) > 1:
            items = _set_item(items, None, keys, values)
        items = _set_item(items, item, keys, values)
    return items


def _list_identities(items: Sequence[Any], keys: Sequence[str]) -> list[list[str]]:
    """Return the values of the keys of all items, each once."""
    found: dict[tuple[str, ...], None] = {}
    for item in items:
        found.setdefault(tuple(text_of(item.get(key)) if isinstance(item, dict) else "" for key in keys))
    return [list(identity) for identity in found]


def _complete(identities: list[list[str]]) -> None:
    """Fill what is missing in an identity from another one that agrees with the rest of it."""
    for one, first in enumerate(identities):
        for two, second in enumerate(identities):
            pairs = list(zip(first, second, strict=True))
            if any(a == b for a, b in pairs) and all(a == b or not a or not b for a, b in pairs):
                identities[one] = identities[two] = [a or b for a, b in pairs]


def _find_item(items: Sequence[Any], wanted: Sequence[tuple[str, str]]) -> Any:
    for item in items:
        if isinstance(item, dict) and all(key in item and text_of(item[key]) == value for key, value in wanted):
            return item
    return None


def _set_item(items: Sequence[Any], element: Any, keys: Sequence[str], values: Sequence[str]) -> list[Any]:
    """Replace the items whose keys have some values, or append the element; None deletes them."""
    wanted = list(zip(keys, values, strict=False))
    kept: list[Any] = []
    found = False
    for item in items:
        if is_null(item) or item == {}:
            continue
        if isinstance(item, dict) and all(key in item and text_of(item[key]) == value for key, value in wanted):
            found = True
            if element is not None:
                kept.append(element)
        elif values or not isinstance(item, dict):
            kept.append(item)
    return kept if found or element is None else [*kept, element]


def _unite(base: Sequence[Any], patch: Sequence[Any] | None) -> list[Any]:
    """Join two lists of scalars: those of the patch come first, each once."""
    joined = {text_of(item): item for item in reversed([*(patch or ()), *base])}
    order = dict.fromkeys(text_of(item) for item in [*(patch or ()), *base])
    return [joined[text] for text in order]


def _directive(node: Any) -> str:
    return text_of(node[_DIRECTIVE]) if isinstance(node, dict) and _DIRECTIVE in node else ""


def _shape(node: Any) -> type | None:
    """Return the type of a node: a mapping, a list or a scalar; None if it is missing or null."""
    if isinstance(node, dict):
        return dict
    if isinstance(node, list):
        return list
    return None if value_of(node) is None else str


def _name(node: Any) -> str:
    return "a mapping" if isinstance(node, dict) else "a list" if isinstance(node, list) else "a scalar"


def _is_written_null(node: Any) -> bool:
    """Return True if a null has a text, such as `null` or `~`."""
    if type(node) is not TracedScalar:
        return True
    return bool(node.written) or node.location.end_column > node.location.column


def _like(pattern: Any, items: list[Any]) -> list[Any]:
    """Return a list with the location of another."""
    return (
        TracedList(items, pattern.location, pattern.layer, pattern.overridden) if type(pattern) is TracedList else items
    )


def _like_empty(pattern: Any) -> Any:
    return pattern if not pattern else {}


def read_openapi(document: Any) -> Schemas:
    """Return the schemas of an OpenAPI document, together with those that kustomize knows.

    Raises:
        BudgetExceededError: its definitions refer to each other too often.

    """
    definitions = document.get("definitions") if isinstance(document, dict) else None
    found = dict(_built_in())
    budget = Budget(_MAX_SCHEMA_STEPS)
    for definition in definitions.values() if isinstance(definitions, dict) else ():
        types = definition.get("x-kubernetes-group-version-kind") if isinstance(definition, dict) else None
        for each in types if isinstance(types, list) else ():
            if isinstance(each, dict):
                group, version = each.get("group") or "", each.get("version") or ""
                keys = dict(_walk_openapi(definition, definitions, (), (), budget))
                found[f"{group}/{version}" if group else str(version), str(each.get("kind"))] = _to_schema(keys)
    return MappingProxyType(found)


def _walk_openapi(
    schema: Any, definitions: Any, path: tuple[str, ...], above: tuple[str, ...], budget: Budget
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    budget.spend()
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        name = schema["$ref"].rpartition("/")[2]
        if name in above or len(above) > 20:
            return
        above = (*above, name)
        schema = definitions.get(name)
    if not isinstance(schema, dict) or len(path) > 30:
        return
    if "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
        listed = schema.get("x-kubernetes-list-map-keys")
        single = schema.get("x-kubernetes-patch-merge-key")
        yield path, tuple(map(str, listed)) if isinstance(listed, list) else (str(single),) if single else ()
    properties = schema.get("properties")
    for name, below in properties.items() if isinstance(properties, dict) else ():
        yield from _walk_openapi(below, definitions, (*path, name), above, budget)
    for keyword, step in (("items", "[]"), ("additionalProperties", "*")):
        if isinstance(schema.get(keyword), dict):
            yield from _walk_openapi(schema[keyword], definitions, (*path, step), above, budget)
