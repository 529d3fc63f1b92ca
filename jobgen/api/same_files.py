"""Which files a lint need not check that is compared with another one: their findings are the same in both.

What is found in a file is a function of what its results can read: the file, the layers of its environments, and
files that others use. Where all of that is the same at two revisions, no finding is new. Such a file is rendered, once
for both revisions, because what it adds to sums and comparisons of jobs counts; nothing checks its objects.

The stages after the checks look at all findings of a file together, and at those in layers. So a file is checked whole
or not at all, and where the two lints differ in a file that was not checked, that is checked, too. Where they differ
in a layer, or what a file says may concern others in a way that only a whole lint shows, all files are checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import repeat, zip_longest

from jobgen.api.errors import JobgenError
from jobgen.api.lint_files import LintRequest, LintRun, resolve_files
from jobgen.api.project import select_environments
from jobgen.check.rules import all_rules
from jobgen.engine.store import Store
from jobgen.k8s.devices import concerns_devices
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.builtin_rules import canonical_rule_name
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.lint_checks import CHECKED, CHECKED_SCOPE, LintTask
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.file_result import FileResult, SameFiles
from jobgen.rendering.load_layers import load_layers, load_project
from jobgen.rendering.read_jobs import JobFiles, read_jobs
from jobgen.rendering.result_inputs import ResultInputs, digest_value, make_key, may_be_used
from jobgen.rendering.run import find_results
from jobgen.rendering.run_values import LoadedLayers, RunRequest, RunResult, name_object
from jobgen.repo import layout
from jobgen.repo.files import FileEntry, hold_contents, read_file
from jobgen.reports.suppress import Suppression, may_suppress


class _Side(NamedTuple):
    """A revision whose layers are loaded, and whose files are found."""

    request: RunRequest
    layers: LoadedLayers
    inputs: ResultInputs
    entries: Mapping[str, FileEntry]

    @property
    def project(self) -> ProjectConfig:
        """The layers as data."""
        return self.request.project


def find_same_files(now: LintRequest, then: LintRequest, store: Store) -> SameFiles:
    """Return the files that need no checks; none if that is not certain, or the store knows all results."""
    if now.stdin is not None or now.other_tools or list(now.envs) != list(then.envs):
        return SameFiles()
    try:
        one = _prepare(now, store)
        other = _prepare(then, store) if one else None
    except JobgenError:
        # The lint says what is wrong.
        return SameFiles()
    if one is None or other is None or not _are_alike(one, other):
        return SameFiles()
    same = _list_same(one, other)
    files = frozenset(path for path in same if not all(_is_known(side, path, store) for side in (one, other)))
    return SameFiles(files, _find_rules(one, other, files)) if files else SameFiles()


def _prepare(request: LintRequest, store: Store) -> _Side | None:
    """Load the layers of a revision; None if they have errors, or say something about single findings."""
    files = resolve_files(request)
    if files.layers is None or not files.whole or files.standalone is not None:
        return None
    project = load_project(store, files.layers, request.today)
    if project.date or project.settings.get("exceptions"):
        return None
    selected = select_environments(project, request.envs, is_lint=True)
    run = RunRequest(project, selected, JobFiles(files.jobs), LintTask(), store=store)
    layers = load_layers(run)
    if any(each.severity is Severity.ERROR for each in layers.findings):
        return None
    if any(may_suppress(file.content) for file in layout.read_layers(files.layers)):
        return None
    entries = hold_contents(files.jobs)
    inputs = ResultInputs(project, store, layers.runners, entries, run.files, None)
    return _Side(run, layers, inputs, {entry.path: entry for entry in entries})


def _are_alike(one: _Side, other: _Side) -> bool:
    """Return True if two revisions have the same settings, date and environments."""
    projects = one.project, other.project
    settings = [layout.read_settings(each.layers) for each in projects]
    environments = [side.layers.names for side in (one, other)]
    days = {each.day() for each in projects}
    return settings[0] == settings[1] and environments[0] == environments[1] and len(days) == 1


def _list_same(one: _Side, other: _Side) -> list[str]:
    """Return the files of two revisions whose results read the same; none if not all files share the same."""
    projects = one.project, other.project
    sides = (one, other)
    has_equal_layers = bool(projects[0].digest) and projects[0].digest == projects[1].digest
    used = [{path for path, entry in side.entries.items() if may_be_used(read_file(entry).content)} for side in sides]
    contents = [{path: read_file(entry) for path, entry in side.entries.items()} for side in sides]
    equal = {path for path, file in contents[0].items() if contents[1].get(path) == file}
    changed = [
        side.entries[path]
        for side, paths in zip(sides, used, strict=True)
        for path in sorted(paths - equal)
        if _is_used(side, path)
    ]
    if changed or one.inputs.digest_state() != other.inputs.digest_state():
        return []
    commented = {path for side in sides for path, entry in side.entries.items() if _has_comments(entry)}
    if any(_is_used(side, path) for side in sides for path in sorted(commented & side.entries.keys())):
        # A comment there may be about an object of another file.
        return []
    if not has_equal_layers:
        has_users = any(project.runtimes for project in projects) or any(map(_is_used, repeat(one), sorted(used[0])))
        if has_users and not all(map(other.inputs.holds, one.inputs.list_patches())):
            return []
        equal = {path for path in equal if all(map(other.inputs.holds, one.inputs.list_layers(path)))}
    return sorted(equal - commented)


_CONFIG_KINDS = ("ConfigMap", "SealedSecret", "Secret")


def _is_used(side: _Side, path: str) -> bool:
    """Return True if checks of objects in other files read an object of a file: devices, ConfigMaps or Secrets."""
    entry = side.entries[path]
    if not may_be_used(read_file(entry).content):
        return False
    datas = [job.document.data for job in read_jobs([entry], side.project.kinds, [])]
    kinds = {as_text(data.get("kind")) for data in datas}
    has_configs = any("configs" in as_mapping(data.get("spec")) for data in datas)
    return has_configs or not kinds.isdisjoint(_CONFIG_KINDS) or any(map(concerns_devices, datas))


def _has_comments(entry: FileEntry) -> bool:
    """Return True if a file may have comments that suppress findings: what they hide is shown, new or not."""
    return may_suppress(read_file(entry).content)


def _find_rules(one: _Side, other: _Side, same: frozenset[str]) -> frozenset[str]:
    """Return the rules about several jobs that may find something else in one of two lints.

    A rule finds the same if the facts and the identities of the files that are checked are the same. The stages after
    the checks know none of these rules by name. What a comment hides is shown, new or not.
    """
    rules = frozenset(rule.name for rule in all_rules() if rule.scope == "fleet")
    sides = [(side, [entry for path, entry in side.entries.items() if path not in same]) for side in (one, other)]
    severities = one.project.severities
    settings = [*severities.rules.values(), *severities.categories.values()]
    is_limited = any(any(each[1:]) for several in settings for each in several)
    if is_limited or any(_has_comments(entry) for _, entries in sides for entry in entries):
        return rules
    results = [[part for parts in _find_results(side, entries) for part in parts] for side, entries in sides]
    made = [[(each.env, *each[2:]) for part in parts for each in part.made] for parts in results]
    places = [[(env, identity, at.file, *rest) for env, identity, at, *rest in several] for several in made]
    if places[0] != places[1]:
        return rules
    facts = [[(name, fact) for part in parts for name, fact in part.rows] for parts in results]
    differing = frozenset(name for pair in zip_longest(*facts) if pair[0] != pair[1] for name, _ in filter(None, pair))
    # What an item of a list is called may have changed.
    return differing | {name for name, fact in facts[0] if any(isinstance(step, int) for step in fact.path)}


def _find_results(side: _Side, entries: Sequence[FileEntry]) -> Sequence[tuple[FileResult, ...]]:
    """Return the results of some files of a side."""
    return find_results(side.request._replace(files=JobFiles(entries)), side.layers).results


def _is_known(side: _Side, path: str, store: Store) -> bool:
    """Return True if the store has all results of a file, so that nothing has to be rendered."""
    environments = [None, *side.layers.names]
    keys = (make_key(CHECKED_SCOPE, env, side.entries[path]) for env in environments)
    return all(store.find(CHECKED, key, side.inputs.holds) is not None for key in keys)


def digest_beside(
    result: RunResult, findings: Sequence[Finding], comments: Iterable[Suppression], cross_file: Collection[str]
) -> dict[str, str] | None:
    """Return the digests of what a lint found in files that it did not check whole, by file; see `LintRun.beside`."""
    same = result.request.same.files
    excesses = (noted for part in result.files.parts for noted in part.excesses)
    if not all(noted.finding.location.file in same for noted in excesses):
        # Whether all objects together take too many steps depends on each of them.
        return None
    if any(canonical_rule_name(rule) in cross_file for comment in comments for rule in comment.rules):
        # Whether a comment has an effect then depends on all files.
        return None
    checked = {entry.path for entry in result.request.files.entries if entry.path not in same}
    found: dict[str, list[Finding]] = {}
    for each in findings:
        made = result.seen.get(name_object(each.env, each.object)) if each.object else None
        files = {each.location.file, *((made.location.file,) if made else ())}
        for file in files - checked:
            found.setdefault(file, []).append(each)
    return {file: digest_value(several) for file, several in found.items()}


def find_unlike(now: LintRun, before: LintRun, same: frozenset[str]) -> frozenset[str] | None:
    """Return the files that must be checked, too; None if all of them must be."""
    if now.beside is None or before.beside is None:
        return None
    files = now.beside.keys() | before.beside.keys()
    unlike = frozenset(file for file in files if now.beside.get(file) != before.beside.get(file))
    return unlike if unlike <= same else None
