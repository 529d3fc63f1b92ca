"""Decide what the files of a lint are that are in no jobs repository, before they are judged."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jobgen.api.lint_files import STDIN, LintFiles, LintRequest, path_below
from jobgen.kustomize import FolderTree, SourceTree, find_tool
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.recognize import OBJECT, SETTINGS, SORTS
from jobgen.recognize.generated import settle_generated
from jobgen.recognize.survey import STATED, Correction, Survey, survey_files
from jobgen.recognize.tree import list_folders
from jobgen.recognize.variables import report_variables
from jobgen.render.config import ProjectConfig
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.exclude import parse_patterns
from jobgen.repo.files import KUSTOMIZATION_NAMES, OTHER_EXTENSION, FileEntry
from jobgen.repo.git_top import find_path_from_top
from jobgen.repo.named_paths import find_files

_TREATMENTS = {sort.name: sort.treatment for sort in SORTS}


def recognize_files(request: LintRequest, files: LintFiles) -> Survey:
    """Decide what the files are that are judged by themselves."""
    corrections = read_corrections(files.root) if files.root is not None else ()
    entries = [entry for entry in files.standalone or () if entry.path != STDIN]
    # A commit is not on disk, and both sides of a comparison are built in the same way.
    tool = None if isinstance(request.folder, CommitPath) or request.is_compared else find_tool()
    prefix = path_below(request.folder.resolve(), files.root) if files.root is not None else None
    above = _find_above(request.folder)
    # The folders above the linted one, up to the top of Git, belong to the same repository.
    source = FolderTree(request.folder, len([name for name in above.split("/") if name]))
    is_whole = source.depth == 0 and ("." in request.paths or not request.paths)
    normal = [entry if entry.finding else entry._replace(path=_normalize(request.folder, entry)) for entry in entries]
    around = _list_around(request.folder, normal, source, is_whole=is_whole)
    # A file that a build uses has the name that the build gives it.
    entries = normal if around else entries
    survey = survey_files(source, entries, (*files.others, *around), corrections, prefix or "", tool, above)
    piped = [entry for entry in files.standalone or () if entry.path == STDIN]
    return survey._replace(entries=[*survey.entries, *piped])


def _find_above(folder: Folder) -> str:
    """Return the path of a folder from the top of Git."""
    return folder.path if isinstance(folder, CommitPath) else find_path_from_top(folder)


def _list_around(folder: Folder, entries: Sequence[FileEntry], source: SourceTree, *, is_whole: bool) -> list[str]:
    """Return the paths of all files of the repository, if only some are linted and a kustomization may use these."""
    if is_whole:
        return []
    folders = {above for entry in entries for above in list_folders(entry.path)}
    if not any(source.exists(posixpath.join(above, name)) for above in folders for name in KUSTOMIZATION_NAMES):
        return []
    top = "/".join([".."] * source.depth) or "."
    found = [entry for entry in find_files(folder, top) if entry.skipped in ("", OTHER_EXTENSION)]
    return [_normalize(folder, entry) for entry in found]


def _normalize(folder: Folder, entry: FileEntry) -> str:
    """Return the path of a file from the linted folder, however it was named."""
    if isinstance(folder, CommitPath) or not entry.full:
        return posixpath.normpath(entry.path)
    return os.path.relpath(os.path.abspath(entry.full), os.path.abspath(folder)).replace(os.sep, "/")


def read_corrections(root: Folder) -> tuple[Correction, ...]:
    """Return the entries of `files` in the settings, which may have errors; these are found later."""
    file = layout.read_settings(root)
    if file is None or b"files" not in file.content:
        return ()
    from jobgen.yamlio.read import read

    documents = read(file.content, file.path).documents
    listed = documents[0].data.get("files") if documents else None
    pairs = listed.items() if isinstance(listed, dict) else ()
    return tuple(
        Correction(name, pattern)
        for name, texts in pairs
        if name in SETTINGS and isinstance(texts, list)
        for pattern in parse_patterns(text for text in texts if isinstance(text, str))
    )


def name_taken(survey: Survey, left_out: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return what each file was taken for, and why, by path; `left_out` are those that turned out to be no objects."""
    objects = (entry.path for entry in survey.entries if entry.build is None and not entry.is_source)
    taken = dict.fromkeys(objects, (OBJECT.name, "nothing says that it is anything else"))
    return taken | {path: (found.sort.name, found.why) for path, found in survey.taken.items()} | dict(left_out)


def settle_findings(findings: Sequence[Finding], survey: Survey, project: ProjectConfig) -> list[Finding]:
    """Return the findings, milder where a program of the repository fills in a value or creates a file."""
    known = set(findings)
    found = report_variables(list(settle_generated(findings, survey.tree)), survey.tree)
    return [severe for each in found if (severe := each if each in known else project.apply_severity(each))]


def describe_treatment(sort: str) -> str:
    """Return how a sort of file is judged."""
    return _TREATMENTS.get(sort, "not judged")


def count_unjudged(taken: Mapping[str, tuple[str, str]]) -> Counter[str]:
    """Return how many files are not judged, by what they were taken for."""
    return Counter(sort for sort, _ in taken.values() if describe_treatment(sort) == "not judged")


def report_unjudged(taken: Mapping[str, tuple[str, str]]) -> Iterator[Finding]:
    """Report each file whose objects are not judged, for a repository that holds finished objects only."""
    for path, (sort, why) in taken.items():
        if describe_treatment(sort) == "not judged" and not why.startswith(STATED):
            message = (
                f"the file was taken for `{sort}` and not judged, because {why}; "
                f"correct it under `files.{OBJECT.setting}` in the settings, or exclude it"
            )
            yield Finding("unjudged-file", "meta", Severity.ERROR, message, Location(path))
