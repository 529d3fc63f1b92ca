"""The value at a position in every environment, with the layers that set it, and its text as safe Markdown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from jobgen.explanation.explain import ExplainedField, explain_for_job
from jobgen.features.editor.cursor import Cursor, Part
from jobgen.features.editor.index import IndexedJob, list_jobs
from jobgen.features.editor.workspace import Ready, Workspace
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, Plain, value_of
from jobgen.model.finding import FaultKey, Finding, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, format_dotted, list_keys_around
from jobgen.pipeline.policies import ClusterMutations
from jobgen.rendering.build import is_spec
from jobgen.rendering.environment import new_overlay_use
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo.files import FileEntry, read_file, use_draft
from jobgen.repo.lock import TREE
from jobgen.repo.shipped import BUILT_IN, find_shipped
from jobgen.reports.escape import visible
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read

_MAX_ROUNDS = 8
_NOT_NEWLINE = lazy_pattern(r"[^\r\n]")


def read_valid_jobs(ready: Ready, entry: FileEntry, document: int) -> list[Job]:
    """Return the jobs of one document of a file; without fields that have errors if it cannot be rendered with them.

    All other fields stay where they are. The list is empty if there is no job without errors.
    """
    tried: Counter[FaultKey] = Counter()
    first: list[Job] = []
    for _ in range(_MAX_ROUNDS):
        findings: list[Finding] = []
        jobs = [job for job in read_jobs([entry], ready.project.kinds, findings) if job.position == document]
        first = first or jobs
        if jobs:
            broken = list_broken(ready, jobs[0])
            having = [runner for runner in ready.layers.runners if runner.patches_for(jobs[0]) is not None]
            # It is enough if one environment can render the job.
            failed = broken if len(broken) == len(having) else []
            findings = [found for name in failed for found in ready.layers.tracer.findings(jobs[0], name)]
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
    return [
        runner.name
        for runner in ready.layers.runners
        if (patches := runner.patches_for(job)) is not None
        and runner.render_job(job, patches, new_overlay_use()) is None
    ]


def _blank_fields(
    content: bytes, file: str, document: int, errors: Sequence[Finding], tried: Counter[FaultKey]
) -> bytes | None:
    """Return a text with spaces instead of the fields that have errors; None if that is not possible.

    If an error is there again, it is that of the field around the one that was removed before.
    """
    documents = read(content, file, traced=True).documents
    tree = documents[document].data if document < len(documents) else None
    places: list[Location] = []
    for fault, location in dict.fromkeys((each.fault, each.location) for each in errors):
        around = list_keys_around(tree, location)
        if tried[fault] < len(around):
            places.append(around[-1 - tried[fault]].location)
        tried[fault] += 1
    blanked = content
    for place in dict.fromkeys(places):
        # A field inside of one that was removed before is not there any more.
        with suppress(EditRefusedError):
            edited = apply_edits(blanked, file, [TextEdit("remove", place)])
            blanked = _blank_removed(blanked.decode("utf-8"), edited.decode("utf-8"), place)
    return None if blanked == content else blanked


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


_MAX_EXPLAINED = 100
"""How often a job is explained: each of a sweep takes some milliseconds in each environment."""


class ExplainedValue(NamedTuple):
    """A field of a job in its environments."""

    job: Job
    """Of a sweep, the first one."""
    field: str
    """The dotted path of the field, as `explain` takes it."""
    fields: Sequence[ExplainedField]
    """Of a sweep, those of each job that is explained."""
    broken: Sequence[str] = ()
    """The environments that cannot render the job."""
    explained: int = 1
    jobs: int = 1
    """How many jobs the sweep has; of many, only some are explained."""


def explain_value(workspace: Workspace, ready: Ready, file: str, cursor: Cursor) -> ExplainedValue | None:
    """Explain the field at a position in every environment; None if no valid job is there."""
    if not workspace.is_repository or cursor.part is Part.COMMENT or not cursor.path:
        return None
    environments = [each.name for each in ready.layers.runners]
    with workspace.reading():
        if workspace.is_job(file):
            found = find_jobs(workspace, ready, file, cursor)
        else:
            top, env = (*file.split("/"), "")[:2]
            if top != TREE or env not in environments:
                return None
            found, environments = _find_source_job(workspace, ready, env, cursor), [env]
        if found is None or not found[1]:
            return None
        jobs, path = found
        broken = [name for name in list_broken(ready, jobs[0]) if name in environments]
        valid = [name for name in environments if name not in broken]
        explained = jobs[: max(1, _MAX_EXPLAINED // max(1, len(valid)))]
        fields = [each for job in explained for each in _explain(ready, job, valid, path)]
        if workspace.is_job(file):
            # Nothing is rendered for environments whose overlays have errors.
            known = {runner.name for runner in ready.layers.runners}
            broken += (name for name in ready.project.environments() if name not in known)
        return ExplainedValue(jobs[0], format_dotted(path), fields, broken, len(explained), len(jobs))


def explain_indexed(
    workspace: Workspace, ready: Ready, job: IndexedJob, environments: Sequence[str], path: tuple[Step, ...]
) -> list[ExplainedField]:
    """Explain a field of a job that the background process knows, in some environments."""
    found = find_indexed(workspace, ready, job)
    return _explain(ready, found, environments, path) if found else []


def _explain(ready: Ready, job: Job, environments: Sequence[str], path: tuple[Step, ...]) -> list[ExplainedField]:
    tracer = ready.layers.tracer
    return explain_for_job(tracer, job, environments, path, ClusterMutations(tracer.project).mutate)


def find_indexed(workspace: Workspace, ready: Ready, job: IndexedJob) -> Job | None:
    """Read a job that the background process knows; None if it is not there any more."""
    jobs = workspace.read_jobs(ready, job.location.file)
    return next((each for each in jobs if (each.position, each.item) == (job.position, job.item)), None)


def _find_source_job(
    workspace: Workspace, ready: Ready, env: str, cursor: Cursor
) -> tuple[Sequence[Job], tuple[Step, ...]] | None:
    """Return the job of an object in the rendered tree, and the path in the object."""
    data = as_mapping(cursor.tree)
    metadata = as_mapping(data.get("metadata"))
    wanted = tuple(value_of(each) for each in (data.get("kind"), metadata.get("namespace"), metadata.get("name")))
    for job in list_jobs(workspace.index):
        made = next((each.objects[0] for each in job.environments if each.environment == env and each.objects), None)
        if made is not None and (made.kind, made.namespace or None, made.name) == wanted:
            found = find_indexed(workspace, ready, job)
            return ([found], cursor.path) if found else None
    return None


def find_jobs(
    workspace: Workspace, ready: Ready, file: str, cursor: Cursor
) -> tuple[Sequence[Job], tuple[Step, ...]] | None:
    """Return the job at a position, or all jobs of a sweep, and the path in it that `explain` takes."""
    if not cursor.is_complete or not isinstance(cursor.tree, dict):
        return None
    own = read_valid_jobs(ready, workspace.find_entry(file), cursor.document)
    path: tuple[Step, ...] = cursor.path
    if isinstance(cursor.tree.get("items"), list) and str(value_of(cursor.tree.get("kind"))).endswith("List"):
        number = path[1] if len(path) > 1 and path[0] == "items" else None
        own, path = [job for job in own if job.item == number], path[2:]
    if own and is_spec(own[0].document.data) and path[:1] != ("metadata",):
        # The fields of a job spec are explained without `spec`.
        is_value = len(path) > 1 and path[0] == "spec" and path[1] != "matrix"
        path = path[1:] if is_value else ()
    return (own, path) if own else None


def to_real_file(location: Location) -> Location:
    """Return a location whose file an editor can open: for a shipped file its full path."""
    if not location.file.startswith(BUILT_IN):
        return location
    home = find_shipped("schemas").parent
    return location._replace(file=str(home / location.file.removeprefix(BUILT_IN)))


_MAX_SHOWN = 80
_SPECIAL = lazy_pattern(r"([\\`*_{}\[\]()#+!|<>~])")
_BACKTICKS = lazy_pattern(r"`+")


def escape(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", visible(text))


def code(text: str) -> str:
    """Return text as code, on one line, also in a table; long text is cut off."""
    shown = visible(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    if "\\|" in shown:
        # Two backslashes before a vertical line would end the cell, and the rest would not be code.
        return escape(shown)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    # A vertical line ends a cell even in code.
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|") if shown else "``` ```"


def escape_text(text: str) -> str:
    """Return a sentence of jobgen or of a policy: what is in backticks becomes code, everything else is escaped."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    return "".join(code(piece) if number % 2 else escape(piece) for number, piece in enumerate(pieces))


def value_code(value: Plain) -> str:
    """Return a value as code: text as it is, unless YAML would read it as something else."""
    if isinstance(value, str) and value and not re.fullmatch(r"[\d.]+|true|false|null|yes|no|on|off", value.lower()):
        return code(value)
    return code(json.dumps(value, ensure_ascii=False))


def link(root: Path, location: Location, text: str = "") -> str:
    """Return a link to a location in a workspace."""
    real = to_real_file(location)
    shown = escape(text or f"{location.file}:{location.line}")
    return f"[{shown}]({(root / real.file).as_uri()}#L{location.line})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def block(language: str, text: str) -> str:
    """Return lines of code."""
    fence = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


_LINK = lazy_pattern(r"\[((?:\\.|[^\]\\])*)\]\(file:[^)\s]*\)")
_CELL_END = lazy_pattern(r"(?<!\\)\|")


def simplify(markdown: str) -> str:
    """Return Markdown that is easy to read as it is written. Blocks of code stay as they are."""
    lines: list[str] = []
    rows: list[list[str]] = []
    is_code = False
    for line in markdown.split("\n"):
        is_fence = line.startswith("```")
        text = line if is_code or is_fence else _LINK.sub(r"\1", line)
        if not is_code and not is_fence and line.startswith("| ") and line.endswith(" |"):
            rows.append([cell.strip() for cell in _CELL_END.split(text)[1:-1]])
            continue
        lines += [*_align(rows), text]
        rows = []
        is_code ^= is_fence
    return "\n".join([*lines, *_align(rows)])


def _align(rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield the rows of a table with columns of one width each; the last one needs none."""
    table = list(rows)
    count = max(map(len, table), default=0)
    widths = [max(len(row[number]) for row in table if number < len(row)) for number in range(count - 1)]
    for row in table:
        fill = "-" if row and set("".join(row)) == {"-"} else " "
        cells = [cell.ljust(widths[number], fill) if number < len(widths) else cell for number, cell in enumerate(row)]
        yield f"| {' | '.join(cells)} |"
