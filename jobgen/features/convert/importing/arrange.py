"""Arrange imported jobs in files, and write the overlays that select each of them for its platform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from glob import escape
from typing import Any

from jobgen.features.convert.importing.extract_overlay import build_overlay, extract_overlay
from jobgen.features.convert.importing.format_yaml import format_document
from jobgen.features.convert.importing.import_job import ImportedSpec, rewrite_document
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.config import ProjectConfig
from jobgen.render.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.spec.overlay import DEFAULT_PLATFORM


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
