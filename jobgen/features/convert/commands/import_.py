"""`jobgen import`: convert existing manifests to job specs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import click

from jobgen.api.errors import JobgenError
from jobgen.api.lint import lint
from jobgen.cli.complete import complete_files
from jobgen.cli.options import force_option, output_option
from jobgen.cli.replaced_objects import refuse_losses
from jobgen.cli.result import ExitCode, Result, error_result, read_stdin, write_new_files
from jobgen.cli.starter import Converted
from jobgen.engine.inputs import edited
from jobgen.features.convert.import_environments import (
    clean_other,
    convert_environments,
    find_environment_folders,
    format_all_notes,
    is_copied,
    is_lost,
    parse_environments,
)
from jobgen.features.convert.import_repository import Destination, list_missing_platforms, plan_import
from jobgen.features.convert.importing.arrange import PlacedObject, find_platforms
from jobgen.features.convert.importing.chart_releases import is_chart, write_renderings
from jobgen.features.convert.importing.collect import (
    ImportedManifest,
    SkippedManifest,
    collect_manifests,
    leave_out_duplicates,
)
from jobgen.features.convert.importing.sources import Sources, find_sources, shorten_list
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Plain
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.rendering.build import identity_of
from jobgen.rendering.config import ProjectConfig
from jobgen.repo import layout
from jobgen.repo.atomic import find_output_fault, open_scratch
from jobgen.repo.root import SETTINGS, explain_absence, find_root, find_settings
from jobgen.reports.entries import format_findings, pluralize
from jobgen.reports.escape import visible

_NO_MANIFESTS = "there is nothing to import; name files or folders with manifests of jobs"

_NEEDS = "jobs of platform `{name}` need `cluster: {{{field}}}` in an overlay\n"


@click.command("import")
@click.argument("manifests", nargs=-1, metavar="[MANIFEST...]", shell_complete=complete_files)
@output_option
@click.option(
    "--environment",
    "environments",
    multiple=True,
    metavar="NAME=FOLDER",
    help="Import a folder as an environment; what differs becomes a patch.",
)
@click.option("--factor", is_flag=True, help="Move what all jobs have in common to an overlay.")
@force_option
@click.pass_obj
def command(
    directory: Path,
    manifests: tuple[str, ...],
    output: str | None,
    environments: tuple[str, ...],
    factor: bool,
    force: bool,
) -> Result:
    """Convert manifests to job specs.

    The job specs render to the same manifests.

    MANIFEST is a file or a folder; `-` reads standard input.
    """
    if environments:
        if manifests or factor:
            message = "`--environment` names the folders to import; remove `--factor` and other manifests"
            return error_result(ExitCode.USAGE, message)
        return import_environments(directory, environments, output, force=force)
    if not manifests:
        return error_result(ExitCode.USAGE, "name a manifest or a folder to import, such as `jobgen import k8s/`")
    if len(manifests) == 1 and is_chart(directory / manifests[0]):
        return import_chart(directory, manifests[0], output, factor=factor, force=force)
    stdin = read_stdin() if "-" in manifests else None
    return import_manifests(directory, manifests, output, factor=factor, force=force, stdin=stdin)


def import_chart(directory: Path, path: str, output: str | None, *, factor: bool, force: bool) -> Result:
    """Convert what helm makes of a chart; with several values that differ, to specs with an overlay for each."""
    with open_scratch() as scratch:
        folders, left_out = write_renderings(directory, path, scratch)
        notes = format_all_notes(left_out, {})
        if not folders:
            return error_result(ExitCode.NOTHING_TO_DO, _NO_MANIFESTS, notes)
        kinds = config.load_own(find_root(directory.resolve()) or directory.resolve()).kinds
        sources = find_sources(scratch, ["."])
        found = list(leave_out_duplicates(collect_manifests(sources.entries, kinds), has_overlays=False))
        if find_environment_folders(sources.list_origins(), found):
            if output is None:
                message = "the values of the chart are environments; name the folder of jobs: `-o jobs`"
                return error_result(ExitCode.USAGE, message, notes)
            texts = [f"{name}={scratch / name}" for name in folders]
            done = import_environments(directory, texts, output, force=force)
        else:
            done = import_manifests(directory, [str(scratch)], output, factor=factor, force=force)
        shown = done.err.replace(f"{scratch}/", "").replace(str(scratch), path)
    code = ExitCode.ERRORS if left_out and done.code == ExitCode.OK else done.code
    return done._replace(code=code, err=notes + shown)


def import_manifests(
    directory: Path,
    paths: Sequence[str],
    output: str | None,
    *,
    factor: bool = False,
    force: bool = False,
    stdin: bytes | None = None,
) -> Result:
    """Convert all manifests at some paths, to standard output or to one file for each job in a folder."""
    missing = [path for path in paths if path != "-" and not os.path.exists(directory / path)]
    if missing:
        return error_result(ExitCode.USAGE, f"there is no `{missing[0]}`; check the path")
    fault = find_output_fault(directory / output, find_root(directory.resolve()) or directory) if output else ""
    if fault:
        return error_result(ExitCode.USAGE, f"`{output}` {fault}; choose another folder")
    destination = _find_destination(directory, output)
    if factor and not destination.is_rendered:
        message = f"`{output}` is not in the folder `jobs` of the repository, so no overlay applies to it"
        return error_result(ExitCode.USAGE, f"{message}; remove `--factor`, or choose another folder")
    project = destination.project
    sources = find_sources(directory, paths, stdin)
    found = list(
        leave_out_duplicates(collect_manifests(sources.entries, project.kinds), has_overlays=bool(project.overlays))
    )
    imported = _find_placed([each for each in found if isinstance(each, ImportedManifest)], directory, destination)
    if not imported:
        return error_result(ExitCode.NOTHING_TO_DO, _NO_MANIFESTS, _format_left_out(found, sources))
    placed = dict.fromkeys(each.location.file for each in imported if each.spec.is_placed) if output else {}
    destination = destination._replace(replaced=tuple(os.path.realpath(directory / file) for file in placed))
    plan = plan_import(imported, [], destination, factor=factor, proves=output is not None)
    if plan.breaches:
        notes = _format_left_out(found, sources) + sources.hide_secrets(plan.format_breaches())
        return error_result(ExitCode.ERRORS, "nothing was written, because not all jobs would stay the same", notes)
    files, documents, places = plan.arranged
    full = {_target(destination.root, directory / (output or "jobs"), path): text for path, text in files.items()}
    shown = {path: _show(_target(destination.root, directory / (output or "jobs"), path), directory) for path in files}
    kept = {id(each): shown[path] for each, (path, _) in zip(imported, places, strict=True)} if output else {}
    notes = _format_left_out(found, sources, kept) + plan.notes
    lost = [each for each in (*found, *sources.left_out) if is_lost(each)]
    code = ExitCode.ERRORS if lost else ExitCode.OK
    total = f"{pluralize(len(imported), 'object')} imported{f', {len(lost)} not' if lost else ''}\n"
    if not (output and destination.is_rendered):
        notes += _describe_missing_platforms(imported, project)
    rendered = [file for file in placed if (directory / file).resolve() not in full]
    notes += "".join(visible(_RENDERED_TOO.format(file=file)) + "\n" for file in rendered)
    if output is None:
        overlays = [content for path, content in files.items() if factor and path.startswith("overlays/")]
        return Result(code, "---\n".join([*overlays, *documents]), notes + total)
    if not destination.is_rendered:
        notes += visible(_NOT_RENDERED.format(folder=output)) + "\n"
    home = destination.root if destination.is_rendered else (directory / output).resolve()
    written = _write(full, home, directory, notes, [each.spec.manifest for each in imported] if force else None)
    if isinstance(written, Result):
        return written
    with edited({path: b"" for path in destination.replaced if Path(path) not in full}):
        findings = _lint(full, home) if destination.is_rendered else ""
    return Result(code, err=written + notes + total + findings)


def _describe_missing_platforms(imported: Sequence[ImportedManifest], project: ProjectConfig) -> str:
    """Say which platforms an overlay must declare, beside those that there are."""
    known = sorted(find_platforms(project)) if project.overlays else []
    lines = ""
    for name in list_missing_platforms(imported, project):
        field = f"platforms: [{', '.join([*known, name])}]" if known else f"platform: {name}"
        lines += _NEEDS.format(name=name, field=field)
    return lines


_RENDERED_TOO = "`{file}` is in `jobs`, so it is rendered, too; delete it, now that the job replaces it"
_NOT_RENDERED = "`{folder}` is not in the folder `jobs` of the repository, so jobgen does not render these jobs"


def _find_placed(
    imported: Sequence[ImportedManifest], directory: Path, destination: Destination
) -> list[ImportedManifest]:
    """Return the manifests, and mark those in the folder of jobs, which get the namespace of overlays there."""
    if not destination.is_rendered:
        return list(imported)
    jobs = destination.root / "jobs"
    return [
        each._replace(spec=each.spec._replace(is_placed=True))
        if "namespace" not in as_mapping(each.spec.manifest.get("metadata"))
        and (directory / each.location.file).resolve().is_relative_to(jobs)
        else each
        for each in imported
    ]


def _find_destination(directory: Path, output: str | None) -> Destination:
    """Return where jobs are written: to `jobs/` of a repository, or of the folder that becomes one, or elsewhere."""
    home = find_root(directory.resolve()) or directory.resolve()
    full = (directory / output).resolve() if output else home / "jobs"
    settings = find_settings(full)
    root = settings if isinstance(settings, Path) else home
    project = config.load_own(root)
    if full.is_relative_to(root / "jobs"):
        return Destination(root, project, full.relative_to(root).as_posix())
    return Destination(full, project._replace(overlays={}, settings={}), is_rendered=False)


def _format_left_out(
    found: Sequence[ImportedManifest | SkippedManifest],
    sources: Sources,
    kept: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """Return the notes about all manifests, and about all files that are left out."""
    config_files = [each for each in found if isinstance(each, SkippedManifest) and each.sort]
    listed, counts = shorten_list([*sources.left_out, *config_files])
    rest = [each for each in found if not (isinstance(each, SkippedManifest) and each.sort)]
    return sources.hide_secrets(format_all_notes([*rest, *listed], kept)) + counts + sources.notes


def _show(path: Path, directory: Path) -> str:
    return os.path.relpath(os.path.normpath(path), directory).replace(os.sep, "/")


def _write(
    files: Mapping[Path, str],
    home: Path,
    directory: Path,
    notes: str,
    replacing: Sequence[Mapping[str, Plain]] | None,
) -> Result | str:
    """Write the files, and return a line for each of them; if one exists or cannot be written, a result with notes.

    With `--force`, `replacing` has the imported manifests, the only objects that existing files may lose.
    """
    replaced = {path for path in files if path.exists()}
    refusal = None if replacing is None else refuse_losses(files, directory, map(identity_of, replacing))
    error = refusal or write_new_files(files, home, force=replacing is not None)
    if error:
        return error._replace(err=notes + error.err)
    shown = ((_show(path, directory), "replaced" if path in replaced else "written") for path in files)
    return "".join(f"{visible(path)} {verb}\n" for path, verb in shown)


def _lint(files: Mapping[Path, str], home: Path) -> str:
    """Return the errors of a lint of new files, with the lines that must change."""
    try:
        checked = lint(home, paths=list(map(str, files)))
    except JobgenError as error:
        return visible(str(error)) + "\n"
    return format_findings([each for each in checked.findings if each.severity is Severity.ERROR])


def import_environments(directory: Path, texts: Sequence[str], output: str | None, *, force: bool) -> Result:
    """Convert the manifests of several environments to common specs in a folder, and an overlay for each."""
    folders = parse_environments(texts)
    if isinstance(folders, str):
        return error_result(ExitCode.USAGE, folders)
    missing = [folder for folder in folders.values() if not (directory / folder).is_dir()]
    if missing:
        return error_result(ExitCode.USAGE, explain_absence(directory / missing[0], missing[0]))
    if not output:
        return error_result(ExitCode.USAGE, "`--environment` also writes overlays; name the folder of jobs: `-o jobs`")
    home = find_root(directory.resolve()) or directory.resolve()
    target = (directory / output).resolve()
    if target != home / "jobs" and not target.is_relative_to(home / "jobs"):
        return error_result(
            ExitCode.USAGE, f"`{output}` is not in the folder `jobs` of the repository; write `-o jobs`"
        )
    project = config.load_own(home)
    if project.overlays:
        return error_result(ExitCode.USAGE, "the repository has overlays; import environments into a new repository")
    converted = convert_environments(directory, folders, project.kinds)
    if not converted.files:
        return error_result(ExitCode.NOTHING_TO_DO, _NO_MANIFESTS, converted.notes)
    files = {_target(home, target, path): text for path, text in converted.files.items()}
    code = ExitCode.ERRORS if converted.left_out else ExitCode.OK
    written = _write(files, home, directory, converted.notes, converted.manifests if force else None)
    if isinstance(written, Result):
        return written
    return Result(code, err=written + converted.notes + converted.count_objects() + _lint(files, home))


def convert_folder(directory: Path, source: str, root: Path) -> Converted:
    """Convert all manifests of a folder for a new repository; objects of other kinds are kept as they are.

    What an earlier run has written, perhaps not all of it, does not change the result.
    """
    project = config.load_own(root)
    written = {entry.path for entry in layout.find_jobs(root)} | {
        file.path for _, file in layout.read_overlays(layout.own_layers(root))
    }
    if written:
        with open_scratch() as empty:
            bare = project._replace(layers=layout.own_layers(empty), overlays={})
            fresh = _convert_folder(directory, source, bare, empty, root)
        if written <= fresh.files.keys():
            return fresh
    return _convert_folder(directory, source, project, root, root)


def _convert_folder(directory: Path, source: str, project: ProjectConfig, root: Path, home: Path) -> Converted:
    """Convert a folder for a repository at `home`; jobs are rendered at `root`, which may be an empty folder."""
    if is_chart(directory / source):
        with open_scratch() as scratch:
            names, lost = write_renderings(directory, source, scratch)
            done = _convert_folder(scratch, ".", project, root, home) if names else _NO_JOBS
        notes = format_all_notes(lost, {}) + done.notes
        return done._replace(notes=notes, left_out=done.left_out + len(lost))
    sources = find_sources(directory, [source])
    own = partial(_is_own, root=home, directory=directory)
    sources = sources._replace(left_out=[each for each in sources.left_out if not own(each)])
    collected = collect_manifests(sources.entries, project.kinds)
    found = list(leave_out_duplicates(collected, has_overlays=bool(project.overlays)))
    found = [each for each in found if isinstance(each, ImportedManifest) or not own(each)]
    folders = find_environment_folders(sources.list_origins(), found)
    if folders:
        return convert_environments(directory, folders, project.kinds, source)
    imported = [each for each in found if isinstance(each, ImportedManifest)]
    others = [each for each in found if isinstance(each, SkippedManifest) and is_copied(each)]
    copies: list[tuple[SkippedManifest, PlacedObject]] = []
    notes = ""
    for each in others:
        text, removed = clean_other(each)
        copies.append((each, PlacedObject(f"{each.kind}-{each.name}".lower(), each.name, text)))
        notes += visible(f"{each.location.file}:{each.location.line}: left out: {removed}") + "\n" if removed else ""
    plan = plan_import(imported, copies, Destination(root, project))
    copied = set(map(id, others))
    rest = [each for each in found if id(each) not in copied]
    paths = [path for path, _ in plan.arranged.places[: len(imported)]]
    notes += _format_left_out(rest, sources, dict(zip(map(id, imported), paths, strict=True))) + plan.notes
    left_out = sum(map(is_lost, (*rest, *sources.left_out)))
    if plan.breaches:
        failure = "nothing was written, because not all objects would stay the same"
        if any(
            (directory / each.location.file).resolve().is_relative_to((home / "jobs").resolve()) for each in imported
        ):
            failure += f"; the manifests are in `jobs/` already, so write elsewhere: `jobgen init NEW --from {source}`"
        return Converted({}, 0, 0, len(imported), notes + sources.hide_secrets(plan.format_breaches()), failure)
    manifests = (*(each.spec.manifest for each in imported), *(each.manifest for each in others))
    places = [each.origin for each in imported] + [each.builder or each.location.file for each in others]
    origins = tuple(dict.fromkeys(places))
    return Converted(plan.arranged.files, len(imported), len(others), left_out, notes, "", manifests, origins)


def _is_own(skipped: SkippedManifest, root: Path, directory: Path) -> bool:
    """Return True for a file that an earlier `jobgen init` wrote, or for a job spec of the repository."""
    path = (directory / skipped.location.file).resolve()
    if not (root / SETTINGS).is_file() or not path.is_relative_to(root.resolve()):
        return False
    top, *rest = path.relative_to(root.resolve()).parts
    if top in ("jobs", "overlays"):
        return skipped.is_spec
    return top in _OWN_FOLDERS if rest else top in _OWN_FILES


_OWN_FOLDERS = (".github", "policies", "schemas")
_OWN_FILES = (SETTINGS, ".gitlab-ci.yml", ".pre-commit-config.yaml")


_NO_JOBS = Converted({}, 0, 0, 0, "")


def _target(root: Path, folder: Path, path: str) -> Path:
    top, _, rest = path.partition("/")
    return folder / rest if top == "jobs" else root / path
