"""Migrate all jobs of a repository: specs, sweeps and manifests, their runtimes, and the overlays."""

from __future__ import annotations

import copy
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, count
from types import MappingProxyType
from typing import Any

from jobgen.features.convert.importing.collect import ImportedSpec, import_manifest
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.importing.verify import create_patch, render_spec, renderer_for
from jobgen.features.convert.migrate.draft import (
    BuiltRuntime,
    MigrationNote,
    Surroundings,
    find_line,
    pop_path,
    replace_documents,
)
from jobgen.features.convert.migrate.migrate_job import MigratedJob, migrate_job, migrate_sweep
from jobgen.features.convert.migrate.runtime import (
    KIND,
    RUNTIME_VERSION,
    RuntimeUser,
    build_runtime,
    choose_shape,
    name_runtimes,
    refer_to_runtime,
)
from jobgen.features.convert.migrate.steps import LayerMigration, LayerNote, PatchUse, migrate_overlay, set_platform
from jobgen.model.data import API_VERSION, untraced
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import is_spec, split_list
from jobgen.rendering.config import ProjectConfig, read_documents, read_traced
from jobgen.rendering.environment import EnvironmentRunner, new_overlay_use
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import WHOLE, Job
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import File
from jobgen.repo.root import SETTINGS
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.commented import format_document
from jobgen.yamlio.write import to_yaml

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
    """True if an environment of another platform renders it to another kind, which stays as it is."""

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


def find_free_path(root: Folder, folder: str, name: str, taken: Container[str] = ()) -> str:
    """The path of a new file: with a number if the repository has such a file, which may hold something else."""
    for stem in chain([name], (f"{name}-{number}" for number in count(2))):
        path = f"{folder}/{stem}.yaml"
        # A link that leads nowhere exists, too.
        if path not in taken and not (root / path).exists() and not (root / path).is_symlink():
            break
    return path


_OVERLAY_FILE = "runtimes"


def change_layers(
    files: dict[str, str],
    done: Sequence[MigratedDocument],
    project: ProjectConfig,
    runners: Runners,
    migration: LayerMigration,
) -> list[tuple[str, LayerNote]]:
    """Change the overlays and settings; return the notes, each with its file and line."""
    if not done:
        return []
    uses, others = _find_uses(done, project, runners)
    notes: list[tuple[str, LayerNote]] = []
    platforms: set[str] = set()
    places: dict[str, int] = {}
    for overlay, file in layout.read_overlays(project.layers):
        if overlay not in others:
            continue
        changed: dict[int, Fields | str] = {}
        for position, document in enumerate(read_documents(file, []).documents):
            first = places.get(overlay, 0)
            spec: Any = document.data["spec"]
            count = len(spec.get("patches", ()))
            own = [uses.get((overlay, place), PatchUse()) for place in range(first, first + count)]
            places[overlay] = first + count
            found: list[LayerNote] = []
            new = migrate_overlay(spec, migration, own, others[overlay], found)
            if not {"platform", "platforms"}.isdisjoint(new.get("cluster", {})):
                platforms.add(overlay)
                old, target = migration.source.platform, migration.target.platform
                new["cluster"] = set_platform(new["cluster"], old, target, is_mixed=bool(others[overlay]))
            if new != spec:
                changed[position] = {**document.data, "spec": new}
            notes += ((f"{file.path}:{_find_layer_line(file, position, each)}", each) for each in found)
        if changed:
            files[file.path] = replace_documents(file, changed)
    _add_platforms(files, project, runners, others, platforms, migration)
    for env in runners:
        add_patches(files, project.root, env, [*_list_runtime_patches(env, done), *_list_job_patches(env, done)])
    return notes


def _find_uses(
    done: Sequence[MigratedDocument], project: ProjectConfig, runners: Runners
) -> tuple[dict[tuple[str, int], PatchUse], dict[str, frozenset[str]]]:
    """The jobs of each patch; and the overlays of environments with migrated jobs, with the kinds that stay.

    An overlay may be shared with an environment of which all jobs stay.
    """
    moved = {(each.source.jobs[0].file.path, each.source.jobs[0].position): each for each in done}
    uses: dict[tuple[str, int], PatchUse] = {}
    staying_by_env: dict[str, frozenset[str]] = {}
    changed: set[str] = set()
    for env, runner in runners.items():
        staying: set[str] = set()
        has_moved = False
        for job in read_jobs(layout.find_jobs(project.root), project.kinds, []):
            patches = runner.patches_for(job)
            if patches is None:
                continue
            document = moved.get((job.file.path, job.position))
            is_moved = document is not None and env in document.source.rendered
            has_moved = has_moved or is_moved
            name = runner.attributes(job).kind
            # Only specs have defaults; other objects are not even jobs.
            staying |= set() if is_moved or not name or not is_spec(job.document.data) else {name}
            for patch in patches:
                use = uses.get((patch.overlay, patch.place), PatchUse())
                own = frozenset([job.document.name if is_moved else name])
                if document is not None and is_moved:
                    split = use.split | own if document.built[""][0].roles_differ else use.split
                    use = use._replace(migrated=use.migrated | own, split=split)
                else:
                    use = use._replace(others=use.others | own)
                uses[patch.overlay, patch.place] = use
        staying_by_env[env] = frozenset(staying)
        changed.update(list_ancestors(env, project.overlays) if has_moved else ())
    chains = {env: list_ancestors(env, project.overlays) for env in runners}
    others = {
        overlay: frozenset(kind for env in runners if overlay in chains[env] for kind in staying_by_env[env])
        for overlay in changed
    }
    return uses, others


def _find_layer_line(file: File, position: int, note: LayerNote) -> int:
    document = read_traced(file)[position]
    return find_line(document.data["spec"], note.path, document.location.line)


def _add_platforms(
    files: dict[str, str],
    project: ProjectConfig,
    runners: Runners,
    others: Mapping[str, frozenset[str]],
    platforms: set[str],
    migration: LayerMigration,
) -> None:
    """Declare the platform where no overlay does: in the settings, or in the overlay of each environment."""
    old, new = migration.source.platform, migration.target.platform
    cluster = untraced(dict(project.settings.get("cluster", {})))
    if "" in runners or "platform" in cluster or "platforms" in cluster:
        settings: Fields = untraced(dict(project.settings))
        settings["cluster"] = set_platform(cluster, old, new, is_mixed=any(others.values()))
        file = layout.read_settings(project.layers)
        documents = read_documents(file, []).documents if file else ()
        text = replace_documents(file, {0: settings}) if file and documents else format_document(settings)
        files[SETTINGS] = text
        return
    for env in runners:
        chain = list_ancestors(env, project.overlays)
        if env not in others or platforms & set(chain):
            continue
        for overlay, file in layout.read_overlays(project.layers):
            if overlay == env:
                content = files.get(file.path)
                current = file._replace(content=content.encode()) if content is not None else file
                data: Any = read_documents(current, []).documents[0].data
                spec = {"cluster": set_platform(data["spec"].get("cluster", {}), old, new, is_mixed=bool(others[env]))}
                files[file.path] = replace_documents(current, {0: {**data, "spec": {**spec, **data["spec"], **spec}}})
                break


def add_patches(files: dict[str, str], root: Folder, env: str, patches: Sequence[Fields]) -> None:
    """Add patches to the new file of an environment that has those of the migration.

    They have what environments change of runtimes, and of numbers of nodes in variables.
    """
    path = find_free_path(root, f"overlays/{env}", _OVERLAY_FILE)
    if patches and env:
        overlay: Fields = {"apiVersion": API_VERSION, "kind": "Overlay", "metadata": {"name": env}}
        old = read_documents(File(path, files[path].encode()), []).documents if path in files else ()
        spec: Any = old[0].data["spec"] if old else {"patches": []}
        files[path] = format_document({**overlay, "spec": {"patches": [*spec["patches"], *patches]}})


def _list_runtime_patches(env: str, done: Sequence[MigratedDocument]) -> Iterator[Fields]:
    found: dict[str, tuple[Fields, list[str]]] = {}
    for each in done:
        if env in each.built:
            patch = create_patch(each.built[""][0].spec, each.built[env][0].spec)
            names = found.setdefault(json.dumps(patch, sort_keys=True), (patch, []))[1]
            names += [each.runtime] if patch and each.runtime not in names else []
    for patch, names in found.values():
        if names:
            yield {"match": {"kinds": [KIND], "names": names}, "manifest": {"spec": patch}}


def _list_job_patches(env: str, done: Sequence[MigratedDocument]) -> Iterator[Fields]:
    """Patches for jobs: numbers of nodes in variables, and the runtime if other environments have none."""
    for each in done:
        for place, own in zip(each.source.places.get(env, ()), each.built.get(env, ()), strict=False):
            job, base = each.source.jobs[place], each.built[""][place]
            merge: Fields = {}
            if base.env != own.env:
                merge["env"] = {variable["name"]: variable["value"] for variable in own.env}
            if each.source.has_other_kinds:
                merge[each.framework] = {"runtime": each.runtime}
            if merge:
                yield {"match": {"names": [job.document.name]}, "merge": merge}


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
    jobs = list(read_jobs(layout.find_jobs(project.root), project.kinds, findings))
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
    # Jobs that share a runtime have equal ones.
    new = {each.runtime: each for each in done if each.runtime not in project.runtimes}
    for name, document in new.items():
        manifest: Fields = {
            "apiVersion": RUNTIME_VERSION,
            "kind": KIND,
            "metadata": {"name": name},
            "spec": document.built[""][0].spec,
        }
        files[find_free_path(project.root, "runtimes", name, files)] = format_document(manifest)
    layers = LayerMigration(source, target, route.framework, route.version, _list_injected(done))
    notes = change_layers(files, done, project, runners, layers)
    return RepositoryMigration(
        files, tuple(documents), tuple(staying), tuple(job for job, _ in pinned), tuple(notes), tuple(findings), route
    )


def _is_listed(job: Job) -> bool:
    """Return True if a job is an item of a List."""
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
