"""Files of jobs/ to jobs: the documents that are well formed, each with what is needed to find it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobgen import catalogue, repo
from jobgen.expand import Document
from jobgen.make import is_spec, items_of, raw_faults
from jobgen.model import Data, Finding, Mark, Problem
from jobgen.suppress import MARKER, Suppression, suppressions_in
from jobgen.trace import Job


def jobs_in(
    paths: Iterable[repo.Entry], findings: list[Finding], comments: list[Suppression] | None = None
) -> Iterator[Job]:
    """The jobs of some files; what is wrong with others goes to `findings`, what silences findings to `comments`."""
    for path in paths:
        file = repo.read(path)
        if comments is not None:
            note_comments(file, comments, findings)
        for position, document in enumerate(catalogue.read_source(file, findings).documents):
            if is_spec(document.data):
                yield from _spec(document.data, file, position, document.mark, findings)
            else:
                yield from _manifests(document.data, file, position, document.mark, findings)


def note_comments(file: repo.File, comments: list[Suppression], findings: list[Finding]) -> None:
    """Keep the comments of a file that silence findings."""
    if MARKER in file.content:
        found, faults = suppressions_in(file.content, file.path)
        comments += found
        findings += faults


def _spec(data: Data, file: repo.File, position: int, mark: Mark, findings: list[Finding]) -> Iterator[Job]:
    if data.get("kind") == "Overlay":
        problem = Problem("misplaced-overlay", "an overlay stands under overlays/, not under jobs/")
        findings.append(catalogue.place(problem, file.path, mark))
    elif catalogue.faults(data, "trainingjob"):
        findings += catalogue.located(file, position, "trainingjob")
    else:
        yield Job(Document(data, file.path), file, position, -1, mark)


def _manifests(data: Data, file: repo.File, position: int, mark: Mark, findings: list[Finding]) -> Iterator[Job]:
    for item, manifest in enumerate(items_of(data)):
        job = Job(Document(manifest, file.path), file, position, item, mark)
        if raw_faults(manifest):
            findings += [catalogue.place(problem, file.path, job.place()) for problem in raw_faults(job.marked().data)]
        else:
            yield job
