"""The keys and values that a document can have at a path, from its schema and from the names of the repository."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jobgen.check.rules.gitops.fields import SERVER_FIELDS
from jobgen.features.editor.completion.items import Item, ItemKind, Rank
from jobgen.features.editor.completion.names import Known, find_keyed_kind, find_named_kind, list_rules
from jobgen.features.editor.completion.schemas import (
    Field,
    NamedKind,
    SchemaNode,
    Value,
    describe_framework,
    find_object_schema,
    list_fields,
    list_forms,
    list_kinds,
    list_types,
    list_values,
    read_definitions,
    read_pointers,
    walk_path,
    write_scalar,
)
from jobgen.features.editor.cursor import Cursor, get_path
from jobgen.features.editor.index import LABEL
from jobgen.k8s.kinds import list_releases
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import API_VERSION, text_of, value_of
from jobgen.model.features import find_parts
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.rendering.config import complete_schemas
from jobgen.repo.layout import PACKS
from jobgen.repo.root import SETTINGS
from jobgen.repo.shipped import read_data
from jobgen.schema.types_of_release import Types
from jobgen.spec.frameworks import Frameworks
from jobgen.spec.kinds import Kind

_KINDS = {"TrainingJob": "trainingjob", "Overlay": "overlay", "Team": "team", "JobTests": "jobtests"}
_FOLDERS = {"jobs/": "trainingjob", "overlays/": "overlay", "teams/": "team", "tests/": "jobtests"}
_PARTS_OF_PODS = {
    "a container": ("core_v1.Container",),
    "a job": ("core_v1.PodSpec", "core_v1.Container"),
    "a role": ("core_v1.PodSpec", "core_v1.Container"),
    "a volume": ("core_v1.Volume",),
    "an env entry": ("core_v1.EnvVar",),
    "resources": ("core_v1.ResourceRequirements",),
}
"""By the title of a part of a job: the types of Kubernetes whose fields it takes over as they are."""
_WHOLE_TYPES = {
    "env": "core_v1.EnvVarSource",
    "managedJobsNamespaceSelector": "meta_v1.LabelSelector",
    "podTemplate": "core_v1.PodTemplateSpec",
}
"""Fields of jobgen that are a type of Kubernetes; below `env`, values from elsewhere."""


_TESTED: Mapping[Step, tuple[Step, ...]] = {"given": (), "change": ("spec",)}
"""Fields of a test that are a job, or a part of one."""


def find_format(file: str, kind: str) -> str:
    """Return the format of a document by its kind and the path of its file; empty if it is a manifest."""
    if file == SETTINGS:
        return "settings"
    if file.startswith("schemas/") and file.count("/") > 1:
        return "kind"
    if kind:
        return _KINDS.get(kind, "")
    return next((name for folder, name in _FOLDERS.items() if file.startswith(folder)), "")


@lru_cache(maxsize=16)
def read_format(name: str, frameworks: Frameworks) -> tuple[SchemaNode, ...]:
    """Return the schema of one of jobgen's formats."""
    file = f"{name}_v1.json"
    schemas = complete_schemas(frameworks)
    return list_forms(SchemaNode(schemas[file], read_pointers(schemas, file)))


def find_own_forms(
    name: str, frameworks: Frameworks, path: Sequence[Step], manifests: Sequence[SchemaNode] = ()
) -> tuple[SchemaNode, ...]:
    """Return the schema at a path. `manifests` has those of the objects that `manifest` is merged into."""

    def refine(parent: SchemaNode, step: Step, form: SchemaNode) -> Sequence[SchemaNode]:
        if step == "manifest" and parent.title in ("a job", "a patch"):
            return manifests
        if parent.title == "a test" and step in _TESTED:
            return walk_path(read_format("trainingjob", frameworks), _TESTED[step])
        if list_types([form]) == ("array",) and isinstance(form.schema.get("items"), dict):
            return (form, *find_pod_types(parent, step)) if not form.schema["items"].keys() - {"type"} else (form,)
        is_open = list_types([form]) == ("object",) and not form.schema.keys() & {"properties", "additionalProperties"}
        return find_pod_types(parent, step) or (form,) if is_open else (form,)

    return walk_path(read_format(name, frameworks), path, refine)


def find_pod_types(parent: SchemaNode, step: Step) -> tuple[SchemaNode, ...]:
    """Return the types of Kubernetes that a field of a job has."""
    owners = _PARTS_OF_PODS.get(parent.title, ())
    found = [form for owner in owners for form in walk_path(_read_type(owner), (step,))]
    name = _WHOLE_TYPES.get(parent.title) or _WHOLE_TYPES.get(str(step))
    return (*found, *(_read_type(name) if name and not found else ()))


@lru_cache(maxsize=64)
def _read_type(name: str) -> tuple[SchemaNode, ...]:
    types: Mapping[str, Any] = Types("", in_crd=True)
    node = read_definitions(types)(name)
    return list_forms(node) if node else ()


BY_FIELD: Mapping[str, str] = read_data("fields.yaml")["values"]
BY_PARENT = {tuple(name.split(".")): text for name, text in read_data("fields.yaml")["valuesBelow"].items()}
ITEMS = {
    "accessModes": "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod",
    "operations": "CREATE UPDATE DELETE CONNECT",
    "policyTypes": "Ingress Egress",
    "validationActions": "Deny Warn Audit",
}


def list_known_values(path: Sequence[Step], forms: Sequence[SchemaNode]) -> Iterator[Value]:
    """Yield the values of a field of Kubernetes that its schema does not list."""
    if list_types(forms) != ("string",) or any("enum" in form.schema for form in forms):
        return
    keys = [step for step in path if isinstance(step, str)]
    if path and isinstance(path[-1], int):
        listed = ITEMS.get(keys[-1] if keys else "", "")
    else:
        listed = BY_PARENT.get((keys[-2], keys[-1]), "") if len(keys) > 1 else ""
        listed = listed or BY_FIELD.get(keys[-1] if keys else "", "")
    yield from map(Value, listed.split())


_COMMON = frozenset(
    """framework replicas image command args resources roles env volumes shm queue name namespace labels annotations
    match merge manifest extends cluster defaults patches platform operators kubernetes gpu cpu memory containers
    volumeMounts ports mountPath key value rules environments apiVersion kind metadata spec template""".split()
)
"""Fields that are used often, in any format."""
_COMMON_BELOW = {"kubernetes": "cluster", "manifest": "patches", "platform": "cluster"}
"""Of these, fields that are used often only there; elsewhere they are an exception."""
_RULE_FIELDS: dict[str, Callable[[NamedKind], str]] = {
    "apiGroups": lambda kind: kind.api_version.rpartition("/")[0],
    "apiVersions": lambda kind: kind.api_version.rpartition("/")[2],
    "resources": lambda kind: kind.plural,
}
"""The fields of a resource rule of a policy, and what kinds have there."""
_RESOURCES = ("cpu", "memory", "ephemeral-storage")


class Document(NamedTuple):
    """The document that a position is in."""

    file: str
    format: str
    """One of jobgen's own formats; empty for a manifest."""
    api_version: str
    kind: str
    data: Any
    is_empty: bool
    """True if nothing, or one word, is typed."""
    typed: str = ""
    """The text before the position, of a key or value."""


def read_document(cursor: Cursor, file: str) -> Document:
    """Return the document that a position is in."""
    data = as_mapping(cursor.tree)
    kind, api_version = text_of(data.get("kind")), text_of(data.get("apiVersion"))
    # A kind or version that is being typed says nothing yet.
    found = find_format(file, "" if cursor.path == ("kind",) else kind)
    is_alone = not data or (len(data) == 1 and cursor.path == (next(iter(data)),) and not cursor.is_complete)
    is_other = api_version not in ("", API_VERSION) and cursor.path != ("apiVersion",)
    if found == "trainingjob" and kind != "TrainingJob" and is_other:
        found = ""
    is_empty = is_alone and len(cursor.path) <= 1
    return Document(file, found, api_version, kind, data, is_empty, cursor.prefix.lstrip("'\""))


def find_forms(path: Sequence[Step], document: Document, known: Known) -> tuple[SchemaNode, ...]:
    """Return the schema at a path of a document."""
    if document.format:
        # A `manifest` is merged into the objects that the job becomes.
        kinds = known.list_job_kinds(_find_framework(document)) if "manifest" in path else ()
        manifests = [
            node
            for kind in kinds
            for node in find_object_schema(known.root, text_of(kind.api_version), kind.name, known.clusters)
        ]
        return find_own_forms(document.format, known.frameworks, path, manifests)
    described = _find_kind(document, known)
    name = described.name if described else document.kind
    return walk_path(find_object_schema(known.root, document.api_version, name, known.clusters), path)


def _find_kind(document: Document, known: Known) -> Kind | None:
    """Return the description of the kind of a manifest, also by another spelling of its name."""
    return next((kind for kind in known.kinds if kind.describes(document.api_version, document.kind)), None)


def _find_framework(document: Document) -> str:
    """Return the framework of a job; empty if it is not known, as in an overlay."""
    spec = as_mapping(document.data.get("spec"))
    return text_of(spec.get("framework")) if document.format == "trainingjob" else ""


def _list_other_blocks(document: Document, known: Known) -> set[str]:
    """Return the blocks of frameworks and platforms that no kind has which a job becomes; none if there is no such."""
    framework, platform = _find_framework(document), text_of(as_mapping(document.data.get("spec")).get("platform"))
    kinds = [kind for kind in known.list_job_kinds(framework) if platform in ("", kind.platform)]
    named = {name for kind in known.kinds for name in kind.frameworks}
    blocks = named | {kind.platform for kind in known.kinds}
    own = {(kind.platform, field.partition(".")[0]) for kind in kinds for field in kind.fields}
    # Of the fields of a kind for several frameworks, a job has those of its own, and those of the platform.
    fitting = {name for place, name in own if name in (framework, place) or name not in named}
    return blocks - {framework} - fitting if kinds else set()


def _list_role_names(path: Sequence[Step], shape: str, document: Document, known: Known) -> Iterator[str]:
    """Yield the names of roles in an object, if its kind has them at a path: as keys, or as values of a field."""
    if not document.format:
        own = _find_kind(document, known)
        kinds, below = [own] if own else [], path
    elif "manifest" in path:
        kinds, below = known.list_job_kinds(_find_framework(document)), path[path.index("manifest") + 1 :]
    else:
        return
    for kind in kinds:
        layout = kind.replicas
        at = tuple(layout.at)
        is_key = shape == "map" and tuple(below) == at
        is_value = shape == "list" and len(below) == len(at) + 2 and tuple(below[: len(at)]) == at
        if layout.shape == shape and (is_key or (is_value and below[-1] == layout.key)):
            yield from (text_of(role.spelling) for role in kind.roles.values() if text_of(role.spelling) != "*")


def list_keys(
    path: Sequence[Step], document: Document, known: Known, taken: Collection[str]
) -> Iterator[tuple[Item, Sequence[str]]]:
    """Yield the keys that the mapping at a path can have, each with the types of its value."""
    forms = find_forms(path, document, known)
    roles: set[str] = set()
    framework = _find_framework(document)
    if path == ("spec", "roles") and framework:
        roles = {role for kind in known.list_job_kinds(framework) for role in kind.frameworks[framework].roles}
    others = _list_other_blocks(document, known) if path == ("spec",) and framework else ()
    for field in list_fields(forms):
        # A job can have only the roles and the blocks of its framework.
        hidden = field.name in taken or field.name in others
        hidden = hidden or (bool(roles) and "*" not in roles and field.name not in roles)
        # Only the cluster sets these.
        is_set = (path[-1:] == ("metadata",) and field.name in SERVER_FIELDS) or (not path and field.name == "status")
        if not hidden and not (is_set and not document.format):
            yield _make_field(field, path), field.types
    if not document.format and not path and not forms:
        for name, types in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object"), ("spec", "object")):
            if name not in taken:
                yield Item(name, ItemKind.FIELD, "", types, "", Rank.REQUIRED), (types,)
    yield from ((item, types) for item, types in _list_named_keys(path, document, known) if item.label not in taken)


def _make_field(field: Field, path: Sequence[Step]) -> Item:
    schema = field.node.schema
    is_common = field.name in _COMMON and _COMMON_BELOW.get(field.name) in (None, *path[-2:])
    rank = Rank.REQUIRED if field.is_required else Rank.COMMON if is_common else Rank.OTHER
    values = [value.text for value in list_values([field.node])]
    is_fixed = not path and field.name in ("apiVersion", "kind") and len(values) == 1
    insert = f"{field.name}: {values[0]}" if is_fixed else ""
    parts = [field.description, f"Default: `{write_scalar(schema['default'])}`" if "default" in schema else ""]
    detail = " or ".join(field.types) + (", required" if field.is_required else "")
    deprecated = "deprecated" if schema.get("deprecated") is True else ""
    return Item(field.name, ItemKind.FIELD, insert, detail, "\n\n".join(filter(None, parts)), rank, deprecated)


def _list_named_keys(path: Sequence[Step], document: Document, known: Known) -> Iterator[tuple[Item, Sequence[str]]]:
    if document.format == "settings" and path == ("rules",):
        for item in list_rules(known.read_docs().values()):
            yield item, ("string",)
        return
    if document.format == "jobtests" and path[-2:-1] == ("values",):
        for list_conditions in find_parts("editor.conditions"):
            yield from ((Item(name, ItemKind.NAME, "", "condition"), ()) for name in list_conditions())
        return
    for name in _list_role_names(path, "map", document, known):
        yield Item(name, ItemKind.NAME, "", "role", "", Rank.REQUIRED), ("object",)
    for name in _list_resources(path, known):
        yield Item(name, ItemKind.NAME, "", "resource"), ("string",)
    kind = find_keyed_kind(path)
    if kind == LABEL:
        for name in sorted(each.removeprefix(LABEL) for each in known.names if each.startswith(LABEL)):
            yield Item(name, ItemKind.NAME, write_scalar(name), "label"), ("string",)
        return
    for name in known.find_names(kind, document.typed):
        yield Item(name, ItemKind.NAME, write_scalar(name), kind), ("object",)


def list_scalars(path: Sequence[Step], document: Document, known: Known, taken: Collection[str]) -> Iterator[Item]:
    """Yield the values that can be written at a path; `taken` has the other items of a list."""
    if path in (("kind",), ("apiVersion",)) and document.format in ("", "trainingjob"):
        yield from _list_kinds(path[0], document, known)
        return
    if document.format == "settings" and path[:1] == ("policies",):
        packs = (Item(pack.name, ItemKind.VALUE, "", "pack of policies", pack.description) for pack in PACKS)
        yield from (item for item in packs if item.label not in taken)
        return
    forms = find_forms(path, document, known)
    is_item = bool(path) and isinstance(path[-1], int)
    is_framework = path[-1:] == ("framework",) or "frameworks" in path[-2:]
    for value in (*list_values(forms), *list_known_values(path, forms)):
        label = value.text.strip('"')
        if is_item and label in taken:
            continue
        reason = describe_framework(label, known.kinds, known.clusters) if is_framework else ""
        is_other = value.text == "null" or (is_framework and not known.list_job_kinds(label))
        rank = Rank.DEPRECATED if reason else Rank.OTHER if is_other else Rank.COMMON
        yield Item(label, ItemKind.VALUE, value.text, value.detail, "", rank, reason)
    if set(list_types(forms)) <= {"object", "array"} and forms:
        return
    yield from (item for item in _list_named_values(path, document, known) if not (is_item and item.label in taken))


def _list_kinds(field: Step, document: Document, known: Known) -> Iterator[Item]:
    """Yield kinds or versions for manifests; those that fit what is written already."""
    if document.format == "trainingjob":
        own = NamedKind(API_VERSION, "TrainingJob", "jobgen")
        yield _make_kind(field, own, document)._replace(rank=Rank.REQUIRED)
        if document.api_version == API_VERSION and field == "kind":
            return
    kinds = list(list_kinds(known.kinds, known.clusters))
    if field == "kind":
        fitting = sorted(kind for kind in kinds if kind.api_version == document.api_version) or kinds
    else:
        fitting = [kind for kind in kinds if kind.name == document.kind] or kinds
    best: dict[object, Item] = {}
    for kind in fitting:
        item = _make_kind(field, kind, document)
        key = item.label, kind.api_version.rpartition("/")[0] if field == "kind" else ""
        # Of several versions of a kind, or kinds of a version, one that is not deprecated counts.
        if key not in best or (best[key].deprecated and not item.deprecated):
            best[key] = item
    yield from best.values()


def _make_kind(field: Step, kind: NamedKind, document: Document) -> Item:
    rank = Rank.DEPRECATED if kind.deprecated else Rank.COMMON
    if field != "kind":
        return Item(kind.api_version, ItemKind.KIND, "", kind.source, "", rank, kind.deprecated)
    # Without a version, the kind brings its own.
    needs_version = "apiVersion" not in document.data and not document.file.endswith(".json")
    above = f"apiVersion: {kind.api_version}" if needs_version else ""
    return Item(kind.name, ItemKind.KIND, "", kind.api_version, "", rank, kind.deprecated, above=above)


def _list_named_values(path: Sequence[Step], document: Document, known: Known) -> Iterator[Item]:
    listed = _list_own_values(path, document, known)
    if listed is not None:
        yield from listed
        return
    for name in _list_role_names(path, "list", document, known):
        yield Item(name, ItemKind.NAME, write_scalar(name), "role")
    holder = get_path(document.data, path[:-1])
    kind = find_named_kind(path, holder)
    last = next((step for step in reversed(path) if isinstance(step, str)), "")
    own = text_of(value_of(as_mapping(holder).get(last)))
    for name in known.find_names(kind, document.typed):
        if name != own or own != text_of(document.data.get(last)):
            yield Item(name, ItemKind.NAME, write_scalar(name), kind.replace(LABEL, "label "))


def _list_own_values(path: Sequence[Step], document: Document, known: Known) -> Iterable[Item] | None:
    """Return the values of some fields of jobgen's own formats, policies and bindings; None of other fields."""
    keys = [step for step in path if isinstance(step, str)]
    match document.format, keys:
        case ("settings", [*_, "mandatory"] | ["exceptions", "rule"]) | ("jobtests", [*_, "expect", "findings"]):
            return list_rules(known.read_docs().values())
        case "overlay" | "settings" | "team", [*_, ("kinds" | "platforms") as last] if "cluster" not in keys:
            found = {kind.name if last == "kinds" else kind.platform: kind.operator for kind in known.kinds}
            return (Item(name, ItemKind.VALUE, "", source) for name, source in sorted(found.items()))
        case "overlay", [*_, "locked"] | [*_, "locked", "field"]:
            fields = list_fields(find_own_forms("trainingjob", known.frameworks, ("spec",)))
            return (Item(field.name, ItemKind.NAME, "", "field of a job", field.description) for field in fields)
        case "overlay" | "settings", [*_, "cluster", "kubernetes"]:
            return (Item(release, ItemKind.VALUE, f'"{release}"', "Kubernetes") for release in list_releases())
        case "kind", ["single"]:
            names = [str(name) for name in as_mapping(document.data.get("roles")) if name != "*"]
            return (Item(name, ItemKind.NAME, write_scalar(name), "role") for name in names)
        case "", [*_, ("apiGroups" | "apiVersions" | "resources") as last] if "resourceRules" in keys:
            # The kinds that fit the fields before this one in the same rule: the groups, then the versions.
            fields_before = list(_RULE_FIELDS)[: list(_RULE_FIELDS).index(last)]
            rule = as_mapping(get_path(document.data, path[: path.index(last)]))
            given = {name: [text_of(each) for each in as_list(rule.get(name))] for name in fields_before}
            found = {
                _RULE_FIELDS[last](kind): kind.name if last == "resources" else ""
                for kind in list_kinds(known.kinds, known.clusters)
                if all(not each or "*" in each or _RULE_FIELDS[name](kind) in each for name, each in given.items())
            }
            return (Item(name, ItemKind.NAME, write_scalar(name), source) for name, source in sorted(found.items()))
        case "", [*_, "policyName"]:
            policies = {*known.read_policies()}
            return (item for item in list_rules(known.read_docs().values()) if item.label in policies)
    return None


def _list_resources(path: Sequence[Step], known: Known) -> Iterator[str]:
    devices = dict.fromkeys(cluster.gpu_resource for cluster in known.clusters)
    if path[-1:] in (("limits",), ("requests",)):
        yield from (*_RESOURCES, *devices)
    elif path[-1:] == ("hard",):
        for side in ("requests", "limits"):
            yield from (f"{side}.{name}" for name in _RESOURCES)
        yield from (f"requests.{name}" for name in devices)
        yield "pods"
