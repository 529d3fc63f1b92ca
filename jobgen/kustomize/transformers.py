"""The fields of a kustomization that set values in all objects: namespace, names, labels, annotations, images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize.field_specs import (
    COMMON_ANNOTATIONS,
    COMMON_LABELS,
    IMAGES,
    LABELS,
    NAME,
    NAMESPACE,
    REPLICAS,
    TEMPLATE_LABELS,
    FieldSpec,
    Origin,
    find_fields,
    set_entry,
    set_pair,
)
from jobgen.kustomize.kustomization import Kustomization, text_of
from jobgen.kustomize.resource import Id, Resource, is_of_cluster
from jobgen.kustomize.select import PatternError, matches
from jobgen.model.data import Node, location_of, value_of
from jobgen.model.finding import Problem

Config = Mapping[str, Sequence[FieldSpec]]
"""Fields that configurations add to those that kustomize knows, by the name of the transformer."""

_UNPREFIXED = (("CustomResourceDefinition", ""), ("APIService", "apiregistration.k8s.io"), ("Namespace", ""))
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
        for spec in _specs_of(resource, (*NAMESPACE, *config.get("namespace", ()))):
            if spec.path != "metadata/namespace" and (spec.path != "metadata/name" or api_version == "v1"):
                for parent, key in list(find_fields(resource.node, spec, origin)):
                    set_entry(parent, key, namespace, origin)


def add_prefix(kustomization: Kustomization, resources: Iterable[Resource], config: Config) -> None:
    """Apply `namePrefix`."""
    _rename(kustomization, "namePrefix", resources, config, lambda affix, name: affix + name)


def add_suffix(kustomization: Kustomization, resources: Iterable[Resource], config: Config) -> None:
    """Apply `nameSuffix`."""
    _rename(kustomization, "nameSuffix", resources, config, lambda affix, name: name + affix)


def _rename(
    kustomization: Kustomization,
    field: str,
    resources: Iterable[Resource],
    config: Config,
    join: Callable[[str, str], str],
) -> None:
    node = kustomization.fields.get(field)
    affix = text_of(node)
    if not affix:
        return
    origin = origin_of(kustomization, field, node)
    for resource in resources:
        found = resource.original_id
        if any(kind == found.kind and group in ("", found.group) for kind, group in _UNPREFIXED):
            continue
        for spec in (*NAME, *config.get(field, ())):
            if not spec.selects(found.group, found.version, found.kind):
                continue
            if spec.path == "metadata/name":
                (resource.prefixes if field == "namePrefix" else resource.suffixes).append(affix)
                resource.store_id()
            for parent, key in find_fields(resource.node, spec):
                parent[key] = origin.scalar(join(affix, text_of(parent[key])), parent[key])


def add_labels(kustomization: Kustomization, resources: Sequence[Resource], config: Config) -> None:
    """Apply `labels`, then `commonLabels`."""
    for label in kustomization.items("labels"):
        custom = (*map(parse_spec, as_list(label.get("fields"))), *config.get("labels", ()))
        if value_of(label.get("includeSelectors")):
            specs = (*custom, *COMMON_LABELS, *config.get("commonLabels", ()))
        elif value_of(label.get("includeTemplates")):
            specs = (*custom, *TEMPLATE_LABELS, *config.get("templateLabels", ()))
        else:
            specs = (*custom, *LABELS)
        _set_pairs(kustomization, "labels", label.get("pairs"), resources, specs)
    specs = (*COMMON_LABELS, *config.get("commonLabels", ()))
    _set_pairs(kustomization, "commonLabels", kustomization.fields.get("commonLabels"), resources, specs)


def add_annotations(kustomization: Kustomization, resources: Sequence[Resource], config: Config) -> None:
    """Apply `commonAnnotations`."""
    specs = (*COMMON_ANNOTATIONS, *config.get("commonAnnotations", ()))
    pairs = kustomization.fields.get("commonAnnotations")
    _set_pairs(kustomization, "commonAnnotations", pairs, resources, specs)


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
                set_pair(resource.node, spec, name, value, origin)


def set_replicas(
    kustomization: Kustomization, resources: Sequence[Resource], config: Config, problems: list[Problem]
) -> None:
    """Apply `replicas`: kustomize fails if there is no such workload."""
    for item in kustomization.items("replicas"):
        name, origin = text_of(item.get("name")), origin_of(kustomization, "replicas", item.get("count"))
        found = False
        for spec in (*REPLICAS, *config.get("replicas", ())):
            for resource in resources:
                if any(_is_named(each, name, spec) for each in (*resource.previous_ids, resource.id)):
                    found = True
                    if spec in _specs_of(resource, [spec]):
                        for parent, key in list(find_fields(resource.node, spec, origin)):
                            set_entry(parent, key, value_of(item.get("count")) or 0, origin)
        if not found:
            message = f"`{name}` is not the name of a workload in this build; correct the name"
            problems.append(Problem("kustomize-build-fails", message, item.get("name", item), category="gitops"))


def _is_named(found: Id, name: str, spec: FieldSpec) -> bool:
    return found.name == name and spec.selects(found.group, found.version, found.kind)


def set_images(kustomization: Kustomization, resources: Iterable[Resource], config: Config) -> Iterator[str]:
    """Apply `images`; yield what could not be done."""
    for field in ("images", "imageTags"):
        for item in kustomization.items(field):
            change = _ImageChange(kustomization, field, item)
            try:
                for resource in resources:
                    if resource.kind == "CustomResourceDefinition":
                        continue
                    _change_containers(resource.node, change)
                    for spec in _specs_of(resource, (*IMAGES, *config.get("images", ()))):
                        for parent, key in find_fields(resource.node, spec):
                            change.apply(parent, key)
            except PatternError as error:
                yield f"`{field}` of `{kustomization.path}`: {error}"


class _ImageChange:
    """One entry of `images`."""

    def __init__(self, kustomization: Kustomization, field: str, item: Any) -> None:
        self.name, self.new_name, self.tag, self.digest, self.suffix = (
            text_of(item.get(name)) for name in ("name", "newName", "newTag", "digest", "tagSuffix")
        )
        written = next((item[name] for name in ("newTag", "digest", "tagSuffix", "newName") if name in item), item)
        self.origin = origin_of(kustomization, field, written)

    def apply(self, parent: dict[str, Any], key: str) -> None:
        image = value_of(parent[key])
        if not isinstance(image, str) or not self.matches(image):
            return
        name, tag, digest = split_image(image)
        if self.tag or self.digest:
            tag, digest = self.tag, self.digest
        elif self.suffix:
            tag, digest = tag + self.suffix, ""
        changed = (self.new_name or name) + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
        if changed != image:
            parent[key] = self.origin.scalar(changed, parent[key])

    def matches(self, image: str) -> bool:
        # Most names are literal: the first part of the image decides without a pattern.
        if "." not in self.name and not image.startswith(self.name[:1]):
            return False
        return matches(image, self.name + _TAG)


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


def _specs_of(resource: Resource, specs: Iterable[FieldSpec]) -> list[FieldSpec]:
    group, version = resource.group_version
    kind = resource.kind
    return [spec for spec in specs if spec.path and spec.selects(group, version, kind)]
