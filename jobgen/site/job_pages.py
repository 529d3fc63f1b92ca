"""The page of a job: its spec, its manifest in each environment, and who set the value of each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.secrets import find_secrets, redact
from jobgen.model.data import TracedKey, TracedList, TracedScalar, untraced
from jobgen.pipeline.environment import Rendered
from jobgen.pipeline.provenance import Assignment, list_assignments
from jobgen.pipeline.redact import find_file_secrets, redact_lines
from jobgen.pipeline.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.yamlio.write import WrittenLine, list_lines, to_inline_yaml

RENDERER = "jobgen"
"""The layer of values that no file sets."""


class LineSource(NamedTuple):
    """A layer that sets the value of a line."""

    layer: str
    file: str
    line: int
    column: int
    value: str = ""
    """The value that another layer overrides; empty for the layer that wins."""


class ManifestLine(NamedTuple):
    """A line of a manifest; the first of its sources wins."""

    text: str
    sources: tuple[LineSource, ...]


def list_overlay_secrets(snapshot: Snapshot) -> frozenset[str]:
    """List the secrets of all overlays, of which none may be shown."""
    found = [find_file_secrets(file.content) for _, file in layout.read_overlays(snapshot.project.root)]
    return frozenset[str]().union(*found)


def list_spec_lines(job: Job) -> list[str]:
    """List the lines of the file of a job, without its secrets."""
    return list(redact_lines(job.file.content.decode("utf-8", "replace").splitlines()))


def list_manifest_lines(
    tracer: Tracer, job: Job, objects: Sequence[Rendered], secrets: frozenset[str]
) -> list[ManifestLine]:
    """List the lines of the objects of a job in one environment, without secrets."""
    traced = tracer.trace(job, objects[0].env)
    lines: list[ManifestLine] = []
    for made in objects:
        tree = traced.select(made.companion)
        if tree is None:
            continue
        hidden = secrets | find_file_secrets(job.file.content) | find_secrets(made.object)
        lines += [ManifestLine("---", ())] if lines else []
        lines += [_describe_line(line, hidden) for line in list_lines(tree)]
    return lines


def _describe_line(line: WrittenLine, secrets: frozenset[str]) -> ManifestLine:
    sources = tuple(_list_sources(line))
    if not secrets:
        return ManifestLine(line.text, sources)
    text = redact(line.text, secrets)
    return ManifestLine(text, tuple(source._replace(value=redact(source.value, secrets)) for source in sources))


def _list_sources(line: WrittenLine) -> Iterator[LineSource]:
    value = line.value
    if type(value) is TracedScalar or (type(value) is TracedList and not value):
        replaced = line.items.overridden if type(line.items) is TracedList else None
        for place, assignment in enumerate(list_assignments(value, replaced)):
            yield _to_source(assignment, is_first=not place)
    elif type(line.key) is TracedKey:
        location = line.key.location
        yield LineSource(line.key.layer or RENDERER, location.file, location.line, location.column)


def _to_source(assignment: Assignment, *, is_first: bool) -> LineSource:
    location, value = assignment.location, "" if is_first else to_inline_yaml(untraced(assignment.value))
    if location is None:
        return LineSource(assignment.layer or RENDERER, "", 0, 0, value)
    return LineSource(assignment.layer or RENDERER, location.file, location.line, location.column, value)
