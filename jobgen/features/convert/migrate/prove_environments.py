"""Compare a migrated job with the old one in each environment that has both platforms, as overlays render them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.compare_jobs import Rendered
from jobgen.features.convert.migrate.differences import OVERLAYS, NamedDifference, find_differences
from jobgen.features.convert.migrate.draft import MigrationNote
from jobgen.model.data import untraced
from jobgen.model.finding import Problem
from jobgen.rendering import config
from jobgen.rendering.build import build_objects
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.atomic import open_scratch
from jobgen.repo.files import read_file
from jobgen.repo.root import SETTINGS, SOURCE_FOLDERS
from jobgen.spec.kinds import Kind

JobKey = tuple[str, int, int]


def get_key(job: Job) -> JobKey:
    """Return what identifies a job in both repositories."""
    return job.file.path, job.position, job.item


@contextmanager
def open_changed(
    project: ProjectConfig, files: Mapping[str, str], folders: Sequence[str] = SOURCE_FOLDERS
) -> Iterator[ProjectConfig]:
    """Write a repository with changed files to a temporary folder, and load it."""
    with open_scratch() as folder:
        for path, content in _list_files(project, files, folders):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        yield config.load(folder)


def _list_files(
    project: ProjectConfig, changed: Mapping[str, str], folders: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    for top in folders:
        for entry in layout.find_sources(project.root, top):
            if not (entry.skipped or entry.finding) and entry.path not in changed:
                yield entry.path, read_file(entry).content
    settings = layout.read_settings(project.root)
    if SETTINGS not in changed:
        yield SETTINGS, settings.content if settings else b""
    yield from ((path, text.encode("utf-8", "surrogateescape")) for path, text in changed.items())


def render_in(job: Job, runner: EnvironmentRunner, problems: list[str]) -> list[Fields] | None:
    """The object of a job and its companions in an environment; None if it cannot be rendered, with the problems."""
    patches = runner.patches_for(job)
    if patches is None:
        problems.append("it is no longer rendered")
        return None
    found: list[Problem] = []
    made: list[Any] = [
        untraced(dict(each)) for each in build_objects(job.document, runner.expander, patches, found, [])
    ]
    problems += (problem.message for problem in found)
    return None if found or not made else made


def describe(objects: Sequence[Fields], runner: EnvironmentRunner, framework: str) -> Rendered | None:
    """Return a job that an environment renders, with its kind and its cluster; None if the kind is unknown."""
    api_version, name = (str(objects[0].get(field)) for field in ("apiVersion", "kind"))
    kind = next((kind for kind in runner.expander.kinds if kind.describes(api_version, name)), None)
    cluster = runner.expander.environment.cluster
    return Rendered(objects[0], kind, framework, cluster, objects[1:]) if kind else None


def compare_in_environments(
    project: ProjectConfig,
    jobs: Sequence[Job],
    kinds: tuple[Kind, Kind],
    frameworks: tuple[str, str],
    files: Mapping[str, str],
    notes: Sequence[MigrationNote],
) -> list[NamedDifference]:
    """List what differs in the environments that have the platforms of both kinds; `files` has the changed texts.

    A difference that no other name explains is one of the overlays: they apply to the old kind alone.
    """
    found: list[NamedDifference] = []
    layers = [top for top in SOURCE_FOLDERS if top != "jobs"]
    platform = kinds[1].platform
    envs = [env for env in project.environments() if platform in project.environment(env, []).cluster.list_platforms()]
    if not envs:
        return []
    with open_changed(project, files, layers) as changed:
        after = {get_key(job): job for job in read_jobs(layout.find_jobs(changed.root), changed.kinds, [])}
        for env in envs:
            old, new = EnvironmentRunner(project, env), EnvironmentRunner(changed, env)
            for job in jobs:
                before = render_in(job, old, [])
                side = describe(before, old, frameworks[0]) if before else None
                if side is None or side.kind is not kinds[0]:
                    continue
                for each in _compare_job(side, after.get(get_key(job)), new, frameworks[1], notes):
                    where = f"`{env}`: " if env else ""
                    found.append(NamedDifference(each.name or OVERLAYS, f"{where}{each.text}"))
    return list(dict.fromkeys(found))


def _compare_job(
    before: Rendered, job: Job | None, runner: EnvironmentRunner, framework: str, notes: Sequence[MigrationNote]
) -> Iterator[NamedDifference]:
    problems: list[str] = []
    made = render_in(job, runner, problems) if job else None
    after = describe(made, runner, framework) if made else None
    if after is None:
        yield NamedDifference(OVERLAYS, "; ".join(problems) or "it is no longer rendered")
        return
    yield from find_differences(before, after, notes)
