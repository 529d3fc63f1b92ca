"""The page of a job: its spec, its manifest in each environment, and who set the value of each line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.secrets import find_secrets, may_contain_secret, redact
from jobgen.model.data import TracedKey, TracedList, TracedScalar, untraced
from jobgen.pipeline.environment import Rendered
from jobgen.pipeline.parallel import parallel_map
from jobgen.pipeline.provenance import Assignment, list_assignments
from jobgen.pipeline.redact import find_file_secrets, redact_lines
from jobgen.pipeline.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.site.fleet import Fleet, FleetCell
from jobgen.site.lines import Change, Line, LineSource, find_changes
from jobgen.yamlio.write import WrittenLine, list_lines, to_inline_yaml

MAX_MANIFESTS = 6_000
"""How many manifests a page has at most; the jobs that come first have theirs."""
MAX_LINES = 400_000
"""How many lines, of files and manifests together, a page has at most."""

RENDERER = "jobgen"
"""The layer of values that no file sets."""

_SEPARATOR = Line("---")
_BY_RENDERER = (LineSource(RENDERER, "", 0),)


class JobPages(NamedTuple):
    """The lines of files and manifests."""

    specs: Mapping[str, tuple[Change, ...]]
    """By path."""
    manifests: tuple[Manifest, ...]
    omitted: tuple[Omission, ...]


class Manifest(NamedTuple):
    """The manifest of a cell, as changes to the one with the number `base`; -1 is none."""

    cell: int
    base: int
    changes: tuple[Change, ...]


class Omission(NamedTuple):
    """What is not in the page because it would be too large."""

    what: str
    shown: int
    total: int


class _Page(NamedTuple):
    """The page of a job: its file, and the manifests of its cells, each as changes to the first one."""

    job: Job
    cells: tuple[tuple[int, FleetCell], ...]


def build_pages(snapshot: Snapshot, fleet: Fleet, jobs: Sequence[Job]) -> JobPages:
    """Build the pages of jobs, in several processes if there are many."""
    cells: dict[int, list[tuple[int, FleetCell]]] = {}
    for number, cell in enumerate(fleet.cells):
        if cell.objects:
            cells.setdefault(cell.job, []).append((number, cell))
    pages = [_Page(job, tuple(cells.get(number, ()))) for number, job in enumerate(jobs)]
    chosen, total, count = list[_Page](), sum(len(page.cells) for page in pages), 0
    for page in pages:
        count += len(page.cells)
        if count > MAX_MANIFESTS:
            break
        chosen.append(page)
    secrets = list_overlay_secrets(snapshot)
    snapshot.tracer.traced_project()
    found = parallel_map(chosen, lambda share: [_list_changes(snapshot.tracer, page, secrets) for page in share])
    specs: dict[str, tuple[Change, ...]] = {}
    manifests: list[Manifest] = []
    lines = 0
    for page, changes in zip(chosen, found, strict=True):
        if page.job.file.path not in specs:
            specs[page.job.file.path] = find_changes(list_spec_lines(page.job.file))
            lines += _count_added(specs[page.job.file.path])
        lines += sum(map(_count_added, changes))
        if lines > MAX_LINES:
            break
        first = len(manifests)
        for place, ((number, _), change) in enumerate(zip(page.cells, changes, strict=True)):
            manifests.append(Manifest(number, first if place else -1, change))
    files = {page.job.file.path for page in pages}
    omitted = [Omission("manifests", len(manifests), total), Omission("files", len(specs), len(files))]
    return JobPages(specs, tuple(manifests), tuple(each for each in omitted if each.shown < each.total))


def _count_added(changes: Sequence[Change]) -> int:
    return sum(len(change.added) for change in changes)


def _list_changes(tracer: Tracer, page: _Page, secrets: frozenset[str]) -> list[tuple[Change, ...]]:
    """Return the manifests of a job: the first one in full, the others as changes to it."""
    manifests = [list_manifest_lines(tracer, page.job, cell.objects, secrets) for _, cell in page.cells]
    return [find_changes(lines, manifests[0] if place else ()) for place, lines in enumerate(manifests)]


def list_overlay_secrets(snapshot: Snapshot) -> frozenset[str]:
    """List the secrets of all overlays, of which none may be shown."""
    found = [find_file_secrets(file.content) for _, file in layout.read_overlays(snapshot.project.root)]
    return frozenset[str]().union(*found)


def list_spec_lines(file: File) -> list[Line]:
    """List the lines of the file of a job, without its secrets."""
    return list(map(Line, redact_lines(file.content.decode("utf-8", "replace").splitlines())))


def list_manifest_lines(tracer: Tracer, job: Job, objects: Sequence[Rendered], secrets: frozenset[str]) -> list[Line]:
    """List the lines of the objects of a job in one environment, without secrets."""
    traced = tracer.trace(job, objects[0].env)
    lines: list[Line] = []
    for made in objects:
        tree = traced.select(made.companion)
        if tree is None:
            continue
        written = list_lines(tree)
        hidden = secrets | find_file_secrets(job.file.content)
        if _may_hold_secret("\n".join([line.text for line in written])):
            hidden |= find_secrets(made.object)
        lines += [_SEPARATOR] if lines else []
        # The lines of a template that roles share are the same objects.
        known: dict[int, Line] = {}
        for line in written:
            found = known.get(id(line))
            if found is None:
                found = known[id(line)] = _describe_line(line, hidden)
            lines.append(found)
    return lines


def _may_hold_secret(text: str) -> bool:
    return may_contain_secret(text) or ("://" in text and "@" in text)


def _describe_line(line: WrittenLine, secrets: frozenset[str]) -> Line:
    sources = _list_sources(line)
    if not secrets:
        return Line(line.text, sources)
    text = redact(line.text, secrets)
    return Line(text, tuple(source._replace(value=redact(source.value, secrets)) for source in sources))


def _list_sources(line: WrittenLine) -> tuple[LineSource, ...]:
    value = line.value
    if type(value) is TracedScalar or (type(value) is TracedList and not value):
        replaced = line.items.overridden if type(line.items) is TracedList else None
        if value.overridden is None and replaced is None:
            return (LineSource(value.layer or RENDERER, value.location.file, value.location.line),)
        found = list_assignments(value, replaced)
        return tuple([_to_source(assignment, is_first=not place) for place, assignment in enumerate(found)])
    if type(line.key) is TracedKey and isinstance(value, (dict, list)):
        return (LineSource(line.key.layer or RENDERER, line.key.location.file, line.key.location.line),)
    opens_block = isinstance(value, (dict, list)) and value
    return () if opens_block else _BY_RENDERER


def _to_source(assignment: Assignment, *, is_first: bool) -> LineSource:
    location, value = assignment.location, "" if is_first else to_inline_yaml(untraced(assignment.value))
    if location is None:
        return LineSource(assignment.layer or RENDERER, "", 0, value)
    return LineSource(assignment.layer or RENDERER, location.file, location.line, value)
