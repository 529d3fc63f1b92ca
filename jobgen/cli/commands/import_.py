"""`jobgen import`: convert existing manifests to job specs."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from jobgen.cli.options import force_option, output_option
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.terminal import read_stdin
from jobgen.cli.write_files import write_new_files
from jobgen.convert.importing.arrange import OtherObject, arrange_files, find_platforms
from jobgen.convert.importing.collect import ImportedManifest, SkippedManifest, collect_manifests
from jobgen.convert.importing.duplicates import leave_out_duplicates, skip_linked_copies
from jobgen.convert.importing.server_fields import remove_server_fields
from jobgen.convert.migrate.rewrite import rewrite_job
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.repo import layout
from jobgen.repo.atomic import links_outside
from jobgen.repo.files import File, FileEntry
from jobgen.repo.named_paths import find_files, find_manifests
from jobgen.repo.root import find_root
from jobgen.repo.scratch import open_scratch
from jobgen.report.escape import visible
from jobgen.report.summary import pluralize
from jobgen.spec.overlay import DEFAULT_PLATFORM
from jobgen.yamlio.read import read

_FILE = lazy_pattern(r"[a-z0-9][a-z0-9.-]{0,200}")
_MAX_SHOWN = 8
_MAX_UNREAD = 20
_NEEDS = "jobs of platform `{name}` need `cluster: {{platform: {name}}}` in an overlay\n"


@click.command("import")
@click.argument("manifests", nargs=-1, required=True, metavar="MANIFEST...")
@output_option
@click.option("--factor", is_flag=True, help="Move what all jobs have in common to an overlay.")
@force_option
@click.pass_obj
def command(directory: Path, manifests: tuple[str, ...], output: str | None, factor: bool, force: bool) -> Result:
    """Convert manifests to job specs that render to the same manifests.

    MANIFEST is a file or a folder; `-` reads standard input.
    """
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
    skipped = [each for each in found if _is_lost(each)]
    notes = "".join(_format_notes(each) for each in found)
    if not imported:
        return error_result(ExitCode.NOTHING_TO_DO, "there is nothing to import", notes)
    home = root or (directory / output).resolve().parent if output else directory
    folder = os.path.relpath((directory / output).resolve(), home) if output else "jobs"
    files, documents = arrange_files([each.spec for each in imported], [], project, folder, factor=factor)
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


def _entries(directory: Path, paths: Sequence[str], stdin: bytes | None) -> Iterator[FileEntry]:
    for path in paths:
        if path == "-":
            yield FileEntry("-", content=stdin or b"")
        else:
            yield from find_manifests(directory, path)


class Converted(NamedTuple):
    """What a folder of manifests becomes in a new repository."""

    files: dict[str, str]
    imported: int
    kept: int
    """How many objects of other kinds are kept as they are."""
    left_out: int
    notes: str
    """What is not imported or differs, one line each."""


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
    imported = [each for each in found if isinstance(each, ImportedManifest)]
    others = [each for each in found if isinstance(each, SkippedManifest) and _is_copied(each)]
    copies: list[OtherObject] = []
    notes = ""
    for each in others:
        text, removed = _clean_other(each)
        copies.append(OtherObject(f"{each.kind}-{each.name}".lower(), each.name, text))
        notes += visible(f"{each.location.file}:{each.location.line}: left out: {removed}") + "\n" if removed else ""
    files, _ = arrange_files([each.spec for each in imported], copies, project)
    copied = set(map(id, others))
    rest = [_explain_kustomization(each) for each in found if id(each) not in copied]
    notes += "".join(_format_notes(each) for each in rest) + _list_unread(entries)
    left_out = sum(map(_is_lost, rest))
    return Converted(files, len(imported), len(others), left_out, notes)


def _is_lost(each: ImportedManifest | SkippedManifest) -> bool:
    """Whether an object is not imported, so that the import is incomplete."""
    return isinstance(each, SkippedManifest) and each.is_lost


def _is_copied(each: SkippedManifest) -> bool:
    """Whether an object of another kind is copied. Its name comes from a manifest, so it is untrusted."""
    return bool(each.name) and _FILE.fullmatch(f"{each.kind}-{each.name}".lower()) is not None


def _clean_other(each: SkippedManifest) -> tuple[str, str]:
    """Return the text of an object of another kind without the fields that a cluster wrote, and these fields."""
    file = File(each.location.file, each.text.encode())
    [document] = read(file.content, file.path).documents
    clean, removed = remove_server_fields(document.data)
    written = [f"`{path}`" for path in removed if not path.endswith("(null)")]
    return (rewrite_job(file, 0, clean), ", ".join(written)) if written else (each.text, "")


def _explain_kustomization(each: ImportedManifest | SkippedManifest) -> ImportedManifest | SkippedManifest:
    """Say what to do about a kustomization, which other programs build."""
    folder, _, name = each.location.file.rpartition("/")
    if isinstance(each, SkippedManifest) and name.lower().partition(".")[0] == "kustomization":
        command = f"kubectl kustomize {shlex.quote(folder or '.')} | jobgen import - -o jobs"
        return each._replace(reason=f"a kustomization is not built; run `{command}`")
    return each


def _list_unread(entries: Iterable[FileEntry]) -> str:
    """List what is not read, or count it if it is much."""
    unread = [entry for entry in entries if entry.skipped]
    if len(unread) <= _MAX_UNREAD:
        return "".join(f"{visible(entry.path)}: not read: {entry.skipped}\n" for entry in unread)
    counts = Counter(entry.skipped for entry in unread)
    return "".join(f"{count} files and folders not read: {reason}\n" for reason, count in sorted(counts.items()))


def _format_notes(each: ImportedManifest | SkippedManifest) -> str:
    """Return the notes about one manifest."""
    where = f"{each.location.file}:{each.location.line}"
    if isinstance(each, SkippedManifest):
        shown = [*each.details[:_MAX_SHOWN], *(["…"] if len(each.details) > _MAX_SHOWN else [])]
        verdict = "not imported" if each.is_lost else "nothing to import"
        lines = [f"{each.location}: {verdict}: {each.reason}", *(f"  {detail}" for detail in shown)]
    else:
        removed = each.spec.removed
        lines = [f"{location}: {note}" for location, note in each.notes]
        lines += [f"{where}: left out: {', '.join(f'`{path}`' for path in removed)}"] if removed else []
        lines += (
            f"{each.location.file}:{remark.line}: the comment was not converted: {' '.join(remark.texts)}"
            for remark in each.spec.lost_comments
        )
    return "".join(f"{visible(line)}\n" for line in lines)


def _find_missing_platforms(imported: Sequence[ImportedManifest], project: ProjectConfig) -> list[str]:
    """Return the platforms of jobs that no environment has."""
    known = {DEFAULT_PLATFORM, *find_platforms(project)}
    return sorted({each.spec.kind.platform for each in imported if each.spec.is_spec} - known)


def _target(root: Path, folder: Path, path: str) -> Path:
    top, _, rest = path.partition("/")
    return folder / rest if top == "jobs" else root / path
