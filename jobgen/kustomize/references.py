"""Names that refer to other objects follow them when transformers rename them; variables get their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize.field_specs import REFERENCES, VARIABLES, FieldSpec, Reference, find_fields, split_path
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.resource import Id, Resource
from jobgen.kustomize.transformers import parse_spec
from jobgen.model.data import Node, TracedScalar, is_null, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key

_VARIABLE = lazy_pattern(r"\$(?:(\$)|\(([^)]*)\))")
_ACCOUNT = "ServiceAccount"


def parse_references(nodes: Iterable[Node]) -> list[Reference]:
    """Return the name references of a configuration."""
    parsed = []
    for node in nodes:
        fields = as_mapping(node)
        kind, group, version = (text_of(fields.get(name)) for name in ("kind", "group", "version"))
        specs = tuple(map(parse_spec, as_list(fields.get("fieldSpecs"))))
        parsed.append(Reference(kind, group, version, specs))
    return parsed


def update_references(resources: Sequence[Resource], custom: Sequence[Reference]) -> None:
    """Write the names that objects have now into the fields that refer to them."""
    if not any(each.previous for each in resources):
        return
    renamed = _Renamed(resources)
    specs: dict[tuple[str, str, str], list[tuple[FieldSpec, Reference]]] = {}
    for resource in resources:
        found = resource.original_id
        key = found[:3]
        if key not in specs:
            every = [(spec, each) for each in (*REFERENCES, *custom) for spec in each.fields]
            specs[key] = [(spec, each) for spec, each in every if spec.path and spec.selects(*key)]
        for spec, reference in specs[key]:
            for parent, field in find_fields(resource.node, spec):
                _update(parent, field, _Referrer(resource, spec, reference, renamed))


class _Renamed:
    """The objects by the names that they had."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        self.by_name: dict[str, list[Resource]] = defaultdict(list)
        self.namespaces = {each.original_id.namespace for each in resources}
        for resource in resources:
            for name in dict.fromkeys(name for _, name, _ in resource.previous):
                self.by_name[name].append(resource)


class _Referrer:
    """An object with a field that names objects of a kind."""

    def __init__(self, resource: Resource, spec: FieldSpec, reference: Reference, renamed: _Renamed) -> None:
        self.resource = resource
        self.id = resource.id
        self.spec = spec
        self.reference = reference
        self.renamed = renamed

    def find(self, name: str, namespace: str | None = None) -> Resource | None:
        """Return the object that a name refers to; None if there is none, or more than one."""
        found = [each for each in self.renamed.by_name.get(name, ()) if self.may_refer(each, name)]
        if namespace is not None:
            # The namespaces of the files count, if any object had this one.
            is_old = namespace in self.renamed.namespaces
            found = [each for each in found if (each.original_id if is_old else each.id).namespace == namespace]
        if len(found) != 1:
            found = [each for each in found if _is_affixed_alike(each, self.resource, allow_empty=True)]
        if len(found) > 1:
            found = [each for each in found if _is_affixed_alike(each, self.resource, allow_empty=False)]
        same = {(each.name, each.namespace if namespace is not None else "") for each in found}
        return found[0] if len(same) == 1 else None

    def may_refer(self, other: Resource, name: str) -> bool:
        ids = other.previous_ids
        if not any(each.name == name for each in ids):
            return False
        wanted = self.reference
        if not any(_is_type(each, wanted.group, wanted.version, wanted.kind) for each in ids):
            return False
        return self.is_role(ids) and self.is_near(other)

    def is_role(self, ids: Sequence[Id]) -> bool:
        """Return True if an object has the kind that `roleRef` names, or if the field is another."""
        role = as_mapping(self.resource.node.get("roleRef"))
        if not self.spec.path.endswith("roleRef/name") or not {"apiGroup", "kind"} <= role.keys():
            return True
        return any(_is_type(each, text_of(role["apiGroup"]), "", text_of(role["kind"])) for each in ids)

    def is_near(self, other: Resource) -> bool:
        """Return True if an object is in the same namespace, or if one of both belongs to the cluster."""
        found = other.id
        own, cluster = self.id.namespace, "_non_namespaceable_"
        if cluster in (own, found.namespace) or own == found.namespace:
            return True
        subjects = as_list(self.resource.node.get("subjects"))
        named = [as_mapping(each) for each in subjects] if self.resource.kind == "RoleBinding" else []
        accounts = {text_of(each.get("namespace")) for each in named if text_of(each.get("kind")) == _ACCOUNT}
        return other.kind == _ACCOUNT and other.namespace in accounts


def _is_type(found: Id, group: str, version: str, kind: str) -> bool:
    return group in ("", found.group) and version in ("", found.version) and kind in ("", found.kind)


def _is_affixed_alike(one: Resource, two: Resource, *, allow_empty: bool) -> bool:
    """Return True if two objects got the same prefixes and suffixes, as far as both have any."""
    return all(
        (allow_empty and not (first and second)) or _ends_alike(first, second)
        for first, second in ((one.prefixes, two.prefixes), (one.suffixes, two.suffixes))
    )


def _ends_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    shorter = min(len(first), len(second))
    if not shorter:
        return len(first) == len(second)
    return list(first[-shorter:]) == list(second[-shorter:])


def _update(parent: Any, key: Any, referrer: _Referrer) -> None:
    node = parent[key]
    if isinstance(node, list):
        for index in range(len(node)):
            _update(node, index, referrer)
    elif isinstance(node, dict):
        _update_mapping(node, referrer)
    elif not is_null(node):
        found = referrer.find(text_of(node))
        if found is not None and found.name != text_of(node):
            parent[key] = with_value(node, found.name)


def _update_mapping(node: dict[str, Any], referrer: _Referrer) -> None:
    """Update the name and the namespace of a mapping, such as a subject of a role binding."""
    if "name" not in node:
        return
    namespace = text_of(node["namespace"]) if "namespace" in node else None
    found = referrer.find(text_of(node["name"]), namespace)
    if found is None:
        return
    if found.name != text_of(node["name"]):
        node["name"] = with_value(node["name"], found.name)
    if found.namespace and found.namespace != namespace:
        node[find_key(found.metadata, "namespace") or "namespace"] = found.metadata["namespace"]


def replace_variables(
    resources: Sequence[Resource], variables: Sequence[Any], custom: Sequence[FieldSpec], problems: list[Problem]
) -> None:
    """Replace `$(NAME)` by the values of `vars`."""
    values: dict[str, Node] = {}
    for variable in variables:
        found = _find_value(resources, variable)
        if found is None:
            message = f"`{text_of(variable.get('name'))}` names a field that no object of this build has"
            problems.append(Problem("kustomize-build-fails", message, variable.get("name"), category="gitops"))
        else:
            values[text_of(variable.get("name"))] = found
    for resource in resources if values else ():
        group, version = resource.group_version
        for spec in (*VARIABLES, *custom):
            if spec.path and spec.selects(group, version, resource.kind):
                for parent, key in find_fields(resource.node, spec):
                    _replace(parent, key, values)


def _find_value(resources: Sequence[Resource], variable: Any) -> Node:
    wanted = as_mapping(variable.get("objref"))
    group, _, version = text_of(wanted.get("apiVersion")).rpartition("/")
    group, version = group or text_of(wanted.get("group")), version or text_of(wanted.get("version"))
    name, kind, namespace = (text_of(wanted.get(field)) for field in ("name", "kind", "namespace"))
    for resource in resources:
        if any(
            each[:4] == (group, version, kind, name) and namespace in ("", each.namespace)
            for each in (*resource.previous_ids, resource.id)
        ):
            path = text_of(as_mapping(variable.get("fieldref")).get("fieldPath")) or "metadata.name"
            return get_field(resource.node, path)
    return None


def get_field(node: Any, path: str) -> Node:
    """Return the value at a path such as `spec.ports[0].port`; None if there is none."""
    for step in split_path(path.replace("[", ".").replace("]", ""), "."):
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, dict):
            node = node.get(step)
        else:
            return None
    found: Node = node
    return found


def _replace(parent: Any, key: Any, values: Mapping[str, Node]) -> None:
    node = parent[key]
    if isinstance(node, (dict, list)):
        for below in list(node) if isinstance(node, dict) else range(len(node)):
            if not isinstance(node[below], (dict, list)):
                _replace(node, below, values)
    elif isinstance(value_of(node), str) and "$" in value_of(node):
        changed = _expand(value_of(node), values.get)
        if changed != value_of(node):
            parent[key] = with_value(node, changed)


def _expand(text: str, find: Callable[[str], Node]) -> Any:
    """Return a text with its variables replaced; a text that is one variable gets the type of its value."""
    whole = _VARIABLE.fullmatch(text)
    if whole and whole[2] is not None:
        found = find(whole[2])
        return value_of(found) if type(found) is TracedScalar else text

    def expand(match: Any) -> str:
        if match[1]:
            return "$"
        found = find(match[2])
        return text_of(found) if found is not None and not isinstance(found, (dict, list)) else match[0]

    return _VARIABLE.sub(expand, text)
