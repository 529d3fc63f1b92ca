"""Read a job in spite of its errors: without the fields that have them, so that the other fields can be explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from jobgen.features.editor.workspace import Ready
from jobgen.model.data import Location, TracedKey, location_of
from jobgen.model.finding import Finding, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.render.environment import EnvironmentRunner, new_overlay_use
from jobgen.render.read_jobs import read_jobs
from jobgen.render.trace import Job
from jobgen.repo.files import FileEntry, read_file, use_draft
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read

_MAX_ROUNDS = 8
_NOT_NEWLINE = lazy_pattern(r"[^\r\n]")


def read_valid_jobs(ready: Ready, entry: FileEntry, document: int) -> list[Job]:
    """Return the jobs of one document of a file; without fields that have errors if it cannot be rendered with them.

    All other fields stay where they are. The list is empty if there is no job without errors.
    """
    tried: Counter[tuple[str, str]] = Counter()
    first: list[Job] = []
    for _ in range(_MAX_ROUNDS):
        findings: list[Finding] = []
        jobs = [job for job in read_jobs([entry], ready.run.project.frameworks, findings) if job.position == document]
        first = first or jobs
        if jobs:
            findings = _find_rendering_errors(ready, jobs[0])
            if not findings:
                return jobs
        errors = [each for each in findings if each.severity is Severity.ERROR and each.location.file == entry.path]
        content = _blank_fields(read_file(entry).content, entry.path, document, errors, tried)
        if content is None:
            break
        entry = use_draft(entry, content)
    return first


def list_broken(ready: Ready, job: Job) -> list[str]:
    """Return the environments that have a job, but cannot render it."""
    return [runner.name for runner in ready.prepared.runners if not _is_rendered(runner, job)]


def list_invalid_environments(ready: Ready) -> list[str]:
    """Return the environments whose overlays have errors, so that nothing is rendered for them."""
    known = {runner.name for runner in ready.prepared.runners}
    return [name for name in ready.run.project.environments() if name not in known]


def _is_rendered(runner: EnvironmentRunner, job: Job) -> bool:
    patches = runner.patches_for(job)
    return patches is None or runner.render_job(job, patches, new_overlay_use()) is not None


def _find_rendering_errors(ready: Ready, job: Job) -> list[Finding]:
    """Return why a job cannot be rendered in any environment; empty if it can in one of them."""
    names = [runner.name for runner in ready.prepared.runners if runner.patches_for(job) is not None]
    broken = list_broken(ready, job)
    if len(broken) < len(names):
        return []
    return [finding for name in broken for finding in ready.prepared.tracer.findings(job, name)]


def _blank_fields(
    content: bytes, file: str, document: int, errors: Sequence[Finding], tried: Counter[tuple[str, str]]
) -> bytes | None:
    """Return a text with spaces instead of the fields that have errors; None if that is not possible.

    If an error is there again, it is that of the field around the one that was removed before.
    """
    documents = read(content, file, traced=True).documents
    tree = documents[document].data if document < len(documents) else None
    places: list[Location] = []
    for rule, message, location in dict.fromkeys((each.rule, each.message, each.location) for each in errors):
        around = list(_list_keys_around(tree, location))
        if tried[rule, message] < len(around):
            places.append(around[tried[rule, message]])
        tried[rule, message] += 1
    blanked = content
    for place in dict.fromkeys(places):
        # A field inside of one that was removed before is not there any more.
        with suppress(EditRefusedError):
            edited = apply_edits(blanked, file, [TextEdit("remove", place)])
            blanked = _blank_removed(blanked.decode("utf-8"), edited.decode("utf-8"), place)
    return None if blanked == content else blanked


def _list_keys_around(tree: Any, place: Location, keys: tuple[Location, ...] = ()) -> Iterator[Location]:
    """Yield the locations of the keys around a location, innermost first; none if nothing is there."""
    found: tuple[Location, ...] = ()
    pending: list[tuple[Any, tuple[Location, ...]]] = [(tree, keys)]
    while pending:
        node, above = pending.pop()
        if _is_at(location_of(node), place) and len(above) >= len(found):
            found = above
        if isinstance(node, dict):
            for key, child in node.items():
                own = (*above, key.location) if isinstance(key, TracedKey) else above
                if isinstance(key, TracedKey) and _is_at(key.location, place):
                    found = own
                pending.append((child, own))
        elif isinstance(node, list):
            pending += ((child, above) for child in node)
    yield from reversed(found)


def _is_at(location: Location | None, place: Location) -> bool:
    return location is not None and location[1:3] == place[1:3]


def _blank_removed(before: str, after: str, place: Location) -> bytes:
    """Return the text from which one part was removed, which has a key at a place, with spaces instead of the part."""
    pairs = enumerate(zip(before, after, strict=False))
    start = next((number for number, (old, new) in pairs if old != new), len(after))
    end = len(before) - len(after) + start
    key = sum(map(len, before.splitlines(keepends=True)[: place.line - 1])) + place.column - 1
    # What follows may begin as the removed part does.
    while start > key and before[start - 1] == before[end - 1]:
        start, end = start - 1, end - 1
    return (before[:start] + _NOT_NEWLINE.sub(" ", before[start:end]) + before[end:]).encode()
