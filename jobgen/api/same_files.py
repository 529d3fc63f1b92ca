"""Which files a lint need not check that is compared with another one: their findings are the same in both.

What is found in a file in an environment is a function of what its result can read: the file, the blocks of overlays
that match its jobs, other layers, and files that others use. Where all of that is the same at two revisions, no finding
is new. Such a file is rendered, once for both revisions, because what it adds to sums and comparisons of jobs counts;
nothing checks its objects.

The stages after the checks look at all findings of a file together, and at those in layers. So where the two lints
differ in a file that was not checked in all environments, it is checked in all. Where they differ in a layer, or what a
file says may concern others in a way that only a whole lint shows, all files are checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest

from jobgen.api.errors import JobgenError
from jobgen.api.layer_blocks import LayerBlocks
from jobgen.api.lint_files import Lint, LintRequest, find_sources
from jobgen.api.project import select_environments
from jobgen.check.rules import all_rules
from jobgen.engine.store import Store
from jobgen.k8s.devices import concerns_devices
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.builtin_rules import canonical_rule_name
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.lint_checks import CHECKED, CHECKED_SCOPE, LintTask
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.file_result import FileResult, SameFiles
from jobgen.rendering.load_layers import load_layers, load_project
from jobgen.rendering.read_jobs import JobFiles, read_jobs
from jobgen.rendering.result_inputs import ALL_PATCHES, ResultInputs, digest_value, make_key, may_be_used, name_entry
from jobgen.rendering.run import find_results
from jobgen.rendering.run_values import LoadedLayers, RunRequest, RunResult, name_object
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.files import FileEntry, hold_contents, read_file
from jobgen.repo.layout import Layers
from jobgen.reports.suppress import Suppression, may_suppress


class Alike(NamedTuple):
    """What is the same at two revisions."""

    same: SameFiles = SameFiles()
    """The files that need no checks."""
    objects: frozenset[str] = frozenset()
    """The files whose objects are the same in all environments, if they do not depend on the date."""


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

    def list_jobs(self, path: str) -> Sequence[Job]:
        """Return the jobs of a file, with only what selectors match on."""
        return self.inputs.list_outlines(name_entry(self.entries[path]))


def find_alike(now: LintRequest, then: LintRequest, store: Store) -> Alike:
    """Return what is the same at two revisions; nothing if that is not certain."""
    if now.stdin is not None or now.other_tools or list(now.envs) != list(then.envs):
        return Alike()
    try:
        one = _prepare(now, store)
        other = _prepare(then, store) if one else None
    except JobgenError:
        # The lint says what is wrong.
        return Alike()
    if one is None or other is None or not _are_alike(one, other):
        return Alike()
    found = _find_equal(one, other)
    objects = frozenset(path for path, envs in found.items() if len(envs) == len(one.layers.names))
    commented = frozenset(path for path in found if _has_comments(one.entries[path]))
    if any(
        _is_used(side, path) for side in (one, other) for path, entry in side.entries.items() if _has_comments(entry)
    ):
        # A comment there may be about an object of another file.
        return Alike(objects=objects)
    pairs = frozenset(
        (path, env)
        for path, envs in found.items()
        if path not in commented
        for env in envs
        if not all(_is_known(side, path, env, store) for side in (one, other))
    )
    return Alike(_find_rules(one, other, SameFiles(pairs)) if pairs else SameFiles(), objects)


def _prepare(request: LintRequest, store: Store) -> _Side | None:
    """Load the layers of a revision; None if they have errors, or say something about single findings."""
    files = find_sources(request)
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


def _find_equal(one: _Side, other: _Side) -> dict[str, list[str]]:
    """Return the files of two revisions with the environments in which their results read the same."""
    sides = (one, other)
    contents = [{path: read_file(entry) for path, entry in side.entries.items()} for side in sides]
    equal = [path for path, file in sorted(contents[0].items()) if contents[1].get(path) == file]
    used = [{path for path, file in files.items() if may_be_used(file.content)} for files in contents]
    changed = [
        path
        for side, paths in zip(sides, used, strict=True)
        for path in paths.difference(equal)
        if _is_used(side, path)
    ]
    if changed or one.inputs.digest_state() != other.inputs.digest_state():
        return {}
    if one.project.digest and one.project.digest == other.project.digest:
        return dict.fromkeys(equal, one.layers.names)
    if not all(map(other.inputs.holds, one.inputs.list_common())):
        return {}
    found: dict[str, list[str]] = {path: [] for path in equal}
    shared = [path for path in sorted(used[0]) if _is_used(one, path)]
    for runners in zip(*(side.layers.runners for side in sides), strict=True):
        blocks = [LayerBlocks(runner, side.layers.tracer) for runner, side in zip(runners, sides, strict=True)]

        def reads_the_same(path: str, blocks: Sequence[LayerBlocks] = blocks) -> bool:
            before, after = (each.digest_for(side.list_jobs(path)) for each, side in zip(blocks, sides, strict=True))
            return before == after

        is_same = blocks[0].digest == blocks[1].digest
        # Runtimes are changed by the patches that match them, and other files read what is shared.
        if is_same or not (one.project.runtimes or not all(map(reads_the_same, shared))):
            for path in equal:
                if is_same or reads_the_same(path):
                    found[path].append(runners[0].name)
    return found


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


def _find_rules(one: _Side, other: _Side, same: SameFiles) -> SameFiles:
    """Return the same files with the rules about several jobs that may find something else in one of two lints.

    A rule finds the same if the facts and the identities of the objects that are checked are the same. The stages after
    the checks know none of these rules by name. What a comment hides is shown, new or not.
    """
    rules = {rule.name: rule for rule in all_rules() if rule.scope == "fleet"}
    counts = Counter(path for path, _ in same.pairs)
    others = [
        [entry for path, entry in side.entries.items() if counts[path] < len(one.layers.names)] for side in (one, other)
    ]
    every = frozenset((env, name) for env in one.layers.names for name in rules)
    severities = one.project.severities
    settings = [*severities.rules.values(), *severities.categories.values()]
    is_limited = any(any(each[1:]) for several in settings for each in several)
    if is_limited or any(_has_comments(entry) for entries in others for entry in entries):
        return same._replace(rules=every)
    sides = zip((one, other), others, strict=True)
    results = [[part for parts in _find_results(side, entries, same) for part in parts] for side, entries in sides]
    made = [[each for part in parts for each in part.made] for parts in results]
    places = [[(each.env, each.identity, each.location.file, *each[4:]) for each in several] for several in made]
    if places[0] != places[1]:
        return same._replace(rules=every)
    facts = [[row for part in parts for row in part.rows] for parts in results]
    differing = [row for pair in zip_longest(*facts) if pair[0] != pair[1] for row in filter(None, pair)]
    # What an item of a list is called may have changed.
    moved = [row for row in facts[0] if any(isinstance(step, int) for step in row[1].path)]
    judged = {env for env, _ in every if not _have_equal_clusters(one, other, env)}
    found = same._replace(
        rules=frozenset((fact.job.env, name) for name, fact in (*differing, *moved))
        | {(env, name) for env, name in every if env in judged}
    )
    kinds, by_team = {each.identity.kind for each in made[0]}, [rule for rule in rules.values() if rule.across_teams]
    names = {name for name, _ in moved}
    if judged or any(rule.name in names or not kinds.isdisjoint(rule.across_teams) for rule in by_team):
        return found
    return found._replace(teams=frozenset(one.project.teams.find_name(fact.job.path) for _, fact in differing))


def _have_equal_clusters(one: _Side, other: _Side, env: str) -> bool:
    """Return True if rules about several jobs compare these with the same limits."""
    clusters = [
        runner.expander.environment.cluster
        for side in (one, other)
        for runner in side.layers.runners
        if runner.name == env
    ]
    return repr(clusters[0]) == repr(clusters[1])


def _find_results(side: _Side, entries: Sequence[FileEntry], same: SameFiles) -> Sequence[tuple[FileResult, ...]]:
    """Return the results of some files of a side."""
    return find_results(side.request._replace(files=JobFiles(entries), same=same), side.layers).results


def _is_known(side: _Side, path: str, env: str, store: Store) -> bool:
    """Return True if the store has the results of a file by itself, and in an environment."""
    keys = (make_key(CHECKED_SCOPE, each, side.entries[path]) for each in (None, env))
    return all(store.find(CHECKED, key, side.inputs.holds) is not None for key in keys)


def digest_beside(
    result: RunResult, findings: Sequence[Finding], comments: Iterable[Suppression], cross_file: Collection[str]
) -> dict[str, str] | None:
    """Return the digests of what a lint found in files that it did not check whole, by file; see `Lint.beside`."""
    same, entries = result.request.same, result.request.files.entries
    excesses = (noted.finding for part in result.files.parts for noted in part.excesses)
    if not all((finding.location.file, finding.env) in same.pairs for finding in excesses):
        # Whether all objects together take too many steps depends on each of them.
        return None
    if any(canonical_rule_name(rule) in cross_file for comment in comments for rule in comment.rules):
        # Whether a comment has an effect then depends on all files.
        return None
    files = same.files
    checked = {entry.path for entry in entries if entry.path not in files}
    found: dict[str, list[object]] = {}
    for entry, part in zip(entries, result.files.parts, strict=True):
        if entry.path in files and ALL_PATCHES in part.used.reads:
            # What is left of a job with errors may match other patches than the job.
            found.setdefault(entry.path, []).append(result.request.project.digest)
    lines = _LayerLines(result.request.project.layers)
    for each in findings:
        made = result.seen.get(name_object(each.env, each.object)) if each.object else None
        for file in {each.location.file, *((made.location.file,) if made else ())} - checked:
            found.setdefault(file, []).append(lines.describe(each))
    return {file: digest_value(several) for file, several in found.items()}


class _LayerLines:
    """The lines of overlays, by which findings are the same though other lines are above them."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    @cached_property
    def _texts(self) -> dict[str, list[bytes]]:
        return {file.path: file.content.split(b"\n") for _, file in layout.read_overlays(self._layers)}

    def describe(self, finding: Finding) -> object:
        """Return what a finding says, and where, however many lines are above in an overlay."""
        fix, edits = finding.fix, finding.fix.edits if finding.fix else ()
        related = [(self._place(each.location), each._replace(location=_NOWHERE)) for each in finding.related]
        fixed = [(self._place(each.location), each._replace(location=_NOWHERE)) for each in edits]
        rest = finding._replace(location=_NOWHERE, related=(), fix=None)
        return self._place(finding.location), rest, related, fixed, fix and fix.safe

    def _place(self, at: Location) -> object:
        lines = self._texts.get(at.file) if at.file.startswith("overlays/") else None
        if not lines or not 0 < at.line <= len(lines):
            return at
        own, last = lines[at.line - 1], max(at.line, at.end_line)
        # The lines around it may say what is meant.
        around = lines[max(at.line - 2, 0) : last + 1]
        return at.file, around, lines[: at.line].count(own), at.column, last - at.line, at.end_column


_NOWHERE = Location("")


def find_unlike(now: Lint, before: Lint, same: SameFiles) -> frozenset[str] | None:
    """Return the files that must be checked in all environments; None if all of them must be."""
    if now.beside is None or before.beside is None:
        return None
    files = now.beside.keys() | before.beside.keys()
    unlike = frozenset(file for file in files if now.beside.get(file) != before.beside.get(file))
    return unlike if unlike <= same.files else None
