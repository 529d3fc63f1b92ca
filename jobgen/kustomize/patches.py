"""Apply the patches of a kustomization: strategic merges and JSON patches, to one object or to those of a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.resource import Resource, identify
from jobgen.kustomize.select import PatternError, select
from jobgen.kustomize.strategic_merge import MergeError, Schemas, merge_patch
from jobgen.model.data import Node, is_null, location_of, value_of, with_value
from jobgen.model.finding import Problem, Related, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.spec.json_patch import apply_json_patch, copy_containers

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


class Patch(NamedTuple):
    """A patch of a kustomization, read."""

    documents: Sequence[Any]
    """Strategic merge patches, or one list of JSON patch operations."""
    listed: Node
    """Where the kustomization lists it."""
    target: Mapping[str, Any] | None = None
    allow_name_change: bool = False
    allow_kind_change: bool = False
    stores_names: bool = True
    """Whether JSON patches keep the name that an object had; those of `patchesJson6902` do not."""


class Applied(NamedTuple):
    """The objects after a patch, what is wrong with it, and what jobgen could not do."""

    resources: list[Resource]
    problems: tuple[Problem, ...] = ()
    unbuilt: tuple[str, ...] = ()


def apply_patch(resources: list[Resource], patch: Patch, schemas: Schemas | None, *, is_complete: bool) -> Applied:
    """Apply a patch. Without all objects of the build, a patch that matches nothing is not reported."""
    if any(isinstance(document, list) for document in patch.documents):
        return _apply_operations(resources, patch, is_complete=is_complete)
    if patch.target is not None:
        return _merge_selected(resources, patch, schemas, is_complete=is_complete)
    problems: list[Problem] = []
    for document in patch.documents:
        wanted = identify(document)
        found = [each for each in resources if wanted == each.id or wanted in each.previous_ids]
        if len(found) == 1:
            resources = _merge(resources, found[0], document, patch, schemas, problems)
        elif found:
            message = f"{wanted} is the name of {len(found)} objects; add a `target` to the patch"
            problems.append(_fail(message, document))
        elif is_complete:
            problems.append(_report_unmatched(document, patch, resources))
    return Applied(resources, tuple(problems))


def _merge_selected(resources: list[Resource], patch: Patch, schemas: Schemas | None, *, is_complete: bool) -> Applied:
    """Merge a patch into the objects that its target selects."""
    if len(patch.documents) > 1:
        message = "a patch with a `target` must have one document; list each document as a patch of its own"
        return Applied(resources, (_fail(message, patch.listed),))
    try:
        selected = select(resources, patch.target or {})
    except PatternError as error:
        return Applied(resources, unbuilt=(f"the `target` of a patch: {error}",))
    problems = [_report_unused_target(patch, resources)] if is_complete and not selected else []
    for resource in selected:
        resources = _merge(resources, resource, patch.documents[0], patch, schemas, problems)
    return Applied(resources, tuple(problems))


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
    try:
        merged = merge_patch(resource.node, fields, schemas)
    except MergeError as error:
        problems.append(_fail(f"{error}; write the same type as {resource.id}", error.node))
        return resources
    if merged is None:
        return [each for each in resources if each is not resource]
    if patch.allow_name_change or patch.allow_kind_change:
        resource.store_id()
    resource.node = merged
    return resources


def _to_texts(field: str, node: Any) -> Any:
    """Return labels or annotations as texts, None if they are empty: kustomize writes those of such patches anew."""
    if field not in ("labels", "annotations"):
        return node
    return {
        key: with_value(value, "null" if is_null(value) else text_of(value)) for key, value in as_mapping(node).items()
    } or None


def _apply_operations(resources: list[Resource], patch: Patch, *, is_complete: bool) -> Applied:
    operations = [each for document in patch.documents for each in (document if isinstance(document, list) else ())]
    problems = [
        _fail("an operation needs `op` and `path`; add them", each) for each in operations if not _is_valid(each)
    ]
    if problems:
        return Applied(resources, tuple(problems))
    if patch.target is None:
        return Applied(resources, (_fail("a JSON patch needs a `target`; add it", patch.listed),))
    try:
        selected = select(resources, patch.target)
    except PatternError as error:
        return Applied(resources, unbuilt=(f"the `target` of a patch: {error}",))
    if not selected and is_complete:
        problems.append(_report_unused_target(patch, resources))
    for resource in selected:
        if patch.stores_names:
            resource.store_id()
        failed: list[Problem] = []
        changed = apply_json_patch(resource.node, operations, failed, replaces_missing=True)
        problems += [_fail(f"{each.message}; this patch is applied to {resource.id}", each.node) for each in failed[:1]]
        resource.node = copy_containers(changed)
    return Applied(resources, tuple(problems))


def _is_valid(operation: Any) -> bool:
    fields = as_mapping(operation)
    return text_of(fields.get("op")) in _OPERATIONS and isinstance(value_of(fields.get("path")), str)


def _report_unmatched(document: Any, patch: Patch, resources: Sequence[Resource]) -> Problem:
    """Return the problem of a patch whose object is not in the build, which kustomize refuses."""
    wanted = identify(document)
    alike = [each.original_id for each in resources if each.original_id.kind == wanted.kind]
    for found in alike:
        if found.name == wanted.name:
            field, value = ("apiVersion", f"{found.group}/{found.version}".lstrip("/"))
            if found[:2] == wanted[:2]:
                field, value = "namespace", found.namespace
            message = f"{wanted} is not in this build, but with another `{field}`; write `{field}: {value}`"
            break
    else:
        hint = did_you_mean(wanted.name, [found.name for found in alike])
        message = f"{wanted.kind} `{wanted.name}` is not in this build, so kustomize refuses the patch{hint}"
    node = as_mapping(document.get("metadata")).get("name", document)
    return Problem("patch-matches-nothing", message, node, related=((patch.listed, "listed here"),))


def _report_unused_target(patch: Patch, resources: Sequence[Resource]) -> Problem:
    """Return the problem of a target that selects nothing, which kustomize accepts."""
    target = patch.target or {}
    shown = ", ".join(f"{name} `{text_of(node)}`" for name, node in target.items())
    names = [each.name for each in resources if text_of(target.get("kind")) in ("", each.kind)]
    hint = did_you_mean(text_of(target.get("name")), names)
    message = f"the target ({shown}) selects no object of this build, so the patch changes nothing{hint}"
    return Problem("patch-matches-nothing", message, target.get("name", target), severity=Severity.WARNING)


def _fail(message: str, node: Node) -> Problem:
    return Problem("kustomize-build-fails", message, node, category="gitops")


def relate(problem: Problem) -> tuple[Related, ...]:
    """Return the other locations of a problem."""
    located = ((location_of(node), message) for node, message in problem.related)
    return tuple(Related(location, message) for location, message in located if location)
