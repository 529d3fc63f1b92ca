"""`jobgen import`: convert existing manifests to job specs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from jobgen.cli.options import force_option, output_option
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.terminal import read_stdin
from jobgen.cli.write_files import write_new_files
from jobgen.convert.importing.collect import ImportedManifest, SkippedManifest, collect_manifests
from jobgen.convert.importing.extract_overlay import build_overlay, extract_overlay
from jobgen.convert.importing.format_yaml import format_document
from jobgen.convert.importing.import_job import ImportedSpec, rewrite_document
from jobgen.convert.importing.server_fields import remove_server_fields
from jobgen.convert.migrate.rewrite import rewrite_job
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.repo.atomic import links_outside
from jobgen.repo.files import File, FileEntry
from jobgen.repo.named_paths import find_files, find_manifests
from jobgen.repo.root import find_root
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
    found = list(collect_manifests(_entries(directory, paths, stdin), project.kinds))
    imported = list(_remove_duplicates(each for each in found if isinstance(each, ImportedManifest)))
    skipped = [each for each in found if isinstance(each, SkippedManifest)]
    notes = "".join(_format_notes(each) for each in found)
    if not imported:
        return error_result(ExitCode.NOTHING_TO_DO, "there is nothing to import", notes)
    files, documents = _make_files([each.spec for each in imported], project, factor=factor)
    code = ExitCode.ERRORS if skipped else ExitCode.OK
    total = f"{pluralize(len(imported), 'object')} imported{f', {len(skipped)} not' if skipped else ''}\n"
    if output is None:
        notes += "".join(_NEEDS.format(name=name) for name in _find_missing_platforms(imported, project))
        overlays = [content for path, content in files.items() if factor and path.startswith("overlays/")]
        return Result(code, "---\n".join([*overlays, *documents]), notes + total)
    home = root or (directory / output).resolve().parent
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
    """Convert all manifests of a folder for a new repository; objects of other kinds are kept as they are."""
    project = config.load(root)
    entries = list(find_files(directory, source))
    found = list(collect_manifests((entry for entry in entries if not entry.skipped), project.kinds))
    imported = list(_remove_duplicates(each for each in found if isinstance(each, ImportedManifest)))
    # The names come from a manifest, so they are untrusted.
    skipped = (each for each in found if isinstance(each, SkippedManifest) and each.name)
    others = [each for each in skipped if _FILE.fullmatch(f"{each.kind}-{each.name}".lower())]
    names = dict.fromkeys(each.name for each in others)
    files, _ = _make_files([each.spec for each in imported], project, list(names), factor=False)
    notes = ""
    for each in others:
        path = f"jobs/{each.kind}-{each.name}.yaml".lower()
        text, removed = _clean_other(each)
        files[path] = f"{files[path]}---\n{text}" if path in files else text
        notes += visible(f"{each.location.file}:{each.location.line}: left out: {removed}") + "\n" if removed else ""
    kept = {id(each) for each in others}
    rest = [_explain_kustomization(each) for each in found if id(each) not in kept]
    notes += "".join(_format_notes(each) for each in rest) + _list_unread(entries)
    left_out = sum(isinstance(each, SkippedManifest) for each in rest)
    return Converted(files, len(imported), len(others), left_out, notes)


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
        reason = f"a kustomization is not built; run `kubectl kustomize {folder or '.'} | jobgen import - -o jobs`"
        return each._replace(reason=reason)
    return each


def _list_unread(entries: Iterable[FileEntry]) -> str:
    """List what is not read, or count it if it is much."""
    unread = [entry for entry in entries if entry.skipped]
    if len(unread) <= _MAX_UNREAD:
        return "".join(f"{visible(entry.path)}: not read: {entry.skipped}\n" for entry in unread)
    counts = Counter(entry.skipped for entry in unread)
    return "".join(f"{count} files and folders not read: {reason}\n" for reason, count in sorted(counts.items()))


def _remove_duplicates(imported: Iterable[ImportedManifest]) -> Iterator[ImportedManifest]:
    """Yield each object once: an export next to its manifest has the same data."""
    seen: dict[str, list[object]] = {}
    for each in imported:
        known = seen.setdefault(each.spec.name, [])
        if each.spec.document not in known:
            known.append(each.spec.document)
            yield each


def _format_notes(each: ImportedManifest | SkippedManifest) -> str:
    """Return the notes about one manifest."""
    where = f"{each.location.file}:{each.location.line}"
    if isinstance(each, SkippedManifest):
        shown = [*each.details[:_MAX_SHOWN], *(["…"] if len(each.details) > _MAX_SHOWN else [])]
        lines = [f"{each.location}: not imported: {each.reason}", *(f"  {detail}" for detail in shown)]
    else:
        removed = each.spec.removed
        lines = [f"{location}: {note}" for location, note in each.notes]
        lines += [f"{where}: left out: {', '.join(f'`{path}`' for path in removed)}"] if removed else []
        lines += (
            f"{each.location.file}:{remark.line}: the comment was not converted: {' '.join(remark.texts)}"
            for remark in each.spec.lost_comments
        )
    return "".join(f"{visible(line)}\n" for line in lines)


def _make_files(
    specs: Sequence[ImportedSpec], project: ProjectConfig, others: Sequence[str] = (), *, factor: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the files to write, `jobs/<name>.yaml` and `overlays/<env>/overlay.yaml`, and the texts of the jobs.

    The first overlay also selects `others`, the names of objects that are no jobs, and manifests that stay as they are.
    """
    platforms = list(dict.fromkeys(spec.kind.platform for spec in specs if spec.is_spec))
    if not project.overlays:
        # Without overlays all objects are selected; with the first one, only those that it lists.
        others = [*others, *(_find_name(spec) for spec in specs if not spec.is_spec)]
    texts = {id(spec): spec.text for spec in specs}
    files: dict[str, str] = {}
    for platform in platforms:
        jobs = [spec for spec in specs if spec.is_spec and spec.kind.platform == platform]
        if factor and len(jobs) > 1:
            name = "imported" if len(platforms) == 1 else f"imported-{platform}"
            overlay, reduced = extract_overlay(name, platform, jobs, project.kinds)
            files[f"overlays/{name}/overlay.yaml"] = format_document(overlay)
            texts.update(
                (id(job), rewrite_document(job.text, document))
                for job, document in zip(jobs, reduced, strict=True)
                if document != job.document
            )
        elif platform not in _find_platforms(project) and (project.overlays or set(platforms) != {DEFAULT_PLATFORM}):
            # If there is any overlay, jobs of Kubeflow need one too; it also lists the existing jobs.
            existing = _find_job_names(project) if platform == DEFAULT_PLATFORM and not project.overlays else []
            overlay = build_overlay(platform, platform, [*existing, *(job.name for job in jobs), *others])
            others = ()
            files[f"overlays/{platform}/overlay.yaml"] = format_document(overlay)
    for spec in specs:
        path = f"jobs/{spec.name}.yaml"
        # Jobs of the same name share a file.
        files[path] = f"{files[path]}---\n{texts[id(spec)]}" if path in files else texts[id(spec)]
    return files, list(texts.values())


def _find_name(spec: ImportedSpec) -> str:
    """Return the name of a manifest that stays as it is, which need not be that of its file."""
    metadata = spec.document["metadata"]
    return str(metadata.get("name", spec.name)) if isinstance(metadata, dict) else spec.name


def _find_job_names(project: ProjectConfig) -> list[str]:
    """Return the names of the existing jobs."""
    return [job.document.name for job in read_jobs(layout.find_jobs(project.root), project.frameworks, [])]


def _find_platforms(project: ProjectConfig) -> set[str]:
    """Return the platforms of the environments."""
    problems: list[Problem] = []
    return {project.environment(name, problems).cluster.platform for name in project.overlays}


def _find_missing_platforms(imported: Sequence[ImportedManifest], project: ProjectConfig) -> list[str]:
    """Return the platforms of jobs that no environment has."""
    known = {DEFAULT_PLATFORM, *_find_platforms(project)}
    return sorted({each.spec.kind.platform for each in imported if each.spec.is_spec} - known)


def _target(root: Path, folder: Path, path: str) -> Path:
    top, _, rest = path.partition("/")
    return folder / rest if top == "jobs" else root / path
