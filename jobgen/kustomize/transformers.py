"""The fields of a kustomization that set values in all objects: namespace, names, labels, annotations, images."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize import field_specs
from jobgen.kustomize.field_specs import (
    REFERENCES,
    VARIABLES,
    FieldSpec,
    Origin,
    Reference,
    find_fields,
    set_entry,
    split_path,
)
from jobgen.kustomize.kustomization import Kustomization, text_of
from jobgen.kustomize.resource import NO_NAMESPACE, Id, Resource, is_of_cluster
from jobgen.kustomize.select import PatternError, matches
from jobgen.model.budget import Work, charge
from jobgen.model.data import Node, TracedScalar, is_null, location_of, value_of, with_value
from jobgen.model.finding import Problem, Severity, add_article
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, find_closest, find_key

Config = Mapping[str, Sequence[FieldSpec]]
"""Fields that configurations add to those that kustomize knows, by the name of the transformer."""
_SPECS_OF_STEP = 2
"""The field specs that are compared with the type of an object in a step."""
_REFERENCE_STEPS = 12
"""The steps that it takes to decide whether a name refers to an object."""
_UNPREFIXED = (("CustomResourceDefinition", ""), ("APIService", "apiregistration.k8s.io"), ("Namespace", ""))
# Most names of images are no patterns, apart from their dots, so any engine can search for them.
_PLAIN_NAME = lazy_pattern(r"[\w./:@-]*+\Z", re.ASCII)
_TAG = r"(:[a-zA-Z0-9_.{}\-]*)?(@sha256:[a-zA-Z0-9_.{}\-]*)?"


def origin_of(kustomization: Kustomization, field: str, node: Node = None) -> Origin:
    """Return where a transformer is written: at the node, or at the field."""
    location = location_of(node) or kustomization.locate(field)
    return Origin(location, f"`{field}` of {kustomization.path}")


def set_namespace(kustomization: Kustomization, resources: Iterable[Resource], config: Config) -> None:
    """Apply `namespace`: also to the subjects named `default` of role bindings."""
    node = kustomization.fields.get("namespace")
    namespace = text_of(node)
    if not namespace:
        return
    origin = origin_of(kustomization, "namespace", node)
    for resource in resources:
        resource.store_id()
        api_version = text_of(resource.node.get("apiVersion"))
        holders: list[Any] = []
        if not is_of_cluster(api_version, resource.kind):
            holders.append(resource.node.get("metadata"))
        if resource.kind in ("RoleBinding", "ClusterRoleBinding"):
            subjects = as_list(resource.node.get("subjects"))
            holders += [each for each in subjects if text_of(as_mapping(each).get("name")) == "default"]
        for holder in holders:
            set_entry(holder, "namespace", namespace, origin)
        for spec in _specs_of(resource, (*field_specs.NAMESPACE, *config.get("namespace", ()))):
            if spec.path != "metadata/namespace" and (spec.path != "metadata/name" or api_version == "v1"):
                for parent, key in list(find_fields(resource.node, spec, origin)):
                    set_entry(parent, key, namespace, origin)


def add_affixes(kustomization: Kustomization, resources: Sequence[Resource], config: Config) -> None:
    """Apply `namePrefix`, then `nameSuffix`."""
    for field in ("namePrefix", "nameSuffix"):
        node = kustomization.fields.get(field)
        affix = text_of(node)
        origin = origin_of(kustomization, field, node)
        for resource in resources if affix else ():
            found = resource.original_id
            if any(kind == found.kind and group in ("", found.group) for kind, group in _UNPREFIXED):
                continue
            for spec in (FieldSpec("metadata/name"), *config.get(field, ())):
                if not spec.selects(found.group, found.version, found.kind):
                    continue
                if spec.path == "metadata/name":
                    (resource.prefixes if field == "namePrefix" else resource.suffixes).append(affix)
                    resource.store_id()
                for parent, key in find_fields(resource.node, spec):
                    name = text_of(parent[key])
                    parent[key] = origin.scalar(affix + name if field == "namePrefix" else name + affix, parent[key])


def add_metadata(kustomization: Kustomization, resources: Sequence[Resource], config: Config) -> None:
    """Apply `labels`, then `commonLabels`, then `commonAnnotations`."""
    for label in kustomization.items("labels"):
        custom = (*map(parse_spec, as_list(label.get("fields"))), *config.get("labels", ()))
        if value_of(label.get("includeSelectors")):
            specs = (*custom, *field_specs.COMMON_LABELS, *config.get("commonLabels", ()))
        elif value_of(label.get("includeTemplates")):
            specs = (*custom, *field_specs.TEMPLATE_LABELS, *config.get("templateLabels", ()))
        else:
            specs = (*custom, *field_specs.LABELS)
        _set_pairs(kustomization, "labels", label.get("pairs"), resources, specs)
    for field, common in (
        ("commonLabels", field_specs.COMMON_LABELS),
        ("commonAnnotations", field_specs.COMMON_ANNOTATIONS),
    ):
        specs = (*common, *config.get(field, ()))
        _set_pairs(kustomization, field, kustomization.fields.get(field), resources, specs)


def _set_pairs(
    kustomization: Kustomization, field: str, pairs: Node, resources: Iterable[Resource], specs: Iterable[FieldSpec]
) -> None:
    entries = [
        (str(key), text_of(value), origin_of(kustomization, field, value)) for key, value in as_mapping(pairs).items()
    ]
    specs = list(dict.fromkeys(specs))
    for resource in resources if entries else ():
        for spec in _specs_of(resource, specs):
            for name, value, origin in entries:
                for parent, key in find_fields(resource.node, spec, origin):
                    if key not in parent or is_null(parent[key]):
                        parent[origin.key(key)] = {}
                    if isinstance(parent[key], dict):
                        set_entry(parent[key], name, value, origin)


def set_replicas(
    kustomization: Kustomization, resources: Sequence[Resource], config: Config, problems: list[Problem]
) -> None:
    """Apply `replicas`: kustomize fails if there is no such workload."""
    for item in kustomization.items("replicas"):
        name, origin = text_of(item.get("name")), origin_of(kustomization, "replicas", item.get("count"))
        found = False
        for spec in (*field_specs.REPLICAS, *config.get("replicas", ())):
            for resource in resources:
                ids = [each for each in (*resource.previous_ids, resource.id) if each.name == name]
                if any(spec.selects(each.group, each.version, each.kind) for each in ids):
                    found = True
                    if spec in _specs_of(resource, [spec]):
                        for parent, key in list(find_fields(resource.node, spec, origin)):
                            set_entry(parent, key, value_of(item.get("count")) or 0, origin)
        if not found:
            message = _describe_unscaled(name, resources)
            problems.append(Problem("kustomize-build-fails", message, item.get("name", item), category="gitops"))


def _describe_unscaled(name: str, resources: Sequence[Resource]) -> str:
    """Say why `replicas` changes no object with a name: there is none, or its kind has other fields."""
    specs = field_specs.REPLICAS
    found = next((each for each in resources if name in (each.name, each.original_id.name) and each.metadata), None)
    scaled = [each.original_id.name for each in resources if any(spec.selects(*each.original_id[:3]) for spec in specs)]
    if found is None or find_closest(name, scaled):
        return (
            f"`{name}` is not the name of a workload in this build{did_you_mean(name, scaled) or '; correct the name'}"
        )
    kinds = ", ".join(dict.fromkeys(f"{spec.kind}s" for spec in specs))
    fields = list(_list_counts(found.node))
    chosen = [path for path in fields if path[-1] == "replicas"] or fields
    advice = f"patch `/{'/'.join(chosen[-1])}`" if chosen else "patch the field"
    return f"`replicas` changes only {kinds}, and `{name}` is {add_article(found.kind)}; {advice} instead"


_COUNTS = ("completions", "numNodes", "parallelism", "replicas")


def _list_counts(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the numbers of pods in an object."""
    items = enumerate(node) if isinstance(node, list) else node.items() if isinstance(node, dict) else ()
    for key, value in items:
        charge(Work.BUILD, 1)
        if key in _COUNTS and not isinstance(value, (dict, list)):
            yield (*path, str(key))
        else:
            yield from _list_counts(value, (*path, str(key)))


def set_images(
    kustomization: Kustomization, resources: Iterable[Resource], config: Config, problems: list[Problem]
) -> Iterator[str]:
    """Apply `images`; yield what could not be done, and report what matches no image."""
    for field in ("images", "imageTags"):
        for item in kustomization.items(field):
            change = _ImageChange(kustomization, field, item)
            try:
                for resource in resources:
                    if resource.kind == "CustomResourceDefinition":
                        continue
                    _change_containers(resource.node, change)
                    for spec in _specs_of(resource, (*field_specs.IMAGES, *config.get("images", ()))):
                        for parent, key in find_fields(resource.node, spec):
                            change.apply(parent, key)
            except PatternError as error:
                yield f"`{field}` of `{kustomization.path}`: {error}"
                continue
            if change.seen and not change.is_used:
                meant = _find_image(change.name, change.seen)
                hint = f"; did you mean `{meant}`?" if meant else ""
                # The only image of a build need not be as similar.
                hint = hint or (did_you_mean(change.name, [*change.seen]) if len(change.seen) == 1 else "")
                hint = hint or "; correct the name, or remove the entry"
                message = Sentence("no image of this build is `{}`, so nothing is changed{}", change.name, hint)
                node = item.get("name", item)
                problems.append(Problem("patch-matches-nothing", message, node, severity=Severity.WARNING))


def _find_image(name: str, known: Iterable[str]) -> str:
    """Return the image that a name means: the same one of another registry, or one with a slip; empty without one.

    Images of one registry share most of their letters, but not what comes last.
    """
    ends = {each: each.rpartition("/")[2] for each in known}
    end = name.rpartition("/")[2]
    meant = end if end in ends.values() else find_meant(end, set(ends.values()))
    same = [each for each, own in ends.items() if own == meant]
    return same[0] if len(same) == 1 else ""


class _ImageChange:
    def __init__(self, kustomization: Kustomization, field: str, item: Any) -> None:
        self.name, self.new_name, self.tag, self.digest, self.suffix = (
            text_of(item.get(name)) for name in ("name", "newName", "newTag", "digest", "tagSuffix")
        )
        written = next((item[name] for name in ("newTag", "digest", "tagSuffix", "newName") if name in item), item)
        self.origin = origin_of(kustomization, field, written)
        self._plain = re.compile(self.name + _TAG) if _PLAIN_NAME.match(self.name) else None
        self.seen: set[str] = set()
        """The names of images that it does not match."""
        self.is_used = False

    def _matches(self, image: str) -> bool:
        if self._plain is not None:
            return self._plain.fullmatch(image) is not None
        # A pattern that is not supported is named as it is written.
        matches("", self.name)
        # kustomize looks for `^name$` with its tag: of alternatives, only the first and the last are bound to an end.
        return matches(image, f".*(?:^{self.name}{_TAG}$).*")

    def apply(self, parent: dict[str, Any], key: str) -> None:
        image = value_of(parent[key])
        if not isinstance(image, str):
            return
        name, tag, digest = split_image(image)
        if not self._matches(image):
            self.seen.add(name)
            return
        self.is_used = True
        if self.tag or self.digest:
            tag, digest = self.tag, self.digest
        elif self.suffix:
            tag, digest = tag + self.suffix, ""
        changed = (self.new_name or name) + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
        if changed != image:
            parent[key] = self.origin.scalar(changed, parent[key])


def split_image(image: str) -> tuple[str, str, str]:
    """Return the name, the tag and the digest of an image."""
    slash = max(image.find("/"), 0)
    name, _, digest = image[slash:].partition("@")
    name, _, tag = name.partition(":")
    return image[:slash] + name, tag, digest


def _change_containers(node: Any, change: _ImageChange) -> None:
    """Change the images of all `containers`, wherever they are."""
    if isinstance(node, list):
        for item in node:
            _change_containers(item, change)
    elif isinstance(node, dict):
        charge(Work.BUILD, 1 + len(node))
        for key, value in node.items():
            _change_containers(value, change)
            if key in ("containers", "initContainers") and isinstance(value, list):
                for item in value:
                    if isinstance(item, dict) and "image" in item:
                        change.apply(item, "image")


def parse_spec(node: Node) -> FieldSpec:
    """Return a field spec of a configuration."""
    fields = as_mapping(node)
    path, kind, group, version = (text_of(fields.get(name)) for name in ("path", "kind", "group", "version"))
    return FieldSpec(path, kind, group, version, value_of(fields.get("create")) is True)


def _specs_of(resource: Resource, specs: Sequence[FieldSpec]) -> list[FieldSpec]:
    charge(Work.BUILD, 2 + len(specs) // _SPECS_OF_STEP)
    group, version = resource.group_version
    kind = resource.kind
    return [spec for spec in specs if spec.path and spec.selects(group, version, kind)]


# Names that refer to other objects follow them when transformers rename them; variables get their values.

_VARIABLE = lazy_pattern(r"\$(?:(\$)|\(([^)]*)\))")
_ACCOUNT = "ServiceAccount"


def parse_references(nodes: Iterable[Node]) -> list[Reference]:
    """Return the name references of a configuration."""
    parsed = [(parse_spec(node), as_list(as_mapping(node).get("fieldSpecs"))) for node in nodes]
    return [Reference(of.kind, of.group, of.version, tuple(map(parse_spec, fields))) for of, fields in parsed]


def update_references(resources: Sequence[Resource], custom: Sequence[Reference]) -> None:
    """Write the names that objects have now into the fields that refer to them."""
    if not any(each.previous for each in resources):
        return
    by_name: dict[str, list[Resource]] = defaultdict(list)
    for resource in resources:
        for name in dict.fromkeys(name for _, name, _ in resource.previous):
            by_name[name].append(resource)
    namespaces = {each.original_id.namespace for each in resources}
    specs: dict[tuple[str, str, str], list[tuple[FieldSpec, Reference]]] = {}
    for resource in resources:
        key = resource.original_id[:3]
        if key not in specs:
            every = [(spec, each) for each in (*REFERENCES, *custom) for spec in each.fields]
            charge(Work.BUILD, len(every) // _SPECS_OF_STEP)
            specs[key] = [(spec, each) for spec, each in every if spec.path and spec.selects(*key)]
        charge(Work.BUILD, len(specs[key]))
        for spec, reference in specs[key]:
            for parent, field in find_fields(resource.node, spec):
                _update(parent, field, _Referrer(resource, spec, reference, by_name, namespaces))


class _Referrer(NamedTuple):
    """An object with a field that names objects of a kind."""

    resource: Resource
    spec: FieldSpec
    reference: Reference
    by_name: Mapping[str, Sequence[Resource]]
    """All objects by the names that they had."""
    namespaces: Collection[str]
    """The namespaces of the files."""

    def find(self, name: str, namespace: str | None = None) -> Resource | None:
        """Return the object that a name refers to; None if there is none, or more than one."""
        known = self.by_name.get(name, ())
        charge(Work.BUILD, _REFERENCE_STEPS * len(known))
        found = [each for each in known if self.may_refer(each, name)]
        if namespace is not None:
            # The namespaces of the files count, if any object had this one.
            is_old = namespace in self.namespaces
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
        role = as_mapping(self.resource.node.get("roleRef"))
        if self.spec.path.endswith("roleRef/name") and {"apiGroup", "kind"} <= role.keys():
            group, kind = text_of(role["apiGroup"]), text_of(role["kind"])
            if not any(_is_type(each, group, "", kind) for each in ids):
                return False
        # The object is in the same namespace, or one of both belongs to the cluster.
        own, others = self.resource.id.namespace, other.id.namespace
        if NO_NAMESPACE in (own, others) or own == others:
            return True
        subjects = as_list(self.resource.node.get("subjects"))
        named = [as_mapping(each) for each in subjects] if self.resource.kind == "RoleBinding" else []
        accounts = {text_of(each.get("namespace")) for each in named if text_of(each.get("kind")) == _ACCOUNT}
        return other.kind == _ACCOUNT and other.namespace in accounts


def _is_type(found: Id, group: str, version: str, kind: str) -> bool:
    return group in ("", found.group) and version in ("", found.version) and kind in ("", found.kind)


def _is_affixed_alike(one: Resource, two: Resource, *, allow_empty: bool) -> bool:
    """Return True if two objects got the same prefixes and suffixes, as far as both have any."""
    for first, second in ((one.prefixes, two.prefixes), (one.suffixes, two.suffixes)):
        shorter = min(len(first), len(second))
        if not shorter and (allow_empty or len(first) == len(second)):
            continue
        if not shorter or first[-shorter:] != second[-shorter:]:
            return False
    return True


def _update(parent: Any, key: Any, referrer: _Referrer) -> None:
    node = parent[key]
    if isinstance(node, list):
        for index in range(len(node)):
            _update(node, index, referrer)
    elif isinstance(node, dict):
        # The name and the namespace, for example of a subject of a role binding.
        namespace = text_of(node["namespace"]) if "namespace" in node else None
        found = referrer.find(text_of(node["name"]), namespace) if "name" in node else None
        if found is None:
            return
        if found.name != text_of(node["name"]):
            node["name"] = _rename(node["name"], found.name)
        if found.namespace and found.namespace != namespace:
            node[find_key(found.metadata, "namespace") or "namespace"] = found.metadata["namespace"]
    elif not is_null(node):
        found = referrer.find(text_of(node))
        if found is not None and found.name != text_of(node):
            parent[key] = _rename(node, found.name)


def _rename(node: Node, name: str) -> Node:
    charge(Work.BUILD, 1, len(name))
    return with_value(node, name)


def replace_variables(
    resources: Sequence[Resource], variables: Sequence[Any], custom: Sequence[FieldSpec], problems: list[Problem]
) -> None:
    """Replace `$(NAME)` by the values of `vars`."""
    values: dict[str, Node] = {}
    for variable in variables:
        found = _find_value(resources, variable)
        if found is None:
            message = Sentence("`{}` names a field that no object of this build has", text_of(variable.get("name")))
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
            # A path such as `spec.ports[0].port`.
            path = text_of(as_mapping(variable.get("fieldref")).get("fieldPath")) or "metadata.name"
            node: Node = resource.node
            for step in split_path(path.replace("[", ".").replace("]", ""), "."):
                if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
                    node = node[int(step)]
                else:
                    node = as_mapping(node).get(step)
            return node
    return None


def _replace(parent: Any, key: Any, values: Mapping[str, Node]) -> None:
    node = parent[key]
    if isinstance(node, (dict, list)):
        for below in list(node) if isinstance(node, dict) else range(len(node)):
            if not isinstance(node[below], (dict, list)):
                _replace(node, below, values)
    elif isinstance(value_of(node), str) and "$" in value_of(node):
        text = value_of(node)
        whole = _VARIABLE.fullmatch(text)
        if whole and whole[2] is not None:
            # A text that is one variable gets the type of its value.
            found = values.get(whole[2])
            changed = value_of(found) if type(found) is TracedScalar else text
        else:
            changed = _VARIABLE.sub(lambda match: _expand(match, values), text)
        if changed != text:
            parent[key] = with_value(node, changed)


def _expand(match: re.Match[str], values: Mapping[str, Node]) -> str:
    if match[1]:
        return "$"
    found = values.get(match[2])
    if found is None or isinstance(found, (dict, list)):
        return match[0]
    charge(Work.BUILD, 1, len(text_of(found)))
    return text_of(found)
