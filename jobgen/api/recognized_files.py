"""Decide what the files of a lint are that are in no jobs repository, before they are judged."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobgen import recognize
from jobgen.api.errors import UsageError
from jobgen.api.lint_files import (
    STDIN,
    LintRequest,
    Sources,
    is_repository_file,
    path_below,
    read_setting,
    split_paths,
)
from jobgen.engine.inputs import real_path
from jobgen.kustomize.tree import FolderTree
from jobgen.model.builtin_rules import UNJUDGED_CHART_RULES
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import OBJECT, SORTS, VALUES_FILE
from jobgen.recognize.kustomize_files import settle_generated
from jobgen.recognize.survey import STATED, Correction, Survey, report_variables, survey_files
from jobgen.recognize.tree import ChartOptions, list_folders
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.files import (
    HELM_CHART,
    KUSTOMIZATION_NAMES,
    OTHER_EXTENSION,
    FileEntry,
    hold_contents,
    is_package,
    starts_object,
)
from jobgen.repo.git import find_path_from_top
from jobgen.repo.layout import Layers
from jobgen.repo.named_paths import find_files
from jobgen.repo.root import SETTINGS, find_root, find_settings, has_settings
from jobgen.repo.walk import parse_patterns
from jobgen.spec.overlay import Cluster

_TREATMENTS = {sort.name: sort.treatment for sort in SORTS}


def recognize_files(request: LintRequest, files: Sources) -> Survey:
    """Decide what the files are that are judged by themselves."""
    corrections = read_corrections(files.layers) if files.layers is not None else ()
    entries = [entry for entry in files.standalone or () if entry.path != STDIN]
    # A commit is not on disk, and both sides of a comparison are built in the same way.
    has_tool = request.starts_tools and not isinstance(request.folder, CommitPath) and not request.is_compared
    prefix = path_below(request.folder.resolve(), files.root) if files.root is not None else None
    folder = request.folder
    above = folder.path if isinstance(folder, CommitPath) else find_path_from_top(folder)
    # The folders above the linted one, up to the top of Git, belong to the same repository.
    source = FolderTree(request.folder, len([name for name in above.split("/") if name]))
    is_whole = source.depth == 0 and ("." in request.paths or not request.paths) and not files.adds_charts
    entries = _hold_walked(source, entries)
    around: list[str] = []
    if not is_whole:
        normal = [entry if entry.finding else entry._replace(path=_normalize(folder, entry)) for entry in entries]
        if _has_build_above(source, normal):
            # A kustomization or a chart may use these files, so all files of the repository are known.
            top = "/".join([".."] * source.depth) or "."
            found = (entry for entry in find_files(folder, top) if entry.skipped in ("", OTHER_EXTENSION))
            around = [_normalize(folder, entry) for entry in found]
            # A file that a build uses has the name that the build gives it.
            entries = normal if around else entries
    others = (*files.others, *around)
    values = [_find_values_file(folder, path) for path in request.chart_values]
    survey = survey_files(
        *(source, entries, others, corrections, prefix or "", above),
        has_tool=has_tool,
        chart_options=ChartOptions(
            request.starts_tools,
            values,
            lambda: _find_cluster(request, files),
            real_path(os.path.join(request.directory, *[".."] * source.depth)),
            [posixpath.normpath(path) for path in files.others if is_package(path)],
        ),
    )
    piped = [entry for entry in files.standalone or () if entry.path == STDIN]
    return survey._replace(entries=[*survey.entries, *piped])


def _find_values_file(folder: Folder, path: str) -> str:
    """Return the path of a file of values from the linted folder."""
    found = posixpath.normpath(path) if isinstance(folder, CommitPath) else os.path.relpath(folder / path, folder)
    return found.replace(os.sep, "/")


def _find_cluster(request: LintRequest, files: Sources) -> Cluster:
    """Return the cluster that charts are rendered for: that of the named environment, or of the settings."""
    if files.layers is None:
        return Cluster()
    project = config.load(files.layers)
    named = request.envs[0] if len(request.envs) == 1 and request.envs[0] in project.overlays else ""
    return project.environment(named, []).cluster


def _hold_walked(source: FolderTree, entries: Sequence[FileEntry]) -> list[FileEntry]:
    """Read the files that a walk has found, so that they are not read again.

    A walk looks where the files lead that are links; where its own folder leads to, it does not.
    """
    folders = {entry.full.rpartition(os.sep)[0] for entry in entries if entry.optional and entry.full}
    inside = {folder for folder in sorted(folders) if not source.leads_outside(folder)}
    is_held = [bool(entry.optional and entry.full.rpartition(os.sep)[0] in inside) for entry in entries]
    held = iter(hold_contents(entry for entry, is_read in zip(entries, is_held, strict=True) if is_read))
    return [next(held) if is_read else entry for entry, is_read in zip(entries, is_held, strict=True)]


def _has_build_above(source: FolderTree, entries: Sequence[FileEntry]) -> bool:
    """Return True if a folder of some files, or one above it, has a kustomization, or if one may be of a chart."""
    folders = {entry.path.rpartition("/")[0] for entry in entries}
    every = {above for folder in folders for above in (folder, *list_folders(folder))}
    if any(source.exists(posixpath.join(folder, name)) for folder in every for name in KUSTOMIZATION_NAMES):
        return True
    paths = "\n".join([entry.path for entry in entries])
    return "values" in paths or "templates/" in paths or "charts/" in paths or "Chart.yaml" in paths


# A path with a name that is empty, `.` or `..`.
_ODD_PATH = lazy_pattern(r"(?:\A|/)\.{0,2}(?:/|\Z)|\\")


def _normalize(folder: Folder, entry: FileEntry) -> str:
    """Return the path of a file from the linted folder, however it was named."""
    if not _ODD_PATH.search(entry.path):
        return entry.path
    if isinstance(folder, CommitPath) or not entry.full:
        return posixpath.normpath(entry.path)
    return os.path.relpath(os.path.abspath(entry.full), os.path.abspath(folder)).replace(os.sep, "/")


def read_corrections(layers: Layers) -> tuple[Correction, ...]:
    """Return the entries of `files` in the settings."""
    listed = read_setting(layers, "files")
    return tuple(
        Correction(name, pattern)
        for name, texts in (listed.items() if isinstance(listed, dict) else ())
        if name in recognize.SETTINGS and isinstance(texts, list)
        for pattern in parse_patterns(text for text in texts if isinstance(text, str))
    )


def name_taken(survey: Survey, left_out: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return what each file was taken for, and why, by path; `left_out` are those that turned out to be no objects."""
    objects = (entry.path for entry in survey.entries if entry.build is None and not entry.is_source)
    taken = dict.fromkeys(objects, (OBJECT.name, "nothing says that it is anything else"))
    return taken | {path: (found.sort.name, found.why) for path, found in survey.taken.items()} | dict(left_out)


def settle_findings(
    findings: Sequence[Finding], survey: Survey, project: ProjectConfig, *, is_strict: bool, is_jobs_repository: bool
) -> list[Finding]:
    """Return the findings, milder where a program of the repository fills in a value or creates a file.

    In a jobs repository, what could not be checked stays a warning.
    """
    if not findings:
        return []
    # Imported late: most files have no findings.
    from jobgen.recognize.absent_files import leave_open
    from jobgen.recognize.declared_gates import leave_out_gated
    from jobgen.recognize.image_lines import leave_out_resolved
    from jobgen.recognize.installed_releases import settle_old_versions
    from jobgen.recognize.mild_findings import soften
    from jobgen.recognize.repeated_advice import say_once

    known, tree = set(findings), survey.tree
    read = [_as_values(each) if _is_in_values(each, survey) else each for each in findings]
    certain = leave_out_gated(list(settle_generated(leave_open(read, tree), tree)), tree)
    certain = settle_old_versions(leave_out_resolved(certain, tree), tree)
    mild = soften(report_variables(certain, tree), tree, is_jobs_repository=is_jobs_repository)
    found = say_once(mild, tree, is_jobs_repository=is_jobs_repository)
    severities = project.severities
    settled = []
    for each in found:
        is_changed = severities.is_any and each not in known
        severe = severities.apply(each, project.teams.find_name(each.location.file)) if is_changed else each
        settled += [severe] if severe else []
    if not is_strict:
        return settled
    return [each._replace(severity=Severity.ERROR) if _is_unjudged(each) else each for each in settled]


def _is_in_values(finding: Finding, survey: Survey) -> bool:
    """Return True for a key that is set twice in the values of a chart."""
    if finding.rule != "duplicate-key":
        return False
    taken = survey.taken.get(finding.location.file)
    return taken is not None and taken.sort is VALUES_FILE


def _as_values(finding: Finding) -> Finding:
    """Return a finding about the text of values: helm accepts what Kubernetes would refuse."""
    message = "this key is set twice in one mapping, and helm keeps only the last one; remove one"
    return finding._replace(severity=Severity.WARNING, message=message)


def _is_unjudged(finding: Finding) -> bool:
    """Return True if a finding says that a chart was not judged which may be installed."""
    return finding.rule in UNJUDGED_CHART_RULES and finding.cause != "not installed"


def describe_treatment(sort: str) -> str:
    """Return how a sort of file is judged."""
    return _TREATMENTS.get(sort, "not judged")


def count_unjudged(taken: Mapping[str, tuple[str, str]]) -> Counter[str]:
    """Return how many files are not judged, by what they were taken for."""
    return Counter(sort for sort, _ in taken.values() if describe_treatment(sort) == "not judged")


def count_charts(files: Sources, survey: Survey | None) -> Counter[str]:
    """Return how many skipped folders are those of charts, which are counted by their metadata."""
    folders = tuple(f"{folder}/" if folder else "" for folder in survey.charts) if survey else ()
    return Counter({HELM_CHART: sum(path.startswith(folders) for path in files.charts)} if folders else {})


def report_unjudged(taken: Mapping[str, tuple[str, str]]) -> Iterator[Finding]:
    """Report each file whose objects are not judged, for a repository that holds finished objects only."""
    for path, (sort, why) in taken.items():
        if describe_treatment(sort) == "not judged" and not why.startswith(STATED):
            message = (
                f"the file was treated as `{sort}` and not checked, because {why}; "
                f"correct it under `files.{OBJECT.setting}` in the settings, or exclude it"
            )
            yield Finding("unjudged-file", "meta", Severity.ERROR, message, Location(path))


_MAX_NAMED = 3


def check_paths(request: LintRequest) -> None:
    """Raise a UsageError if a path is another jobs repository, or in one of its folders."""
    root = find_root(request.directory.resolve())
    _, standalone = split_paths(request.directory, root, request.paths)
    for path in standalone:
        inside = (request.directory / path).resolve()
        if inside != root and has_settings(inside):
            raise UsageError(f"`{path}` is another jobs repository; lint it with `{_make_command(path)}`")
        other = find_settings(inside.parent)
        if not isinstance(other, Path) or other == root:
            continue
        below = inside.relative_to(other).as_posix()
        if is_repository_file(below):
            shown = os.path.relpath(other, request.directory.resolve())
            command = _make_command(shown, *(() if below == SETTINGS else (below,)))
            raise UsageError(f"`{path}` is in another jobs repository, `{shown}`; lint it with `{command}`")


def refuse_repositories(request: LintRequest, files: Sources) -> None:
    """Raise a UsageError if a folder contains other jobs repositories."""
    entries = files.standalone or ()
    folders: list[str] = []
    for entry in entries:
        # An object can be in a file of that name.
        if entry.optional and posixpath.basename(entry.path) == SETTINGS and not starts_object(entry):
            folder = posixpath.dirname(entry.path) or "."
            full = (request.directory / folder).resolve()
            folders += [folder] if full != files.root and has_settings(full) else []
    if not folders:
        return
    command = _make_command(folders[0])
    if len(folders) == 1:
        text = f"`{folders[0]}` is another jobs repository; lint it with `{command}`"
    else:
        names = [f"`{folder}`" for folder in folders[:_MAX_NAMED]]
        names += [f"{len(folders) - _MAX_NAMED} more"] if len(folders) > _MAX_NAMED else []
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        text = f"{listed} are other jobs repositories; lint each of them, the first with `{command}`"
    inside = tuple(f"{folder}/" for folder in folders)
    has_others = any(not entry.path.startswith(inside) for entry in entries)
    raise UsageError(f"{text}; to lint other manifests, name their folders" if has_others else text)


def _make_command(folder: str, *paths: str) -> str:
    return shlex.join(("jobgen", "-C", folder, "lint", *paths))
