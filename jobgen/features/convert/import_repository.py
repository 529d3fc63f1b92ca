"""Plan what an import writes to a repository: specs that fit its overlays, proven to render to the manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jobgen.features.convert.importing.arrange import (
    Arrangement,
    PlacedObject,
    arrange_files,
    find_platforms,
    needs_new_overlays,
)
from jobgen.features.convert.importing.collect import ImportedManifest, ImportedSpec, SkippedManifest
from jobgen.features.convert.importing.fit import Misfit, find_unserved, fit_spec, list_added, name_platform
from jobgen.features.convert.importing.prove import Breach, Promise, prove_files
from jobgen.model.data import Location, Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import identity_of
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.reports.escape import visible

_MAX_SHOWN = 8


class Destination(NamedTuple):
    """Where imported jobs go."""

    root: Path
    """The repository, or the folder that becomes one."""
    project: ProjectConfig
    folder: str = "jobs"
    """The path of the folder of the jobs, from there."""
    is_rendered: bool = True
    """False if the folder is not in `jobs/` of a repository, so that no overlay applies to it."""
    replaced: tuple[str, ...] = ()
    """The real paths of the manifests in `jobs/` that the jobs take the place of."""


class Plan(NamedTuple):
    """The files to write, by `jobs/…` and `overlays/…`, and why they would not render to the manifests."""

    arranged: Arrangement
    breaches: list[Breach]
    notes: str = ""
    """What specs say because the overlays would change the jobs, one line each."""

    def format_breaches(self) -> str:
        """Return the lines that say why nothing is written."""
        lines: list[str] = []
        for each in self.breaches:
            shown = [*each.details[:_MAX_SHOWN], *(["…"] if len(each.details) > _MAX_SHOWN else [])]
            lines += [f"{each.place}: not imported: {each.reason}", *(f"  {detail}" for detail in shown)]
        return "".join(f"{visible(line)}\n" for line in lines)


def plan_import(
    imported: Sequence[ImportedManifest],
    others: Sequence[tuple[SkippedManifest, PlacedObject]],
    destination: Destination,
    *,
    factor: bool = False,
    proves: bool = True,
) -> Plan:
    """Arrange imported objects and others that are kept as they are; nothing may be written if there are breaches.

    What is only printed is not proven beside the files of the repository.
    """
    project = destination.project
    specs = [each.spec for each in imported]
    breaches: list[Breach] = []
    platforms = {spec.kind.platform for spec in specs if spec.is_spec}
    if destination.is_rendered and not factor and not needs_new_overlays(platforms, project):
        specs, breaches = _fit_specs(imported, destination)
    elif not destination.is_rendered and not factor:
        runners = [EnvironmentRunner(project, name) for name in project.environments()]
        specs = [name_platform(spec, f"{destination.folder}/{spec.name}.yaml", runners) for spec in specs]
    arranged = arrange_files(specs, [placed for _, placed in others], project, destination.folder, factor=factor)
    if not destination.is_rendered:
        jobs = {path: text for path, text in arranged.files.items() if path.startswith("jobs/")}
        return Plan(arranged._replace(files=jobs), breaches)
    notes = "".join(_note_added(each, spec) for each, spec in zip(imported, specs, strict=True))
    if proves and not breaches:
        promises = _list_promises(imported, others, arranged, destination)
        files = {move(path, destination.folder): text for path, text in arranged.files.items()}
        breaches = prove_files(destination.root, files, promises, destination.replaced)
    return Plan(arranged, breaches, notes)


def move(path: str, folder: str) -> str:
    """Return a path from the root, where `jobs` is another folder."""
    top, _, rest = path.partition("/")
    return f"{folder}/{rest}" if top == "jobs" else path


def _fit_specs(
    imported: Sequence[ImportedManifest], destination: Destination
) -> tuple[list[ImportedSpec], list[Breach]]:
    """Change specs to render to their manifests in every environment."""
    project = destination.project
    runners = [EnvironmentRunner(project, name) for name in project.environments()]
    specs: list[ImportedSpec] = []
    breaches: list[Breach] = []
    for each in imported:
        if not each.spec.is_spec:
            specs.append(each.spec)
            continue
        spec, misfits = fit_spec(each.spec, f"{destination.folder}/{each.spec.name}.yaml", runners)
        specs.append(spec)
        place = _name_place(each.location)
        unserved = find_unserved(spec.kind.platform, project) if misfits else None
        if unserved:
            breaches.append(Breach(place, _explain_platform(spec, unserved)))
        else:
            breaches += (_explain_misfit(place, misfit) for misfit in misfits)
    return specs, breaches


def _note_added(each: ImportedManifest, spec: ImportedSpec) -> str:
    """Say which fields keep a job as it is, although overlays set something else."""
    added = list_added(each.spec.document, spec.document) if spec.is_spec else []
    listed = ", ".join(f"`{field}`" for field in added)
    note = f"{_name_place(each.location)}: {listed} of the spec {'keeps' if len(added) == 1 else 'keep'} out what"
    return visible(f"{note} overlays add") + "\n" if added else ""


def _explain_misfit(place: str, misfit: Misfit) -> Breach:
    envs = ", ".join(f"`{env}`" for env in misfit.envs if env)
    where = f" in {envs}" if envs else ""
    return Breach(place, f"it would not render to this object{where}", misfit.reasons)


def _explain_platform(spec: ImportedSpec, unserved: dict[str, Location]) -> str:
    platform, envs = spec.kind.platform, ", ".join(f"`{env}`" for env in unserved if env)
    lines = ", ".join(dict.fromkeys(_name_place(each) for each in unserved.values()))
    has = f"{envs} {'has' if len(unserved) == 1 else 'have'}" if envs else "the cluster has"
    return (
        f"{has} no platform `{platform}` for this {spec.kind.name}; add `{platform}` to `cluster.platforms` in {lines}"
    )


def _name_place(location: Location) -> str:
    return f"{location.file}:{location.line}"


def _list_promises(
    imported: Sequence[ImportedManifest],
    others: Sequence[tuple[SkippedManifest, PlacedObject]],
    arranged: Arrangement,
    destination: Destination,
) -> list[Promise]:
    """Return what each document of the new files must render to."""
    found = [_describe(each) for each in imported]
    found += [(identity_of(each.manifest).name, each.location, (each.manifest,)) for each, _ in others]
    platforms = [*(each.spec.kind.platform if each.spec.is_spec else "" for each in imported), *("" for _ in others)]
    placed = [*(each.spec.is_placed for each in imported), *(False for _ in others)]
    return [
        Promise(move(path, destination.folder), position, name, _name_place(location), objects, platform, is_placed)
        for (name, location, objects), platform, is_placed, (path, position) in zip(
            found, platforms, placed, arranged.places, strict=True
        )
    ]


def _describe(each: ImportedManifest) -> tuple[str, Location, tuple[Mapping[str, Plain], ...]]:
    """Return how overlays select an object, where its manifest is, and the objects that it renders to."""
    spec = each.spec
    name = spec.name if spec.is_spec else identity_of(spec.manifest).name
    return name, each.location, (spec.manifest, *spec.companions)


def list_missing_platforms(imported: Sequence[ImportedManifest], project: ProjectConfig) -> list[str]:
    """Return the platforms of jobs that no environment has."""
    return sorted({each.spec.kind.platform for each in imported if each.spec.is_spec} - find_platforms(project))
