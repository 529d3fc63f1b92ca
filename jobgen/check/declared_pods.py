"""The pods of a kind that jobgen does not count, as the file of a team says how to count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.check.counted_pods import MAX_PODS, CountedPod, CountObject, Unknown
from jobgen.k8s.kinds import get_group
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.team_kinds import explain_refusal
from jobgen.model.budget import Work, charge
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step, format_dotted
from jobgen.model.place import At, Place
from jobgen.model.quantity import parse_digits
from jobgen.spec.teams import OBJECT, POD_SPEC, CountedPods, CountPath

_STEPS = 10
"""The steps that it takes to look at what is at a path."""


class _Found(NamedTuple):
    """What is at the path of an entry."""

    beside: Plain
    """The mapping or list that it is in."""
    node: Plain
    place: Place


class _Missing(NamedTuple):
    """Nothing is at the path of an entry: the first step that is missing, and what lacks it."""

    owner: Place
    path: tuple[Step, ...]


class DeclaredPods(NamedTuple):
    """The pods that the entries of a kind find, and what they cannot count."""

    pods: Sequence[CountedPod]
    refused: Sequence[Unknown] = ()
    unknown: Sequence[Unknown] = ()
    objects: Sequence[Plain] = ()
    """The objects inside whose pods are among these."""


def find_declared_pods(
    manifest: Manifest, entries: Iterable[CountedPods], count_object: CountObject | None
) -> DeclaredPods:
    """Return the pods of an object. What an entry does not find or cannot count is refused."""
    pods: list[CountedPod] = []
    refused: list[Unknown] = []
    unknown: list[Unknown] = []
    objects: list[Plain] = []
    for entry in entries:
        for found in _walk(manifest.object, manifest.object, entry.at, manifest.object, ()):
            if isinstance(found, _Missing):
                refused += () if entry.is_optional else [(found.owner, f"there is no `{format_dotted(found.path)}`")]
                continue
            if not isinstance(found.node, dict):
                refused.append((found.place, f"`{format_dotted(entry.at)}` is not a mapping"))
                continue
            count = _multiply(manifest.object, found.beside, entry)
            if isinstance(count, CountPath):
                text = f"{'.' * count.is_beside}{format_dotted(count.path)}"
                refused.append((found.place, f"`{text}` is not one number"))
                continue
            inner = _count_one(manifest, entry.holds, found, count_object)
            pods += ((pod, min(times * count, MAX_PODS)) for pod, times in inner.pods)
            refused += inner.refused
            unknown += inner.unknown
            objects += inner.objects
    return DeclaredPods(pods, refused, unknown, objects)


def _count_one(manifest: Manifest, holds: str, found: _Found, count_object: CountObject | None) -> DeclaredPods:
    node = as_mapping(found.node)
    if holds != OBJECT:
        template = {"spec": node} if holds == POD_SPEC else node
        if not as_list(as_mapping(template.get("spec")).get("containers")):
            return DeclaredPods((), [(found.place, "the pod has no containers")])
        return DeclaredPods([(Pod(template, manifest), 1)])
    group, kind = get_group(as_text(node.get("apiVersion"))), as_text(node.get("kind"))
    reason = explain_refusal(manifest.team, group, kind) if manifest.team else ""
    if count_object is None or reason:
        return DeclaredPods((), [(found.place, reason or "objects are inside each other too deeply")])
    created = count_object(node)
    return DeclaredPods(created.pods, created.refused, created.unknown, [node])


def _multiply(obj: Mapping[str, Plain], beside: Plain, entry: CountedPods) -> int | CountPath:
    """Return the number of pods; the path of what is not one number."""
    product = 1
    for factor in entry.factors:
        if isinstance(factor, int):
            product *= factor
            continue
        found = list(find_nodes(beside if factor.is_beside else obj, factor.path))
        if all(each is None for each in found):
            product *= entry.omitted
            continue
        number = as_integer(found[0])
        number = parse_digits(as_text(found[0])) if number is None else number
        if len(found) > 1 or number is None or number < 0:
            return factor
        product *= number
    return product


def _walk(
    node: Plain, place: Place, steps: Sequence[Step], beside: Plain, path: tuple[Step, ...]
) -> Iterator[_Found | _Missing]:
    """Yield what is at a path; an empty list has no items, and what is missing is named."""
    if not steps:
        yield _Found(beside, node, place)
        return
    step = steps[0]
    if step == "*" and isinstance(node, (dict, list)):
        children = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
    else:
        children = _find_children(node, step)
        if all(child is None for _, child in children):
            yield _Missing(place, (*path, step))
            return
    below = node if not isinstance(step, NamedItem) else beside
    charge(Work.PODS, _STEPS * len(children))
    for key, child in children:
        yield from _walk(child, At(node, key), steps[1:], below, (*path, step))


def _find_children(node: Plain, step: Step) -> list[tuple[Any, Plain]]:
    """Return the entries of a mapping or a list that a step leads to, each with its key or index."""
    if isinstance(step, NamedItem):
        items = enumerate(as_list(node))
        return [(index, item) for index, item in items if as_text(as_mapping(item).get(step.field)) == step.value]
    if isinstance(step, int):
        return [(step, item) for item in as_list(node)[step : step + 1]]
    return [(step, node[step])] if isinstance(node, dict) and step in node else []
