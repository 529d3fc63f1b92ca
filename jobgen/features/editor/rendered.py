"""The rendered document of a job, and the lenses above jobs, patches and overlays that say what they lead to."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from functools import reduce
from itertools import groupby
from pathlib import Path

from jobgen.api.diff import find_default_base
from jobgen.api.errors import JobgenError
from jobgen.api.render import join_objects, to_rendered_object
from jobgen.compare.impact import runs_pods
from jobgen.features.editor import definition
from jobgen.features.editor.index import (
    NO_DECISIONS,
    Decisions,
    IndexedJob,
    describe_decisions,
    find_decision,
    locate_jobs,
)
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.features.page import fleet
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.lint_checks import LintChecks
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered, new_overlay_use
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import redact_lines
from jobgen.rendering.trace import Job
from jobgen.repo import git, layout
from jobgen.repo.commit import open_commit
from jobgen.repo.files import FileEntry
from jobgen.repo.named_paths import read_first
from jobgen.reports.entries import pluralize
from jobgen.yamlio.write import to_yaml

SCHEME = "jobgen-rendered"


class RenderedDocument(NamedTuple):
    """What a rendered document shows."""

    uri: str
    """The document that the job is written in."""
    document: int
    """The index of the YAML document in its file."""
    environment: str = ""
    """Empty for all environments of the job."""
    is_diff: bool = False
    name: str = ""
    """The name of the job, for the title."""


def to_uri(shown: RenderedDocument) -> str:
    """Return the URI of a rendered document. Editors encode characters of URIs in several ways, so it has few."""
    content = json.dumps(shown[:-1]).encode()
    query = base64.urlsafe_b64encode(content).decode().rstrip("=")
    name = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in shown.name) or "job"
    return f"{SCHEME}:///{shown.environment or 'all'}/{name}.{'diff' if shown.is_diff else 'yaml'}?{query}"


def from_uri(uri: str) -> RenderedDocument | None:
    """Return what the URI of a rendered document says; None if it is not one."""
    start, _, query = uri.partition("?")
    if not start.startswith(f"{SCHEME}:"):
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(query + "=" * (-len(query) % 4)))
    except ValueError:
        return None
    match values:
        case [str(found), int(document), str(environment), bool(is_diff)]:
            return RenderedDocument(found, document, environment, is_diff)
    return None


def render_document(workspace: Workspace, file: str, document: int, environment: str) -> str:
    """Return the text of a job as `jobgen render` prints it; if it has errors, comments that say so."""
    with workspace.reading():
        try:
            ready = workspace.load()
        except JobgenError as error:
            return _comment(f"the settings have errors: {error}")
        runners = [runner for runner in ready.layers.runners if environment in ("", runner.name)]
        if not runners:
            return _comment(f"`{environment}` is not an environment, or its overlays have errors")
        return render_entry(ready.project, runners, workspace.find_entry(file), document, bool(environment))


def render_entry(
    project: ProjectConfig, runners: Sequence[EnvironmentRunner], entry: FileEntry, document: int, is_one: bool
) -> str:
    """Render the jobs of one document of a file."""
    jobs = [job for job in read_jobs([entry], project.kinds, []) if job.position == document]
    if not jobs:
        return _comment("there is no job here, or it has errors; see its findings")
    objects: list[Rendered] = []
    problems: list[str] = []
    for runner in runners:
        for job in jobs:
            patches = runner.patches_for(job)
            made = runner.render_job(job, patches, new_overlay_use()) if patches is not None else []
            within = f" in {runner.name}" if runner.name else ""
            if made is None or (made and runner.find_missing_images(made[0].object)):
                problems.append(f"`{job.document.name}` has errors{within}; see its findings")
            elif not made:
                reason = runner.explain_inactive(job) if patches is not None else "does not belong to the environment"
                problems.append(f"`{job.document.name}` {reason}{within}")
            objects += made or ()
    rank = {runner.name: number for number, runner in enumerate(runners)}
    objects.sort(key=lambda made: (rank[made.env], made.identity.namespace, made.identity[1:], made.identity))
    texts = [to_rendered_object(made._replace(object=to_yaml(made.object)), "yaml") for made in objects]
    return join_objects(texts, labeled=not is_one) if texts else "".join(map(_comment, dict.fromkeys(problems)))


def _comment(text: str) -> str:
    return f"# {text}\n"


class BaseText(NamedTuple):
    """The name of the base of the branch, and a job as it is there."""

    name: str
    text: str


def render_base(root: Path, file: str, document: int, environment: str) -> BaseText:
    """Render a job at the commit that `jobgen diff` compares with; the text is empty if it is not there."""
    name, commit = find_default_base(root)
    with open_commit(root, commit) as folder:
        found = read_first((folder,), file)
        if found is None or found.finding:
            return BaseText(name, "")
        try:
            project = config.load(layout.own_layers(folder), today=folder.commit.date)
        except JobgenError:
            return BaseText(name, "")
        names = [each for each in project.environments() if not environment or each == environment]
        runners = [runner for each in names if not (runner := EnvironmentRunner(project, each)).is_broken]
        entry = FileEntry(file, content=found.content)
        text = render_entry(project, runners, entry, document, bool(environment)) if runners else ""
        return BaseText(name, "" if text.startswith("# ") and "\napiVersion" not in text else text)


def write_diff(base: BaseText, now: str) -> str:
    """Return the difference between a rendered job and the base. As in `jobgen diff`, it has no secrets."""
    before, after = _split_lines(base.text), _split_lines(now)
    lines = [*before, "---", *after]
    shown, places = redact_lines(lines), {line: place for place, line in enumerate(lines)}
    diff: list[str] = []
    # The lines are compared with their secrets, so that those with a changed secret are shown.
    for line in unified_diff(before, after, base.name, "work tree", lineterm=""):
        place = places.get(line[1:])
        diff.append(f"{line}\n" if place is None else f"{line[0]}{shown[place]}\n")
    return "".join(diff) or f"# the rendered objects are the same as in {base.name}\n"


def _split_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def explain_no_base(error: git.GitError) -> str:
    """Return a text in place of a diff."""
    return _comment(f"there is nothing to compare with: {error}")


_INACTIVE_REASON = lazy_pattern(r"^it (?:is )?")
_CONTENT = lazy_pattern(r"\s*[^\s#]")
MAX_JOBS = 100
"""Jobs of a file that are rendered for its lenses. A sweep may have thousands, and each costs a few milliseconds."""


class Lens(NamedTuple):
    """A text about a line. A click shows the rendered job in an environment, or lists jobs."""

    text: str
    location: Location
    environment: str | None = None
    jobs: tuple[Location, ...] = ()


def list_lenses(workspace: Workspace, file: str, decisions: Decisions = NO_DECISIONS) -> list[Lens]:
    """Return the lenses of a file, by its path from the root. `decisions` are those of Kueue that still hold."""
    with workspace.reading():
        ready = load_ready(workspace)
        if ready is None:
            return []
        if workspace.is_job(file):
            return list(_list_job_lenses(workspace, ready, file, decisions))
        return list(_list_overlay_lenses(workspace, ready, file))


def _list_job_lenses(workspace: Workspace, ready: Ready, file: str, decisions: Decisions) -> Iterator[Lens]:
    findings: list[Finding] = []
    jobs = list(read_jobs([workspace.find_entry(file)], ready.project.kinds, findings))
    errors = [finding.location.line for finding in findings if finding.severity is Severity.ERROR]
    text = workspace.read(file).content.decode("utf-8", "replace").split("\n") if errors else []
    starts = [1, *(number + 1 for number, line in enumerate(text, 1) if line.startswith("---"))]
    broken: set[int] = set()
    for line in errors:
        first = max(start for start in starts if start <= max(line, 1))
        is_content = (number for number in range(first, line) if _CONTENT.match(text[number - 1]))
        broken.add(next(is_content, max(line, 1)))
    for line in sorted(broken):
        yield Lens("the job cannot be rendered; see the findings", Location(file, line, 1))
    checks, counted = ready.layers.stage, jobs[:MAX_JOBS]
    assert isinstance(checks, LintChecks)
    for location, group in groupby(zip(locate_jobs(counted), counted, strict=True), key=lambda pair: pair[0]):
        members = [job for _, job in group]
        for checker in checks.environments.values():
            name = checker.runner.name
            cells = [cell for job in members if (cell := _describe_job(job, checker))]
            if cells:
                objects = ((each.identity for each in cell.objects) for cell in cells)
                decided = (find_decision(decisions, name, identities) for identities in objects)
                queues = describe_decisions(filter(None, decided))
                yield Lens(_describe_cells(name, cells) + (f" ({queues})" if queues else ""), location, name)
    if len(jobs) > MAX_JOBS:
        yield Lens(f"{len(jobs):,} jobs, of which {MAX_JOBS} are counted here", jobs[0].location)


def _describe_job(job: Job, checker: EnvironmentChecker) -> fleet.FleetCell | None:
    """Return what a job requests in an environment; None if it does not belong to it or runs no pods."""
    runner = checker.runner
    patches = runner.patches_for(job)
    made = runner.render_job(job, patches, new_overlay_use()) if patches is not None else None
    if not made:
        return fleet.describe_missing(0, job, runner)
    measured = [fleet.measure_object(checker.checker, each) for each in made]
    first = measured[0]
    return fleet.describe_rendered(0, measured) if first.pods or runs_pods(first.manifest) else None


def _describe_cells(environment: str, cells: Sequence[fleet.FleetCell]) -> str:
    before = f"{environment}: " if environment else ""
    first = cells[0]
    if len(cells) > 1:
        idle = sum(cell.state in (fleet.BROKEN, fleet.INACTIVE) for cell in cells)
        not_rendered = f", {idle} not rendered" if idle else ""
        return f"{before}{pluralize(len(cells), 'job')}{not_rendered}, {_describe_amounts(cells)}"
    if first.state == fleet.BROKEN:
        return before + first.reason.removeprefix("it ")
    if first.state == fleet.INACTIVE:
        return before + _INACTIVE_REASON.sub("", first.reason).partition(":")[0].partition(";")[0]
    held = "" if first.state == fleet.ACTIVE else f", {first.reason.removeprefix('it is ')}"
    return f"{before}{_describe_amounts(cells)}{held}"


def _describe_amounts(cells: Sequence[fleet.FleetCell]) -> str:
    total = reduce(add_totals, (cell.resources for cell in cells), ResourceTotals())
    parts = [pluralize(sum(cell.pods for cell in cells), "pod")]
    parts += [pluralize(total.gpus, "GPU")] if total.gpus else []
    parts += [f"queue {queue}" for queue in sorted({cell.queue for cell in cells if cell.queue})[:2]]
    return ", ".join(parts)


def _list_overlay_lenses(workspace: Workspace, ready: Ready, file: str) -> Iterator[Lens]:
    overlay = definition.find_overlay(file)
    if not overlay or not workspace.index:
        return
    for patch, location in definition.list_patches(ready, overlay):
        if location is not None and location.file == file:
            jobs = definition.list_patched_jobs(workspace.index, patch)
            yield Lens(pluralize(len(jobs), "job"), location, jobs=_locate(jobs))
    names = [runner.name for runner in ready.layers.runners]
    environments = definition.list_environments(ready.project, names, overlay)
    jobs = definition.list_jobs_in(workspace.index, environments)
    for name in environments:
        rendered = [each for job in jobs for each in job.environments if each.environment == name]
        objects = sum(len(each.objects) for each in rendered)
        own = [job for job in jobs if any(each.environment == name for each in job.environments)]
        yield Lens(f"{name}: {pluralize(objects, 'object')}", Location(file, 1, 1), jobs=_locate(own))


def _locate(jobs: Iterable[IndexedJob]) -> tuple[Location, ...]:
    return tuple(dict.fromkeys(job.location for job in jobs))
