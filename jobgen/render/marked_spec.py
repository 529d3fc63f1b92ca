"""Expand and render a job with a mark on each node of its spec, which shows where the node is in the rendered object.

A mark is a location that no other node has. Render keeps the locations of nodes, so a leaf of the object that carries a
mark comes from the node with this mark, whatever render does with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.model.data import (
    Location,
    Node,
    TracedKey,
    TracedList,
    TracedMapping,
    TracedScalar,
    override,
    value_of,
    with_layer,
)
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.render.build import build_object, job_attributes
from jobgen.render.expand import Expander, JobDocument, JobSpec, RoleSpec
from jobgen.render.provenance import Assignment, explain_path
from jobgen.render.trace import Job, Tracer
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import Patch

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
            self.spec = spec = _mark_spec(spec, self.marks)
            self.choice = self.marks.copy_with_marks(self._find_choice(job, patches))
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


def _mark_spec(spec: JobSpec, marks: Marks) -> JobSpec:
    roles = {name: _mark_role(role, marks) for name, role in spec.roles.items()}
    manifests = tuple(map(marks.copy_with_marks, spec.manifests))
    return spec._replace(fields=marks.copy_with_marks(spec.fields), roles=roles, manifests=manifests)


def _mark_role(role: RoleSpec, marks: Marks) -> RoleSpec:
    return role._replace(
        replica=marks.copy_with_marks(role.replica),
        pod=marks.copy_with_marks(role.pod),
        templates=tuple(map(marks.copy_with_marks, role.templates)),
        manifests=tuple(map(marks.copy_with_marks, role.manifests)),
    )


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
