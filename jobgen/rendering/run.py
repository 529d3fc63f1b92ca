"""Run files in environments: render their jobs, do what the task says, and find what all of them show together.

A run is four stages, each of which returns a value. Results that the store has are used again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from jobgen.engine.store import Query, Row, Store
from jobgen.model.budget import RUN, TOO_MANY_STEPS
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Problem, Related, sort_findings
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.rendering.environment import DAY, EnvironmentRunner, Rendered
from jobgen.rendering.expand import JobDocument
from jobgen.rendering.file_result import FileResult, join_parts
from jobgen.rendering.left_out import LeftOut, find_environments, find_in_file
from jobgen.rendering.load_layers import load_layers
from jobgen.rendering.locate import locate
from jobgen.rendering.process_files import map_files, process_files
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_shared
from jobgen.rendering.result_inputs import SHARED, ResultInputs, digest_value, make_key, name_entry
from jobgen.rendering.run_values import (
    RENDERED,
    RENDERED_SCOPE,
    FileResults,
    LoadedLayers,
    RunRequest,
    RunResult,
    Stage,
    find_owners,
    find_unchecked,
    name_object,
)
from jobgen.rendering.runtimes import RUNTIME_KINDS
from jobgen.rendering.trace import Job
from jobgen.repo.files import KUSTOMIZATION_NAMES, File, FileEntry, hold_contents, read_file


def run(request: RunRequest) -> RunResult:
    """Return what a run finds: in layers, in each file, in all files together."""
    layers = load_layers(request)
    files = find_results(request, layers)
    first = _select_first(files)
    shared = [*first.duplicates, *_select_built(_find_across(files), files)]
    return _finish(files, first, shared)


_SHARE = 500
"""How many files are processed before their results are kept, if a newer edit may end the run."""


def find_results(request: RunRequest, layers: LoadedLayers) -> FileResults:
    """Return the results of files: those that the store has, and those of files that are processed."""
    store, stage, runners, entries = request.store, layers.stage, layers.runners, request.files.entries
    if store is None:
        process = partial(process_files, request, layers, runners, None)
        found = map_files(request, len(runners), entries, process)
        return FileResults(request, layers, list(map(join_parts, found)), found, {}, None)
    held = hold_contents(entries)
    inputs = ResultInputs(request.project, store, runners, held, request.files, stage.describe_membership)
    answers = _find_rows(request, layers, store, inputs, held)
    results = [tuple([row.value for row in rows]) for rows in answers]
    rows_by_name = dict(zip(map(name_entry, held), answers, strict=True))
    return FileResults(request, layers, list(map(join_parts, results)), results, rows_by_name, inputs)


def _find_rows(
    request: RunRequest, layers: LoadedLayers, store: Store, inputs: ResultInputs, held: Sequence[FileEntry]
) -> list[list[Row]]:
    """Return the answers about each file: by itself, and in each environment."""
    stage, runners = layers.stage, layers.runners
    environments: list[str | None] = [None, *layers.names]
    questions = _list_questions(request, stage, environments, held)
    found: list[list[Row | None]] = [
        [store.find(query, key, inputs.holds) for query, key in asked] for asked in questions
    ]
    if request.summarize is not None:
        # Files of which enough is known need not be rendered.
        for number, entry in enumerate(held):
            parts = request.summarize(inputs, environments, entry) if None in found[number] else None
            found[number] = [Row((), part) for part in parts] if parts is not None else found[number]
    lacking: dict[tuple[int, ...], list[int]] = {}
    for index, rows in ((index, rows) for index, rows in enumerate(found) if None in rows):
        numbers = tuple(number for number, row in enumerate(rows[1:]) if row is None)
        lacking.setdefault(numbers, []).append(index)
    size = _SHARE if request.is_cancellable else max(len(held), 1)
    for numbers, indices in lacking.items():
        wanted = [runners[number] for number in numbers]
        answer = partial(_answer, request, layers, wanted, inputs)
        for start in range(0, len(indices), size):
            share = indices[start : start + size]
            answers = map_files(request, len(wanted), [held[index] for index in share], answer)
            for index, new in zip(share, answers, strict=True):
                for number, (row, left) in zip((0, *(1 + number for number in numbers)), new, strict=True):
                    found[index][number] = store.add_row(*questions[index][number], row)
                    if left is not None:
                        key = make_key(RENDERED_SCOPE, environments[number], held[index])
                        store.add_row(RENDERED, key, left)
    return [[row for row in rows if row is not None] for rows in found]


def _list_questions(
    request: RunRequest, stage: Stage, environments: Sequence[str | None], entries: Sequence[FileEntry]
) -> list[list[tuple[Query[FileResult], str]]]:
    """Return what is asked of each file, by itself and in each environment: the query, and the key of the answer."""
    scope = request.make_scope(stage)
    if not request.same.pairs:
        return [[(stage.query, make_key(scope, env, entry)) for env in environments] for entry in entries]
    of_facts = {env: request.make_facts_scope(stage, env) for env in environments if env is not None}

    def choose(entry: FileEntry, env: str | None) -> tuple[Query[FileResult], str]:
        if env is None or (entry.path, env) not in request.same.pairs:
            return stage.query, make_key(scope, env, entry)
        return stage.facts, make_key(of_facts[env], env, entry)

    return [[choose(entry, env) for env in environments] for entry in entries]


def _answer(
    request: RunRequest,
    layers: LoadedLayers,
    runners: Sequence[EnvironmentRunner],
    inputs: ResultInputs,
    share: Sequence[FileEntry],
) -> list[list[tuple[Row, Row | None]]]:
    """Process files, and return the rows of each: of the file by itself, and in each environment.

    Beside each is that of a render, if the run leaves the objects. Answers that are kept are encoded here, where
    several processes work, and decoded where they are needed.
    """
    environments: list[str | None] = [None, *(runner.name for runner in runners)]
    is_kept = request.store is not None and request.store.is_kept
    found = []
    for entry, parts in zip(share, process_files(request, layers, runners, inputs, share), strict=True):
        rows: list[tuple[Row, Row | None]] = []
        holds_again = not _is_cut(parts)
        for env, part in zip(environments, parts, strict=True):
            reads = inputs.list_reads(entry, env, part, holds_again=holds_again)
            row, left = Row(reads, part._replace(objects=[])), None
            if is_kept:
                row = row.pack(request.choose_query(layers.stage, entry, env))
            # What is wrong with a file by itself, or prevents a render, a render reports again.
            if request.leaves_objects and not part.unrendered and not (env is None and part.findings):
                made = [made._replace(object=data) for made, data in zip(part.made, part.objects, strict=True)]
                # A render reads nothing that other files define.
                used = part.used._replace(reads=part.used.reads - {SHARED})
                bare = part._replace(made=made, findings=[], used=used, rows=[], comments=[], objects=[])
                left = Row(inputs.list_reads(entry, env, bare, holds_again=holds_again), bare)
            rows.append((row, left))
        found.append(rows)
    return found


def _is_cut(parts: Sequence[FileResult]) -> bool:
    """Return True if some of a file was left out because the run had no steps left, so that its results are of it."""
    if not RUN.is_used_up:
        return False
    stopped = any(finding.rule == TOO_MANY_STEPS for part in parts for finding in part.findings)
    return stopped or not all(noted.excess.is_whole for part in parts for noted in part.excesses)


class _First(NamedTuple):
    """The first of each object in each environment, and what is wrong with the others."""

    objects: list[Rendered]
    seen: dict[tuple[str, ...], Rendered]
    """By environment and identity, without the version."""
    duplicates: list[Finding]
    left_out: list[LeftOut]
    """The jobs of the others."""


def _select_first(files: FileResults) -> _First:
    """Return the first of each object. Loose files may be meant for different clusters, so they may repeat one."""
    entries, first = files.request.files.entries, _First([], {}, [], [])
    if files.request.files.are_loose:
        first.objects.extend(files.list_objects())
        return first
    for entry, part in zip(entries, files.parts, strict=True):
        for made in part.made:
            known = len(first.duplicates)
            if note_duplicate(made, first.seen, entries, first.duplicates):
                first.objects.append(made)
            for finding in first.duplicates[known:]:
                first.left_out.append(LeftOut(entry.path, made.env, (made.identity.name,), (finding,)))
    return first


def _select_built(findings: list[Finding], files: FileResults) -> list[Finding]:
    """Return findings about several objects, those in the files of a chart as the chart reports them."""
    if not findings:
        return findings
    selected: list[Finding] = []
    for entry, part in zip(files.request.files.entries, files.parts, strict=True):
        own = [each for each in findings if entry.build is not None and entry.build.owns(each.location.file)]
        made = {each.identity for each in part.made} if own else set()
        own = [each for each in own if each.object in made]
        if own and entry.build is not None:
            selected += entry.build.select(own)
            findings = [each for each in findings if each not in own]
    return [*findings, *selected]


def _find_across(files: FileResults) -> list[Finding]:
    """Return what only all files together show: an answer that reads the results of all of them, and the layers."""
    request, layers = files.request, files.layers

    def find() -> list[Finding]:
        return redact_shared(request.project, _compare(files))

    query = layers.stage.across
    if request.store is None or query is None or files.inputs is None:
        return find()
    versions = [(name, [row.reads for row in rows]) for name, rows in files.rows.items()]
    same = request.same
    rules = (sorted(same.rules), same.teams and sorted(same.teams)) if same.pairs else None
    project, are_loose = request.project, request.files.are_loose
    read = (versions, layers.environments, project.digest, files.inputs.digest_shared(), are_loose, rules)
    return request.store.ask(query, request.make_scope(layers.stage), find, content=digest_value(read))


def _finish(files: FileResults, first: _First, shared: Sequence[Finding]) -> RunResult:
    """Return the result of a run: with the severities of the repository, if the stage gives findings any."""
    request, layers, entries = files.request, files.layers, files.request.files.entries
    overlays = request.project.overlays
    not_rendered = list(find_environments(request.environments, layers.names, layers.findings, overlays))
    findings, builds = list(layers.findings), list[tuple[str, Sequence[Finding]]]()
    names = layers.names
    for entry, part, results in zip(entries, files.parts, files.results, strict=True):
        not_rendered += find_in_file(entry, names, results)
        if entry.build is None:
            findings += part.findings
        else:
            builds.append((entry.build.named_by, entry.build.select(part.findings)))
    findings += [*_join_builds(builds), *shared]
    finished = layers.stage.finish(files, findings, shared)
    is_dated = any(runner.expander.environment.is_dated for runner in layers.runners)
    return RunResult(
        files,
        first.objects,
        # A set would change the order of findings that differ only in their object from run to run.
        sort_findings(dict.fromkeys(finished.findings)),
        finished.hidden,
        finished.rendered,
        is_dated or any(DAY in part.used.reads for part in files.parts),
        [*not_rendered, *first.left_out],
        find_unchecked(files) | finished.unchecked,
        find_owners(files),
        first.seen,
    )


def _compare(files: FileResults) -> Iterator[Finding]:
    """Report what only all files together show."""
    project, layers = files.request.project, files.layers
    if files.request.files.are_loose:
        # Overlays delete something in jobs of the repository, which are not among these files.
        if not any(layers.names):
            yield from _find_dead_deletions(files)
        yield from layers.stage.find_across(files, is_complete=False)
        return
    # Imported late: files that are named need nothing of it.
    from jobgen.rendering.selectors import SelectorUse, find_idle_selectors, find_unknown_roles

    # A patch, a deletion or a policy may be there for a job that could not be read or rendered, or for a team.
    is_complete = project.teams.is_complete and not any(part.unrendered for part in files.parts)
    yield from _find_dead_deletions(files, of_layers=is_complete)
    if is_complete:
        used = {patch for use in files.uses for patch in use.patches}
        filled = {obj.env for obj in files.list_objects()}
        use = SelectorUse(project, layers.runners, used, filled, layers.stage.is_lint, files.list_jobs)
        yield from find_idle_selectors(use, layers.tracer)
    yield from find_unknown_roles(project, layers.runners, layers.tracer, files.list_jobs)
    yield from layers.stage.find_across(files, is_complete=is_complete)


def _find_dead_deletions(files: FileResults, *, of_layers: bool = True) -> list[Finding]:
    """Report deletion markers that deleted nothing. Only jobs that can decide this are processed with locations.

    Those of overlays and kinds only with `of_layers`.
    """
    used, tracer = files.uses, files.layers.tracer
    hits = {marker: where for part in used for marker, where in part.hits.items()}
    misses = [miss for part in used for miss in part.misses] if of_layers else []
    with_problems = [where for marker, where in misses if marker not in hits]
    with_problems += [where for part in used for where in part.own_misses]
    if not with_problems:
        return []
    # Jobs in which a marker deletes something count too.
    relevant = {where.place for where in (*with_problems, *hits.values())}
    paths = {path for path, *_ in relevant}
    read = read_jobs([entry for entry in files.request.files.entries if entry.path in paths], tracer.project.kinds, [])
    dead = tracer.find_dead_deletions([job for job in read if (job.file.path, job.position, job.item) in relevant])
    return [finding for finding in dead if of_layers or finding.location.file in paths]


def _join_builds(builds: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """Return each finding once, with the builds that have it if they are in other folders than its file.

    A build is named by the file that says how to build it.
    """
    first: dict[tuple[object, ...], Finding] = {}
    files: dict[tuple[object, ...], dict[str, None]] = {}
    for file, findings in builds:
        for finding in findings:
            first.setdefault(finding.key, finding)
            files.setdefault(finding.key, {})[file] = None
    return [_name_builds(finding, list(files[key])) for key, finding in first.items()]


def _name_builds(finding: Finding, files: Sequence[str]) -> Finding:
    split = [posixpath.split(file) for file in files]
    if any(not folder or finding.location.file.startswith(f"{folder}/") for folder, _ in split):
        return finding
    # A kustomization is named by its folder; another file may have several builds of other folders.
    names = [at[0] if at[1] in KUSTOMIZATION_NAMES else file for file, at in zip(files, split, strict=True)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    named = ", ".join(f"`{name}`" for name in names[:3])
    related = Related(Location(files[0]), f"in the build of {named}{more}")
    return finding._replace(related=(*finding.related, related))


_FORMAT = b"jobgen.dev/v"
"""What the version of a job spec begins with."""


def note_duplicate(
    made: Rendered, seen: dict[tuple[str, ...], Rendered], entries: Sequence[FileEntry], findings: list[Finding]
) -> bool:
    """Report an object that an earlier job of the environment renders too. Return whether it is the first.

    Jobs may share a runtime, which each of them renders.
    """
    first = seen.setdefault(name_object(made.env, made.identity), made)
    if first is made:
        return True
    if first.companion and made.companion and made.identity.kind in RUNTIME_KINDS:
        return False
    # An environment may set the namespace; without it, the finding is the same in all environments.
    shown = made.identity._replace(namespace="") if made.env else made.identity
    message, note = Sentence("`{}` is rendered by two jobs; rename one of them", shown), "first rendered here"
    if (manifest := _find_only_manifest(first, made, entries)) is not None:
        message += f", or delete `{manifest.location.file}` if it is the output of `jobgen render`"
    if _is_written_output(first, made, entries):
        made, first = first, made
    if _is_written_output(made, first, entries):
        source, written = first.location.file, made.location.file
        message = Sentence("`{}` in `{}` was rendered from `{}`, which renders it still", shown, written, source)
        message, note = (
            Sentence("{}; delete `{}`, and change `{}` or an overlay instead", message, written, source),
            "rendered here",
        )
    problem = Problem("duplicate-identity", message, category="fleet")
    found = locate(problem, made.location.file, _name_location(made, entries))
    related = (Related(_name_location(first, entries), note),)
    findings.append(found._replace(related=related, object=made.identity, env=made.env))
    return False


def _find_only_manifest(first: Rendered, made: Rendered, entries: Sequence[FileEntry]) -> Rendered | None:
    """Return which of two objects is in a file without job specs, if the other one is in a file with them."""
    without = [each for each in (first, made) if _FORMAT not in _read_source(each, entries).content]
    return without[0] if len(without) == 1 else None


def _is_written_output(made: Rendered, source: Rendered, entries: Sequence[FileEntry]) -> bool:
    """Return True if the file of an object says that it was rendered from the job of another file."""
    if made.location.file == source.location.file:
        return False
    # Imported late: most objects are rendered by one job.
    from jobgen.rendering.runs import SOURCE_ANNOTATION

    content = _read_source(made, entries).content
    return f"{SOURCE_ANNOTATION}: {source.location.file}\n".encode() in content


def _read_source(made: Rendered, entries: Sequence[FileEntry]) -> File:
    return next(read_file(entry) for entry in entries if entry.path == made.location.file)


def _name_location(made: Rendered, entries: Sequence[FileEntry]) -> Location:
    """The location of the name of an object's job, which is to be changed. Its file is read again with locations."""
    file = _read_source(made, entries)
    return Job(JobDocument({}, file.path), file, made.position, made.item, made.location).name()
