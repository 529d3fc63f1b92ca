"""Copy values from one object to fields of others, as `replacements` of a kustomization say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize.field_specs import Origin, split_path
from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.patches import MergeError
from jobgen.kustomize.resource import NO_NAMESPACE, Id, Resource
from jobgen.kustomize.select import PatternError, has_selected_metadata, is_selected, select_texts
from jobgen.model.budget import Work, charge
from jobgen.model.data import Location, Node, TracedScalar, count_nodes, is_null, location_of, override, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_DEPTH
from jobgen.spec.json_patch import copy_containers
from jobgen.yamlio.read.scalars import resolve

_DEFAULT_PATH = "metadata.name"


def replace(
    resources: Sequence[Resource], replacement: Any, layer: str, problems: list[Problem], *, is_complete: bool
) -> None:
    """Apply one replacement; what kustomize refuses becomes a problem, what jobgen cannot do is a PatternError."""
    try:
        _replace(resources, replacement, layer, is_complete=is_complete)
    except MergeError as failed:
        problems.append(Problem("kustomize-build-fails", str(failed), failed.node, category="gitops"))


def _replace(resources: Sequence[Resource], replacement: Any, layer: str, *, is_complete: bool) -> None:
    source, value = replacement.get("source"), replacement.get("sourceValue")
    if (source is None) == (value is None) or not replacement.get("targets"):
        raise MergeError("a replacement needs a `source` and `targets`; add what is missing", replacement)
    if source is not None:
        try:
            value = _find_source(resources, source)
        except MergeError:
            if is_complete:
                raise
            value = _name_value(source)
    for target in replacement["targets"]:
        if not target.get("select"):
            raise MergeError("a target of a replacement needs `select`; add it", target)
        paths = as_list(target.get("fieldPaths")) or [_DEFAULT_PATH]
        charge(Work.BUILD, 10 * len(resources))
        for resource in resources:
            if _is_target(resource, target):
                for path in paths:
                    origin = Origin(location_of(path) or location_of(target) or Location(""), layer)
                    _set(resource, value, path, as_mapping(target.get("options")), origin, target)


def _find_source(resources: Sequence[Resource], source: Any) -> Any:
    found = [each for each in resources if any(_is_source(one, source) for one in (each.id, *each.previous_ids))]
    if len(found) != 1:
        shown = text_of(source.get("name")) or text_of(source.get("kind"))
        how = f"matches {len(found)} objects; add `kind`, `name` or `namespace`" if found else "matches no object"
        raise MergeError(f"the source `{shown}` of a replacement {how}", source.get("name", source))
    path = text_of(source.get("fieldPath")) or _DEFAULT_PATH
    value = _look_up(found[0].node, split_steps(path))
    if value is None or is_null(value) or value in ({}, []):
        message = f"`{path}` is not a field of {found[0].id}, so its value cannot be copied"
        raise MergeError(message, source.get("fieldPath", source))
    options = as_mapping(source.get("options"))
    delimiter, index = text_of(options.get("delimiter")), value_of(options.get("index")) or 0
    if not delimiter:
        return value
    if isinstance(value, (dict, list)):
        raise MergeError("`delimiter` needs a scalar; remove it", options["delimiter"])
    parts = text_of(value).split(delimiter)
    if not 0 <= index < len(parts):
        raise MergeError(f"`{index}` is not the index of a part of `{text_of(value)}`", options.get("index", source))
    return TracedScalar(parts[index], location_of(value) or Location(""))


_NO_WORD = lazy_pattern(r"\W+")


def _name_value(source: Any) -> TracedScalar:
    """Return a variable for a value of an object that a part of the build makes which could not be read."""
    path = text_of(source.get("fieldPath")) or _DEFAULT_PATH
    name = _NO_WORD.sub("_", split_steps(path)[-1]).strip("_") or "value"
    return TracedScalar(f"${{{name}}}", location_of(source.get("fieldPath")) or Location(""))


def _is_source(found: Id, source: Any) -> bool:
    wanted = {name: text_of(source.get(name)) for name in ("group", "version", "kind", "name")}
    namespace = found.namespace if found.namespace != NO_NAMESPACE else "default"
    is_near = text_of(source.get("namespace")) in ("", found.namespace, namespace)
    return is_near and all(text in ("", getattr(found, name)) for name, text in wanted.items())


def _is_target(resource: Resource, target: Any) -> bool:
    # The namespace that an object has now counts as it is written, unlike those that it had.
    ids = [resource.id._replace(namespace=resource.namespace), *resource.previous_ids]
    if not has_selected_metadata(resource, target["select"]):
        return False
    for reject in as_list(target.get("reject")):
        fields = as_mapping(reject)
        by_metadata = {"labelSelector", "annotationSelector"} & fields.keys()
        if by_metadata and has_selected_metadata(resource, fields):
            return False
        if fields.keys() - {"labelSelector", "annotationSelector"} and any(is_selected(one, fields) for one in ids):
            return False
    return any(is_selected(one, target["select"]) for one in ids)


def split_steps(path: str) -> list[str]:
    """Split the path of a replacement; dots in brackets are part of a step."""
    steps: list[str] = []
    inside: list[str] = []
    parts = split_path(path, ".")
    for at, part in enumerate(parts):
        inside.append(part)
        if inside[0].startswith("[") and not part.endswith("]") and at + 1 < len(parts):
            continue
        joined = ".".join(inside)
        steps.append(joined.strip("[]") if len(inside) > 1 and "=" not in joined else joined)
        inside = []
    return steps


@lru_cache(maxsize=256)
def _split_once(path: str) -> list[str]:
    return split_steps(path)


def _split_match(step: str) -> tuple[str, str] | None:
    """Return the field and the value of a step such as `[name=x]`; None if it is another."""
    if not (step.startswith("[") and step.endswith("]") and "=" in step):
        return None
    field, _, value = step[1:-1].partition("=")
    return field, value


def _look_up(node: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        pair = _split_match(step)
        if isinstance(node, list):
            if pair:
                named = (
                    item for item in node if text_of(as_mapping(item).get(pair[0]) if pair[0] else item) == pair[1]
                )
                node = next(named, None)
            elif step == "-" or step.isdecimal():
                at = len(node) - 1 if step == "-" else int(step)
                node = node[at] if 0 <= at < len(node) else None
            else:
                return None
        else:
            node = as_mapping(node).get(step)
    return node


def _set(resource: Resource, value: Any, path: Node, options: Any, origin: Origin, target: Any) -> None:
    text = path if isinstance(path, str) else text_of(path)
    steps = _split_once(text)
    charge(Work.BUILD, 4 + 2 * len(steps))
    if len(steps) > MAX_DEPTH:
        raise MergeError(f"`{text}` has more than {MAX_DEPTH} steps", path)
    creates = origin if value_of(options.get("create")) is True else None
    found = list(_find(resource.node, steps, creates, value))
    if not found:
        message = f"`{text}` is not a field of {resource.id}; correct the path, or add `options: {{create: true}}`"
        raise MergeError(message, path if type(path) is TracedScalar else target)
    for parent, key in found:
        parent[key] = _replaced(parent[key], value, options, origin)


def _replaced(old: Any, value: Any, options: Any, origin: Origin) -> Any:
    """Return the new value of a field: a scalar keeps its type."""
    delimiter, index = text_of(options.get("delimiter")), value_of(options.get("index")) or 0
    if isinstance(old, (dict, list)) or isinstance(value, (dict, list)):
        if delimiter:
            raise MergeError("`delimiter` needs a scalar; remove it", options["delimiter"])
        charge(Work.BUILD, count_nodes(value))
        copied = copy_containers(value)
        return override(copied, old) if isinstance(copied, (dict, list)) else origin.scalar(value_of(copied), old)
    text = text_of(value)
    charge(Work.BUILD, 4)
    if delimiter:
        parts = text_of(old).split(delimiter)
        if index < 0:
            parts.insert(0, text)
        elif index >= len(parts):
            parts.append(text)
        else:
            parts[index] = text
        text = delimiter.join(parts)
    keeps_text = isinstance(value_of(old), str)
    return origin.scalar(text if keeps_text or not text else resolve(text), None if value_of(old) is None else old)


def _find(node: Any, steps: Sequence[str], creates: Origin | None, value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the containers and keys of the fields at a path."""
    step, rest = steps[0], steps[1:]
    pair = _split_match(step)
    keys: list[Any]
    if isinstance(node, list):
        keys = _find_items(node, step, pair, creates, rest, value)
    elif isinstance(node, dict) and not pair and step != "*":
        if step not in node or (creates and rest and is_null(node[step])):
            if not creates:
                return
            node[creates.key(step)] = _create(rest, value)
        keys = [step]
    elif isinstance(value_of(node), str):
        raise PatternError("a path into the text of a field")
    else:
        keys = []
    for key in keys:
        if rest:
            yield from _find(node[key], rest, creates, value)
        else:
            yield node, key


def _find_items(
    items: list[Any], step: str, pair: tuple[str, str] | None, creates: Origin | None, rest: Sequence[str], value: Any
) -> list[int]:
    if step == "*":
        charge(Work.BUILD, 4 * len(items))
        return list(range(len(items)))
    if pair is None:
        at = int(step) if step.isdecimal() and len(step) < 10 else -1
        if at == len(items) and creates:
            items.append(_create(rest, value))
        return [at] if 0 <= at < len(items) else []
    field, pattern = pair
    charge(Work.BUILD, 2 * len(items))
    texts = [text_of(as_mapping(item).get(field)) if field else text_of(item) for item in items]
    fitting = select_texts(f".*(?:{pattern}).*", filter(None, texts))
    found = [at for at, text in enumerate(texts) if text and (text == pattern or text in fitting)]
    if not found and creates:
        items.append({creates.key(field): creates.scalar(pattern)} if field else creates.scalar(pattern))
        return [len(items) - 1]
    return found


def _create(rest: Sequence[str], value: Any) -> Any:
    """Return an empty node for a missing step: what the next step needs."""
    if not rest:
        return {} if isinstance(value, dict) else [] if isinstance(value, list) else None
    return [] if _split_match(rest[0]) or rest[0].isdecimal() or rest[0] == "-" else {}
