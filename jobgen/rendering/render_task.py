"""The task of a render: it keeps objects as they are, and checks nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jobgen.engine.store import Query
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.file_result import FileResult
from jobgen.rendering.mended_jobs import MendedJob
from jobgen.rendering.read_jobs import JobFiles, read_jobs
from jobgen.rendering.run import run
from jobgen.rendering.run_values import (
    RENDERED,
    RENDERED_STAGE,
    FileResults,
    Finished,
    RunRequest,
    RunResult,
    Task,
    select_all,
)
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import FileEntry
from jobgen.repo.lock import digest_data


class RenderTask(NamedTuple):
    """Renders objects, and checks nothing. It is its own stage."""

    write: Callable[[Any], str] | None = None
    """Returns the text that is kept of an object; without it, the object itself is kept."""
    deployable: bool = False
    """True if an object that no operator accepts, because a container has no image, is an error."""
    digested: bool = False
    """True if each object needs the digest of its job."""
    query: Query[FileResult] = RENDERED
    """The question that the results of files answer; it says what `write` returns."""

    @property
    def facts(self) -> Query[FileResult]:
        """The same question: nothing is checked in any file."""
        return self.query

    @property
    def across(self) -> None:
        """None: it is found again."""

    @property
    def describe_membership(self) -> None:
        """None: whether an environment selects a job matters to what a lint says of it, not to its objects."""

    @property
    def is_lint(self) -> bool:
        """False."""
        return False

    @property
    def scope(self) -> str:
        """Part of the keys of results."""
        return " ".join(filter(None, (RENDERED_STAGE, "deployable" * self.deployable, "digested" * self.digested)))

    def start(self) -> RenderTask:
        """Return itself."""
        return self

    def prepare(self, _: RunRequest) -> tuple[Sequence[Finding], tuple[str, ...]]:
        """Return nothing: no policy is applied."""
        return (), ()

    def select(self, request: RunRequest, runners: Sequence[EnvironmentRunner], *, is_all: bool) -> None:
        """Prepare nothing."""

    def forget_shared(self) -> None:
        """Forget nothing."""

    def read(self, entry: FileEntry, project: ProjectConfig, part: FileResult, _: list[MendedJob]) -> Iterator[Job]:
        """Read the jobs of a file."""
        return read_jobs([entry], project.kinds, part.findings, None, part.skipped)

    def check_job(self, *_: object) -> Iterable[Finding]:
        """Return nothing."""
        return ()

    def finish_job(
        self, runner: EnvironmentRunner, tracer: Tracer, job: Job, objects: list[Rendered]
    ) -> tuple[list[Rendered], list[Finding]]:
        """Return the objects of a job with what a tree needs; none if a container has no image, and that matters."""
        if self.deployable and objects and runner.find_missing_images(objects[0].object):
            return [], tracer.findings(job, runner.name, runner.find_missing_images)
        if not self.digested:
            return objects, []
        # Members of a sweep have the digest of their sweep.
        digest = digest_data(job.sweep or job.document.data)
        return [each._replace(job_digest=digest) for each in objects], []

    def check_objects(
        self, _: RunRequest, __: str, ___: Tracer, rendered: Sequence[tuple[Job, FileResult, Rendered]]
    ) -> list[Any]:
        """Return what is kept of each object."""
        objects = [each.object for _, _, each in rendered]
        return objects if self.write is None else list(map(self.write, objects))

    def find_across(self, _: FileResults, *, is_complete: bool) -> Iterable[Finding]:  # noqa: ARG002 -- as of a stage
        """Return nothing."""
        return ()

    def finish(self, _: FileResults, findings: list[Finding], shared: Sequence[Finding]) -> Finished:  # noqa: ARG002
        """Return the findings as they are."""
        return Finished(findings)


def request_jobs(
    project: ProjectConfig,
    environments: Sequence[str],
    wanted: Callable[[str], bool] = select_all,
    task: Task = RenderTask(),  # noqa: B008 -- it is a value
) -> RunRequest:
    """Return the request for all files of jobs of a repository."""
    return RunRequest(project, environments, JobFiles(list(layout.find_jobs(project.root))), task, wanted)


def render_jobs(
    project: ProjectConfig,
    environments: Sequence[str],
    wanted: Callable[[str], bool] = select_all,
    task: Task = RenderTask(),  # noqa: B008 -- it is a value
) -> RunResult:
    """Render the jobs of a repository."""
    return run(request_jobs(project, environments, wanted, task))
