"""Convert one job of a repository, or a manifest, to another kind, with a report for each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.collect import ImportedSpec, import_manifest
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.importing.verify import renderer_for
from jobgen.features.convert.migrate.bound_layers import (
    NOTHING_ABSORBED,
    Absorbed,
    absorb,
    explain_layers,
    list_bound_layers,
)
from jobgen.features.convert.migrate.differences import NamedDifference, Verdict, judge
from jobgen.features.convert.migrate.draft import (
    NO_SURROUNDINGS,
    MigrationNote,
    Surroundings,
    find_line,
    list_lost_fields,
    replace_documents,
    rewrite_job,
)
from jobgen.features.convert.migrate.migrate_job import MigratedJob, migrate_job, migrate_sweep, target_framework
from jobgen.features.convert.migrate.prove_environments import (
    compare_in_environments,
    get_key,
    list_waiting,
    suggest_platform,
)
from jobgen.features.convert.migrate.prove_repository import lint_objects
from jobgen.features.convert.migrate.repository import (
    MigratedDocument,
    Route,
    collect_sources,
    list_notes,
    migrate_documents,
)
from jobgen.features.convert.migrate.runtime import KIND, RUNTIME_VERSION, refer_to_runtime
from jobgen.model.data import value_of
from jobgen.model.finding import Problem, add_article, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import list_alternatives
from jobgen.rendering.build import build_objects, is_spec
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.expand import Expander, JobSpec
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo.files import FileEntry
from jobgen.reports.escape import visible
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import DEFAULT_PLATFORM, Environment
from jobgen.spec.sweeps import expand_member
from jobgen.yamlio.commented import format_document
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

NO_VERDICT = Verdict()


class MigrationOutput(NamedTuple):
    """The new text of a job or a runtime, if there is one, and its report; the name is that of the file."""

    name: str
    text: str
    report: str
    lost: tuple[str, ...] = ()
    """The fields that the other kind does not have."""
    errors: tuple[str, ...] = ()
    """The errors of the new job that the old one did not have."""
    verdict: Verdict = NO_VERDICT
    job: Job | None = None
    """Where the job was read; None for a runtime."""
    waiting: tuple[str, ...] = ()
    """The environments that render the job today, and whose cluster has not the new platform."""
    same: str = ""
    """The line of the report that says that the job is the same, if it is."""


class Overlaid(NamedTuple):
    """What overlays set for a job of its old kind alone, and what must change in them if the job cannot have it."""

    absorbed: Absorbed
    advice: tuple[str, ...]


class _Around(NamedTuple):
    """What the environments do with a job."""

    preferred: str = ""
    """The platform that a cluster uses for the job unless it names one, though it has the new one or will have it."""
    is_served: bool = False
    """True if the cluster of an environment has the new platform."""
    waiting: Sequence[str] = ()
    """The environments that render the job, and whose cluster has not the new platform."""
    overlaid: Overlaid = Overlaid(NOTHING_ABSORBED, ())


_NOTHING_AROUND = _Around()


def migrate_with_runtimes(
    jobs: Sequence[Job],
    project: ProjectConfig,
    source: Kind,
    target: Kind,
    around: Mapping[tuple[str, int], _Around],
    accepted: Sequence[str],
) -> Iterator[MigrationOutput]:
    """Migrate jobs without overlays; yield the jobs, then the runtimes that they share.

    `around` says, by file and position, what the environments do with a job.
    """
    runners = {"": EnvironmentRunner(project, "")}
    env, version = _find_version(project, target)
    route = Route(source, target, next(iter(source.frameworks)), version)
    current = [_absorb(_update_version(job, source), around) for job in jobs]
    sources, staying = collect_sources(current, project, runners, source)
    for job in staying:
        reason = f"it is not a {source.name}; only that kind gets a runtime"
        yield MigrationOutput("", "", f"{job.file.path}:{job.start().line}: not migrated: {reason}\n")
    preferred = {key: each.preferred for key, each in around.items()}
    documents = migrate_documents(sources, project, runners, route, by_namespace=True, preferred=preferred)
    originals = {get_key(job): job for job in jobs}
    for each in documents:
        own = [originals[get_key(job)] for job in each.source.jobs]
        yield _format_job(each, own, route, project, env, accepted, around.get(_locate(own[0]), _NOTHING_AROUND))
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


def _locate(job: Job) -> tuple[str, int]:
    return job.file.path, job.position


def _absorb(job: Job, around: Mapping[tuple[str, int], _Around]) -> Job:
    """Return a job with what overlays set for its old kind alone; a sweep is a document of the file, and stays."""
    own = around.get(_locate(job))
    if own is None or job.document.sweep or not is_spec(job.document.data):
        return job
    return job._replace(document=job.document._replace(data=own.overlaid.absorbed.apply(job.document.data)))


def _format_job(
    document: MigratedDocument,
    jobs: Sequence[Job],
    route: Route,
    project: ProjectConfig,
    env: str,
    accepted: Sequence[str],
    around: _Around,
) -> MigrationOutput:
    source, result = document.source, document.result
    if isinstance(result, str):
        return MigrationOutput("", "", f"{source.where}: not migrated: {visible(result)}\n")
    way = f"{route.source.name} to {route.target.name}, runtime `{document.runtime}`"
    if is_spec(source.document) and not (around.is_served or any(around.waiting)):
        way += f"; it needs an overlay with `cluster: {{platform: {route.target.platform}}}`"
    lines = [f"{source.where}: `{source.name}`: {way}"]
    path = source.jobs[0].file.path
    if not jobs[0].document.sweep and is_spec(source.document):
        notes = around.overlaid.absorbed.list_notes(jobs[0].document.data, route.source)
        lines += (f"{source.where}: {note}" for note in notes)
    lines += (f"{path}:{line}: {note}" for line, note in list_notes(document))
    errors: list[str] = []
    if result.rendered is not None:
        after = [refer_to_runtime(result.rendered), _build_manifest(document)]
        errors = lint_objects(project.root, source.base[:1], after, env)
    if is_spec(source.document):
        text = rewrite_job(source.jobs[0].file, source.jobs[0].position, result.document)
        found = _compare_document(document, jobs, text, route, project)
    else:
        assert result.rendered is not None, "a manifest is rendered"
        text, found = to_yaml(refer_to_runtime(result.rendered)), ()
    verdict = judge((*result.differences, *found), result.notes, accepted)
    needed = suggest_platform(project, around.waiting, route.target.platform)
    advice = [*(around.overlaid.advice if found else ()), *needed]
    lines += (f"{source.where}: {line}" for line in (*errors, *map(str, verdict.differences), *advice))
    same = f"{source.where}: the pods are equal for training" if not verdict.differences and not errors else ""
    lines += [same] if same else []
    if verdict.is_refused:
        lines.append(f"{source.where}: not migrated: {verdict.advice}")
    report = "".join(f"{visible(line)}\n" for line in lines)
    lost = list_lost_fields(result.notes)
    waiting = tuple(around.waiting)
    return MigrationOutput(source.name, text, report, lost, tuple(errors), verdict, jobs[0], waiting, same)


def _compare_document(
    document: MigratedDocument, jobs: Sequence[Job], text: str, route: Route, project: ProjectConfig
) -> Sequence[NamedDifference]:
    """Compare a migrated job with the old one in the environments that have both platforms."""
    job, result = document.source.jobs[0], document.result
    if isinstance(result, str) or not _is_in_repository(job, project):
        return ()
    runtime = f"runtimes/{document.runtime}.yaml"
    files = {
        job.file.path: replace_documents(job.file, {job.position: text}),
        runtime: format_document(_build_manifest(document)),
    }
    frameworks = route.framework, route.framework
    kinds = route.source, route.target
    found = compare_in_environments(project, jobs, kinds, frameworks, files, result.notes)
    return _leave_known(found, result.differences)


def _leave_known(found: Iterable[NamedDifference], known: Iterable[NamedDifference]) -> list[NamedDifference]:
    """Return the differences that only environments show."""
    texts = {each.text for each in known}
    return [each for each in found if each.text.partition("`: ")[2] not in texts and each.text not in texts]


def _is_in_repository(job: Job, project: ProjectConfig) -> bool:
    """Return True if environments of the repository contain a job: it is in its folder of jobs."""
    return job.file.path.startswith("jobs/") and (project.root / job.file.path).exists()


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


def convert_with_runtimes(
    jobs: Sequence[Job], project: ProjectConfig, accepted: Sequence[str] = ()
) -> list[MigrationOutput]:
    """Convert PyTorchJobs to TrainJobs with the runtimes that they need; the texts of jobs, then those of runtimes."""
    kinds = {kind.name: kind for kind in project.kinds}
    members = [member for job in jobs for member in (list_members(job, project) if job.document.sweep else (job,))]
    around: dict[tuple[str, int], _Around] = {}
    for job in jobs:
        origin = find_source(job, project, TARGET, ())
        if isinstance(origin, str):
            continue
        platform = find_preferred(origin, kinds[TARGET], project)
        waiting = _list_waiting(origin, kinds[TARGET], project)
        overlaid = find_overlaid(origin, kinds[TARGET], project)
        preferred = platform or (origin.kind.platform if any(waiting) else "")
        around[_locate(job)] = _Around(preferred, platform is not None, waiting, overlaid)
    return list(migrate_with_runtimes(members, project, kinds[SOURCE], kinds[TARGET], around, accepted))


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


def convert_job(
    job: Job,
    size: int,
    project: ProjectConfig,
    target: str,
    envs: Sequence[str] = (),
    accepted: Sequence[str] = (),
) -> MigrationOutput:
    """Convert a job, or a sweep of that size; a member of a sweep has none.

    `accepted` has the names of the differences that the new job may have.
    """
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
    fault = _find_fault(origin, project)
    if fault:
        return refuse(f"it cannot be rendered today: {fault}")
    env, version = _find_version(project, kind)
    waiting = _list_waiting(origin, kind, project)
    preferred = find_preferred(origin, kind, project) or (origin.kind.platform if any(waiting) else "")
    origin = origin._replace(surroundings=origin.surroundings._replace(target_version=version, preferred=preferred))
    overlaid = find_overlaid(origin, kind, project)
    done = _migrate_document(origin, kind, size, project, overlaid.absorbed)
    if isinstance(done, str):
        return refuse(done)
    made = [each for each in (done.rendered, *done.companions) if each is not None]
    old = job.document.data if not origin.is_spec else done.old
    errors = lint_objects(project.root, [old] if old else [], made, env) if made else []
    text = ""
    if not origin.is_spec:
        text = "---\n".join(map(to_yaml, made))
    elif not done.problems:
        text = rewrite_job(job.file, job.position, done.document)
    found = _compare_text(origin, done, kind, text, project) if text else []
    verdict = judge((*done.differences, *found), done.notes, accepted)
    advice = [*(overlaid.advice if found else ()), *suggest_platform(project, waiting, kind.platform)]
    same = "" if verdict.differences or errors else f"{where}: {_describe_same(done.notes)}"
    report = _format_report(origin, done, kind, env, (*errors, *map(str, verdict.differences), *advice), same, waiting)
    why = [*done.problems, *([verdict.advice] if verdict.is_refused and not done.problems else ())]
    report += "".join(f"{where}: not migrated: {visible(reason)}\n" for reason in why)
    name = job.document.name if done.problems or not origin.is_spec else job.document.sweep or job.document.name
    if done.problems:
        return MigrationOutput(name, "", report)
    lost = list_lost_fields(done.notes)
    return MigrationOutput(name, text, report, lost, tuple(errors), verdict, job, tuple(waiting), same)


def _describe_same(notes: Sequence[MigrationNote]) -> str:
    lost = sum(note.change == "lost" for note in notes)
    except_lost = f"except for {pluralize(lost, 'lost field')}, " if lost else ""
    return f"{except_lost}pods, processes, resources, images, commands, mounts and env are the same"


def find_overlaid(origin: MigrationSource, kind: Kind, project: ProjectConfig) -> Overlaid:
    """Return what the migration of a job must write into it, because its overlays do not set it for the new kind."""
    if not origin.is_spec or not _is_in_repository(origin.job, project):
        return Overlaid(NOTHING_ABSORBED, ())
    layers = list_bound_layers(origin.job, project, origin.kind, kind)
    found = _find_kinds(origin.job, project, project.environments(), [])
    absorbed = absorb(layers, [each.surroundings.env for each in found if each.kind is origin.kind], kind)
    return Overlaid(absorbed, tuple(dict.fromkeys(explain_layers(layers, absorbed, kind))))


def _list_waiting(origin: MigrationSource, kind: Kind, project: ProjectConfig) -> list[str]:
    """Return the environments that render a job today, and whose cluster has not the platform of its new kind."""
    if not origin.is_spec or not _is_in_repository(origin.job, project):
        return []
    found = _find_kinds(origin.job, project, project.environments(), [])
    return list_waiting(project, ((each.surroundings.env, each.kind) for each in found), (origin.kind, kind))


def _find_fault(origin: MigrationSource, project: ProjectConfig) -> str:
    """Return why a spec cannot be rendered today, so that nothing can be compared with it; empty if it can."""
    if not origin.is_spec:
        return ""
    expander = origin.expander or renderer_for(origin.kind.platform, project.kinds)
    problems: list[Problem] = []
    for job in list_members(origin.job, project) if origin.job.document.sweep else [origin.job]:
        patches = expander.environment.patches_for(expander.attributes(job.document))
        build_objects(job.document, expander, patches, problems, [])
    return str(problems[0].sentence) if problems else ""


def _compare_text(
    origin: MigrationSource, done: MigratedJob, kind: Kind, text: str, project: ProjectConfig
) -> list[NamedDifference]:
    """Compare a migrated spec with the old one in the environments that have both platforms."""
    job = origin.job
    if not origin.is_spec or not _is_in_repository(job, project):
        return []
    jobs = list_members(job, project) if job.document.sweep else [job]
    frameworks = origin.framework, target_framework(origin.framework, kind)
    files = {job.file.path: replace_documents(job.file, {job.position: text})}
    found = compare_in_environments(project, jobs, (origin.kind, kind), frameworks, files, done.notes)
    return _leave_known(found, done.differences)


def _migrate_document(
    origin: MigrationSource, kind: Kind, size: int, project: ProjectConfig, absorbed: Absorbed
) -> MigratedJob | str:
    """Migrate a job, or a sweep of that size; a text says why that is impossible."""

    def migrate(document: dict[str, Any]) -> MigratedJob:
        notes = tuple(absorbed.list_notes(document, origin.kind))
        own = absorbed.apply(document)
        around = origin.surroundings._replace(absorbed=frozenset(note.field for note in notes))
        done = migrate_job(own, origin.kind, kind, origin.framework, project.kinds, around)
        known = {note.field for note in done.notes}
        return done._replace(notes=(*(note for note in notes if note.field not in known), *done.notes))

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
            problems += (f"{where}{problem.sentence}" for problem in own_problems)
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


def find_preferred(origin: MigrationSource, kind: Kind, project: ProjectConfig) -> str | None:
    """Return the platform that a cluster prefers to that of the new kind; empty if all prefer the new one.

    None if no cluster that runs the job has the new one.
    """
    if origin.expander is None:
        return None
    document = origin.job.document
    spec = {"framework": target_framework(origin.framework, kind)}
    moved = document._replace(data={**document.data, "spec": spec})
    own = [
        each.expander
        for each in _find_kinds(origin.job, project, project.environments(), [])
        if each.kind is origin.kind and each.expander is not None
    ]
    ready = [each for each in own if kind.platform in each.environment.cluster.list_platforms()]
    chosen = [each.attributes(moved).platform for each in ready]
    return next((each for each in chosen if each != kind.platform), "") if ready else None


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


def _format_report(
    origin: MigrationSource,
    done: MigratedJob,
    kind: Kind,
    env: str,
    faults: Sequence[str],
    same: str,
    waiting: Sequence[str],
) -> str:
    """Return the report: one line for each field, with its location, and the comparison of the pods."""
    job = origin.job
    where = f"{job.file.path}:{job.start().line}"
    way = f"{origin.kind.name} ({origin.kind.platform}) to {kind.name} ({kind.platform})"
    is_elsewhere = origin.is_spec and kind.platform != origin.kind.platform
    if is_elsewhere and not any(waiting) and not _is_rendered(origin, done, kind):
        way += f"; it needs an overlay with `cluster: {{platform: {kind.platform}}}`"
    if env:
        way += f"; overlay `{env}` has {kind.operator} {origin.surroundings.target_version}"
    lines = [f"{where}: `{job.document.sweep or job.document.name}`: {way}"]
    for entry in done.notes:
        line = job.start().line
        if origin.is_spec:
            line = find_line(job.traced_document().data["spec"], entry.field, line)
        lines.append(f"{job.file.path}:{line}: {entry}")
    lines += (f"{where}: {each}" for each in faults)
    lines += [same] if same else []
    if (origin.kind.name, kind.name) == ("PyTorchJob", "TrainJob") and any(
        note.change == "lost" for note in done.notes
    ):
        lines.append(
            f"{where}: `--runtimes`, or `--all` for the whole repository, writes runtimes that keep what is lost"
        )
    return "".join(f"{visible(line)}\n" for line in lines)
