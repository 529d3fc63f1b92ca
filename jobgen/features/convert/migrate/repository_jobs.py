"""Migrate the documents of jobs/: find those of a kind, build their runtimes, and convert them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.importing.import_job import ImportedSpec, import_manifest
from jobgen.features.convert.importing.verify import render_spec, renderer_for
from jobgen.features.convert.migrate.draft import BuiltRuntime, MigrationNote, Surroundings, pop_path
from jobgen.features.convert.migrate.migrate_job import MigratedJob, migrate_job
from jobgen.features.convert.migrate.migrate_sweep import migrate_sweep
from jobgen.features.convert.migrate.rewrite import find_line
from jobgen.features.convert.migrate.runtime import build_runtime, choose_shape
from jobgen.features.convert.migrate.runtime_names import RuntimeUser, name_runtimes
from jobgen.model.data import untraced
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.build import is_spec
from jobgen.render.config import ProjectConfig, read_documents
from jobgen.render.environment import EnvironmentRunner, new_overlay_use
from jobgen.render.trace import WHOLE, Job
from jobgen.spec.kinds import Kind

Runners = Mapping[str, EnvironmentRunner]


class Route(NamedTuple):
    """From which kind to which, and the version of the new operator."""

    source: Kind
    target: Kind
    framework: str
    version: str


class SourceJob(NamedTuple):
    """A document of jobs/: its jobs, of which a sweep has several, and the object of each in each environment."""

    jobs: tuple[Job, ...]
    document: Fields
    base: tuple[Fields, ...]
    """The objects without overlays."""
    rendered: Mapping[str, tuple[Fields, ...]]
    """The objects by environment; one may lack some members of a sweep."""
    places: Mapping[str, tuple[int, ...]]
    """The number of the job of each of these objects."""
    has_other_kinds: bool = False
    """Whether an environment of another platform renders it to another kind, which stays as it is."""

    @property
    def name(self) -> str:
        """The name of the job or the sweep."""
        return self.jobs[0].document.sweep or self.jobs[0].document.name

    def list_rendered(self, env: str) -> Iterator[tuple[Job, Fields]]:
        """The jobs that an environment renders, with their objects."""
        return zip((self.jobs[place] for place in self.places[env]), self.rendered[env], strict=True)

    @property
    def where(self) -> str:
        """The file and line of the document."""
        return f"{self.jobs[0].file.path}:{self.jobs[0].start().line}"


class MigratedDocument(NamedTuple):
    """A document that was migrated, or the reason why it was not."""

    source: SourceJob
    runtime: str
    built: Mapping[str, tuple[BuiltRuntime, ...]]
    """The runtime of each job by environment; `""` without overlays."""
    result: MigratedJob | str
    framework: str = ""


def find_version(runners: Runners, target: Kind) -> str:
    """The first declared version of the new operator."""
    declared = (runner.expander.environment.cluster.operators.get(target.operator) for runner in runners.values())
    return str(next(filter(None, declared), ""))


def collect_sources(
    jobs: Sequence[Job], project: ProjectConfig, runners: Runners, kind: Kind
) -> tuple[list[SourceJob], list[Job]]:
    """The documents to migrate, and the jobs that stay as they are in an environment."""
    groups: dict[tuple[str, int, int], list[Job]] = {}
    for job in jobs:
        # The members of a sweep are one document, the items of a List are not.
        groups.setdefault((job.file.path, job.position, max(job.item, WHOLE)), []).append(job)
    sources: list[SourceJob] = []
    staying: list[Job] = []
    for group in groups.values():
        found = {env: _render(group, runner) for env, runner in runners.items()}
        rendered = {env: tuple(made.values()) for env, made in found.items()}
        places = {env: tuple(made) for env, made in found.items()}
        own = {env: made for env, made in rendered.items() if made and all(_is_of_kind(each, kind) for each in made)}
        if own:
            document: Any = untraced(group[0].document.data)
            if group[0].document.sweep:
                document = read_documents(group[0].file, []).documents[group[0].position].data
            base = tuple(_render_alone(job, project, kind) for job in group)
            others = any(made for env, made in rendered.items() if env not in own)
            sources.append(SourceJob(tuple(group), document, base, own, places, others))
        if len(own) < sum(map(bool, rendered.values())) or not own:
            staying += group
    return sources, staying


def _is_of_kind(obj: Mapping[str, Any], kind: Kind) -> bool:
    return kind.describes(str(obj.get("apiVersion")), str(obj.get("kind")))


def _render(jobs: Sequence[Job], runner: EnvironmentRunner) -> dict[int, Fields]:
    """The objects of some jobs in an environment, by the number of the job."""
    found: dict[int, Fields] = {}
    for number, job in enumerate(jobs):
        patches = runner.patches_for(job)
        made = runner.build_objects(job, patches, new_overlay_use()) if patches is not None else []
        if made:
            plain: Any = untraced(made[0].object)
            found[number] = plain
    return found


def _render_alone(job: Job, project: ProjectConfig, kind: Kind) -> Fields:
    """The object of a job without overlays; what keeps it from being complete does not matter here."""
    if not is_spec(job.document.data):
        plain: Any = untraced(job.document.data)
        return dict(plain)
    document: Any = untraced(job.document.data)
    made, _ = render_spec(document, renderer_for(kind.platform, project.kinds), alone=False)
    return made or {}


def migrate_documents(
    sources: Sequence[SourceJob],
    project: ProjectConfig,
    runners: Runners,
    route: Route,
    *,
    by_namespace: bool = False,
    preferred: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> list[MigratedDocument]:
    """Migrate documents. Those whose runtimes are equal share one; with `by_namespace`, only within a namespace.

    `preferred` has the platforms that clusters use for jobs, by file and position, that do not name the new one.
    """
    built = [_build_runtimes(source, runners, route) for source in sources]
    users = [
        RuntimeUser(source.name, source.jobs[0].file.path, source.base[0], _list_specs(source, each, by_namespace))
        for source, each in zip(sources, built, strict=True)
        if not isinstance(each, str)
    ]
    existing: Any = untraced(dict(project.runtimes))
    names = iter(name_runtimes(users, existing))
    found: list[MigratedDocument] = []
    for source, each in zip(sources, built, strict=True):
        if isinstance(each, str):
            found.append(MigratedDocument(source, "", {}, each))
            continue
        name = next(names)
        other = preferred.get((source.jobs[0].file.path, source.jobs[0].position), "")
        surroundings = Surroundings(target_version=route.version, preferred=other)
        result = _migrate(source, each[""], name, project, route, surroundings)
        if source.has_other_kinds and not isinstance(result, str):
            # Other kinds have no runtime; overlays name it where there is one.
            pop_path(result.document, ("spec", route.framework, "runtime"))
        found.append(MigratedDocument(source, name, each, result, route.framework))
    return found


def _list_specs(source: SourceJob, built: Mapping[str, tuple[BuiltRuntime, ...]], by_namespace: bool) -> dict[str, Any]:
    """What must be equal so that jobs can share a runtime: its spec in each environment, and maybe its namespace."""
    specs: dict[str, Any] = {env: made[0].spec for env, made in built.items()}
    namespace = source.base[0].get("metadata", {}).get("namespace", "")
    return {**specs, "namespace/": namespace} if by_namespace and not is_spec(source.document) else specs


def _build_runtimes(source: SourceJob, runners: Runners, route: Route) -> dict[str, tuple[BuiltRuntime, ...]] | str:
    """The runtime of each job without overlays and in each environment, all in the same form."""
    form = choose_shape([*source.base, *(each for made in source.rendered.values() for each in made)], route.version)
    found: dict[str, tuple[BuiltRuntime, ...]] = {}
    for env, objects in {"": source.base, **source.rendered}.items():
        operators = runners[env].expander.environment.cluster.operators if env in runners else {}
        own = str(operators.get(route.target.operator, route.version))
        built = [build_runtime(each, route.target, own, form) for each in objects]
        for each in built:
            if isinstance(each, str):
                return each
        made = tuple(each for each in built if not isinstance(each, str))
        if any(each.spec != made[0].spec for each in made):
            return "its members need different runtimes; write them as jobs of their own"
        found[env] = made
    return found


def _migrate(
    source: SourceJob,
    built: tuple[BuiltRuntime, ...],
    name: str,
    project: ProjectConfig,
    route: Route,
    surroundings: Surroundings,
) -> MigratedJob | str:
    kind = route.source
    numbers = {json.dumps(source.base[index]["spec"], sort_keys=True): each for index, each in enumerate(built)}

    def migrate(document: dict[str, Any]) -> MigratedJob:
        # The variables of a member hold its own number of nodes.
        made, _ = render_spec(document, renderer_for(kind.platform, project.kinds), alone=False)
        own = numbers.get(json.dumps((made or {}).get("spec"), sort_keys=True), built[0])
        around = surroundings._replace(runtime=own._replace(name=name))
        return migrate_job(document, kind, route.target, route.framework, project.kinds, around)

    if source.jobs[0].document.sweep:
        keeps_counts = not built[0].env and not built[0].roles_differ
        return migrate_sweep(source.document, len(source.jobs), migrate, keeps_counts=keeps_counts)
    if is_spec(source.document):
        done = migrate({**source.document, "spec": copy.deepcopy(source.document["spec"])})
    else:
        imported = import_manifest(source.document, kind, project.kinds)
        if not isinstance(imported, ImportedSpec):
            return "no spec renders to exactly this object; `jobgen import` shows why"
        done = migrate(imported.document)
    return done


def list_notes(document: MigratedDocument) -> Iterator[tuple[int, MigrationNote]]:
    """The notes of a document, each with the line of its field."""
    job = document.source.jobs[0]
    notes = document.result.notes if not isinstance(document.result, str) else ()
    for note in notes:
        if is_spec(document.source.document):
            yield find_line(job.traced_document().data["spec"], note.field, job.start().line), note
        else:
            yield job.start().line, note
