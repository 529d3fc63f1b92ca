"""Files of jobs/ to jobs: the documents that are well formed, each with what is needed to find it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jobgen.model.data import Data, Location, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.pipeline import config
from jobgen.pipeline.locate import locate
from jobgen.pipeline.trace import WHOLE, Job, member_index
from jobgen.render.build import is_spec, manifest_errors, split_list
from jobgen.render.expand import JobDocument
from jobgen.repo import layout
from jobgen.report.suppress import MARKER, Suppression, suppressions_in
from jobgen.spec.matrix import find_matrix_errors, find_misspelled_keys
from jobgen.spec.sweeps import expand_sweep, find_stray_variables, is_sweep, keep_matrix

# How an expression begins; a file without it need not be looked through.
_BRACES = b"${{"


def read_jobs(
    paths: Iterable[layout.FileEntry], findings: list[Finding], comments: list[Suppression] | None = None
) -> Iterator[Job]:
    """The jobs of some files; what is wrong with others goes to `findings`, what silences findings to `comments`."""
    for path in paths:
        file = layout.read_file(path)
        if comments is not None:
            collect_suppressions(file, comments, findings)
        for position, document in enumerate(config.read_documents(file, findings, shared=True).documents):
            if is_spec(document.data):
                yield from _spec(document.data, file, position, document.location, findings)
            else:
                yield from _manifests(document.data, file, position, document.location, findings)


def collect_suppressions(file: layout.File, comments: list[Suppression], findings: list[Finding]) -> None:
    """Keep the comments of a file that silence findings."""
    if MARKER in file.content:
        found, faults = suppressions_in(file.content, file.path)
        comments += found
        findings += faults


def _spec(data: Data, file: layout.File, position: int, location: Location, findings: list[Finding]) -> Iterator[Job]:
    if data.get("kind") == "Overlay":
        problem = Problem("misplaced-overlay", "an overlay stands under overlays/, not under jobs/")
        findings.append(locate(problem, file.path, location))
    elif is_sweep(data):
        yield from _members(data, file, position, location, findings)
    elif config.find_errors(data, "trainingjob"):
        findings += config.locate_errors(file, position, "trainingjob")
    elif _BRACES in file.content and any(find_stray_variables(data)):
        findings += _placed(file, position, location, find_stray_variables)
    else:
        yield Job(JobDocument(data, file.path), file, position, WHOLE, location)


def _members(
    data: Data, file: layout.File, position: int, location: Location, findings: list[Finding]
) -> Iterator[Job]:
    """The jobs that a sweep stands for; where one of them is not well formed, none."""
    if any(_sweep_faults(data)):
        findings += _placed(file, position, location, _sweep_faults)
        return
    sweep = str(value_of(data["metadata"]["name"]))
    for index, member in enumerate(expand_sweep(data, [])):
        yield Job(JobDocument(member, file.path, sweep), file, position, member_index(index), location)


def _sweep_faults(data: Data) -> list[Problem]:
    """What is wrong with a sweep: first with its matrix, then with what is filled in, then with its members."""
    matrix = data["spec"]["matrix"]
    problems = (
        list(find_misspelled_keys(matrix))
        or config.find_errors(keep_matrix(data), "trainingjob")
        or list(find_matrix_errors(matrix))
    )
    if not problems:
        made = expand_sweep(data, problems)
        problems = problems or [problem for one in made for problem in config.find_errors(one, "trainingjob")]
    return problems


def _placed(
    file: layout.File, position: int, location: Location, faults: Callable[[Data], Iterable[Problem]]
) -> Iterator[Finding]:
    """The faults of one document on their lines, each once, however many members have it."""
    data = config.read_traced_document(file, position)
    return iter(dict.fromkeys(locate(problem, file.path, location) for problem in faults(data)))


def _manifests(
    data: Data, file: layout.File, position: int, location: Location, findings: list[Finding]
) -> Iterator[Job]:
    for item, manifest in enumerate(split_list(data)):
        job = Job(JobDocument(manifest, file.path), file, position, item, location)
        if manifest_errors(manifest):
            findings += [locate(problem, file.path, job.start()) for problem in manifest_errors(job.marked().data)]
        else:
            yield job
