"""Apply the patches of a kustomization: strategic merges and JSON patches, to one object or to those of a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from jobgen.k8s.nodes import as_mapping, get_path, list_mappings
from jobgen.kustomize.field_specs import KNOWN_TYPES
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.resource import Resource, identify
from jobgen.kustomize.select import PatternError, select
from jobgen.model.budget import Work, charge
from jobgen.model.data import Node, TracedList, TracedScalar, count_nodes, is_null, override, value_of, with_value
from jobgen.model.finding import Problem, Severity
from jobgen.model.meant import find_meant
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence, Words
from jobgen.model.suggest import did_you_mean, list_alternatives, suggest_name
from jobgen.spec.json_patch import apply_json_patch, copy_containers

# Merge a strategic merge patch into an object as kustomize does.

_DIRECTIVE = "$patch"
_SCHEMA_STEPS = 8
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


def _to_schema(keys: Mapping[tuple[str, ...], tuple[str, ...]]) -> Schema:
    names = dict.fromkeys(path[0] for path in keys if path)
    nested = {name: {path[1:]: found for path, found in keys.items() if path[:1] == (name,)} for name in names}
    return Schema(MappingProxyType({name: _to_schema(found) for name, found in nested.items()}), keys.get(()))


@lru_cache(maxsize=1)
def _built_in() -> Schemas:
    schemas: dict[tuple[str, str], Schema] = {}
    for api_version, kind in KNOWN_TYPES:
        keys = {**_METADATA_KEYS, ("status", "conditions"): ("type",), **_KIND_KEYS.get(kind, {})}
        if kind in _POD_PATHS:
            path = _POD_PATHS[kind]
            keys |= {(*path, "spec", *below): found for below, found in _POD_KEYS.items()}
            keys |= {(*path, *below): found for below, found in _METADATA_KEYS.items()}
        schemas[api_version, kind] = _to_schema(keys)
    return schemas


class MergeError(Exception):
    """A patch or a replacement that kustomize cannot apply; the node at fault has the location."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


class Replaced(NamedTuple):
    """A list of a custom resource that a patch replaces, and with it fields that the patch does not repeat."""

    patch: Node
    base: Node
    item: str
    """The name of the item that is in both lists."""
    lost: Sequence[str]
    """The fields of the item that only the object has."""
    is_needed: bool
    """True if no pod starts without one of the fields."""


def merge_patch(
    base: dict[str, Any],
    patch: Mapping[str, Any],
    schemas: Schemas | None = None,
    replaced: list[Replaced] | None = None,
) -> dict[str, Any] | None:
    """Return an object with a patch merged into it, None if the patch deletes it; raise MergeError if that fails.

    Where a patch replaces a list, so that a container loses its image, the list is merged as it was meant.
    """
    merged = _Merge(_built_in() if schemas is None else schemas, replaced).merge(base, patch, None)
    return merged if isinstance(merged, dict) else None


_NAMES = ("name", "groupName")
_MEANT = Schema(MappingProxyType({}), ("name",))


def _find_replaced(base: Any, patch: Any) -> Replaced | None:
    """Return the first item of a list that loses fields if a patch replaces the list; None if none does."""
    for item in patch:
        key = next((each for each in _NAMES if isinstance(item, dict) and text_of(item.get(each))), None)
        if key is None or _DIRECTIVE in item:
            continue
        name = text_of(item[key])
        lost = _list_lost(_find_item(base, [(key, name)]), item)
        if lost:
            fields = [path.rpartition(".")[2] for path, _ in lost]
            is_needed = "image" in fields or "containers" in fields or any(_has_pod(node) for _, node in lost)
            return Replaced(patch, base, name, [path for path, _ in lost], is_needed)
    return None


def _list_lost(base: Any, patch: Any, path: str = "") -> list[tuple[str, Node]]:
    """Return the fields that only the mapping of the object has, in mappings that both have."""
    if not isinstance(base, dict) or not isinstance(patch, dict) or _directive(patch):
        return []
    lost: list[tuple[str, Node]] = []
    for key, value in base.items():
        if key not in patch:
            lost.append((f"{path}{key}", value))
        else:
            lost += _list_lost(value, patch[key], f"{path}{key}.")
    return lost


def _has_pod(node: Any) -> bool:
    """Return True for a mapping that has the containers of a pod below it."""
    return isinstance(node, dict) and ("containers" in node or any(map(_has_pod, node.values())))


class _Merge(NamedTuple):
    """One merge; `None` is a field that is missing, as opposed to a `null`."""

    schemas: Schemas
    replaced: list[Replaced] | None = None

    def merge(self, base: Any, patch: Any, schema: Schema | None) -> Any:
        """Return the merged value; None deletes the field."""
        shape = _shape(base) or _shape(patch)
        if shape is None:
            # Only an explicit `null` that the patch does not mention is kept: one with a text, such as `~`.
            is_empty = type(base) is TracedScalar and not base.written
            is_empty = is_empty and base.location.end_column <= base.location.column
            return base if patch is None and base is not None and not is_empty else None
        for node in (base, patch):
            if node is not None and _shape(node) not in (None, shape):
                names: dict[type | None, str] = {dict: "a mapping", list: "a list"}
                one, other = (names.get(_shape(each), "a scalar") for each in (patch, base))
                raise MergeError(f"the patch has {one} where the object has {other}", patch)
        if shape is dict:
            # An object that is not part of another schema may have one of its own.
            for node in (base, patch):
                if schema is None and isinstance(node, dict):
                    schema = self.schemas.get((text_of(node.get("apiVersion")), text_of(node.get("kind"))))
            return self.merge_mappings(base, patch, schema)
        if shape is list and schema is not None and schema.keys is not None:
            return self.merge_lists(base, patch, schema)
        if patch is None:
            return base
        if is_null(patch):
            return None
        return self.replace(base, patch, schema)

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
        charge(Work.BUILD, 2 * len(base))
        for key in [*base, *(key for key in patch or () if key not in base)]:
            if key == _DIRECTIVE:
                continue
            below = schema.step(key) if schema else None
            value = self.merge(base.get(key), patch.get(key) if patch else None, below)
            if value is not None:
                merged[key] = value
        return merged or (base if not base else {})

    def replace(self, base: Any, patch: Any, schema: Schema | None) -> Any:
        """Replace a scalar or a list, and note what the list of a custom resource loses."""
        if base is None or base is patch:
            return patch
        is_noted = schema is None and self.replaced is not None and isinstance(patch, list)
        found = _find_replaced(base, patch) if is_noted else None
        if self.replaced is None or found is None:
            return override(patch, base)
        self.replaced.append(found)
        # The findings of the object are about what was meant: what follows from the loss is the same fault.
        return self.merge_lists(base, patch, _MEANT) if found.is_needed else override(patch, base)

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
        if schema.keys:
            return _like(base, self.merge_keyed(base, patch, schema.keys, schema))
        # Scalars: those of the patch come first, each once.
        united: dict[str, Any] = {}
        for item in (*(patch or ()), *base):
            united.setdefault(text_of(item), item)
        return _like(base, list(united.values()))

    def merge_keyed(self, base: Any, patch: Any, keys: Sequence[str], schema: Schema) -> list[Any]:
        """Merge items by keys: those of the patch come first, in its order."""
        every = [*(patch or ()), *base]
        # Each item is looked up among all others.
        charge(Work.BUILD, len(every) * len(every))
        values_of = (tuple(text_of(as_mapping(item).get(key)) for key in keys) for item in every)
        identities = [list(identity) for identity in dict.fromkeys(values_of)]
        if len(keys) > 1:
            _complete(identities)
        used = [key for at, key in enumerate(keys) if any(identity[at] for identity in identities)] or list(keys)
        items: list[Any] = []
        rest = list(base)
        for identity in identities:
            values = [value for key, value in zip(keys, identity, strict=True) if key in used]
            # An item is looked up by the keys that it has.
            pairs = list(zip(used, values, strict=True))
            wanted = [pair for pair in pairs if pair[1]] or pairs
            found = _find_item(rest, wanted)
            value = self.merge(found, _find_item(patch or (), wanted), schema.step("[]"))
            if value is None or value == {}:
                rest = _set_item(rest, None, used, values)
                continue
            for key, text in pairs:
                if key not in value and text:
                    value[key] = next(item[key] for item in every if text_of(item.get(key)) == text)
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


def _directive(node: Any) -> str:
    return text_of(node[_DIRECTIVE]) if isinstance(node, dict) and _DIRECTIVE in node else ""


def _shape(node: Any) -> type | None:
    """Return the type of a node: a mapping, a list or a scalar; None if it is missing or null."""
    if isinstance(node, dict):
        return dict
    if isinstance(node, list):
        return list
    return None if value_of(node) is None else str


def _like(pattern: Any, items: list[Any]) -> list[Any]:
    """Return a list with the location of another."""
    if type(pattern) is not TracedList:
        return items
    return TracedList(items, pattern.location, pattern.layer, pattern.overridden)


def read_openapi(document: Any) -> Schemas:
    """Return the schemas of an OpenAPI document, together with those that kustomize knows."""
    definitions = document.get("definitions") if isinstance(document, dict) else None
    found = dict(_built_in())
    for definition in definitions.values() if isinstance(definitions, dict) else ():
        types = definition.get("x-kubernetes-group-version-kind") if isinstance(definition, dict) else None
        for each in types if isinstance(types, list) else ():
            if isinstance(each, dict):
                group, version = each.get("group") or "", each.get("version") or ""
                keys = dict(_walk_openapi(definition, definitions, (), ()))
                found[f"{group}/{version}" if group else str(version), str(each.get("kind"))] = _to_schema(keys)
    return MappingProxyType(found)


def _walk_openapi(
    schema: Any, definitions: Any, path: tuple[str, ...], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    charge(Work.BUILD, _SCHEMA_STEPS)
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
        yield from _walk_openapi(below, definitions, (*path, name), above)
    for keyword, step in (("items", "[]"), ("additionalProperties", "*")):
        if isinstance(schema.get(keyword), dict):
            yield from _walk_openapi(schema[keyword], definitions, (*path, step), above)


_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


class Patch(NamedTuple):
    """A patch of a kustomization, read."""

    documents: Sequence[Any]
    """Strategic merge patches, or one list of JSON patch operations."""
    listed: Node
    target: Mapping[str, Any] | None = None
    allow_name_change: bool = False
    allow_kind_change: bool = False
    stores_names: bool = True
    """True if JSON patches keep the name that an object had; those of `patchesJson6902` do not."""


class Applied(NamedTuple):
    """The objects after a patch, what is wrong with it, and what jobgen could not do."""

    resources: list[Resource]
    problems: Sequence[Problem] = ()
    unbuilt: Sequence[str] = ()


def apply_patch(resources: list[Resource], patch: Patch, schemas: Schemas | None, *, is_complete: bool) -> Applied:
    """Apply a patch. Without all objects of the build, a patch that matches nothing is not reported."""
    if patch.target is not None or any(isinstance(document, list) for document in patch.documents):
        return _apply_to_target(resources, patch, schemas, is_complete=is_complete)
    problems: list[Problem] = []
    for document in patch.documents:
        wanted = identify(document)
        found = [each for each in resources if wanted == each.id or wanted in each.previous_ids]
        if len(found) == 1:
            resources = _merge(resources, found[0], document, patch, schemas, problems)
        elif found:
            message = Sentence("{} is the name of {} objects; add a `target` to the patch", wanted, len(found))
            problems.append(_fail(message, document))
        elif is_complete:
            problems.append(_report_unmatched(document, patch, resources))
    return Applied(resources, problems)


def _apply_to_target(resources: list[Resource], patch: Patch, schemas: Schemas | None, *, is_complete: bool) -> Applied:
    """Merge a patch, or apply its operations, to the objects that its target selects."""
    is_merge = not any(isinstance(document, list) for document in patch.documents)
    operations = [each for document in patch.documents if isinstance(document, list) for each in document]
    faults = [_fail(_describe_operation(each), each) for each in operations if not _is_valid(each)]
    if not faults and patch.target is None:
        faults = [_fail("a JSON patch needs a `target`; add it", patch.listed)]
    if is_merge and len(patch.documents) > 1:
        message = "a patch with a `target` must have one document; list each document as a patch of its own"
        faults = [_fail(message, patch.listed)]
    if faults or patch.target is None:
        return Applied(resources, faults)
    try:
        selected = select(resources, patch.target)
    except PatternError as error:
        return Applied(resources, unbuilt=(f"the `target` of a patch: {error}",))
    problems = [_report_unused_target(patch.target, resources)] if is_complete and not selected else []
    for resource in selected:
        if is_merge:
            resources = _merge(resources, resource, patch.documents[0], patch, schemas, problems)
            continue
        if patch.stores_names:
            resource.store_id()
        failed: list[Problem] = []
        charge(Work.BUILD, count_nodes(resource.node) + 4 * len(operations))
        changed = apply_json_patch(resource.node, operations, failed, replaces_missing=True)
        problems += [
            _fail(Sentence("{}; this patch is applied to {}", each.sentence, resource.id), each.node)
            for each in failed[:1]
        ]
        resource.node = copy_containers(changed)
    return Applied(resources, problems)


def _merge(
    resources: list[Resource],
    resource: Resource,
    document: Mapping[str, Any],
    patch: Patch,
    schemas: Schemas | None,
    problems: list[Problem],
) -> list[Resource]:
    """Merge a document into an object; return all objects, without it if the patch deletes it."""
    metadata = as_mapping(document.get("metadata"))
    ignored = {"namespace"} if patch.allow_name_change else {"namespace", "name"}
    kept = {key: value for key, value in metadata.items() if key not in ignored}
    if patch.target is not None:
        kept = {key: texts for key, value in kept.items() if (texts := _to_texts(key, value)) is not None}
    fields = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata")}
    if kept or not isinstance(document.get("metadata"), dict):
        fields |= {key: kept for key in document if key == "metadata"}
    if patch.allow_kind_change:
        fields |= {key: document[key] for key in document if key == "kind"}
    replaced: list[Replaced] = []
    try:
        merged = merge_patch(resource.node, fields, schemas, replaced)
    except MergeError as error:
        problems.append(_fail(Sentence("{}; write the same type as {}", error, resource.id), error.node))
        return resources
    problems += [_report_replaced(each, resource) for each in replaced]
    if merged is None:
        return [each for each in resources if each is not resource]
    problems += _list_added_containers(resource, fields)
    if patch.allow_name_change or patch.allow_kind_change:
        resource.store_id()
    resource.node = merged
    return resources


def _list_added_containers(resource: Resource, fields: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield each container that a patch adds, and that is one slip away from a container of the object."""
    path = _POD_PATHS.get(resource.kind)
    if path is None:
        return
    patched = as_mapping(get_path(fields, *path, "spec"))
    for field in ("containers", "initContainers"):
        added = [each for each in list_mappings(patched.get(field)) if "image" in each and _DIRECTIVE not in each]
        if not added:
            continue
        known = [text_of(each.get("name")) for each in list_mappings(get_path(resource.node, *path, "spec", field))]
        for each in added:
            name = text_of(each.get("name"))
            # A container without an image has an error of its own.
            if name and name not in known and (meant := find_meant(name, known)):
                message = Sentence(
                    "the patch adds a container `{}` to {}; did you mean `{}`?", name, resource.id, meant
                )
                yield Problem("patch-matches-nothing", message, each["name"], severity=Severity.WARNING)


def _report_replaced(replaced: Replaced, resource: Resource) -> Problem:
    shown = [f"`{field}`" for field in replaced.lost[:_MOST_SHOWN]]
    rest = len(replaced.lost) - len(shown)
    fields = ", ".join(shown) + (f" and {rest} more" if rest else "")
    verb = "is" if len(replaced.lost) == 1 else "are"
    message = Sentence(
        "kustomize replaces lists of a custom resource, so {} of `{}` {} lost in {} `{}`; use a JSON patch "
        "of the one field, or repeat the whole item",
        fields,
        replaced.item,
        verb,
        resource.id.kind,
        resource.id.name,
    )
    severity = Severity.ERROR if replaced.is_needed else Severity.WARNING
    related = ((replaced.base, "the list that is replaced"),)
    return Problem("patch-replaces-list", message, replaced.patch, related, "gitops", severity)


_MOST_SHOWN = 4


def _to_texts(field: str, node: Any) -> Any:
    """Return labels or annotations as texts, None if they are empty: kustomize writes those of such patches anew."""
    if field not in ("labels", "annotations"):
        return node
    return {
        key: with_value(value, "null" if is_null(value) else text_of(value)) for key, value in as_mapping(node).items()
    } or None


def _is_valid(operation: Any) -> bool:
    fields = as_mapping(operation)
    return text_of(fields.get("op")) in _OPERATIONS and isinstance(value_of(fields.get("path")), str)


_OTHER_OPERATIONS = {"append": "add", "change": "replace", "delete": "remove", "insert": "add", "set": "replace"}
_OTHER_OPERATIONS |= {"update": "replace"}


def _describe_operation(operation: Any) -> str:
    """Say what is wrong with an operation."""
    fields = as_mapping(operation)
    op = text_of(fields.get("op"))
    if not op or op in _OPERATIONS:
        return "an operation needs `op` and `path`; add them"
    meant = _OTHER_OPERATIONS.get(op.lower()) or find_meant(op, _OPERATIONS)
    advice = f"write `{meant}`" if meant else f"write {list_alternatives(f'`{each}`' for each in _OPERATIONS)}"
    return f"`op` is `{op}`, which is not an operation of a JSON patch; {advice}"


def _report_unmatched(document: Any, patch: Patch, resources: Sequence[Resource]) -> Problem:
    wanted = identify(document)
    alike = [each.original_id for each in resources if each.original_id.kind == wanted.kind]
    for found in alike:
        if found.name == wanted.name:
            field, value = ("apiVersion", f"{found.group}/{found.version}".lstrip("/"))
            if found[:2] == wanted[:2]:
                field, value = "namespace", found.namespace
            message = Sentence(
                "{} is in this build only with another `{}`; write `{}: {}`", wanted, field, field, value
            )
            break
    else:
        hint = suggest_name(wanted.name, [found.name for found in alike])
        message = Sentence(
            "{} `{}` is not in this build, so kustomize refuses the patch{}", wanted.kind, wanted.name, hint
        )
    node = as_mapping(document.get("metadata")).get("name", document)
    return Problem("patch-matches-nothing", message, node, related=((patch.listed, "listed here"),))


def _report_unused_target(target: Mapping[str, Any], resources: Sequence[Resource]) -> Problem:
    shown = ", ".join(f"{name} `{text_of(node)}`" for name, node in target.items())
    wanted = text_of(target.get("name"))
    alike = [each for each in resources if text_of(target.get("kind")) in ("", each.kind)]
    same = next((each.namespace for each in alike if each.name == wanted and each.namespace), "")
    others = [each.name for each in alike if each.name != wanted]
    hint = f"; the one of this name is in namespace `{same}`" if same else did_you_mean(wanted, others)
    node, kind = target.get("name", target), text_of(target.get("kind"))
    if not hint and kind and not alike and (meant := did_you_mean(kind, sorted({each.kind for each in resources}))):
        hint, node = meant, target["kind"]
    message = Sentence("the target ({}) selects no object of this build, so the patch changes nothing{}", shown, hint)
    return Problem("patch-matches-nothing", message, node, severity=Severity.WARNING)


def _fail(message: Words, node: Node) -> Problem:
    return Problem("kustomize-build-fails", message, node, category="gitops")
