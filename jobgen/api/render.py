"""Render jobs to manifests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby, pairwise
from typing import Any, Literal, NamedTuple, get_args

from jobgen.api.errors import NotFoundError, UsageError, check_format, check_names, check_shard
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.model.data import Location, Plain
from jobgen.model.finding import Finding, Identity, Related, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.run import Run
from jobgen.repo import layout
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_json, to_yaml

_MAX_REASONS = 3
_MAX_FILE_NAME = 255
"""Bytes that common file systems allow in a file name."""

TextFormat = Literal["yaml", "json"]
Progress = Callable[[int, int], None]
"""Called with the number of objects that are done, and of all objects."""


def _ignore_progress(_: int, __: int) -> None:
    pass


class RenderedObject(NamedTuple):
    """A rendered Kubernetes object."""

    environment: str
    identity: Identity
    """apiVersion, kind, namespace and name."""
    location: Location
    """Where its job is written."""
    text: str
    """The manifest, exactly as `jobgen render` prints it."""
    format: TextFormat
    document: int
    """The index of the job's document in its file."""
    item: int
    """The index of the job in its document if that is a List, else -1."""
    job_digest: str = ""
    """The digest of the data of its job; empty without `unique_files`."""

    @property
    def manifest(self) -> Mapping[str, Plain]:
        """The manifest as data."""
        if self.format == "json":
            parsed: Mapping[str, Plain] = json.loads(self.text)
            return parsed
        data: Mapping[str, Plain] = read(self.text.encode(), self.path).documents[0].data
        return data

    @property
    def path(self) -> str:
        """The path of its file in a rendered tree, below the folder of its environment."""
        namespace = self.identity.namespace or "default"
        return f"{namespace}/{self.identity.kind.lower()}-{self.identity.name}.{self.format}"


class RenderResult(NamedTuple):
    """The objects of some jobs, or the errors that prevented them."""

    objects: tuple[RenderedObject, ...]
    """Sorted by environment, namespace, kind and name; empty if there are errors."""
    findings: tuple[Finding, ...]
    environments: tuple[str, ...]
    """The environments that were rendered."""
    dated: bool = False
    """Whether the objects depend on the date."""

    @property
    def failed(self) -> bool:
        """Whether errors prevented rendering."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def render(
    project: ProjectPath,
    jobs: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    format: TextFormat = "yaml",  # noqa: A002 -- the name of the option
    allow_empty: bool = False,
    unique_files: bool = False,
    progress: Progress = _ignore_progress,
    shard: str = "",
) -> RenderResult:
    """Render jobs for their environments. If anything is wrong, the result has findings and no objects.

    If jobs are named without patterns, errors in files of other jobs do not count.

    Args:
        project: A project, or a path in one.
        jobs: Names or shell patterns of jobs; by default all jobs.
        environments: Names of environments; by default those of the project.
        format: The format of the texts, `yaml` or `json`.
        allow_empty: Whether a project without jobs is valid.
        unique_files: Whether the objects are for a rendered tree: each has the digest of its job, and two objects with
            the same path are an error.
        progress: Called from time to time.
        shard: Which share of the files to render, such as `1/4`. The first share reports errors that concern several
            files, such as duplicate names.

    Raises:
        UsageError: `jobgen.yaml` has errors, or there is no such environment or format.
        NotFoundError: A pattern matches no job, or there is nothing to render.
        TypeError: `jobs` or `environments` is not a list of strings.

    """
    check_names("jobs", jobs)
    check_names("environments", environments)
    check_format(format, get_args(TextFormat))
    share = check_shard(shard) if shard else None
    if share and jobs:
        raise UsageError("a shard renders a share of all jobs; name jobs, or a shard")
    opened = open_project(project)
    selected = select_environments(opened.config, environments)
    run = Run(
        opened.config,
        selected,
        matcher(jobs),
        to_json if format == "json" else to_yaml,
        progress,
        deployable=True,
        digested=unique_files,
        shard=share,
    )
    objects = tuple(to_rendered_object(made, format) for made in sort_objects(run))
    _drop_findings_of_others(run, jobs)
    if unique_files:
        others = (to_rendered_object(made, format) for made in run.others)
        run.findings += _find_path_conflicts((*objects, *others))
    result = RenderResult(objects, tuple(run.findings), tuple(selected), run.dated)
    if result.failed:
        return result._replace(objects=())
    # A shard may have no objects if others have.
    if objects or jobs or not (allow_empty or (share and share.is_part)):
        _check_found(run, jobs, objects)
    return result


def to_rendered_object(made: Rendered, format: TextFormat) -> RenderedObject:  # noqa: A002 -- as above
    """Return the public value for an object of a run."""
    # A member of a sweep is made from its whole document.
    item = max(made.item, -1)
    where = (made.position, item, made.job_digest)
    return RenderedObject(made.env, made.identity, made.location, made.object, format, *where)


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that checks whether names or shell patterns select a job; no patterns select all."""
    return lambda name: not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def sort_objects(run: Run) -> list[Rendered]:
    """Render the objects of a run, in an order that does not depend on the files of their jobs."""
    objects = list(run)
    if not all(map(run.wanted, run.names)):
        # A deletion in an overlay may affect only jobs that were not selected.
        run.findings[:] = [finding for finding in run.findings if not _is_overlay_deletion(finding)]
    rank = {env: index for index, env in enumerate(run.environments)}
    return sorted(objects, key=lambda made: (rank[made.env], made.identity.namespace, made.identity[1:], made.identity))


def _drop_findings_of_others(run: Run, jobs: Sequence[str]) -> None:
    """Drop what is wrong with files of other jobs, if all jobs are found by their names.

    A pattern may match a job in a file that cannot be read.
    """
    if jobs and run.names.issuperset(jobs):
        files = ((finding, finding.location.file) for finding in run.findings)
        run.findings[:] = [found for found, file in files if not file.startswith("jobs/") or file in run.wanted_files]


def _is_overlay_deletion(finding: Finding) -> bool:
    return finding.rule == "deletes-nothing" and finding.location.file.startswith("overlays/")


def _find_path_conflicts(objects: Sequence[RenderedObject]) -> Iterator[Finding]:
    """Report objects whose file name is too long, or equal to another on case-insensitive file systems."""
    for one in objects:
        name = one.path.rpartition("/")[2]
        if len(name.encode()) > _MAX_FILE_NAME:
            message = f"`{name[:40]}…` has {len(name.encode())} bytes; a file name has at most {_MAX_FILE_NAME}"
            yield _error("file-name-too-long", "spec", message, one)
    by_path = sorted(objects, key=lambda one: (one.environment, one.path.casefold(), one.location))
    for first, second in pairwise(by_path):
        if (first.environment, first.path.casefold()) == (second.environment, second.path.casefold()):
            message = f"`{second.path}` is the file of two objects; rename one of them"
            related = (Related(first.location, f"`{first.path}` is rendered from here"),)
            yield _error("shared-file-name", "fleet", message, second)._replace(related=related)


def _error(rule: str, category: str, message: str, one: RenderedObject) -> Finding:
    return Finding(rule, category, Severity.ERROR, message, one.location, one.identity, one.environment)


def _check_found(run: Run, jobs: Sequence[str], objects: Sequence[RenderedObject]) -> None:
    """Raise a NotFoundError if a pattern matches no job, or there are no objects."""
    for pattern in jobs:
        if not any(fnmatchcase(name, pattern) for name in run.names):
            hint = did_you_mean(pattern, sorted(run.names))
            raise NotFoundError(f"there is no job `{pattern}`{hint}", run.findings)
    if not objects and not run.names:
        raise NotFoundError("there is no job under jobs/", run.findings)
    if not objects:
        within = ", ".join(env for env in run.environments if env)
        reasons = list(_find_inactive_jobs(run)) if jobs else []
        message = f"there is no job to render{f' in {within}' if within else ''}"
        if len(reasons) > _MAX_REASONS:
            reasons[_MAX_REASONS:] = ["…"]
        raise NotFoundError("; ".join(reasons) or message, run.findings)


def _find_inactive_jobs(run: Run) -> Iterator[str]:
    """Explain for each selected job that is paused, done or expired, why it is not rendered."""
    runners = [EnvironmentRunner(run.project, env) for env in run.environments]
    for job in read_jobs(layout.find_jobs(run.project.root), run.project.frameworks, []):
        if run.wanted(job.document.name) or (job.document.sweep and run.wanted(job.document.sweep)):
            found = {runner.name: reason for runner in runners if (reason := runner.explain_inactive(job))}
            for reason in dict.fromkeys(found.values()):
                within = ", ".join(env for env in found if env and found[env] == reason)
                yield f"`{job.document.name}` {reason}{f' in {within}' if within else ''}"


def join_objects(objects: Sequence[RenderedObject], *, labeled: bool = False) -> str:
    """Return the objects as one text: a YAML stream, or a List in JSON.

    In a `labeled` stream, a comment before the first object of each environment has its name.
    """
    if all(one.format == "yaml" for one in objects):
        groups = groupby(objects, key=lambda one: one.environment if labeled else "")
        labels = ((f"# environment: {env}\n" if env else "", list(several)) for env, several in groups)
        return "---\n".join(label + "---\n".join(one.text for one in several) for label, several in labels)
    items: list[Any] = [json.loads(one.text) for one in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, ensure_ascii=False, indent=2) + "\n"
