"""Find and render the jobs of tests: those of the repository, and those that are only in a test."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from jobgen.features.testing.cases import JobTest
from jobgen.model.data import Node, untraced
from jobgen.model.finding import Finding, Problem
from jobgen.rendering.build import build_objects, is_spec, job_attributes, manifest_errors
from jobgen.rendering.config import ProjectConfig, find_errors
from jobgen.rendering.environment import EnvironmentRunner, Rendered, new_overlay_use
from jobgen.rendering.expand import Expander, JobDocument
from jobgen.rendering.locate import locate
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import WHOLE, Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.spec.merge import merge
from jobgen.spec.sweeps import is_sweep


class Subject(NamedTuple):
    """A job of a test in one environment."""

    test: JobTest
    environment: str
    job: Job
    made: tuple[Rendered, ...]
    """Its objects; none if it is not rendered."""
    reason: str
    """Why it is not rendered."""
    is_member: bool
    """Whether it belongs to the environment."""
    errors: frozenset[str] = frozenset()
    """The rules of the errors because of which it is not rendered."""


def collect_jobs(project: ProjectConfig, tests: Sequence[JobTest], findings: list[Finding]) -> list[Job]:
    """Read the jobs of the repository that tests name; errors of their files go to `findings`."""
    patterns = tuple(dict.fromkeys(pattern for test in tests for pattern in test.jobs))
    if not patterns:
        return []
    entries: Iterable[FileEntry] = layout.find_jobs(project.root)
    if not any(map(_is_pattern, patterns)):
        texts = [pattern.encode("utf-8", "surrogatepass") for pattern in patterns]
        entries = (entry for entry in entries if _may_have(read_file(entry).content, texts))
    return select_jobs(read_jobs(entries, project.frameworks, findings), patterns)


def _may_have(content: bytes, names: Sequence[bytes]) -> bool:
    """Return True if a file may have a job with one of these names, because the text of the name is in it.

    The names of the members of a sweep are not, and a backslash may stand for any character.
    """
    return any(each in content for each in (b"matrix", b"\\")) or any(name in content for name in names)


def _is_pattern(text: str) -> bool:
    return any(letter in text for letter in "*?[")


def select_jobs(jobs: Iterable[Job], patterns: Sequence[str]) -> list[Job]:
    """Return the jobs of which a pattern matches the name, or the name of the sweep."""
    names = {text for text in patterns if not _is_pattern(text)}
    others = [text for text in patterns if text not in names]
    return [
        job for job in jobs if any(_is_named(name, names, others) for name in (job.document.name, job.document.sweep))
    ]


def _is_named(name: str, names: Collection[str], patterns: Iterable[str]) -> bool:
    return bool(name) and (name in names or any(fnmatchcase(name, pattern) for pattern in patterns))


def make_given(test: JobTest, project: ProjectConfig) -> tuple[Job | None, list[Finding]]:
    """Return the job that a test gives, or what is wrong with it."""
    assert test.given is not None
    problems = find_job_errors(test.given, project)
    if not problems and is_spec(test.given) and is_sweep(test.given):
        message = (
            "a given job has no `matrix`; give one of its members, or write the sweep in jobs/ and name it in `jobs`"
        )
        problems = [Problem("invalid-value", message, test.given["spec"])]
    if problems:
        return None, [locate(problem, test.file, test.location) for problem in problems]
    document = JobDocument(untraced(test.given), test.given_file)
    return Job(document, File(test.given_file), 0, WHOLE, test.location), []


def render_subject(test: JobTest, job: Job, runner: EnvironmentRunner) -> Subject:
    """Render a job of a test in an environment."""
    patches = runner.patches_for(job)
    if patches is None:
        where = f"the environment `{runner.name}`" if runner.name else "the environment"
        return Subject(test, runner.name, job, (), f"it does not belong to {where}", is_member=False)
    made = runner.render_job(job, patches, new_overlay_use())
    reason, errors = "", frozenset[str]()
    if made is None:
        problems: list[Problem] = []
        list(build_objects(job.document, runner.expander, patches, problems, []))
        reason = "it has errors: " + "; ".join(dict.fromkeys(problem.message for problem in problems))
        errors = frozenset(problem.rule for problem in problems)
    elif not made:
        reason = f"it {runner.explain_inactive(job)}"
    return Subject(test, runner.name, job, tuple(made or ()), reason, is_member=True, errors=errors)


def find_job_errors(data: Any, project: ProjectConfig) -> list[Problem]:
    """Report what keeps a job, or a manifest, from being rendered."""
    return find_errors(data, "trainingjob", project.frameworks) if is_spec(data) else manifest_errors(data)


def change_job(job: Job, change: Mapping[str, Any]) -> Job:
    """Return a job with other fields."""
    old = job.document.data.get("spec")
    spec = merge(old if isinstance(old, dict) else {}, untraced(change), [])
    return job._replace(document=job.document._replace(data={**job.document.data, "spec": spec}))


def trace_object(subject: Subject, tracer: Tracer) -> Mapping[str, Node] | None:
    """Build the object of a job again, with the location of every value; None if a test changes the job."""
    if subject.test.change is not None:
        return None
    if subject.test.given is None:
        return tracer.trace(subject.job, subject.environment).object
    expander = tracer.expander(subject.environment)
    document = JobDocument(subject.test.given, subject.test.given_file)
    return next(iter(_build(document, expander)), None)


def _build(document: JobDocument, expander: Expander) -> Iterator[Mapping[str, Node]]:
    problems: list[Problem] = []
    patches = expander.environment.patches_for(job_attributes(document, expander))
    yield from build_objects(document, expander, patches, problems, [])
