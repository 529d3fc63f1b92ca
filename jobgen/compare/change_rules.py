"""Findings about a change: what a merge would do to running jobs. `jobgen lint --since` reports them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from jobgen.compare.changes import ChangeSet, Rank, compare_pairs, compare_snapshots, rank_impact
from jobgen.compare.impact import FieldImpact, Impact
from jobgen.compare.operator_behavior import Effect
from jobgen.compare.snapshot import (
    Snapshot,
    find_causes,
    match_some,
    match_within_files,
    snapshot_files,
    snapshot_repository,
)
from jobgen.engine.store import Store
from jobgen.engine.workers import parallel_map
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.operators import choose_severity
from jobgen.model.data import Location
from jobgen.model.finding import FaultKey, Finding, Severity, sort_findings
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted, format_pointer
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.load_layers import load_project
from jobgen.rendering.runs import ON_CHANGE_ANNOTATION
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.root import find_root

_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}
_SHARE = 100
"""How many files are compared together: both sides of their repository are opened for each share."""
_QUEUE_PATHS = (("metadata", "labels", QUEUE_LABEL), ("spec", "runPolicy", "schedulingPolicy", "queue"))


_Ranked: TypeAlias = tuple[Rank, Finding]
"""A problem of an impact, with its place among all."""


class ChangedFiles(NamedTuple):
    """The files of jobs whose objects may differ between two sides, both of which can be rendered."""

    paths: frozenset[str]
    devices: frozenset[str]
    """Files that define devices, on which the objects of others depend."""


def check_change(
    old_folder: Folder,
    new_folder: Folder,
    envs: Sequence[str] = (),
    days: tuple[str, str] = ("", ""),
    changed: ChangedFiles | None = None,
    store: Store | None = None,
) -> list[Finding]:
    """Find what a change of a jobs repository would do to running jobs; nothing if the new side cannot be rendered.

    `days` are the dates of the old and the new side, by which jobs expire. Severities follow the new side's settings.
    With `changed`, only these files are compared.
    """
    root = find_root(new_folder.resolve())
    if root is None or (changed is not None and not changed.paths):
        return []
    old_root = find_root(old_folder.resolve()) or old_folder
    store = store or Store()
    if changed is not None:
        sides = (
            load_project(store, layout.own_layers(old_root), days[0]),
            load_project(store, layout.own_layers(root), days[1]),
        )
        return _check_files(store, sides, envs, changed)
    old, new = (
        snapshot_repository(each, name, envs, day, store)
        for each, name, day in ((old_root, "old", days[0]), (root, "new", days[1]))
    )
    if new.failed:
        # Linting the new side reports its errors.
        return []
    if old.failed:
        error = next(finding for finding in old.findings if finding.severity is Severity.ERROR)
        message = f"the change was not checked: the old side cannot be rendered because of `{error.rule}`"
        found = Finding("change-not-analyzed", "meta", Severity.WARNING, message, error.location)
        return list(filter(None, [new.project.apply_severity(found)]))
    return check_snapshots(old, new)


def check_snapshots(old: Snapshot, new: Snapshot) -> list[Finding]:
    """Find what a change does to the objects of two snapshots: all of a repository, or releases of charts."""
    return _sort_findings(_rank_problems(compare_snapshots(old, new)))


def _check_files(
    store: Store, sides: tuple[ProjectConfig, ProjectConfig], envs: Sequence[str], changed: ChangedFiles
) -> list[Finding]:
    """Compare some files, in several processes if they are many: no objects are sent between processes."""

    def render(paths: Iterable[str]) -> tuple[Snapshot, Snapshot]:
        wanted = {*paths, *changed.devices}
        old, new = (snapshot_files(store, project, envs, wanted) for project in sides)
        return old, new

    def compare(share: Sequence[str]) -> list[tuple[list[_Ranked], set[str]]]:
        """Return what was found, and the files with objects that may have a counterpart in another file."""
        old, new = render(share)
        pairs, *left = match_within_files(old, new, set(share))
        unmatched = {one.location.file for several in left for one in several}
        return [(_rank_problems(compare_pairs(old, new, pairs)), unmatched)]

    compared = parallel_map(sorted(changed.paths), compare, size=_SHARE)
    problems = [problem for share, _ in compared for problem in share]
    unmatched = set[str]().union(*(files for _, files in compared))
    if unmatched:
        old, new = render(unmatched)
        _, *left = match_within_files(old, new, unmatched)
        problems += _rank_problems(compare_pairs(old, new, match_some(old, new, *left)))
    return _sort_findings(problems)


def _rank_problems(changes: ChangeSet) -> list[_Ranked]:
    # An exception may be for one of the teams whose jobs a line affects.
    severities, teams = changes.new.project.severities, changes.new.project.teams
    found: list[_Ranked] = []
    # Impacts on the jobs of one file follow each other, so that it is read with locations once.
    for impact in sorted(changes.impacts, key=lambda one: one.current.location):
        team = teams.find_name(impact.current.location.file)
        for finding in _find_problems(impact, changes):
            shown = severities.apply(finding, team)
            found += [(rank_impact(impact), shown)] if shown else []
    return found


def _sort_findings(problems: Iterable[_Ranked]) -> list[Finding]:
    """One finding for each line and effect, however many jobs it affects."""
    ranked = (finding for _, finding in sorted(problems, key=lambda problem: problem[0]))
    return sort_findings(_merge_findings(ranked))


def _merge_findings(found: Iterable[Finding]) -> Iterator[Finding]:
    """Merge findings that differ only in their object: one for each environment, with the same message in all.

    A report shows these as one. The message names the first object and counts the others: an object of several
    environments once. A namespace that differs between environments is left out.
    """
    groups: dict[tuple[FaultKey, Location, Severity], dict[str, list[Finding]]] = {}
    for one in found:
        group = groups.setdefault((one.fault, one.location, one.severity), {})
        group.setdefault(one.env, []).append(one)
    for group in groups.values():
        objects = [[one.object for one in several if one.object] for several in group.values()]
        count = max(len({one._replace(namespace="") for several in objects for one in several}), *map(len, objects))
        named = objects[0][0]
        is_same = all(several[0].namespace == named.namespace for several in objects)
        more = f" and {count - 1} more" if count > 1 else ""
        affected = f"`{named if is_same else named._replace(namespace='')}`{more}"
        for first, *_ in group.values():
            yield first._replace(message=f"{first.message}; affects {affected}", cause="names objects")


def _find_problems(impact: Impact, changes: ChangeSet) -> Iterator[Finding]:
    old, effect = impact.old, impact.outcome.effect
    if old is None:
        return
    on_change = as_text(get_path(old.object, "metadata", "annotations", ON_CHANGE_ANNOTATION))
    if on_change == "forbid" and (impact.stops or effect is not Effect.IN_PLACE):
        yield _forbidden_change(impact, changes.new)
    elif impact.action == "removed":
        if impact.stops:
            engine = _ENGINES.get(changes.old.manifest(old).cluster.gitops, "the GitOps engine")
            message = f"the job is removed; {engine} will delete it and stop its pods"
            # The line does not exist anymore, so the finding is located at the file.
            location = Location(old.location.file)
            yield _finding("running-job-deleted", Severity.WARNING, message, impact, location)
    elif impact.is_replaced:
        if old.identity.kind != impact.current.identity.kind and effect is Effect.NEW_RUN:
            message = f"the job was a `{old.identity.kind}`; that object is deleted, and training starts over"
            yield _finding("kind-changed", Severity.WARNING, message, impact, impact.current.location)
    elif impact.fields:
        yield from _find_field_problems(impact, changes.new)


def _forbidden_change(impact: Impact, new: Snapshot) -> Finding:
    """Located at the first line that changes more than the object's name, else at the job."""
    assert impact.old is not None
    message = f"`onChange: forbid` does not allow this change of the job: {impact.outcome.reason}"
    if impact.new is None:
        return _finding("forbidden-change", Severity.ERROR, message, impact, Location(impact.old.location.file))
    fields = [field for field in impact.fields if field.outcome.effect is not Effect.IN_PLACE]
    paths = [path for field in fields if field.change.path != ("metadata", "name") for path in _with_parents(field)]
    causes = find_causes(new, impact.new, paths, impact.old)
    location = next((causes[path].location for path in paths if path in causes), impact.new.location)
    return _finding("forbidden-change", Severity.ERROR, message, impact, location)


def _find_field_problems(impact: Impact, new: Snapshot) -> Iterator[Finding]:
    assert impact.new is not None
    rejected = [field for field in impact.fields if field.outcome.effect is Effect.REJECTED]
    # A rejected update applies nothing, so the other fields are not reported.
    ignored = [] if rejected else [field for field in impact.fields if field.outcome.effect is Effect.NO_EFFECT]
    reported = [*rejected, *ignored[:1]]
    if not reported:
        return
    causes = find_causes(new, impact.new, [path for field in reported for path in _with_parents(field)], impact.old)
    # One line may set several fields; it is reported once.
    by_location: dict[Location, FieldImpact] = {}
    for field in reported:
        location = next((causes[path].location for path in _with_parents(field) if path in causes), impact.new.location)
        by_location.setdefault(location, field)
    severity = choose_severity(new.manifest(impact.new))
    for location, field in by_location.items():
        others = [format_dotted(other.change.path) for other in ignored if other is not field]
        found = _field_finding(field, impact, location, others)
        yield found._replace(severity=severity or found.severity)


def _field_finding(field: FieldImpact, impact: Impact, location: Location, others: list[str]) -> Finding:
    path, old, new = field.change.path, field.change.old, field.change.new
    reason, where = field.outcome.reason, format_pointer(path)
    if field.outcome.effect is Effect.NO_EFFECT:
        more = f" and `{others[0]}`" if len(others) == 1 else f" and {len(others)} other fields" if others else ""
        message = f"the change of `{format_dotted(path)}`{more} has no effect on a running job: {reason}"
        return _finding("edit-without-effect", Severity.WARNING, message, impact, location, where)
    if path in _QUEUE_PATHS:
        before, after = (f"`{value}`" if value else "no queue" for value in (old, new))
        message = f"the job cannot be moved from {before} to {after}: {reason}"
        return _finding("queue-changed", Severity.ERROR, message, impact, location, where)
    noun = "a job" if impact.current.identity.kind.endswith(("Job", "JobSet")) else "an object"
    message = f"`{format_dotted(path)}` cannot be changed: {reason}; create {noun} with a new name instead"
    return _finding("immutable-field-changed", Severity.ERROR, message, impact, location, where)


def _with_parents(field: FieldImpact) -> list[FieldPath]:
    """The path of a field and of all its parents, because a removed field has no line of its own."""
    path = field.change.path
    return [path[:length] for length in range(len(path), 0, -1)]


def _finding(
    rule: str, severity: Severity, message: str, impact: Impact, location: Location, pointer: str = ""
) -> Finding:
    return Finding(rule, "gitops", severity, message, location, impact.current.identity, impact.current.env, pointer)
