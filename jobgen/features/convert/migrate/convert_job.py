"""Convert one job of a repository, or a manifest, to another kind, with a report for each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.collect import ImportedSpec, import_manifest
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.draft import (
    NO_SURROUNDINGS,
    Surroundings,
    find_line,
    list_lost_fields,
    rewrite_job,
)
from jobgen.features.convert.migrate.migrate_job import MigratedJob, migrate_job, migrate_sweep, target_framework
from jobgen.features.convert.migrate.prove_repository import compare_created_pods, format_difference, lint_objects
from jobgen.features.convert.migrate.repository import (
    MigratedDocument,
    Route,
    collect_sources,
    find_version,
    list_notes,
    migrate_documents,
)
from jobgen.features.convert.migrate.runtime import KIND, RUNTIME_VERSION, refer_to_runtime
from jobgen.model.data import value_of
from jobgen.model.finding import Problem, add_article, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import list_alternatives
from jobgen.rendering.build import is_spec
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.expand import Expander, JobSpec
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo.files import FileEntry
from jobgen.reports.escape import visible
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import DEFAULT_PLATFORM, Cluster, Environment
from jobgen.spec.sweeps import expand_member
from jobgen.yamlio.commented import format_document
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml


class MigrationOutput(NamedTuple):
    """The new text of a job or a runtime, if there is one, and its report; the name is that of the file."""

    name: str
    text: str
    report: str
    lost: tuple[str, ...] = ()
    """The fields that the other kind does not have."""
    errors: tuple[str, ...] = ()
    """The errors of the new job that the old one did not have."""


def migrate_with_runtimes(
    jobs: Sequence[Job], project: ProjectConfig, source: Kind, target: Kind, preferred: Mapping[tuple[str, int], str]
) -> Iterator[MigrationOutput]:
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
        reason = f"it is not a {source.name}; only that kind gets a runtime"
        yield MigrationOutput("", "", f"{job.file.path}:{job.start().line}: not migrated: {reason}\n")
    documents = migrate_documents(sources, project, runners, route, by_namespace=True, preferred=preferred)
    for each in documents:
        job = each.source.jobs[0]
        yield _format_job(each, route, project, is_served=(job.file.path, job.position) in preferred)
    runtimes = {each.runtime: each for each in documents if not isinstance(each.result, str)}
    for name, document in runtimes.items():
        yield MigrationOutput(f"runtimes/{name}", format_document(_build_manifest(document)), "")


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
    return {"apiVersion": RUNTIME_VERSION, "kind": KIND, "metadata": metadata, "spec": document.built[""][0].spec}


def _format_job(
    document: MigratedDocument, route: Route, project: ProjectConfig, *, is_served: bool
) -> MigrationOutput:
    source, result = document.source, document.result
    if isinstance(result, str):
        return MigrationOutput("", "", f"{source.where}: not migrated: {visible(result)}\n")
    way = f"{route.source.name} to {route.target.name}, runtime `{document.runtime}`"
    if is_spec(source.document) and not is_served:
        way += f"; it needs an overlay with `cluster: {{platform: {route.target.platform}}}`"
    lines = [f"{source.where}: `{source.name}`: {way}"]
    path = source.jobs[0].file.path
    lines += (f"{path}:{line}: {note}" for line, note in list_notes(document))
    errors: list[str] = []
    if result.rendered is not None:
        after = [refer_to_runtime(result.rendered), _build_manifest(document)]
        errors = lint_objects(project.root, source.base[:1], after)
    lines += (f"{source.where}: {line}" for line in (*errors, *_compare(document, route, has_errors=bool(errors))))
    report = "".join(f"{visible(line)}\n" for line in lines)
    lost = list_lost_fields(note for _, note in list_notes(document))
    if is_spec(source.document):
        text = rewrite_job(source.jobs[0].file, source.jobs[0].position, result.document)
    else:
        assert result.rendered is not None, "a manifest is rendered"
        text = to_yaml(refer_to_runtime(result.rendered))
    return MigrationOutput(source.name, text, report, lost, tuple(errors))


def _compare(document: MigratedDocument, route: Route, *, has_errors: bool) -> Iterator[str]:
    """What differs between the pods of both objects."""
    result = document.result
    if isinstance(result, str) or result.rendered is None:
        return
    cluster = Cluster(operators={route.target.operator: route.version} if route.version else {})
    after = refer_to_runtime(result.rendered), cluster
    differences = compare_created_pods((document.source.base[0], Cluster()), after, [_build_manifest(document)])
    changed = [each for each in differences if each.training]
    yield from map(format_difference, changed)
    if not changed and not has_errors:
        yield "the pods are equal for training"


SOURCE, TARGET = "PyTorchJob", "TrainJob"
"""The kinds between which runtimes keep all fields of the pods."""


class MigrationSource(NamedTuple):
    """A job to migrate: its spec, its current kind, and whether it was written as a spec."""

    job: Job
    document: dict[str, Any]
    kind: Kind
    framework: str
    is_spec: bool
    surroundings: Surroundings = NO_SURROUNDINGS
    expander: Expander | None = None
    """Expands the jobs of its environment, if one contains it."""


def needs_runtime(job: Job, size: int, project: ProjectConfig, target: str, envs: Sequence[str]) -> bool:
    """Return True if a job is a PyTorchJob that becomes a TrainJob: only a runtime can keep all of its pods' fields."""
    origin = find_source(job, project, target, envs) if size and not envs else ""
    if isinstance(origin, str) or origin.kind.name != SOURCE:
        return False
    kind = select_target(origin, project, target)
    return not isinstance(kind, str) and kind.name == TARGET


def convert_with_runtimes(jobs: Sequence[Job], project: ProjectConfig) -> list[MigrationOutput]:
    """Convert PyTorchJobs to TrainJobs with the runtimes that they need; the texts of jobs, then those of runtimes."""
    kinds = {kind.name: kind for kind in project.kinds}
    members = [member for job in jobs for member in (list_members(job, project) if job.document.sweep else (job,))]
    preferred: dict[tuple[str, int], str] = {}
    for job in jobs:
        origin = find_source(job, project, TARGET, ())
        platform = None if isinstance(origin, str) else find_preferred(origin, kinds[TARGET])
        if platform is not None:
            preferred[job.file.path, job.position] = platform
    return list(migrate_with_runtimes(members, project, kinds[SOURCE], kinds[TARGET], preferred))


def list_members(job: Job, project: ProjectConfig) -> list[Job]:
    """All members of the sweep that a job belongs to."""
    entry = FileEntry(job.file.path, content=job.file.content)
    return [each for each in read_jobs([entry], project.kinds, []) if each.position == job.position]


def is_selected(kind: Kind, target: str) -> bool:
    """Return True if a target selects a kind: by platform, by name, or by name and version."""
    name, _, version = target.partition("/")
    if not kind.frameworks:
        return False
    named = name.lower() == kind.name.lower() and (not version or str(kind.api_version).endswith(f"/{version}"))
    return target == kind.platform or named


def convert_job(job: Job, size: int, project: ProjectConfig, target: str, envs: Sequence[str] = ()) -> MigrationOutput:
    """Convert a job, or a sweep of that size; a member of a sweep has none."""
    where = f"{job.file.path}:{job.start().line}"

    def refuse(reason: str) -> MigrationOutput:
        return MigrationOutput(job.document.name, "", f"{where}: not migrated: {visible(reason)}\n")

    if not size:
        return refuse(f"`{job.document.name}` is a member of a sweep; migrate `{job.document.sweep}`, the whole sweep")
    origin = find_source(job, project, target, envs)
    if isinstance(origin, str):
        return refuse(origin)
    kind = select_target(origin, project, target)
    if isinstance(kind, str):
        return refuse(kind)
    env, version = _find_version(project, kind)
    preferred = find_preferred(origin, kind) or ""
    origin = origin._replace(surroundings=origin.surroundings._replace(target_version=version, preferred=preferred))
    done = _migrate_document(origin, kind, size, project)
    if isinstance(done, str):
        return refuse(done)
    made = [each for each in (done.rendered, *done.companions) if each is not None]
    old = job.document.data if not origin.is_spec else done.old
    errors = lint_objects(project.root, [old] if old else [], made) if made else []
    report = _format_report(origin, done, kind, env, errors)
    if done.problems:
        why = "".join(f"{where}: not migrated: {visible(problem)}\n" for problem in done.problems)
        return MigrationOutput(job.document.name, "", report + why)
    lost = list_lost_fields(done.notes)
    if not origin.is_spec:
        text = "---\n".join(map(to_yaml, (done.rendered, *done.companions)))
        return MigrationOutput(job.document.name, text, report, lost, tuple(errors))
    name = job.document.sweep or job.document.name
    return MigrationOutput(name, rewrite_job(job.file, job.position, done.document), report, lost, tuple(errors))


def _migrate_document(origin: MigrationSource, kind: Kind, size: int, project: ProjectConfig) -> MigratedJob | str:
    """Migrate a job, or a sweep of that size; a text says why that is impossible."""

    def migrate(document: dict[str, Any]) -> MigratedJob:
        return migrate_job(document, origin.kind, kind, origin.framework, project.kinds, origin.surroundings)

    job = origin.job
    if not job.document.sweep:
        return migrate(origin.document)
    document = read(job.file.content, job.file.path).documents[job.position].data
    return migrate_sweep(document, size, migrate)


def find_source(job: Job, project: ProjectConfig, target: str, envs: Sequence[str]) -> MigrationSource | str:
    """Return the current kind of a job, or why it is unknown."""
    data = job.document.data
    if not is_spec(data):
        kind = next((kind for kind in project.kinds if kind.describes(data["apiVersion"], data["kind"])), None)
        if kind is None or not kind.frameworks:
            return f"`{data['apiVersion']}` `{data['kind']}` is not a kind of job that jobgen knows"
        spec = import_manifest(data, kind, project.kinds)
        if not isinstance(spec, ImportedSpec):
            return "no spec renders to exactly this object; `jobgen import` shows why"
        return MigrationSource(job, spec.document, kind, spec.framework, is_spec=False)
    problems: list[str] = []
    found = list(_find_kinds(job, project, envs or project.environments(), problems))
    if not found and not envs:
        found = list(_guess_kinds(job, project))
    other = [each for each in found if not is_selected(each.kind, target)] or found
    if other:
        return other[0]
    if problems:
        return f"its current kind is unknown: {problems[0]}"
    if envs:
        return f"it is not in {list_alternatives(f'`{env}`' for env in envs)}, so its current kind is unknown"
    return "no environment contains it, so its current kind is unknown; name an environment with `-e`"


def _find_kinds(
    job: Job, project: ProjectConfig, envs: Sequence[str], problems: list[str]
) -> Iterator[MigrationSource]:
    """Yield what each environment that contains a spec renders it to; add the problems that prevent it."""
    for env in envs:
        expander = Expander(project.environment(env, []), list(project.kinds))
        attributes = expander.attributes(job.document)
        if not expander.environment.matches(attributes):
            continue
        own_problems: list[Problem] = []
        expanded = expander.expand(job.document, expander.environment.patches_for(attributes), own_problems, [])
        where = f"`{env}`: " if env else ""
        if expanded is None:
            problems += (f"{where}{problem.message}" for problem in own_problems)
            continue
        if expanded.framework != attributes.framework:
            problems.append(f"{where}an overlay changes its framework to `{expanded.framework}`")
            continue
        surroundings = Surroundings(_find_overlay_policies(job, expander, expanded), env)
        yield MigrationSource(
            job, job.document.data, expanded.kind, expanded.framework, True, surroundings, expander=expander
        )


def _guess_kinds(job: Job, project: ProjectConfig) -> Iterator[MigrationSource]:
    """Yield the kinds that a spec may have in an environment that does not exist yet."""
    spec = job.document.data["spec"]
    framework, platform = (str(value_of(spec.get(name)) or "") for name in ("framework", "platform"))
    for kind in sorted(project.kinds, key=lambda kind: kind.platform != DEFAULT_PLATFORM):
        if framework in kind.frameworks and platform in ("", kind.platform):
            yield MigrationSource(job, job.document.data, kind, framework, is_spec=True)


def find_preferred(origin: MigrationSource, kind: Kind) -> str | None:
    """Return the platform that the cluster prefers to that of the new kind; None if it does not have the new one."""
    if origin.expander is None or kind.platform not in origin.expander.environment.cluster.list_platforms():
        return None
    document = origin.job.document
    spec = {"framework": target_framework(origin.framework, kind)}
    chosen = origin.expander.attributes(document._replace(data={**document.data, "spec": spec})).platform
    return chosen if chosen != kind.platform else ""


def _find_overlay_policies(job: Job, expander: Expander, with_overlays: JobSpec) -> dict[str, str]:
    """Return the restart policies, by role, that overlays and not the job set."""
    bare = Expander(Environment("", expander.environment.cluster), expander.kinds)
    without = bare.expand(job.document, [], [], [])
    own = {name: value_of(role.replica.get("restartPolicy")) for name, role in without.roles.items()} if without else {}
    policies = {name: value_of(role.replica.get("restartPolicy")) for name, role in with_overlays.roles.items()}
    return {name: policy for name, policy in policies.items() if policy and policy != own.get(name)}


def _find_version(project: ProjectConfig, kind: Kind) -> tuple[str, str]:
    """Return the first environment that declares the version of a kind's operator on its platform, and the version."""
    for env in project.environments():
        cluster = project.environment(env, []).cluster
        version = cluster.find_version(kind.operator)
        if version and kind.platform in cluster.list_platforms():
            return env, version
    return "", ""


def select_target(origin: MigrationSource, project: ProjectConfig, target: str) -> Kind | str:
    """Return the kind to convert to, or why that is impossible."""
    meant = [kind for kind in project.kinds if is_selected(kind, target)]
    able = [kind for kind in meant if target_framework(origin.framework, kind)]
    other = [kind for kind in able if kind is not origin.kind]
    if other:
        # Volcano has a Job, too; without its platform, `Job` is that of Kubernetes.
        return min(other, key=lambda kind: kind.platform != "kubernetes")
    if able:
        return f"it is already {add_article(origin.kind.name)} of `{origin.kind.platform}`"
    serving = {kind.platform for kind in project.kinds if target_framework(origin.framework, kind)}
    elsewhere = sorted(serving - {origin.kind.platform})
    hint = f"; it can be converted to {list_alternatives(f'`{name}`' for name in elsewhere)}" if elsewhere else ""
    return f"`{target}` does not support `{origin.framework}`{hint}"


def _is_rendered(origin: MigrationSource, done: MigratedJob, kind: Kind) -> bool:
    """Return True if the environment of a job renders the new spec to its new kind as it is."""
    if origin.expander is None:
        return False
    old, new = origin.job.document, done.document
    document = old._replace(data=expand_member(new, 0) if old.sweep else new)
    patches = origin.expander.environment.patches_for(origin.expander.attributes(document))
    expanded = origin.expander.expand(document, patches, [], [])
    return expanded is not None and expanded.kind is kind


def _format_report(origin: MigrationSource, done: MigratedJob, kind: Kind, env: str, errors: Sequence[str]) -> str:
    """Return the report: one line for each field, with its location, and the comparison of the pods."""
    job = origin.job
    where = f"{job.file.path}:{job.start().line}"
    way = f"{origin.kind.name} ({origin.kind.platform}) to {kind.name} ({kind.platform})"
    if origin.is_spec and kind.platform != origin.kind.platform and not _is_rendered(origin, done, kind):
        way += f"; it needs an overlay with `cluster: {{platform: {kind.platform}}}`"
    if env:
        way += f"; overlay `{env}` has {kind.operator} {origin.surroundings.target_version}"
    lines = [f"{where}: `{job.document.sweep or job.document.name}`: {way}"]
    for entry in done.notes:
        line = job.start().line
        if origin.is_spec:
            line = find_line(job.traced_document().data["spec"], entry.field, line)
        lines.append(f"{job.file.path}:{line}: {entry}")
    lines += (f"{where}: {each}" for each in (*errors, *done.differences))
    if not done.differences and not errors:
        lost = sum(note.change == "lost" for note in done.notes)
        except_lost = f"except for {pluralize(lost, 'lost field')}, " if lost else ""
        lines.append(f"{where}: {except_lost}images, commands, env, resources, nodes and processes are the same")
    if (origin.kind.name, kind.name) == ("PyTorchJob", "TrainJob") and any(
        note.change == "lost" for note in done.notes
    ):
        lines.append(
            f"{where}: `--runtimes`, or `--all` for the whole repository, writes runtimes that keep what is lost"
        )
    return "".join(f"{visible(line)}\n" for line in lines)
