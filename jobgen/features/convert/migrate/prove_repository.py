"""Prove a migration: lint it, render all jobs before and after, and compare their pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen.api.lint import lint, lint_request
from jobgen.api.lint_files import LintRequest
from jobgen.engine.store import Store
from jobgen.features.convert.importing.collect import ImportedSpec, import_manifest
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.importing.verify import create_patch
from jobgen.features.convert.migrate.compare_jobs import Rendered
from jobgen.features.convert.migrate.differences import NamedDifference, find_differences
from jobgen.features.convert.migrate.draft import BuiltRuntime, Surroundings
from jobgen.features.convert.migrate.migrate_job import migrate_job
from jobgen.features.convert.migrate.prove_environments import JobKey, get_key, open_changed, render_in
from jobgen.features.convert.migrate.repository import (
    MigratedDocument,
    RepositoryMigration,
    Route,
    Runners,
    SourceJob,
    add_patches,
)
from jobgen.features.convert.migrate.runtime import refer_to_runtime
from jobgen.model.data import Plain, untraced
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import build_objects
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.spec.kinds import Kind
from jobgen.yamlio.write import to_yaml


def list_new_errors(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """Return the errors of a result that its source did not have; the same fault may have another place there."""
    known = {(each.rule, each.env, each.values) for each in before}
    errors = [each for each in after if each.severity is Severity.ERROR]
    return [each for each in errors if (each.rule, each.env, each.values) not in known]


def lint_objects(
    folder: Folder, before: Sequence[Mapping[str, Plain]], after: Sequence[Mapping[str, Plain]], env: str = ""
) -> list[str]:
    """Return the errors that objects have and those before the migration did not, with the settings of a folder.

    `env` is the environment that declares the release of the operator, if there is one.
    """
    texts = ("---\n".join(map(to_yaml, objects)).encode() for objects in (before, after))
    envs = [env] if env else ()
    old, new = (lint(Path(str(folder)), ["-"], environments=envs, stdin=text).findings for text in texts)
    return [f"error: {each.message} [{each.rule}]" for each in list_new_errors(old, new)]


_OWN = "jobgen.dev/"


class PodProof(NamedTuple):
    """What one document does differently in one environment."""

    source: SourceJob
    env: str
    differences: tuple[NamedDifference, ...]


class RepositoryProof(NamedTuple):
    """The result of rendering everything again: what differs, and what cannot be rendered."""

    pods: tuple[PodProof, ...]
    errors: tuple[str, ...]
    repairs: tuple[tuple[str, Fields], ...] = ()
    """Patches, each with its environment, that restore what patches of the old objects did."""
    findings: tuple[Finding, ...] = ()
    """The errors that `jobgen lint` finds now and did not find before."""


def complete_migration(
    project: ProjectConfig, migration: RepositoryMigration
) -> tuple[RepositoryMigration, RepositoryProof]:
    """Prove a migration. If a patch of an object is missing now, add one for the new object, and prove it again."""
    proof = prove_repository(project, migration)
    if not proof.repairs:
        return migration, proof
    files = dict(migration.files)
    for env in dict.fromkeys(env for env, _ in proof.repairs):
        add_patches(files, project.root, env, [patch for each, patch in proof.repairs if each == env])
    migration = migration._replace(files=files)
    return migration, prove_repository(project, migration)


def prove_repository(project: ProjectConfig, migration: RepositoryMigration) -> RepositoryProof:
    """Render the repository with the changed files, and compare it with the old one."""
    with open_changed(project, migration.files) as changed:
        proof = _prove(project, changed, migration)
    if proof.errors:
        return proof
    return proof._replace(findings=tuple(lint_changed(project, migration.files)))


def lint_changed(project: ProjectConfig, files: Mapping[str, str]) -> list[Finding]:
    """Return the errors that a repository has with changed files, and not without; rendered trees are left out."""
    request = LintRequest(Path(str(project.root)), compares_trees=False)
    before = lint_request(request)
    with open_changed(project, files):
        after = lint_request(request, store=Store())
    return list_new_errors(before.findings, after.findings)


def _prove(old: ProjectConfig, new: ProjectConfig, migration: RepositoryMigration) -> RepositoryProof:
    found: list[Finding] = list(new.findings)
    jobs = {get_key(job): job for job in read_jobs(layout.find_jobs(new.root), new.kinds, found)}
    errors = [
        f"{each.location.file}:{each.location.line}: {each.message}"
        for each in found
        if each.severity is Severity.ERROR
    ]
    sides = _Sides(
        {env: EnvironmentRunner(old, env) for env in old.environments()},
        {env: EnvironmentRunner(new, env) for env in old.environments()},
        jobs,
    )
    repairs: list[tuple[str, Fields]] = []
    done = [document for document in migration.documents if not isinstance(document.result, str)]
    pods = [
        _compare_document(document, env, sides, migration.route, errors, repairs)
        for document in done
        for env in document.source.rendered
    ]
    for env, message, patch in _compare_staying(sides.before, sides.after, jobs, migration):
        if env and patch:
            repairs.append((env, patch))
        errors.append(message)
    return RepositoryProof(tuple(pods), tuple(errors), tuple(repairs))


class _Sides(NamedTuple):
    """The environments before and after the migration, and the jobs after it."""

    before: Runners
    after: Runners
    jobs: Mapping[JobKey, Job]


def _compare_document(
    document: MigratedDocument,
    env: str,
    sides: _Sides,
    route: Route,
    errors: list[str],
    repairs: list[tuple[str, Fields]],
) -> PodProof:
    """Compare the pods of a document in an environment; add the patches that a TrainJob still needs there."""
    source = document.source
    differences: list[NamedDifference] = []
    notes = document.result.notes if not isinstance(document.result, str) else ()
    for place, (job, obj) in enumerate(source.list_rendered(env)):
        name = f"{job.file.path}:{job.start().line}: `{job.document.name}`: {env or 'without overlays'}"
        made = _render(sides.jobs.get(get_key(job)), sides.after[env], errors, name)
        if made is None:
            continue
        clusters = [each[env].expander.environment.cluster for each in (sides.before, sides.after)]
        old = Rendered(obj, route.source, route.framework, clusters[0])
        new = Rendered(made[0], route.target, route.framework, clusters[1], made[1])
        differences += find_differences(old, new, notes)
        patches = sides.before[env].patches_for(job) or ()
        if env and any(patch.manifest is not None or patch.json_patch is not None for patch in patches):
            runtime = document.built[env][place]._replace(name=document.runtime)
            patch = _complete_object(made[0], obj, runtime, sides.before[env].expander.kinds, route)
            if patch:
                match = {"kinds": [route.target.name], "names": [job.document.name]}
                repairs.append((env, {"match": match, "manifest": patch}))
    return PodProof(source, env, tuple(dict.fromkeys(differences)))


def _complete_object(
    made: Fields, before: Fields, runtime: BuiltRuntime, kinds: Sequence[Kind], route: Route
) -> Fields:
    """The patch that gives a TrainJob what a patch of the old object gave that; none if nothing is missing."""
    imported = import_manifest(before, route.source, kinds)
    if not isinstance(imported, ImportedSpec):
        return {}
    surroundings = Surroundings(target_version=route.version, runtime=runtime)
    done = migrate_job(imported.document, route.source, route.target, route.framework, kinds, surroundings)
    if done.rendered is None or done.problems:
        return {}
    # The object with the name and the annotations that jobgen itself gives the run.
    obj = refer_to_runtime(done.rendered)
    old = {key: value for key, value in made["metadata"].get("annotations", {}).items() if key.startswith(_OWN)}
    new = {key: value for key, value in obj["metadata"].get("annotations", {}).items() if not key.startswith(_OWN)}
    annotations = {**new, **old}
    metadata = {**obj["metadata"], "name": made["metadata"]["name"], "annotations": annotations}
    return create_patch(made, {**obj, "metadata": {key: value for key, value in metadata.items() if value}})


def _render(
    job: Job | None, runner: EnvironmentRunner, errors: list[str], place: str
) -> tuple[Fields, list[Fields]] | None:
    """The object of a job, and its runtime; None if it cannot be rendered."""
    problems: list[str] = []
    made = render_in(job, runner, problems) if job else None
    errors += (f"{place}: {problem}" for problem in problems or ([] if job else ["it is no longer rendered"]))
    if made is None:
        return None
    if len(made) == 1:
        errors.append(f"{place}: there is no runtime in runtimes/ for it")
        return None
    return made[0], made[1:]


def _compare_staying(
    before: Runners, after: Runners, jobs: Mapping[JobKey, Job], migration: RepositoryMigration
) -> Iterator[tuple[str, str, Fields | None]]:
    """The jobs that stay in an environment, but are rendered to another object there.

    Yield the environment, the message, and the patch that restores the object, if there can be one.
    """
    moved = {
        (job.file.path, job.position): each.source.rendered
        for each in migration.documents
        if not isinstance(each.result, str)
        for job in each.source.jobs
    }
    for job in migration.staying:
        new_job = jobs.get(get_key(job))
        for env in before:
            if env in moved.get((job.file.path, job.position), ()):
                continue
            old = _render_plain(job, before[env])
            new = _render_plain(new_job, after[env])
            if old != new:
                where = f"{job.file.path}:{job.start().line}: `{job.document.name}`: {env or 'without overlays'}"
                message = f"{where}: the job was not migrated, but its object would change"
                platform = before[env].attributes(job).platform
                is_elsewhere = new_job is not None and after[env].attributes(new_job).platform != platform
                if is_elsewhere:
                    message += f"; `platform: {platform}` in the job or in an overlay prevents that"
                yield env, message, _restore_object(job.document.name, platform if is_elsewhere else "", old, new)


def _restore_object(name: str, platform: str, old: Sequence[Fields], new: Sequence[Fields]) -> Fields | None:
    """Return the patch that restores the object of a job that stays, or its platform, if there can be one."""
    if old and platform:
        return {"match": {"names": [name]}, "merge": {"platform": platform}}
    if not old or not new or old[1:] != new[1:]:
        return None
    return {"match": {"kinds": [str(old[0].get("kind"))], "names": [name]}, "manifest": create_patch(new[0], old[0])}


def _render_plain(job: Job | None, runner: EnvironmentRunner) -> list[Any]:
    """Return the object of a job and its companions; nothing if there is none, or if it cannot be rendered."""
    patches = runner.patches_for(job) if job else None
    if job is None or patches is None:
        return []
    problems: list[Problem] = []
    made = build_objects(job.document, runner.expander, patches, problems, [])
    return [] if problems else [untraced(dict(each)) for each in made]
