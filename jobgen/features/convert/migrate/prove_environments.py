"""Compare a migrated job with the old one in each environment, as its overlays render them with the new platform."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jobgen.engine.inputs import edited
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
from jobgen.rendering.expand import Expander
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.spec.kinds import Kind

JobKey = tuple[str, int, int]


def get_key(job: Job) -> JobKey:
    """Return what identifies a job in both repositories."""
    return job.file.path, job.position, job.item


@contextmanager
def open_changed(project: ProjectConfig, files: Mapping[str, str]) -> Iterator[ProjectConfig]:
    """Load a repository as if files were changed; what it reads beside its own folders stays in reach."""
    texts = {os.path.realpath(str(project.root / path)): text for path, text in files.items()}
    with edited({path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}):
        yield config.load_own(project.root)


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
    problems += (str(problem.sentence) for problem in found)
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
    """List what differs in the environments that render the jobs today; `files` has the changed texts.

    An environment that has the old kind and not the new platform is compared as if its cluster had that platform, too.
    If other environments have it, nothing else may change there until then. A difference that no other name explains
    is one of the overlays: they apply to the old kind alone.
    """
    found: list[NamedDifference] = []
    today = list(_list_today(project, jobs, frameworks[0]))
    waiting = list_waiting(project, ((env, before.kind) for env, _, before in today), kinds)
    is_mixed = len(waiting) < len(project.environments())
    if not today:
        return []
    with open_changed(project, files) as changed:
        entries = (entry for entry in layout.find_jobs(changed.root) if entry.path in files)
        after = {get_key(job): job for job in read_jobs(entries, changed.kinds, [])}
        for env, job, before in today:
            new_job = after.get(get_key(job))
            runner = EnvironmentRunner(changed, env)
            sides = [(add_platform(EnvironmentRunner(changed, env), kinds[1].platform), True)] if env in waiting else []
            sides += [(runner, False)] if env not in waiting or is_mixed else []
            for each, is_assumed in sides:
                problems: list[str] = []
                new = _render_job(new_job, each, frameworks[1], problems)
                if new is not None and is_assumed and new.kind is not kinds[1]:
                    text = f"it would stay a {new.kind.name}, because an overlay sets its platform"
                    differences = [NamedDifference(OVERLAYS, text)]
                elif new is not None:
                    differences = find_differences(before, new, notes)
                else:
                    text = "; ".join(problems) or "it is no longer rendered"
                    is_unready = env in waiting and not is_assumed
                    differences = [] if is_unready else [NamedDifference(OVERLAYS, text)]
                where = f"`{env}`: " if env else ""
                found += (NamedDifference(each.name or OVERLAYS, f"{where}{each.text}") for each in differences)
    return list(dict.fromkeys(found))


def list_waiting(project: ProjectConfig, rendered: Iterable[tuple[str, Kind]], kinds: tuple[Kind, Kind]) -> list[str]:
    """Return the environments that render a job of the old kind, and whose cluster has not the new platform."""
    old = dict.fromkeys(env for env, kind in rendered if kind is kinds[0])
    return [env for env in old if kinds[1].platform not in _list_platforms(project, env)]


def suggest_platform(project: ProjectConfig, envs: Sequence[str], platform: str) -> list[str]:
    """Return the lines that say which environments need a platform, and where to add it."""
    traced = config.load(project.layers, traced=True) if any(envs) else project
    needs: dict[str, list[str]] = {}
    for env in filter(None, envs):
        needs.setdefault(EnvironmentRunner(traced, env).expander.suggest_platforms([platform]), []).append(f"`{env}`")
    verbs = {advice: "needs" if len(names) == 1 else "need" for advice, names in needs.items()}
    return [
        f"{', '.join(names)} {verbs[advice]} the platform `{platform}`: {advice}" for advice, names in needs.items()
    ]


def add_platform(runner: EnvironmentRunner, platform: str) -> EnvironmentRunner:
    """Return the runner of an environment as if its cluster had another platform, too."""
    expander = runner.expander
    cluster = expander.environment.cluster
    # Without overlays, jobs name no platform.
    named = (*cluster.list_platforms(), platform) if runner.name else (platform, *cluster.list_platforms())
    platforms = tuple(dict.fromkeys(named))
    cluster = cluster._replace(platforms=platforms, platform=platforms[0])
    environment = expander.environment._replace(cluster=cluster)
    runner.expander = Expander(environment, list(expander.kinds), expander.day)
    return runner


def _list_platforms(project: ProjectConfig, env: str) -> Sequence[str]:
    return project.environment(env, []).cluster.list_platforms()


def _list_today(project: ProjectConfig, jobs: Sequence[Job], framework: str) -> Iterator[tuple[str, Job, Rendered]]:
    """Yield the environments with the jobs that they render today, and what to."""
    for env in project.environments():
        runner = EnvironmentRunner(project, env)
        for job in jobs:
            side = _render_job(job, runner, framework, [])
            if side is not None:
                yield env, job, side


def _render_job(job: Job | None, runner: EnvironmentRunner, framework: str, problems: list[str]) -> Rendered | None:
    """Return what an environment renders a job to; None if it cannot, with the problems."""
    made = render_in(job, runner, problems) if job else None
    return describe(made, runner, framework) if made else None
