"""The request for a lint, the files it means, and the outcome."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jobgen.api.errors import UsageError
from jobgen.engine.inputs import MISSING, record
from jobgen.model.lazy_re import may_mention
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.file_result import SameFiles
from jobgen.repo import git, layout
from jobgen.repo.commit import CommitPath, Folder, describe_path, open_commit
from jobgen.repo.files import EXCLUDED, HELM_CHART, OTHER_EXTENSION, FileEntry, report_missing_path, report_unread_path
from jobgen.repo.layout import Layers, own_layers
from jobgen.repo.named_paths import find_files
from jobgen.repo.root import (
    LAYER_FOLDERS,
    SETTINGS,
    SOURCE_FOLDERS,
    find_root,
    has_settings,
    holds_layers,
    is_repository,
    lacks_jobs,
)
from jobgen.repo.shipped import BUILT_IN
from jobgen.repo.walk import ExcludePattern, is_excluded, parse_patterns
from jobgen.reports.narrowing import EVERYTHING, Narrowing
from jobgen.reports.suppress import Coverage

if TYPE_CHECKING:
    from jobgen.model.finding import Finding
    from jobgen.reports import Opinion, Suppressed
    from jobgen.reports.suppress import Suppression

STDIN = "<stdin>"
_NOTHING_READ = "no file in this folder is read; it is empty, or holds only hidden and other files"
REPOSITORY_FOLDERS = (*SOURCE_FOLDERS, SETTINGS)
_LAYERS = (*(f"{folder}/" for folder in LAYER_FOLDERS), "overlays", SETTINGS, BUILT_IN)


class LintRequest(NamedTuple):
    """What to lint."""

    directory: Path
    paths: Sequence[str] = ()
    """Files and folders; without them, the whole repository."""
    envs: Sequence[str] = ()
    stdin: bytes | None = None
    """The content of `-`."""
    today: str = ""
    committed: CommitPath | None = None
    """The directory at a commit, if that is linted instead of the files on disk."""
    second_opinion: bool = False
    """True to run all other tools too that are installed."""
    strict_files: bool = False
    """True if a file whose objects are not judged is an error."""
    is_compared: bool = False
    """True if another revision is linted too, to compare them."""
    keeps_results: bool = True
    """False if the results of single files are not asked for again: without a cache and another revision."""
    leaves_objects: bool = False
    """True if the objects of jobs are left in the store, for a snapshot of the same files."""
    starts_tools: bool = True
    """False if no other program builds what jobgen cannot build, as in an editor."""
    compares_trees: bool = True
    """False if declared trees are not compared with the sources, as in an editor, where the sources change."""
    chart_values: tuple[str, ...] = ()
    """The files of values that Helm charts are rendered with; without them, those of their releases."""
    narrowing: Narrowing = EVERYTHING
    """What to show, on top of the settings."""
    same: SameFiles = SameFiles()
    """Files whose results are those of the lint that this one is compared with, so that no lint has to find them."""
    judged: Layers | None = None
    """The repository of the directory, if another revision of it decides what is checked."""

    @property
    def other_tools(self) -> tuple[str, ...]:
        """The tools that check the same objects, so that disagreements are found."""
        return ("jsonschema", "kubeconform") if self.second_opinion else ()

    @property
    def folder(self) -> Folder:
        """The directory that files are read from."""
        return self.committed or self.directory

    def find_layers(self, root: Folder) -> Layers:
        """Return where the layers of a repository are read from."""
        return self.judged if self.judged is not None and self.judged.root == root else own_layers(root)


class Sources(NamedTuple):
    """The files of a lint."""

    layers: Layers | None
    """The layers of the repository, if the files are in one."""
    whole: bool
    """True if the whole repository is rendered."""
    jobs: list[FileEntry]
    standalone: list[FileEntry] | None
    """Manifests that are checked by themselves; None if there can be none."""
    skipped: Mapping[str, int]
    """How many files and folders are not read, by reason."""
    patterns: tuple[ExcludePattern, ...] = ()
    """`exclude` of the settings."""
    charts: tuple[str, ...] = ()
    """The paths of folders, or files in a commit, that are not read because they are those of a Helm chart."""
    others: tuple[str, ...] = ()
    """The paths of files beside the manifests, such as scripts, which may say what a manifest is."""
    adds_charts: bool = False
    """True if the charts beside the jobs of a repository are the manifests, and the files around them are none."""

    @property
    def root(self) -> Folder | None:
        """The repository, if the files are in one."""
        return self.layers.root if self.layers is not None else None

    def is_excluded(self, file: str) -> bool:
        """True if findings in a file of jobs/ are left out. Layers affect many jobs, so they are never excluded."""
        return file.startswith("jobs/") and is_excluded(file, self.patterns)


class LintContents(NamedTuple):
    """What a lint read, to compare it with another one. All of it can be rendered."""

    digests: Mapping[str, str]
    """The digests of the files of jobs, by path, and of the layers, under an empty path."""
    dated: frozenset[str]
    """The files whose objects depend on the date."""
    devices: frozenset[str]
    """The files with objects that define devices, on which the objects of other files depend."""


class LintNotes(NamedTuple):
    """What a lint says besides its findings."""

    weaker: Sequence[str] = ()
    """What the settings check less than jobgen does without them."""
    captures: Sequence[str] = ()
    """Of which day the captured state of each environment is."""
    trees: Sequence[str] = ()
    """How much of the declared trees was compared with the sources."""


class Lint(NamedTuple):
    """The outcome of a lint."""

    findings: list[Finding]
    hidden: Sequence[Suppressed]
    """Findings that are not reported, and why."""
    files: int
    objects: int
    environments: list[str]
    rules: frozenset[str]
    root: Path
    comments: list[Suppression]
    mandatory: frozenset[str]
    today: str
    coverage: Coverage
    skipped: Mapping[str, int]
    """How many files and folders were not judged, by reason."""
    taken: Mapping[str, tuple[str, str]]
    """What each file was taken for that is in no jobs repository, and why, by path."""
    rendered: bool = False
    """True if it is known that nothing prevents a render."""
    opinions: Sequence[Opinion] = ()
    contents: LintContents | None = None
    """What was read, if nothing prevents a render."""
    notes: LintNotes = LintNotes()
    lines: Mapping[str, Mapping[int, str]] = MappingProxyType({})
    """The lines of files that findings point at, without secrets, by path and number; not of all files."""
    narrowing: Narrowing = EVERYTHING
    """What to show of the findings, by the settings."""
    beside: Mapping[str, str] | None = MappingProxyType({})
    """The digests of what was found in files that are not checked whole: layers, and files of which the results are
    the same in another lint. None if such a lint may show something else than a whole one."""


def find_sources(request: LintRequest) -> Sources:
    """Find the files to lint."""
    root = find_lint_root(request)
    layers = request.find_layers(root) if root is not None else None
    repository, standalone = split_paths(request.folder, root, request.paths)
    whole = root is not None and bool(repository or not request.paths)
    skipped: Counter[str] = Counter()
    jobs: list[FileEntry] = []
    if root is not None and whole:
        sources = [entry for top in SOURCE_FOLDERS for entry in layout.find_sources(root, top)]
        skipped.update(entry.skipped for entry in sources if entry.skipped)
        # Layers are read by those who need them; what is wrong with a job's file is found when it is read.
        jobs = [entry for entry in sources if _is_job(entry) or (entry.finding and entry.finding.rule == "unread-file")]
        jobs += _find_unread(root, repository, sources)
    patterns = read_patterns(layers) if layers is not None else ()
    if whole and isinstance(root, Path) and (not request.paths or REPOSITORY_FOLDERS[0] in repository):
        from jobgen.repo.layout import find_misnamed

        jobs += find_misnamed(root, patterns)
    if patterns and whole:
        skipped[EXCLUDED] += sum(_is_job(entry) and is_excluded(entry.path, patterns) for entry in jobs)
    if root is not None and not request.paths and lacks_jobs(root):
        standalone = [_go_up(request.folder, root) or "."]
    charts = _find_charts(request, root, repository, patterns)
    if not standalone and not charts and request.stdin is None and root is not None:
        return Sources(layers, whole, jobs, None, +skipped, patterns)
    prefix = path_below(request.folder.resolve(), root) if root is not None else None

    def name_from_root(path: str) -> str:
        return posixpath.normpath(posixpath.join(prefix or "", path))

    def is_left_out(path: str) -> bool:
        return bool(patterns) and prefix is not None and is_excluded(name_from_root(path), patterns)

    is_searched = not charts or standalone or request.stdin is not None
    found = [*charts, *(_find_standalone(request, standalone, is_left_out) if is_searched else ())]
    skipped.update(entry.skipped for entry in found if entry.skipped)
    others = tuple(entry.path for entry in found if entry.skipped == OTHER_EXTENSION)
    entries = [entry for entry in found if not entry.skipped]
    if root is not None and prefix is not None:
        entries = [entry for entry in entries if not _is_layer(root, name_from_root(entry.path))]
    folders = tuple(entry.path for entry in found if entry.skipped == HELM_CHART)
    return Sources(layers, whole, jobs, entries, +skipped, patterns, folders, others, bool(charts))


def _go_up(folder: Folder, root: Folder) -> str:
    """Return the path of the root from a folder in it; empty for the root itself."""
    return "/".join([".."] * (len(folder.resolve().parts) - len(root.parts)))


def _find_charts(
    request: LintRequest, root: Folder | None, repository: Sequence[str], patterns: Sequence[ExcludePattern]
) -> list[FileEntry]:
    """Return the metadata of the charts beside the jobs if all of a repository is linted."""
    if root is None or (request.paths and not _names_all(repository)) or lacks_jobs(root):
        return []
    # Imported late: a lint of some files looks for no charts.
    from jobgen.repo.chart_search import find_charts, report_limit

    def is_left_out(path: str) -> bool:
        return bool(patterns) and is_excluded(path, patterns)

    charts = find_charts(root, is_left_out)
    up = _go_up(request.folder, root)
    named = [posixpath.join(up, path) for path in charts.paths if not is_left_out(path)]
    found = [each._replace(optional=True) for path in named for each in find_files(request.folder, path)]
    packages = (posixpath.join(up, path) for path in charts.archives if not is_left_out(path))
    found += (FileEntry(path, skipped=OTHER_EXTENSION) for path in packages)
    return found if charts.is_complete else [*found, report_limit(SETTINGS)]


def _is_layer(root: Folder, path: str) -> bool:
    """Return True if a file is the settings, or in a folder of layers, which are read by themselves."""
    top = path.partition("/")[0]
    return path == SETTINGS or (top in LAYER_FOLDERS and top != path and holds_layers(root, top))


def _find_standalone(
    request: LintRequest, standalone: Sequence[str], is_left_out: Callable[[str], bool]
) -> Iterator[FileEntry]:
    """Yield the manifests at paths that are in no folder of the repository, and standard input."""
    for path in standalone or ([] if request.paths else ["."]):
        entries = list(find_files(request.folder, path, is_left_out))
        yield from entries
        if len(standalone) > 1 and not any(entry.skipped in ("", EXCLUDED) for entry in entries):
            yield report_unread_path(path, _NOTHING_READ)
    if request.stdin is not None:
        yield FileEntry(STDIN, content=request.stdin)


@contextmanager
def open_judge(request: LintRequest, revision: str) -> Iterator[LintRequest]:
    """Read what decides from a revision; raise a UsageError if there is none. `.` is the folder itself.

    Files outside a jobs repository are judged by settings as well, if these are above them. Before the first commit,
    nothing can judge it.
    """
    root = find_root(request.directory.resolve())
    is_first = revision == "HEAD" and git.find_work_tree(request.directory) and not git.has_commit(request.directory)
    if revision in ("", ".") or root is None or is_first:
        yield request
        return
    try:
        with record():  # what Git says is asked once, also by a comparison
            commit = git.resolve_commit(request.directory, revision)
            with open_commit(root, commit) as base:
                yield request._replace(judged=Layers(root, base))
    except git.GitError as error:
        raise UsageError(str(error)) from error


def find_lint_root(request: LintRequest) -> Folder | None:
    """Return the jobs repository of a lint.

    A folder without settings whose jobs know nothing of jobgen is linted like any other if it is named.
    """
    folder = request.folder.resolve()
    root = find_root(folder)
    is_named = root == folder and any((folder / path).resolve() == folder for path in request.paths if path != "-")
    is_other = root is not None and not has_settings(root) and not is_repository(root)
    return None if is_named and is_other else root


def read_patterns(layers: Layers) -> tuple[ExcludePattern, ...]:
    """The patterns in `exclude` of the settings."""
    listed = read_setting(layers, "exclude")
    return parse_patterns(text for text in listed if isinstance(text, str)) if isinstance(listed, list) else ()


def read_setting(layers: Layers, name: str) -> Any:
    """A field of the settings, which may have errors; these are found later."""
    file = layout.read_settings(layers)
    if file is None or not may_mention(file.content, name.encode()):
        return None
    from jobgen.yamlio.read import read

    source = read(file.content, file.path)
    return next((each.data.get(name) for each in (*source.documents, *source.repaired)), None)


def path_below(folder: Folder, root: Folder) -> str | None:
    """The path of a folder from the root; None if it is elsewhere."""
    above = len(root.parts)
    return "/".join(folder.parts[above:]) if folder.parts[:above] == root.parts else None


def _is_job(entry: FileEntry) -> bool:
    return not entry.skipped and (entry.path == "jobs" or entry.path.startswith("jobs/"))


def _find_unread(root: Folder, paths: Iterable[str], sources: Sequence[FileEntry]) -> Iterator[FileEntry]:
    """Return a finding for each path in the repository's folders that does not exist or that is not read."""
    by_path = {entry.path: entry for entry in sources}
    named = dict.fromkeys(paths)
    # The root stands for all of its folders, of which some may be missing.
    for path in named if not named.keys() >= set(REPOSITORY_FOLDERS) else named.keys() - set(REPOSITORY_FOLDERS):
        entry = by_path.get(path)
        what = describe_path(root / path)
        if path == SETTINGS and not what.endswith(MISSING):
            continue
        if what == MISSING:
            yield report_missing_path(path, by_path)
        elif entry is not None and entry.skipped:
            yield report_unread_path(path, f"the file is not read ({entry.skipped}); rename it, or leave it out")
        elif entry is None and not any(each.path.startswith(f"{path}/") and not each.skipped for each in sources):
            yield report_unread_path(path, _NOTHING_READ)


def _names_all(repository: Collection[str]) -> bool:
    """Return True if paths in the folders of a repository are all of these, as for its root."""
    return REPOSITORY_FOLDERS[-1] in repository and len(repository) >= len(REPOSITORY_FOLDERS)


def select_findings(
    findings: Iterable[Finding], request: LintRequest, find_files: Callable[[Finding], Iterable[str]] = lambda _: ()
) -> list[Finding]:
    """Return the findings in the given paths, and those in overlays, policies and kinds, which affect every job.

    `find_files` returns the files whose jobs a finding is about, if it is about certain jobs.
    """
    repository, standalone = split_paths(request.folder, find_lint_root(request), request.paths)
    if not repository or _names_all(repository):
        return list(findings)
    named = {path.removeprefix("./").rstrip("/") for path in (*repository, *standalone)}
    wanted = named | ({STDIN} if request.stdin is not None else set())

    def is_named(file: str) -> bool:
        if file in wanted or "." in wanted:
            return True
        return any(file[:index] in wanted for index, letter in enumerate(file) if letter == "/")

    def is_selected(finding: Finding) -> bool:
        file = finding.location.file
        if is_named(file) or not file.startswith(_LAYERS):
            return is_named(file)
        jobs = list(find_files(finding))
        return not jobs or any(map(is_named, jobs))

    return list(filter(is_selected, findings))


def is_repository_file(file: str) -> bool:
    """Return True if a file, relative to the root of a jobs repository, is in one of its folders."""
    return file.partition("/")[0] in REPOSITORY_FOLDERS


def split_paths(directory: Folder, root: Folder | None, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return paths in the folders of the repository, relative to its root, and all others, unchanged."""
    repository: list[str] = []
    standalone: list[str] = []
    for path in paths:
        if path == "-":
            continue
        full = (directory / path).resolve()
        relative = (path_below(full, root) or "") if root is not None else ""
        if root is not None and full == root:
            repository += REPOSITORY_FOLDERS
            standalone += [path] if lacks_jobs(root) else []
        elif relative and is_repository_file(relative):
            repository.append(relative)
        else:
            standalone.append(path)
    return repository, standalone
