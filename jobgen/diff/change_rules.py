"""Findings about a change, rather than about what stands there: what a merge would do to jobs that run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jobgen.diff.causes import causes
from jobgen.diff.changes import ChangeSet, compare_snapshots
from jobgen.diff.impact import FieldImpact, Impact
from jobgen.diff.operator_behavior import Effect
from jobgen.diff.snapshot import Snapshot, snapshot_repository
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.objects import as_text, get_path
from jobgen.k8s.operators import choose_severity
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.path import dotted, pointer
from jobgen.render.runs import ON_CHANGE_ANNOTATION
from jobgen.repo import layout

_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}
_NAME = ("metadata", "name")
_QUEUE_PATHS = (("metadata", "labels", QUEUE_LABEL), ("spec", "runPolicy", "schedulingPolicy", "queue"))


def check_change(then: Path, now: Path, envs: Sequence[str] = (), days: tuple[str, str] = ("", "")) -> list[Finding]:
    """What a change of the jobs repository around a folder would do to what runs; nothing if a side cannot be rendered.

    `days` are those by which jobs expire, then and now. Severities are as the settings of the new side want them.
    """
    root = layout.find_root(now.resolve())
    if root is None:
        return []
    old = snapshot_repository(layout.find_root(then.resolve()) or then, "then", envs, days[0])
    new = snapshot_repository(root, "now", envs, days[1])
    if new.failed:
        # What is wrong with it is told by whoever lints it.
        return []
    found = [_unjudged(old)] if old.failed else transition_findings(compare_snapshots(old, new))
    return [finding for finding in map(new.project.severities.of, found) if finding]


def _unjudged(old: Snapshot) -> Finding:
    """That nobody can say what the change does, because of what was there before."""
    wrong = next(finding for finding in old.findings if finding.severity is Severity.ERROR)
    message = f"`{wrong.rule}` kept the old side from being rendered, so what the change does was not judged"
    return Finding("change-not-judged", "meta", Severity.WARNING, message, wrong.location)


def transition_findings(told: ChangeSet) -> list[Finding]:
    """One finding for each line and what it does, however many jobs it does it to."""
    found = [finding for one in told.happened for finding in _findings(one, told)]
    return sorted(_merged(found), key=lambda one: (one.location, one.rule, one.message, one.env))


def _merged(found: Iterable[Finding]) -> Iterator[Finding]:
    """What one line does to many jobs is told of the first, and the others are counted."""
    groups: dict[tuple[str, Location, str, str], list[Finding]] = {}
    for one in found:
        groups.setdefault((one.rule, one.location, one.message, one.env), []).append(one)
    for first, *others in groups.values():
        more = f", and {len(others)} other{'s' if len(others) > 1 else ''} alike" if others else ""
        yield first._replace(message=f"{first.message}; concerns `{first.object}`{more}")


def _findings(one: Impact, told: ChangeSet) -> Iterator[Finding]:
    if one.old is not None and _is_forbidden(one):
        yield _forbidden(one, told.new)
    elif one.happening == "removed":
        if one.stops:
            yield _deleted(one, told.old)
    elif one.old is not None and one.moved and one.old.identity.kind != one.made.identity.kind:
        if one.outcome.effect is Effect.NEW_RUN:
            yield _of_another_kind(one)
    elif one.fields and one.new is not None and not one.moved:
        yield from _of_fields(one, told.new)


def _is_forbidden(one: Impact) -> bool:
    """Whether a job that must run on as it is would not: what can be changed in place may be."""
    assert one.old is not None
    word = as_text(get_path(one.old.object, "metadata", "annotations", ON_CHANGE_ANNOTATION))
    return word == "forbid" and (one.stops or one.outcome.effect is not Effect.IN_PLACE)


def _forbidden(one: Impact, new: Snapshot) -> Finding:
    """On the first line that changes more than the object's name; on the whole job where there is none."""
    assert one.old is not None
    message = f"`onChange: forbid` keeps the job from being changed, and this does it: {one.outcome.why}"
    if one.new is None:
        return _finding("forbidden-change", Severity.ERROR, message, one, Location(one.old.location.file))
    told = [field for field in one.fields if field.outcome.effect is not Effect.IN_PLACE]
    paths = [path for field in told if field.change.path != _NAME for path in _upwards(field)]
    lines = causes(new, one.new, paths)
    location = next((lines[path].location for path in paths if path in lines), one.new.location)
    return _finding("forbidden-change", Severity.ERROR, message, one, location)


def _deleted(one: Impact, old: Snapshot) -> Finding:
    assert one.old is not None
    engine = _ENGINES.get(old.manifest(one.old).cluster.gitops, "whatever applies this repository")
    message = f"the job is gone, and {engine} will delete it and stop what runs"
    # Its line is gone, so the file has to do.
    return _finding("running-job-deleted", Severity.WARNING, message, one, Location(one.old.location.file))


def _of_another_kind(one: Impact) -> Finding:
    assert one.old is not None
    message = f"the job was a `{one.old.identity.kind}`: that is deleted, and training starts from the beginning"
    return _finding("kind-changed", Severity.WARNING, message, one, one.made.location)


def _of_fields(one: Impact, new: Snapshot) -> Iterator[Finding]:
    assert one.new is not None
    refused = [field for field in one.fields if field.outcome.effect is Effect.REJECTED]
    # Nothing of an update that is refused is applied, so no other field can be without effect.
    idle = [] if refused else [field for field in one.fields if field.outcome.effect is Effect.NO_EFFECT]
    told = [*refused, *idle[:1]]
    if not told:
        return
    lines = causes(new, one.new, [path for field in told for path in _upwards(field)])
    # One line may have written several fields, and is told once.
    by_mark: dict[Location, FieldImpact] = {}
    for field in told:
        location = next((lines[path].location for path in _upwards(field) if path in lines), one.new.location)
        by_mark.setdefault(location, field)
    unsure = choose_severity(new.manifest(one.new))
    for location, field in by_mark.items():
        found = _of_field(field, one, location, len(idle) - 1)
        yield found._replace(severity=unsure or found.severity)


def _of_field(field: FieldImpact, one: Impact, location: Location, more: int) -> Finding:
    path = field.change.path
    get_path = pointer(path)
    if field.outcome.effect is Effect.NO_EFFECT:
        others = f" and {more} other field{'s' if more > 1 else ''}" if more > 0 else ""
        message = f"`{dotted(path)}`{others} will not reach a job that runs: {field.outcome.why}"
        return _finding("edit-without-effect", Severity.WARNING, message, one, location, get_path)
    if path in _QUEUE_PATHS:
        old, new = (f"`{value}`" if value else "no queue" for value in (field.change.old, field.change.new))
        message = f"a job cannot be moved from {old} to {new}: {field.outcome.why}"
        return _finding("queue-changed", Severity.ERROR, message, one, location, get_path)
    message = f"`{dotted(path)}` cannot be changed: {field.outcome.why}; a job of a new name could have it"
    return _finding("immutable-field-changed", Severity.ERROR, message, one, location, get_path)


def _upwards(field: FieldImpact) -> list[FieldPath]:
    """The path of a field, and of all that is around it: what was taken out has no line of its own."""
    path = field.change.path
    return [path[:length] for length in range(len(path), 0, -1)]


def _finding(rule: str, bad: Severity, message: str, one: Impact, location: Location, get_path: str = "") -> Finding:
    return Finding(rule, "gitops", bad, message, location, one.made.identity, one.made.env, get_path)
