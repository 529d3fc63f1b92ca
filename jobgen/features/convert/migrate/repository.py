"""Migrate all jobs of a repository: specs, sweeps and manifests, their runtimes, and the overlays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.importing.format_yaml import format_document
from jobgen.features.convert.migrate.new_files import find_free_path
from jobgen.features.convert.migrate.overlays import LayerMigration, LayerNote
from jobgen.features.convert.migrate.repository_jobs import (
    MigratedDocument,
    Route,
    Runners,
    collect_sources,
    find_version,
    migrate_documents,
)
from jobgen.features.convert.migrate.repository_layers import change_layers
from jobgen.features.convert.migrate.rewrite import replace_documents
from jobgen.features.convert.migrate.runtime import API_VERSION, KIND, refer_to_runtime
from jobgen.model.data import untraced
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.build import is_spec, split_list
from jobgen.render.config import ProjectConfig, read_documents
from jobgen.render.environment import EnvironmentRunner
from jobgen.render.read_jobs import read_jobs
from jobgen.render.trace import WHOLE, Job
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.spec.kinds import Kind
from jobgen.yamlio.write import to_yaml


class RepositoryMigration(NamedTuple):
    """All files that change, what was migrated, and the jobs that stay."""

    files: Mapping[str, str]
    documents: tuple[MigratedDocument, ...]
    staying: tuple[Job, ...]
    """The jobs that stay as they are in an environment."""
    pinned: tuple[Job, ...]
    """The jobs that get a `platform`, because the new platform supports their framework too."""
    notes: tuple[tuple[str, LayerNote], ...]
    findings: tuple[Finding, ...]
    route: Route


def migrate_repository(project: ProjectConfig, source: Kind, target: Kind) -> RepositoryMigration:
    """Migrate all jobs of one kind in all environments of a repository."""
    findings: list[Finding] = []
    jobs = list(read_jobs(layout.find_jobs(project.root), project.frameworks, findings))
    runners = {env: EnvironmentRunner(project, env) for env in project.environments()}
    route = Route(source, target, next(iter(source.frameworks)), find_version(runners, target))
    # An item of a List has no document of its own that could be changed.
    listed = [job for job in jobs if _is_listed(job)]
    sources, staying = collect_sources([job for job in jobs if job not in listed], project, runners, source)
    staying += listed
    documents = migrate_documents(sources, project, runners, route)
    done = [each for each in documents if not isinstance(each.result, str)]
    # A job that cannot be migrated stays as it is.
    staying += [job for each in documents if isinstance(each.result, str) for job in each.source.jobs]
    moved = {(job.file.path, job.position) for each in done for job in each.source.jobs}
    # A sweep, whose members share a document, is listed once.
    others = {(job.file.path, job.position): job for job in staying if (job.file.path, job.position) not in moved}
    pinned = [
        (job, platform)
        for job in others.values()
        if done and (platform := _find_platform(job, runners, source, target))
    ]
    files: dict[str, str] = {}
    _add_jobs(files, done, pinned)
    _add_runtimes(files, done, project)
    layers = LayerMigration(source, target, route.framework, route.version, _list_injected(done))
    notes = change_layers(files, done, project, runners, layers)
    return RepositoryMigration(
        files, tuple(documents), tuple(staying), tuple(job for job, _ in pinned), tuple(notes), tuple(findings), route
    )


def _is_listed(job: Job) -> bool:
    """Whether a job is an item of a List."""
    if job.item <= WHOLE:
        return False
    data = read_documents(job.file, []).documents[job.position].data
    return split_list(data)[job.item] is not data


def _list_injected(done: Sequence[MigratedDocument]) -> frozenset[str]:
    """The variables that the old operator sets in every job."""
    found = [each.injected for document in done for built in document.built.values() for each in built]
    return frozenset.intersection(*found) if found else frozenset()


def _find_platform(job: Job, runners: Runners, source: Kind, target: Kind) -> str:
    """Return the platform of a job that stays, if the new one, which supports its framework, comes before it."""
    spec: Any = untraced(job.document.data.get("spec"))
    if not is_spec(job.document.data) or "platform" in spec:
        return ""
    found: set[str] = set()
    is_passed = False
    for runner in runners.values():
        if runner.patches_for(job) is None:
            continue
        attributes, platforms = runner.attributes(job), runner.expander.environment.cluster.list_platforms()
        found.add(attributes.platform)
        # The new platform takes the place of the old one.
        until = platforms[: platforms.index(attributes.platform) + 1] if attributes.platform in platforms else ()
        is_passed = is_passed or (source.platform in until and attributes.framework in target.frameworks)
    platform = next(iter(found)) if len(found) == 1 else ""
    return platform if is_passed and platform != target.platform else ""


def _add_jobs(files: dict[str, str], done: Sequence[MigratedDocument], pinned: Sequence[tuple[Job, str]]) -> None:
    changed: dict[str, tuple[File, dict[int, Fields | str]]] = {}
    for job, platform in pinned:
        document: Any = read_documents(job.file, []).documents[job.position].data
        spec = {**document["spec"], "platform": platform}
        changed.setdefault(job.file.path, (job.file, {}))[1][job.position] = {**document, "spec": spec}
    for each in done:
        assert not isinstance(each.result, str), "these were migrated"
        job = each.source.jobs[0]
        new: Fields | str = each.result.document
        if not is_spec(each.source.document) and each.result.rendered is not None:
            new = to_yaml(refer_to_runtime(each.result.rendered))
        changed.setdefault(job.file.path, (job.file, {}))[1][job.position] = new
    for path, (file, documents) in changed.items():
        files[path] = replace_documents(file, documents)


def _add_runtimes(files: dict[str, str], done: Sequence[MigratedDocument], project: ProjectConfig) -> None:
    # Jobs that share a runtime have equal ones.
    new = {each.runtime: each for each in done if each.runtime not in project.runtimes}
    for name, document in new.items():
        manifest: Fields = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name},
            "spec": document.built[""][0].spec,
        }
        files[find_free_path(project.root, "runtimes", name, files)] = format_document(manifest)
