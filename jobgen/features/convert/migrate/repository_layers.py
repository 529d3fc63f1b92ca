"""Change the layers of a repository: overlays and settings for the new platform, and patches of runtimes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.importing.format_yaml import format_document
from jobgen.features.convert.importing.patch import create_patch
from jobgen.features.convert.migrate.new_files import find_free_path
from jobgen.features.convert.migrate.overlays import LayerMigration, LayerNote, PatchUse, migrate_overlay, set_platform
from jobgen.features.convert.migrate.repository_jobs import MigratedDocument, Runners
from jobgen.features.convert.migrate.rewrite import find_line, replace_documents
from jobgen.features.convert.migrate.runtime import KIND
from jobgen.model.data import API_VERSION, untraced
from jobgen.render.config import ProjectConfig, read_documents, read_traced
from jobgen.render.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import File
from jobgen.repo.root import SETTINGS
from jobgen.spec.overlay import list_ancestors

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
    for overlay, file in layout.read_overlays(project.root):
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
            if _declares_platform(new):
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


def _declares_platform(spec: Fields) -> bool:
    return not {"platform", "platforms"}.isdisjoint(spec.get("cluster", {}))


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
        for job in read_jobs(layout.find_jobs(project.root), project.frameworks, []):
            patches = runner.patches_for(job)
            if patches is None:
                continue
            document = moved.get((job.file.path, job.position))
            is_moved = document is not None and env in document.source.rendered
            has_moved = has_moved or is_moved
            name = runner.attributes(job).kind
            staying |= set() if is_moved or not name else {name}
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
        file = layout.read_settings(project.root)
        documents = read_documents(file, []).documents if file else ()
        text = replace_documents(file, {0: settings}) if file and documents else format_document(settings)
        files[SETTINGS] = text
        return
    for env in runners:
        chain = list_ancestors(env, project.overlays)
        if env not in others or platforms & set(chain):
            continue
        for overlay, file in layout.read_overlays(project.root):
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
