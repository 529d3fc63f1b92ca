"""Explain a value: the assignments of all layers, from the last one down to the default of the kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobgen.model.data import (
    Location,
    Node,
    TracedKey,
    TracedList,
    TracedMapping,
    TracedScalar,
    location_of,
    override,
    untraced,
    value_of,
    with_layer,
)
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.rendering.build import build_object, job_attributes
from jobgen.rendering.expand import Expander, JobDocument, JobSpec, RoleSpec
from jobgen.rendering.trace import Job, Tracer
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import Patch
from jobgen.yamlio.write import sort_key


@dataclass(frozen=True, slots=True)
class Assignment:
    """The value that one layer assigns; without a location, the renderer assigns it."""

    value: Node
    layer: str
    location: Location | None
    others: tuple[Location, ...] = ()
    """The locations of other values that are part of this one, as the words of a command line are."""
    is_removed: bool = False


@dataclass(frozen=True, slots=True)
class ExplainedValue:
    """A leaf of the rendered object and its assignments, the last first."""

    path: tuple[Step, ...]
    assignments: tuple[Assignment, ...]


class NoSuchFieldError(LookupError):
    """The object has no such field; `known` lists the fields at the last existing step."""

    def __init__(self, step: str, known: list[str]) -> None:
        super().__init__(step)
        self.step = step
        self.known = known


def explain_path(traced: Node, path: tuple[Step, ...]) -> Iterator[ExplainedValue]:
    """Explain every leaf at or below a path of a traced object."""
    node, steps = traced, list[Step]()
    replaced: Node = None
    key: Node = None
    for step in path:
        replaced = node.overridden if type(node) is TracedList else None
        found, name, node = _follow(node, step)
        key = name if type(name) is TracedKey else key
        steps.append(found)
    yield from _explain_leaves(node, tuple(steps), key, replaced)


def _follow(node: Node, step: Step) -> tuple[Step, Node, Node]:
    """Follow one step: its canonical form, its key, and the node."""
    if isinstance(node, dict):
        for key, child in node.items():
            if key == str(step):
                return str(key), key, child
        raise NoSuchFieldError(str(step), [str(key) for key in node])
    if isinstance(node, list):
        for index, item in enumerate(node):
            if str(step) == str(index) or (isinstance(step, NamedItem) and _is_named(item, step)):
                return index, None, item
        raise NoSuchFieldError(str(step), [str(index) for index in range(len(node))])
    raise NoSuchFieldError(str(step), [])


def _is_named(item: Node, step: NamedItem) -> bool:
    if not isinstance(item, dict) or step.field not in item:
        return False
    value = untraced(item[step.field])
    return (value if isinstance(value, str) else json.dumps(value)) == step.value


def _explain_leaves(node: Node, path: tuple[Step, ...], key: Node, replaced: Node) -> Iterator[ExplainedValue]:
    """Explain the leaves below a node. A list that overrides another counts for each of its items."""
    if isinstance(node, dict) and node:
        for name, child in sorted(node.items(), key=lambda pair: sort_key(pair[0])):
            yield from _explain_leaves(child, (*path, str(name)), name if type(name) is TracedKey else key, None)
    elif isinstance(node, list) and node:
        overridden = node.overridden if type(node) is TracedList else None
        for index, child in enumerate(node):
            yield from _explain_leaves(child, (*path, index), key, overridden)
    elif type(key) is TracedKey and isinstance(node, (dict, list)) and not isinstance(node, TracedList):
        # An empty mapping or list has no location; that of the nearest key is used.
        yield ExplainedValue(path, (Assignment(untraced(node), key.layer, key.location),))
    else:
        yield ExplainedValue(path, tuple(list_assignments(node, replaced)))


def list_assignments(node: Node, replaced: Node = None) -> Iterator[Assignment]:
    """Yield the assignments of a leaf, the last first; `replaced` is the list that the list around it overrides."""
    while isinstance(node, (TracedScalar, TracedList)):
        parts = map(location_of, node.parts) if type(node) is TracedScalar else ()
        yield Assignment(untraced(node), node.layer, node.location, tuple(filter(None, parts)))
        node, replaced = (node.overridden, replaced) if node.overridden is not None else (replaced, None)
    if node is not None:
        yield Assignment(untraced(node), _layer_of(node), location_of(node))


def _layer_of(node: Node) -> str:
    if isinstance(node, (TracedScalar, TracedKey, TracedList)):
        return node.layer
    children = [part for pair in node.items() for part in pair] if isinstance(node, dict) else ()
    return next(filter(None, map(_layer_of, children)), "")


CHOICES = ("framework", "platform")
"""The fields of a job that select its kind."""


class Marks:
    """The marks of a spec, and the locations that they stand for."""

    def __init__(self) -> None:
        self._locations: list[Location] = []

    def add(self, location: Location) -> Location:
        """A new mark for a location."""
        self._locations.append(location)
        return Location("", len(self._locations))

    def resolve(self, location: Location | None) -> Location | None:
        """The location that a mark stands for; any other location unchanged. No file has an empty name."""
        return self._locations[location.line - 1] if location is not None and not location.file else location

    def copy_with_marks(self, node: Any) -> Any:
        """A copy of a tree with marks instead of locations. What a node overrides keeps its location."""
        if type(node) is TracedScalar:
            return TracedScalar(node.value, self.add(node.location), node.layer, node.overridden, node.written)
        if type(node) is TracedMapping and not node:
            return TracedMapping(self.add(node.location), node.layer)
        if isinstance(node, dict):
            return {self._mark_key(key): self.copy_with_marks(value) for key, value in node.items()}
        if type(node) is TracedList:
            items = map(self.copy_with_marks, node)
            marked = TracedList(items, self.add(node.location), node.layer, node.overridden)
            marked.item_locations = node.item_locations
            return marked
        return [self.copy_with_marks(item) for item in node] if isinstance(node, list) else node

    def _mark_key(self, key: str) -> str:
        return TracedKey.at(key, self.add(key.location), key.layer, key.written) if type(key) is TracedKey else key


class MarkedSpec(NamedTuple):
    """An expanded spec with marks, the object that it is rendered as, and the spec as the job's author wrote it."""

    spec: JobSpec
    choice: Mapping[str, Node]
    """The fields of the job that select the kind."""
    object: Mapping[str, Node]
    written: Mapping[str, Any]
    marks: Marks
    places: Mapping[Location, list[tuple[tuple[Step, ...], tuple[Assignment, ...]]]]
    """The leaves of the object that carry a mark, with their assignments."""


class _MarkingExpander(Expander):
    """An expander that marks the spec and keeps it."""

    marks: Marks
    spec: JobSpec | None = None
    choice: Mapping[str, Node]

    def expand(
        self, job: JobDocument, patches: list[Patch], problems: list[Problem], deletions: list[Deletion]
    ) -> JobSpec | None:
        self.marks = Marks()
        spec = super().expand(job, patches, problems, deletions)
        if spec is not None:
            copy = self.marks.copy_with_marks
            roles = {}
            for name, role in spec.roles.items():
                templates, manifests = tuple(map(copy, role.templates)), tuple(map(copy, role.manifests))
                roles[name] = RoleSpec(copy(role.replica), copy(role.pod), templates, manifests)
            manifests = tuple(map(copy, spec.manifests))
            self.spec = spec = spec._replace(fields=copy(spec.fields), roles=roles, manifests=manifests)
            self.choice = copy(self._find_choice(job, patches))
        return spec

    def _find_choice(self, job: JobDocument, patches: list[Patch]) -> dict[str, Node]:
        """The framework and the platform with their history; they are no fields of the expanded spec."""
        layers = [layer.job for layer in self.environment.common_defaults]
        layers.append(with_layer(job.data["spec"], "job"))
        layers += [patch.merge.job for patch in patches if patch.merge is not None]
        choice: dict[str, Node] = {}
        for layer in layers:
            for name in CHOICES:
                if value_of(layer.get(name)) is not None:
                    choice[name] = override(layer[name], choice[name]) if name in choice else layer[name]
        return choice


def build_marked(job: Job, env: str, tracer: Tracer) -> MarkedSpec | None:
    """Build the object of a job spec with marks; None if it is not rendered."""
    expander = tracer.expander(env)
    marking = _MarkingExpander(expander.environment, expander.kinds, expander.day)
    document = job.traced_document()
    patches = marking.environment.patches_for(job_attributes(document, marking))
    made = build_object(document, marking, patches, [], [])
    if made is None or marking.spec is None:
        return None
    places: dict[Location, list[tuple[tuple[Step, ...], tuple[Assignment, ...]]]] = {}
    for leaf in explain_path(made, ()):
        locations = (found for each in leaf.assignments for found in (each.location, *each.others))
        for location in dict.fromkeys(locations):
            if location is not None and not location.file:
                places.setdefault(location, []).append((leaf.path, leaf.assignments))
    return MarkedSpec(marking.spec, marking.choice, made, document.data["spec"], marking.marks, places)
