"""Arrange imported jobs in files, and write the overlays that select each of them for its platform."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from glob import escape
from typing import Any, NamedTuple

from jobgen.features.convert.importing.comments import format_document
from jobgen.features.convert.importing.common_fields import Fields, with_types
from jobgen.features.convert.importing.import_job import ImportedSpec, rewrite_document
from jobgen.features.convert.importing.verify import SpecRenderer, is_equivalent, render_spec
from jobgen.model.data import API_VERSION, Plain
from jobgen.model.finding import Problem
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.expand import Expander
from jobgen.rendering.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import DEFAULT_PLATFORM, Overlay, compose_environment

# Fields that identify a job, and fields that are merged later, so that the order would matter.
_NOT_SHARED = frozenset(("framework", "replicas", "roles", "manifest", "podTemplate", "description"))


def extract_overlay(
    name: str, platform: str, jobs: Sequence[ImportedSpec], kinds: Sequence[Kind]
) -> tuple[dict[str, Plain], list[dict[str, Plain]]]:
    """An overlay with the fields that the jobs share, and the jobs without them; each field is verified."""
    documents: list[Fields] = [copy.deepcopy(job.document) for job in jobs]
    overlay: Fields = build_overlay(name, platform, [job.name for job in jobs])
    for field, value in _find_shared_fields(documents):
        new_overlay = _with_field(overlay, field, value)
        new_documents = [_without_field(each, field, value) for each in documents]
        pairs = zip(new_documents, jobs, strict=True)
        if all(_renders_to_manifest(new_overlay, name, document, job, kinds) for document, job in pairs):
            overlay, documents = new_overlay, new_documents
    return overlay, documents


def build_overlay(name: str, platform: str, jobs: Sequence[str]) -> dict[str, Plain]:
    """An overlay that selects some jobs for a platform."""
    spec: Plain = {"cluster": {"platform": platform}, "jobs": {"names": sorted(set(jobs))}}
    return {"apiVersion": API_VERSION, "kind": "Overlay", "metadata": {"name": name}, "spec": spec}


def _find_shared_fields(documents: list[Fields]) -> list[tuple[str, Any]]:
    """The fields, and the parts of maps, that all jobs share; also the namespace."""
    found: list[tuple[str, Any]] = []
    namespaces = [document["metadata"].get("namespace") for document in documents]
    if namespaces[0] is not None and len(set(namespaces)) == 1:
        found.append(("namespace", namespaces[0]))
    first, *others = (document["spec"] for document in documents)
    for field, value in first.items():
        if field in _NOT_SHARED or value is None or not all(field in other for other in others):
            continue
        part = _find_shared_part(value, [other[field] for other in others], field)
        if part is not None:
            found.append((field, part))
    return found


def _find_shared_part(value: Any, others: list[Any], field: str) -> Any:
    """The value if all jobs have it; of maps, the entries that all jobs have."""
    if all(with_types(value) == with_types(other) for other in others):
        return value
    if field == "resources" or not all(isinstance(each, dict) for each in (value, *others)):
        return None
    entries = {key: each for key, each in value.items() if each is not None}
    return {key: each for key, each in entries.items() if all(_has(other, key, each) for other in others)} or None


def _has(mapping: Fields, key: str, value: Any) -> bool:
    return key in mapping and with_types(mapping[key]) == with_types(value)


def _with_field(overlay: Fields, field: str, value: Any) -> Fields:
    spec = overlay["spec"]
    if field == "namespace":
        return {**overlay, "spec": {**spec, "namespace": value}}
    return {**overlay, "spec": {**spec, "defaults": {**spec.get("defaults", {}), field: value}}}


def _without_field(document: Fields, field: str, value: Any) -> Fields:
    if field == "namespace":
        metadata = {key: each for key, each in document["metadata"].items() if key != field}
        return {**document, "metadata": metadata}
    own = document["spec"][field]
    rest = {key: each for key, each in own.items() if key not in value} if isinstance(own, dict) else None
    # The rest of a map keeps its position.
    spec = {key: rest if key == field else each for key, each in document["spec"].items() if key != field or rest}
    return {**document, "spec": spec}


def _renders_to_manifest(
    overlay: Fields, name: str, document: dict[str, Plain], job: ImportedSpec, kinds: Sequence[Kind]
) -> bool:
    environment = compose_environment(name, {name: Overlay(name, (overlay["spec"],))}, [])
    rendered, problems = render_spec(document, SpecRenderer(Expander(environment, list(kinds))))
    return not problems and is_equivalent(rendered, job.manifest)


class OtherObject(NamedTuple):
    """An object of another kind, which is copied: the name of its file, its own name, and its text."""

    stem: str
    name: str
    text: str


class Arrangement(NamedTuple):
    """The files to write, and the texts and the files of the imported objects in order."""

    files: dict[str, str]
    texts: list[str]
    paths: list[str]


class _Placed(NamedTuple):
    """An object in a file: `platform` is that of the overlay that selects it, empty if none of the new ones does."""

    stem: str
    name: str
    text: str
    platform: str


def arrange_files(
    specs: Sequence[ImportedSpec],
    others: Sequence[OtherObject],
    project: ProjectConfig,
    folder: str = "jobs",
    *,
    factor: bool = False,
) -> Arrangement:
    """Return `jobs/<name>.yaml` and `overlays/<env>/overlay.yaml`; `folder` is what `jobs` is called in the repository.

    Objects of the same name share a file, unless different overlays select them.
    """
    texts = {id(spec): spec.text for spec in specs}
    overlays = _make_overlays(specs, project, texts, factor=factor)
    placed = [*_place_specs(specs, overlays, texts, project), *_place_others(others, overlays)]
    files: dict[str, str] = {}
    paths = _choose_paths(placed)
    for each, path in zip(placed, paths, strict=True):
        files[path] = f"{files[path]}---\n{each.text}" if path in files else each.text
    for platform, overlay in overlays.items():
        _select(overlay, platform, placed, [f"{folder}/{path.removeprefix('jobs/')}" for path in paths])
        files[f"overlays/{overlay['metadata']['name']}/overlay.yaml"] = format_document(overlay)
    return Arrangement(files, [texts[id(spec)] for spec in specs], paths[: len(specs)])


def _make_overlays(
    specs: Sequence[ImportedSpec], project: ProjectConfig, texts: dict[int, str], *, factor: bool
) -> dict[str, Any]:
    """Return the new overlay of each platform that needs one; with `factor`, fields move there from the texts."""
    platforms = list(dict.fromkeys(spec.kind.platform for spec in specs if spec.is_spec))
    declared = find_platforms(project)
    overlays: dict[str, Any] = {}
    for platform in platforms:
        jobs = [spec for spec in specs if spec.is_spec and spec.kind.platform == platform]
        if factor and len(jobs) > 1:
            name = "imported" if len(platforms) == 1 else f"imported-{platform}"
            overlays[platform], reduced = extract_overlay(name, platform, jobs, project.kinds)
            texts.update(
                (id(job), rewrite_document(job.text, document))
                for job, document in zip(jobs, reduced, strict=True)
                if document != job.document
            )
        elif platform not in declared and (project.overlays or set(platforms) != {DEFAULT_PLATFORM}):
            # If there is any overlay, jobs of Kubeflow need one too; it also lists the existing jobs.
            existing = _find_job_names(project) if platform == DEFAULT_PLATFORM and not project.overlays else []
            overlays[platform] = build_overlay(platform, platform, [*existing, *(job.name for job in jobs)])
    return overlays


def _place_specs(
    specs: Sequence[ImportedSpec], overlays: Mapping[str, Any], texts: Mapping[int, str], project: ProjectConfig
) -> Iterable[_Placed]:
    for spec in specs:
        if spec.is_spec:
            yield _Placed(spec.name, spec.name, texts[id(spec)], spec.kind.platform)
        else:
            # Without overlays all objects are selected; with the first one, only those that it lists.
            platform = "" if project.overlays else _choose_overlay(overlays, spec.kind.platform)
            yield _Placed(spec.name, _find_name(spec), texts[id(spec)], platform)


def _place_others(others: Sequence[OtherObject], overlays: Mapping[str, Any]) -> Iterable[_Placed]:
    platform = _choose_overlay(overlays)
    return (_Placed(each.stem, each.name, each.text, platform) for each in others)


def _choose_overlay(overlays: Mapping[str, Any], platform: str = "") -> str:
    """Return the platform whose overlay selects an object that is no job: its own, or else the first."""
    return platform if platform in overlays else next(iter(overlays), "")


def _choose_paths(placed: Sequence[_Placed]) -> list[str]:
    """Return the path of each object; those of one name get a folder for each platform if they have several."""
    platforms: dict[str, set[str]] = {}
    for each in placed:
        platforms.setdefault(each.stem, set()).add(each.platform)
    return [
        f"jobs/{each.platform}/{each.stem}.yaml"
        if each.platform and len(platforms[each.stem]) > 1
        else f"jobs/{each.stem}.yaml"
        for each in placed
    ]


def _select(overlay: Any, platform: str, placed: Sequence[_Placed], paths: Sequence[str]) -> None:
    """Let an overlay select its objects by name, except for those of other overlays with the same name."""
    names = {*overlay["spec"]["jobs"]["names"], *(each.name for each in placed if each.platform == platform)}
    # Both are patterns, and the name of a folder or of a manifest may hold `*` or `[`.
    overlay["spec"]["jobs"] = {"names": sorted(map(escape, names))}
    pairs = zip(placed, paths, strict=True)
    excluded = sorted({path for each, path in pairs if each.platform != platform and each.name in names})
    if excluded:
        overlay["spec"]["jobs"]["exclude"] = {"paths": list(map(escape, excluded))}


def _find_name(spec: ImportedSpec) -> str:
    """Return the name of a manifest that stays as it is, which need not be that of its file."""
    metadata = spec.document["metadata"]
    return str(metadata.get("name", spec.name)) if isinstance(metadata, dict) else spec.name


def _find_job_names(project: ProjectConfig) -> list[str]:
    """Return the names of the existing jobs."""
    return [job.document.name for job in read_jobs(layout.find_jobs(project.root), project.frameworks, [])]


def find_platforms(project: ProjectConfig) -> set[str]:
    """Return the platforms of the environments."""
    problems: list[Problem] = []
    return {project.environment(name, problems).cluster.platform for name in project.overlays}
