"""`jobgen import`: convert existing manifests to job specs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from jobgen.cli.complete import complete_files
from jobgen.cli.options import force_option, output_option
from jobgen.cli.result import ExitCode, Result, error_result, read_stdin, write_new_files
from jobgen.cli.starter import Converted
from jobgen.features.convert.import_environments import (
    clean_other,
    convert_environments,
    explain_kustomization,
    find_environment_folders,
    format_all_notes,
    format_notes,
    is_copied,
    is_lost,
    list_unread,
    parse_environments,
)
from jobgen.features.convert.importing.arrange import PlacedObject, arrange_files, find_platforms
from jobgen.features.convert.importing.collect import (
    ImportedManifest,
    SkippedManifest,
    collect_manifests,
    leave_out_duplicates,
    skip_linked_copies,
)
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.repo import layout
from jobgen.repo.atomic import links_outside, open_scratch
from jobgen.repo.files import FileEntry
from jobgen.repo.named_paths import find_files, find_manifests
from jobgen.repo.root import find_root
from jobgen.reports.entries import pluralize
from jobgen.reports.escape import visible
from jobgen.spec.overlay import DEFAULT_PLATFORM

_NEEDS = "jobs of platform `{name}` need `cluster: {{platform: {name}}}` in an overlay\n"


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
    """Convert manifests to job specs that render to the same manifests.

    MANIFEST is a file or a folder; `-` reads standard input.
    """
    if environments:
        if manifests or factor:
            message = "`--environment` names the folders to import; remove `--factor` and other manifests"
            return error_result(ExitCode.USAGE, message)
        return import_environments(directory, environments, output, force=force)
    if not manifests:
        return error_result(ExitCode.USAGE, "name a manifest or a folder to import")
    stdin = read_stdin() if "-" in manifests else None
    return import_manifests(directory, manifests, output, factor=factor, force=force, stdin=stdin)


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
        return error_result(ExitCode.USAGE, f"there is no `{missing[0]}`")
    if output and links_outside(directory / output, find_root(directory.resolve()) or directory):
        message = f"`{output}` is outside the repository through a symbolic link; choose another folder"
        return error_result(ExitCode.USAGE, message)
    root = find_root((directory / output if output else directory).resolve())
    project = config.load(root or directory.resolve())
    entries = [entry for entry in skip_linked_copies(_entries(directory, paths, stdin)) if not entry.skipped]
    found = list(leave_out_duplicates(collect_manifests(entries, project.kinds), has_overlays=bool(project.overlays)))
    imported = [each for each in found if isinstance(each, ImportedManifest)]
    skipped = [each for each in found if is_lost(each)]
    if not imported:
        notes = "".join(format_notes(each) for each in found)
        return error_result(ExitCode.NOTHING_TO_DO, "there is nothing to import", notes)
    home = root or (directory / output).resolve().parent if output else directory
    folder = os.path.relpath((directory / output).resolve(), home) if output else "jobs"
    files, documents, paths = arrange_files([each.spec for each in imported], [], project, folder, factor=factor)
    shown = [str(_target(Path(), Path(output), path)) for path in paths] if output else []
    notes = format_all_notes(found, dict(zip(map(id, imported), shown, strict=False)))
    code = ExitCode.ERRORS if skipped else ExitCode.OK
    total = f"{pluralize(len(imported), 'object')} imported{f', {len(skipped)} not' if skipped else ''}\n"
    if output is None:
        notes += "".join(_NEEDS.format(name=name) for name in _find_missing_platforms(imported, project))
        overlays = [content for path, content in files.items() if factor and path.startswith("overlays/")]
        return Result(code, "---\n".join([*overlays, *documents]), notes + total)
    error = write_new_files(
        {_target(home, directory / output, path): each for path, each in files.items()}, home, force=force
    )
    if error:
        return error._replace(err=notes + error.err)
    return Result(code, err=notes + total)


def import_environments(directory: Path, texts: Sequence[str], output: str | None, *, force: bool) -> Result:
    """Convert the manifests of several environments to common specs in a folder, and an overlay for each."""
    folders = parse_environments(texts)
    if isinstance(folders, str):
        return error_result(ExitCode.USAGE, folders)
    missing = [folder for folder in folders.values() if not (directory / folder).is_dir()]
    if missing:
        return error_result(ExitCode.USAGE, f"there is no folder `{missing[0]}`")
    if not output:
        return error_result(ExitCode.USAGE, "`--environment` also writes overlays; name the folder of jobs: `-o jobs`")
    home = find_root(directory.resolve()) or directory.resolve()
    target = (directory / output).resolve()
    if target != home / "jobs" and not target.is_relative_to(home / "jobs"):
        return error_result(ExitCode.USAGE, f"`{output}` is not in the folder `jobs` of the repository")
    project = config.load(home)
    if project.overlays:
        return error_result(ExitCode.USAGE, "the repository has overlays; import environments into a new repository")
    converted = convert_environments(directory, folders, project.kinds)
    if not converted.files:
        return error_result(ExitCode.NOTHING_TO_DO, "nothing was imported", converted.notes)
    files = {_target(home, target, path): text for path, text in converted.files.items()}
    error = write_new_files(files, home, force=force)
    if error:
        return error._replace(err=converted.notes + error.err)
    code = ExitCode.ERRORS if converted.left_out else ExitCode.OK
    return Result(code, err=converted.notes + converted.count_objects())


def _entries(directory: Path, paths: Sequence[str], stdin: bytes | None) -> Iterator[FileEntry]:
    for path in paths:
        if path == "-":
            yield FileEntry("-", content=stdin or b"")
        else:
            yield from find_manifests(directory, path)


def convert_folder(directory: Path, source: str, root: Path) -> Converted:
    """Convert all manifests of a folder for a new repository; objects of other kinds are kept as they are.

    What an earlier run has written, perhaps not all of it, does not change the result.
    """
    project = config.load(root)
    written = {entry.path for entry in layout.find_jobs(root)} | {file.path for _, file in layout.read_overlays(root)}
    if written:
        with open_scratch() as empty:
            fresh = _convert_folder(directory, source, project._replace(root=empty, overlays={}))
        if written <= fresh.files.keys():
            return fresh
    return _convert_folder(directory, source, project)


def _convert_folder(directory: Path, source: str, project: ProjectConfig) -> Converted:
    entries = skip_linked_copies(find_files(directory, source))
    collected = collect_manifests((entry for entry in entries if not entry.skipped), project.kinds)
    found = list(leave_out_duplicates(collected, has_overlays=bool(project.overlays)))
    folders = find_environment_folders(source, entries, found)
    if folders:
        return convert_environments(directory, folders, project.kinds)
    imported = [each for each in found if isinstance(each, ImportedManifest)]
    others = [each for each in found if isinstance(each, SkippedManifest) and is_copied(each)]
    copies: list[PlacedObject] = []
    notes = ""
    for each in others:
        text, removed = clean_other(each)
        copies.append(PlacedObject(f"{each.kind}-{each.name}".lower(), each.name, text))
        notes += visible(f"{each.location.file}:{each.location.line}: left out: {removed}") + "\n" if removed else ""
    files, _, paths = arrange_files([each.spec for each in imported], copies, project)
    copied = set(map(id, others))
    rest = [explain_kustomization(each) for each in found if id(each) not in copied]
    notes += format_all_notes(rest, dict(zip(map(id, imported), paths, strict=True))) + list_unread(entries)
    left_out = sum(map(is_lost, rest))
    return Converted(files, len(imported), len(others), left_out, notes)


def _find_missing_platforms(imported: Sequence[ImportedManifest], project: ProjectConfig) -> list[str]:
    """Return the platforms of jobs that no environment has."""
    known = {DEFAULT_PLATFORM, *find_platforms(project)}
    return sorted({each.spec.kind.platform for each in imported if each.spec.is_spec} - known)


def _target(root: Path, folder: Path, path: str) -> Path:
    top, _, rest = path.partition("/")
    return folder / rest if top == "jobs" else root / path
