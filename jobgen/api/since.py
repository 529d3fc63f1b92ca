"""`jobgen lint --since`: the findings that a change adds, and findings about the change itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from jobgen.api.errors import JobgenError, UsageError
from jobgen.api.lint_answers import ask_findings, knows_findings
from jobgen.api.lint_files import (
    Lint,
    LintContents,
    LintRequest,
    Sources,
    find_sources,
    is_repository_file,
    select_findings,
    split_paths,
)
from jobgen.check.cluster.exported import read_located
from jobgen.compare.change_rules import ChangedFiles, check_change, check_snapshots
from jobgen.compare.governance import find_begun, find_changed_files, find_changes, to_findings
from jobgen.engine.store import Store
from jobgen.engine.workers import run_beside
from jobgen.model.builtin_rules import UNREAD_RULES, original_rule_name
from jobgen.model.data import Location, TracedKey, TracedList, TracedScalar, untraced
from jobgen.model.finding import Finding, FindingIdentity, Severity, sort_findings
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_pointer, list_item_names
from jobgen.pipeline.environment_checker import find_duplicates
from jobgen.pipeline.finish import Finishing, finish, hide_commented
from jobgen.pipeline.policies import load_policies
from jobgen.recognize import RENDERED_CHART
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.file_result import SameFiles
from jobgen.rendering.load_layers import digest_layers, load_project
from jobgen.rendering.result_inputs import digest_entry
from jobgen.repo import git, layout
from jobgen.repo.commit import CommitPath, Folder, open_commit
from jobgen.repo.files import is_manifest_name
from jobgen.repo.named_paths import read_first
from jobgen.repo.root import SETTINGS, find_root
from jobgen.yamlio.read import read

_SIMILAR = 0.5
"""The share of equal lines from which a file counts as moved, as in Git."""
_SUMS = frozenset(("exceeds-quota", "gpu-budget-exceeded", "sweep-too-large"))
"""Rules about a sum of several jobs: their values say which sum. They report on one of the jobs, which may change."""
_KINDS = frozenset(("queue-support-ending",))
"""Rules that report once for all jobs of a kind, on one of them. Their values have the number of jobs."""
_OF_SEVERAL = _SUMS | _KINDS
_Known: TypeAlias = tuple[Severity, FindingIdentity]
"""What makes two findings of two revisions the same."""


class Side:
    """The findings of one revision, and the folders that their files are relative to."""

    def __init__(self, findings: Sequence[Finding], folders: Sequence[Folder]) -> None:
        self.findings = findings
        self._folders = folders
        self._contents: dict[str, bytes | None] = {}
        self._places: dict[str, dict[tuple[int, int], str]] = {}

    def read(self, file: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        if file not in self._contents:
            found = read_first(self._folders, file)
            self._contents[file] = found.content if found else None
        return self._contents[file]

    def normalize(self, file: str) -> str:
        """Return the path of a file as it is in both revisions, however it was named."""
        folder = self._folders[-1]
        is_absolute = isinstance(folder, Path) and os.path.isabs(file)
        return os.path.relpath(file, str(folder)) if is_absolute else os.path.normpath(file)

    def find_place(self, finding: Finding) -> str:
        """Return the document and the path in it that a finding points at; the line if the file is not valid YAML."""
        file, line, column, *_ = finding.location
        if file not in self._places:
            wanted = {each.location[1:3] for each in self.findings if each.location.file == file}
            found = _list_places(self.read(file) or b"", file)
            self._places[file] = {start: place for start, place in found if start in wanted}
        place = self._places[file].get((line, column), "")
        lines = [] if place else (self.read(file) or b"").splitlines()
        return lines[line - 1].strip().decode("utf-8", "replace") if 0 < line <= len(lines) else place

    @cached_property
    def faulty_files(self) -> list[str]:
        """The files of findings that have no object, so that only their file identifies them."""
        return list(dict.fromkeys(self.normalize(each.location.file) for each in self.findings if each.object is None))


def find_new(now: Side, before: Side) -> list[Finding]:
    """Return the findings that were not there before."""
    added = [file for file in now.faulty_files if before.read(file) is None]
    moved: dict[str, str] = {}
    for old in before.faulty_files:
        content = before.read(old)
        if content is None or now.read(old) is not None or not added:
            continue
        likeness = {file: _measure_similarity(content, now.read(file) or b"") for file in added}
        best = max(added, key=likeness.__getitem__)
        if likeness[best] >= _SIMILAR:
            moved[old] = best
            added.remove(best)
    left: dict[_Known, list[str]] = {}
    for finding in before.findings:
        file = before.normalize(finding.location.file)
        file = moved.get(file, file) if finding.object is None else file
        left.setdefault(_identify(finding, before, moved), []).append(file)
    # A finding in the same file is the same one; what is left may have moved to another file.
    new: list[Finding] = []
    others: list[Finding] = []
    for finding in now.findings:
        known, file = left.get(_identify(finding, now, {}), []), now.normalize(finding.location.file)
        if file in known:
            known.remove(file)
        else:
            others.append(finding)
    for finding in others:
        # In a jobs repository, a job is in one file. Manifests of the same name may be in several, for different
        # clusters, so there the job must have left its old file or come in a new one.
        key, file = _identify(finding, now, {}), now.normalize(finding.location.file)
        for other in left.get(key, ()) if finding.object else ():
            is_job = is_repository_file(file) and is_repository_file(other)
            if is_job or finding.rule in _OF_SEVERAL or now.read(other) is None or before.read(file) is None:
                left[key].remove(other)
                break
        else:
            new.append(finding)
    return new


def _identify(finding: Finding, side: Side, moved: dict[str, str]) -> _Known:
    """Return what makes a finding the same one in another revision: with other values, a fault has become worse."""
    same = finding.identity._replace(rule=original_rule_name(finding.rule), values=finding.values)
    if finding.object is None:
        file = side.normalize(same.file)
        same = same._replace(file=moved.get(file, file), path=finding.place or side.find_place(finding))
    elif finding.rule in _SUMS:
        same = same._replace(kind=("", ""), namespace="", name="", path="")
    elif finding.rule in _KINDS:
        same = same._replace(kind=("", same.kind[1]), namespace="", name="", path="", values=())
    else:
        numbers = finding.message_numbers if finding.evidence is None else ()
        # The name of a run changes with its content; the place holds the name of the job.
        name = "" if finding.place else same.name
        same = same._replace(name=name, path=finding.place, values=(*finding.values, *numbers))
    return finding.severity, same


def _measure_similarity(one: bytes, other: bytes) -> float:
    if one == other:
        return 1.0
    lines, others = Counter(one.split(b"\n")), Counter(other.split(b"\n"))
    return (lines & others).total() / max(lines.total(), others.total())


def _list_places(content: bytes, file: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the line and column of every key and value of a file, with its document and path."""
    for index, document in enumerate(read(content, file, traced=True).documents):
        data = document.data
        plain = untraced(data) if isinstance(data, dict) else {}
        metadata = plain.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        start = f"{plain.get('kind')} {name}" if name else str(index)
        pending: list[tuple[Any, str]] = [(data, start)]
        while pending:
            node, place = pending.pop()
            if isinstance(node, TracedScalar):
                yield node.location[1:3], place
            elif isinstance(node, dict):
                for key, child in node.items():
                    below = f"{place}{format_pointer((key,))}"
                    pending.append((child, below))
                    if isinstance(key, TracedKey):
                        yield key.location[1:3], below
            elif isinstance(node, list):
                steps = list_item_names(node)
                pending += [
                    (child, f"{place}{format_pointer((step,))}") for child, step in zip(node, steps, strict=True)
                ]
                if isinstance(node, TracedList):
                    yield node.location[1:3], place


_MAX_SEARCHED = 20_000
"""The number of files up to which a commit is searched for the old paths of moved manifests."""


class Compared(NamedTuple):
    """A lint compared with that of a revision."""

    new: Lint
    """The lint with only the findings that were not there at the revision, and those about the change."""
    gone: list[Finding]
    """The findings of the revision that are not there any more."""
    same: SameFiles
    """The files that were not checked, because their findings are the same at the revision."""


class _Base(NamedTuple):
    """What a lint is compared with."""

    old: CommitPath
    """The directory at the revision."""
    root: CommitPath
    then: LintRequest
    today: str


def findings_since(
    request: LintRequest, revision: str, now: Lint, store: Store, shown: Sequence[Finding] | None = None
) -> Compared:
    """Compare a lint with that of a revision, or raise a UsageError if there is none.

    The store has the results of files in the lint: those of files that are the same at the revision are used again.
    `shown` are the findings of the lint as they are shown, if it matters which ones are gone.
    """
    with _open_base(request, revision) as base:
        return _compare(request, base, now, store, shown)


_ATTEMPTS = 3
"""How often files are added to those that are checked before all of them are."""


def lint_since(request: LintRequest, revision: str, store: Store, lint: Callable[[LintRequest], Lint]) -> Compared:
    """Lint, and compare with a revision, or raise a UsageError if there is none.

    Files of which both lints find the same are not checked, where that is certain.
    """
    with _open_base(request, revision) as base:
        # Imported late: nothing is checked if the store knows the lint.
        same, alike = SameFiles(), frozenset[str]()
        if not knows_findings(request._replace(is_compared=True), store):
            from jobgen.api.same_files import find_alike, find_unlike

            same, alike = find_alike(request, base.then, store)
        for _ in range(_ATTEMPTS if same.pairs else 0):
            now = lint(request._replace(same=same))
            before = ask_findings(base.then._replace(same=same, is_compared=True), store)
            unlike = find_unlike(now, before, same)
            if unlike is None:
                break
            if not unlike:
                return _compare(request._replace(same=same), base, now, store, alike=alike)
            same = same._replace(pairs=frozenset(pair for pair in same.pairs if pair[0] not in unlike))
        return _compare(request, base, lint(request), store, alike=alike)


@contextmanager
def _open_base(request: LintRequest, revision: str) -> Iterator[_Base]:
    if request.stdin is not None:
        raise UsageError("standard input has no revisions; remove `-` or `--since`")
    try:
        commit = git.resolve_commit(request.directory, revision)
        with open_commit(request.directory, commit) as old:
            root = find_root(old.resolve()) or old
            # The same files and environments at the commit, as far as it has them.
            envs = [env for env in request.envs if (root / "overlays" / env).is_dir()]
            today = request.today or git.read_day(request.directory)
            then = request._replace(committed=old, paths=_list_old_paths(request, old), envs=envs, today=today)
            yield _Base(old, root, then, today)
    except git.GitError as error:
        raise UsageError(str(error)) from error


def _compare(
    request: LintRequest,
    base: _Base,
    now: Lint,
    store: Store,
    shown: Sequence[Finding] | None = None,
    alike: frozenset[str] = frozenset(),
) -> Compared:
    """Compare a lint with that of a revision, where the objects of some files are alike."""
    old, root, then, today = base
    then = then._replace(same=request.same, is_compared=request.is_compared)
    days = request.today or old.commit.date, today
    check = partial(check_change, old, request.directory, request.envs, days, store=store)
    governed = _check_governance(request, root, now, store)
    before, found = _lint_and_check(request, then, now, store, check, alike)
    changes = [*select_findings(found, request), *_check_releases(request, old, now, days), *governed]
    # Where nothing can be linted at the revision, all findings are new.
    known = before.findings if before else []
    gone = find_new(Side(known, (root, old)), Side(shown, (request.directory,))) if shown is not None else []
    # That a named path is not read is never old.
    known = [each for each in known if each.rule not in UNREAD_RULES or each.location.file not in then.paths]
    new = find_new(Side(now.findings, (now.root, request.directory)), Side(known, (root, old)))
    return Compared(_add_findings(now._replace(findings=new), changes, today), gone, request.same)


def add_governance(request: LintRequest, now: Lint, store: Store) -> Lint:
    """Return a lint that another revision judges, with what the folder changes about the rules."""
    judge = request.judged.judge if request.judged else None
    return _add_findings(now, _check_governance(request, judge, now, store), "") if judge else now


def _add_findings(linted: Lint, added: Sequence[Finding], today: str) -> Lint:
    # A comment cannot hide what a change does to the rules.
    mandatory = linted.mandatory | {"weaker-governance", "governance-change", "backdated-commit"}
    context = Finishing(mandatory, comments=linted.comments, today=linted.today or today)
    kept = finish(added, context, (hide_commented,))
    findings = sort_findings((*linted.findings, *kept))
    return linted._replace(findings=findings, hidden=[*linted.hidden, *context.hidden])


def _list_old_paths(request: LintRequest, old: CommitPath) -> list[str]:
    """Return the paths to lint at a commit: also those from which files may have been moved to the given paths."""
    if not request.paths:
        return []
    root = find_root(request.directory.resolve())
    repository, standalone = split_paths(request.directory, root, request.paths)
    paths = [os.path.relpath(request.directory / path, request.directory) for path in standalone]
    # In a very large repository, no manifests are searched that no longer exist.
    with suppress(git.GitError):
        for below, entry in CommitPath(old.commit).walk(_MAX_SEARCHED) if standalone else ():
            path = os.path.relpath(below, old.path or ".")
            if entry.is_file and is_manifest_name(below) and not os.path.lexists(request.directory / path):
                paths.append(path)
    return [*paths, os.path.relpath(root, request.directory.resolve())] if root and repository else paths


def _lint_and_check(
    request: LintRequest,
    then: LintRequest,
    now: Lint,
    store: Store,
    check: Callable[[ChangedFiles | None], list[Finding]],
    alike: frozenset[str],
) -> tuple[Lint | None, list[Finding]]:
    """Lint the old side, and find the problems of the change, in another process if both take long."""
    own = find_root(request.directory.resolve())

    def check_own(changed: ChangedFiles | None) -> list[Finding]:
        """Find what the merge does with the settings that it brings. If these differ, any job can change."""
        if own is None or changed is None or request.judged is None:
            return check(changed)
        sides = (request.judged, layout.own_layers(own))
        is_alike = _render_alike(*(load_project(store, each, request.today) for each in sides))
        return check(changed if is_alike else None)

    if request.envs and not then.envs:
        return None, check_own(None)
    try:
        files = find_sources(then)
    except JobgenError:
        return None, check_own(None)
    likely = _predict_changed(now.contents, files)
    with run_beside(lambda: check_own(likely), len(files.jobs) if likely is not None else 0) as wait:
        try:
            before = ask_findings(then, store)
        except JobgenError:
            before = None
        changed = _find_changed(now.contents, before and before.contents, alike)
        return before, wait() if likely is not None and changed == likely else check_own(changed)


def _check_releases(request: LintRequest, old: CommitPath, now: Lint, days: tuple[str, str]) -> list[Finding]:
    """Find what a change does to the releases of charts, if all of a repository is linted."""
    is_whole = not request.paths or "." in request.paths
    if not is_whole or all(sort != RENDERED_CHART.name for sort, _ in now.taken.values()):
        return []
    # Imported late: most repositories have no charts.
    from jobgen.api.tree_entries import snapshot_changed_releases

    root = find_root(request.directory.resolve())
    is_below = root is not None and root != request.directory.resolve()
    sides = (
        () if is_below else snapshot_changed_releases(request.directory, (old, request.directory), days, request.judged)
    )
    return check_snapshots(*sides) if sides else []


def _check_governance(request: LintRequest, old: Folder, now: Lint, store: Store) -> list[Finding]:
    """Return what a change does to the rules that it is judged by, and the errors of files that do not judge it."""
    root = find_root(request.directory.resolve())
    if root is None:
        return []
    layers, own = request.find_layers(root), layout.own_layers(root)
    judge, judging = layers.judge, load_project(store, layers, request.today)
    changed = find_changed_files(judge or old, root)
    changes = find_changes(judge or old, root) if changed else []
    jobs = (read_first((root,), file) for file in sorted({each.location.file for each in now.comments}))
    files = {file.path: file for file in (*layout.read_layers(own), *filter(None, jobs))}
    begun = find_begun(judge or old, root, files.values(), now.mandatory)
    # What judges is read from elsewhere, so nothing else reports what is wrong with the files that will.
    wrong = list(_find_errors(load_project(store, own, request.today))) if changed else []
    found = [*to_findings([*changes, *begun], is_judged=judge is not None), *_check_dates(request)]
    found += (each for each in wrong if each.location.file in changed and each not in now.findings) if judge else ()
    return list(filter(None, map(judging.apply_severity, found)))


def _find_errors(own: ProjectConfig) -> Iterator[Finding]:
    """Yield what is wrong with the layers, policies and captured states of a repository."""
    # With locations, which cost more.
    yield from config.load(own.layers, traced=True, today=own.today).findings if own.findings else ()
    yield from load_policies(own.layers).findings
    found: list[Finding] = []
    for folder in sorted({own.environment(env, []).cluster.state for env in own.environments()} - {""}):
        exported = list(read_located(own.layers, folder, found))
        yield from find_duplicates(exported, folder)
    yield from found


def _check_dates(request: LintRequest) -> Iterator[Finding]:
    """Report a commit that says that it is older than its parent: exceptions would hold that have expired."""
    own, newest = git.read_commit_date(request.directory), git.read_day(request.directory, ci=False)
    if own and own < newest:
        message = f"the date of this commit is {own}, before that of its parent, {newest}; the later one decides"
        yield Finding("backdated-commit", "meta", Severity.WARNING, message, Location(SETTINGS, 1, 1))


def set_day(request: LintRequest, revision: str) -> LintRequest:
    """Return a request whose date is not before that of the revision that it is compared with."""
    then = git.read_day(request.directory, revision, ci=False)
    is_later = not request.today and then > git.read_day(request.directory)
    return request._replace(today=then) if is_later else request


def _predict_changed(now: LintContents | None, before: Sources) -> ChangedFiles | None:
    """Return the files that may be rendered differently, if the old side can be rendered and has the same layers."""
    if now is None or before.layers is None or before.standalone is not None:
        return None
    layers = digest_layers(before.layers)
    if layers != now.digests[""]:
        return None
    digests = {entry.path: digest_entry(entry) for entry in before.jobs}
    return _find_changed(now, LintContents({"": layers, **digests}, frozenset(), frozenset()))


def _render_alike(one: ProjectConfig, other: ProjectConfig) -> bool:
    """Return True if two projects with the same overlays certainly render the same, whatever judges them."""
    if one.digest == other.digest:
        return True
    projects = [(each.kinds, each.settings, each.findings, each.runtimes, each.teams) for each in (one, other)]
    environments = [[each.environment(name, []) for name in each.overlays] for each in (one, other)]
    # Representations are compared, because `1`, `1.0` and `true` are equal in Python.
    return repr((projects[0], environments[0])) == repr((projects[1], environments[1]))


def _find_changed(
    now: LintContents | None, before: LintContents | None, alike: frozenset[str] = frozenset()
) -> ChangedFiles | None:
    """Return the files that may be rendered differently at two revisions; None if one cannot be rendered.

    The objects of files that are `alike` differ at most by the date.
    """
    if now is None or before is None:
        return None
    devices = now.devices | before.devices
    paths = frozenset((now.digests.keys() | before.digests.keys()) - {""})
    if now.digests[""] != before.digests[""]:
        return ChangedFiles(paths - (alike - now.dated - before.dated - devices), devices)
    changed = frozenset(path for path in paths if now.digests.get(path) != before.digests.get(path))
    return ChangedFiles(changed | now.dated | before.dated | devices, devices)
