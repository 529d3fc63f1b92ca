"""Convert some jobs to TrainJobs, with the runtimes that they need: `jobgen migrate JOB... --runtimes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.importing.format_yaml import format_document
from jobgen.features.convert.migrate.draft import list_lost_fields
from jobgen.features.convert.migrate.prove import compare_created_pods, format_difference
from jobgen.features.convert.migrate.repository_jobs import (
    MigratedDocument,
    Route,
    collect_sources,
    find_version,
    list_notes,
    migrate_documents,
)
from jobgen.features.convert.migrate.rewrite import rewrite_job
from jobgen.features.convert.migrate.runtime import API_VERSION, KIND, refer_to_runtime
from jobgen.model.data import value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.build import is_spec
from jobgen.render.config import ProjectConfig
from jobgen.render.environment import EnvironmentRunner
from jobgen.render.trace import Job
from jobgen.report.escape import visible
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.write import to_yaml


class RuntimeOutput(NamedTuple):
    """The text of a file, by its path in the output, and the report of a job; a job that was refused has no text."""

    path: str
    text: str
    report: str = ""
    lost: tuple[str, ...] = ()


def migrate_with_runtimes(
    jobs: Sequence[Job], project: ProjectConfig, source: Kind, target: Kind, preferred: Mapping[tuple[str, int], str]
) -> Iterator[RuntimeOutput]:
    """Migrate jobs without overlays; yield the jobs, then the runtimes that they share.

    `preferred` has the jobs, by file and position, whose cluster has the new platform, with the platform that the
    cluster uses instead unless the job names one.
    """
    runners = {"": EnvironmentRunner(project, "")}
    declared = {env: EnvironmentRunner(project, env) for env in project.environments()}
    route = Route(source, target, next(iter(source.frameworks)), find_version(declared, target))
    current = [_update_version(job, source) for job in jobs]
    sources, staying = collect_sources(current, project, runners, source)
    for job in staying:
        where = f"{job.file.path}:{job.start().line}"
        reason = f"it is not a {source.name}, which alone gets a runtime"
        yield RuntimeOutput("", "", f"{where}: not migrated: {reason}\n")
    documents = migrate_documents(sources, project, runners, route, by_namespace=True, preferred=preferred)
    for each in documents:
        job = each.source.jobs[0]
        yield _format_job(each, route, is_served=(job.file.path, job.position) in preferred)
    runtimes = {each.runtime: each for each in documents if not isinstance(each.result, str)}
    for name, document in runtimes.items():
        yield RuntimeOutput(f"runtimes/{name}.yaml", format_document(_build_manifest(document)))


def _update_version(job: Job, kind: Kind) -> Job:
    """The job with the current version of its API; old versions, which no operator serves, have the same form."""
    data = job.document.data
    group = str(value_of(data.get("apiVersion"))).partition("/")[0]
    current = str(value_of(kind.api_version))
    if is_spec(data) or value_of(data.get("kind")) != kind.name or group != current.partition("/")[0]:
        return job
    return job._replace(document=job.document._replace(data={**data, "apiVersion": current}))


def _build_manifest(document: MigratedDocument) -> Fields:
    metadata: Fields = {"name": document.runtime}
    source: Any = document.source.base[0]["metadata"]
    if not is_spec(document.source.document) and "namespace" in source:
        metadata["namespace"] = source["namespace"]
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": document.built[""][0].spec}


def _format_job(document: MigratedDocument, route: Route, *, is_served: bool) -> RuntimeOutput:
    source, result = document.source, document.result
    if isinstance(result, str):
        return RuntimeOutput("", "", f"{source.where}: not migrated: {visible(result)}\n")
    way = f"{route.source.name} to {route.target.name}, runtime `{document.runtime}`"
    if is_spec(source.document) and not is_served:
        way += f"; it needs an overlay with `cluster: {{platform: {route.target.platform}}}`"
    lines = [f"{source.where}: `{source.name}`: {way}"]
    path = source.jobs[0].file.path
    lines += (f"{path}:{line}: {note}" for line, note in list_notes(document))
    lines += (f"{source.where}: {line}" for line in _compare(document, route))
    report = "".join(f"{visible(line)}\n" for line in lines)
    lost = list_lost_fields(note for _, note in list_notes(document))
    if is_spec(source.document):
        job = source.jobs[0]
        return RuntimeOutput(f"{source.name}.yaml", rewrite_job(job.file, job.position, result.document), report, lost)
    assert result.rendered is not None, "a manifest is rendered"
    return RuntimeOutput(f"{source.name}.yaml", to_yaml(refer_to_runtime(result.rendered)), report, lost)


def _compare(document: MigratedDocument, route: Route) -> Iterator[str]:
    """What differs between the pods of both objects."""
    result = document.result
    if isinstance(result, str) or result.rendered is None:
        return
    cluster = Cluster(operators={route.target.operator: route.version} if route.version else {})
    after = refer_to_runtime(result.rendered), cluster
    differences = compare_created_pods((document.source.base[0], Cluster()), after, [_build_manifest(document)])
    changed = [each for each in differences if each.training]
    yield from map(format_difference, changed)
    if not changed:
        yield "the pods are equal for training"
