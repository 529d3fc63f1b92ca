"""The page of a job: its spec, its manifest in each environment, and who set the value of each line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from jobgen.compare.snapshot import Snapshot
from jobgen.engine.workers import parallel_map
from jobgen.features.page.fleet import Fleet, FleetCell
from jobgen.features.page.page import Change, Line, LineSource, find_changes
from jobgen.k8s.secrets import MASK, find_secrets, order_secrets
from jobgen.model.data import Node, Plain, TracedKey, TracedList, TracedScalar, untraced, value_of
from jobgen.rendering.config import read_traced_source
from jobgen.rendering.environment import Rendered
from jobgen.rendering.provenance import list_assignments
from jobgen.rendering.redact import find_file_secrets, redact_source
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.yamlio.write import ListedLines, list_lines, to_inline_yaml

MAX_MANIFESTS = 6_000
"""How many manifests a page has at most; the jobs that come first have theirs."""
MAX_LINES = 400_000
"""How many lines, of files and manifests together, a page has at most."""

RENDERER = "jobgen"
"""The layer of values that no file sets."""

_SEPARATOR: Line = ("---", ())
_BY_RENDERER: tuple[LineSource, ...] = ((RENDERER, "", 0, ""),)


class JobPages(NamedTuple):
    """The lines of files and manifests."""

    specs: Mapping[str, tuple[Change, ...]]
    """By path."""
    manifests: tuple[Manifest, ...]
    omitted: tuple[tuple[str, int, int], ...]
    """What is not in the page because it would be too large: how many are shown, of how many."""


class Manifest(NamedTuple):
    """The manifest of a cell, as changes to the one with the number `base`; -1 is none."""

    cell: int
    base: int
    changes: tuple[Change, ...]


class _Page(NamedTuple):
    """The page of a job: its file, and the manifests of its cells, each as changes to the first one."""

    job: Job
    cells: tuple[tuple[int, FleetCell], ...]
    has_file: bool
    """True if the job is the first one of its file."""


def build_pages(snapshot: Snapshot, fleet: Fleet, jobs: Sequence[Job]) -> JobPages:
    """Build the pages of jobs, in several processes if there are many."""
    cells: dict[int, list[tuple[int, FleetCell]]] = {}
    for number, cell in enumerate(fleet.cells):
        if cell.objects:
            cells.setdefault(cell.job, []).append((number, cell))
    first_of = {job.file.path: number for number, job in reversed([*enumerate(jobs)])}
    pages = [
        _Page(job, tuple(cells.get(number, ())), first_of[job.file.path] == number) for number, job in enumerate(jobs)
    ]
    counts = accumulate(len(page.cells) for page in pages)
    chosen = [page for page, count in zip(pages, counts, strict=True) if count <= MAX_MANIFESTS]
    # No secret of any overlay may be shown.
    overlays = layout.read_overlays(snapshot.project.root)
    secrets = frozenset[str]().union(*(find_file_secrets(file.content) for _, file in overlays))
    snapshot.tracer.traced_project()
    found = parallel_map(chosen, lambda share: [_list_changes(snapshot.tracer, page, secrets) for page in share])
    specs: dict[str, tuple[Change, ...]] = {}
    manifests: list[Manifest] = []
    lines = 0
    for page, (spec, changes) in zip(chosen, found, strict=True):
        if page.has_file:
            specs[page.job.file.path] = spec
        lines += _count_added(spec) + sum(map(_count_added, changes))
        if lines > MAX_LINES:
            break
        first = len(manifests)
        for place, ((number, _), change) in enumerate(zip(page.cells, changes, strict=True)):
            manifests.append(Manifest(number, first if place else -1, change))
    total, files = sum(len(page.cells) for page in pages), sum(page.has_file for page in pages)
    omitted = (("manifests", len(manifests), total), ("files", len(specs), files))
    return JobPages(specs, tuple(manifests), tuple(each for each in omitted if each[1] < each[2]))


def _count_added(changes: Sequence[Change]) -> int:
    return sum(len(change.added) for change in changes)


def _list_changes(
    tracer: Tracer, page: _Page, secrets: frozenset[str]
) -> tuple[tuple[Change, ...], list[tuple[Change, ...]]]:
    """Return the file of a job, and its manifests: the first one in full, the others as changes to it."""
    lines, own = _redact_file(page.job.file)
    spec = find_changes([(line, ()) for line in lines]) if page.has_file else ()
    manifests = list_manifest_lines(tracer, page.job, [cell.objects for _, cell in page.cells], secrets | own)
    return spec, [find_changes(lines, manifests[0] if place else ()) for place, lines in enumerate(manifests)]


@lru_cache(maxsize=1)
def _redact_file(file: File) -> tuple[Sequence[str], frozenset[str]]:
    """Return the lines of a file without its secrets, and the secrets; the jobs of a file follow each other."""
    return redact_source(file.content, read_traced_source(file))


def list_manifest_lines(
    tracer: Tracer, job: Job, cells: Sequence[Sequence[Rendered]], secrets: frozenset[str]
) -> list[list[Line]]:
    """List the lines of the objects of a job in each of its environments, without secrets."""
    whole, seen = secrets, dict[int, Mapping[str, Plain]]()
    for made in (made for objects in cells for made in objects):
        # Most of an object is equal in all environments.
        whole |= find_secrets(made.object, seen.get(made.companion))
        seen.setdefault(made.companion, made.object)
    ordered = order_secrets(whole)
    # All trees stay alive here, because lines are known by the `id` of their nodes.
    traces = list(tracer.trace_each(job, [objects[0].env for objects in cells]))
    listed: ListedLines[Line] = {}
    manifests: list[list[Line]] = []

    def describe(text: str, key: Node, value: Node, items: Node) -> Line:
        sources = _list_sources(key, value, items)
        if len(sources) > 1 and not whole.isdisjoint(map(str.strip, str(value_of(value)).split("\n"))):
            # What a secret overrides is a secret, too.
            sources = (sources[0], *((*source[:3], MASK) for source in sources[1:]))
        return _describe_line(text, sources, ordered)

    for objects, traced in zip(cells, traces, strict=True):
        lines: list[Line] = []
        for tree in filter(None, (traced.select(made.companion) for made in objects)):
            lines += [_SEPARATOR] if lines else []
            lines += list_lines(tree, describe, listed)
        manifests.append(lines)
    return manifests


def _describe_line(text: str, sources: tuple[LineSource, ...], secrets: Sequence[str]) -> Line:
    for secret in secrets:
        if secret in text or any(secret in value for *_, value in sources):
            text = text.replace(secret, MASK)
            sources = tuple([(layer, file, at, value.replace(secret, MASK)) for layer, file, at, value in sources])
    return text, sources


def _list_sources(key: Node, value: Node, items: Node) -> tuple[LineSource, ...]:
    if type(value) is TracedScalar or (type(value) is TracedList and not value):
        replaced = items.overridden if type(items) is TracedList else None
        if value.overridden is None and replaced is None:
            return ((value.layer or RENDERER, value.location.file, value.location.line, ""),)
        found: list[LineSource] = []
        for place, assignment in enumerate(list_assignments(value, replaced)):
            at, layer = assignment.location, assignment.layer or RENDERER
            text = to_inline_yaml(untraced(assignment.value)) if place else ""
            found.append((layer, "", 0, text) if at is None else (layer, at.file, at.line, text))
        return tuple(found)
    if type(key) is TracedKey and isinstance(value, (dict, list)):
        return ((key.layer or RENDERER, key.location.file, key.location.line, ""),)
    opens_block = isinstance(value, (dict, list)) and value
    return () if opens_block else _BY_RENDERER
