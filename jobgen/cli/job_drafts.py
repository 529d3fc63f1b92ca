"""Drafts of a new job: which platforms it can have, and which draft lints clean in every environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from jobgen.api.lint import lint
from jobgen.api.project import Project
from jobgen.engine.inputs import edited
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.model.data import Location, location_of, untraced, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.expand import Expander
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.spec.overlay import list_ancestors
from jobgen.spec.teams import Team
from jobgen.yamlio.commented import edit_text, to_scalar

_PATTERN = lazy_pattern(r"[*?\[]")
_MAX_REPAIRS = 3
"""What a repair shows is repaired in the next round; there are few kinds of repairs."""
_HEAD = {"cpu": 2, "memory": "8Gi"}
"""What the head of a Ray cluster requests, which runs no processes of the job."""


class Variant(NamedTuple):
    """A platform whose example a draft copies, and the `platform` that it names; empty for that of the cluster."""

    example: str
    platform: str = ""


class Draft(NamedTuple):
    """The text of a new job, and the findings that the repository has only with it."""

    text: str
    findings: tuple[Finding, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """Return how many errors and warnings it has; fewer are better."""
        severities = [finding.severity for finding in self.findings]
        return severities.count(Severity.ERROR), severities.count(Severity.WARNING)


class Surroundings(NamedTuple):
    """What the jobs around a new one have, and its team can use; empty if nothing is known."""

    labels: dict[str, Any] | None
    """None if there are no jobs, so that nothing is known about labels."""
    queue: str
    namespace: str


def list_variants(framework: str, platform: str, expanders: Sequence[Expander]) -> list[Variant]:
    """Return the ways to write a job of a framework that all environments run, the best first.

    A platform that is asked for is named unless all environments choose it anyway.
    """
    chosen = [kind.platform for each in expanders if (kind := each.select_kind(framework, ""))]
    everywhere = list(dict.fromkeys(chosen)) if len(chosen) == len(expanders) else []
    if platform:
        return [Variant(platform, "" if everywhere == [platform] else platform)]
    listed = [each.environment.cluster.list_platforms() for each in expanders]
    named = [
        name
        for name in (listed[0] if listed else ())
        if all(name in names for names in listed) and all(each.select_kind(framework, name) for each in expanders)
    ]
    pinned = [Variant(name, name) for name in named if everywhere != [name]]
    return [*(Variant(name) for name in everywhere), *pinned]


def is_served(framework: str, platform: str, expander: Expander) -> bool:
    """Return True if an environment runs a framework; on a platform that is named, if its operator has the CRD."""
    kind = expander.select_kind(framework, platform)
    return kind is not None and not (platform and expander.environment.cluster.has_other_operator(kind))


def explain_unserved(framework: str, platform: str, project: ProjectConfig, expanders: Iterable[Expander]) -> str:
    """Return which line of which overlay must change so that all environments run a framework.

    `project` has locations.
    """
    advice: list[str] = []
    for expander in expanders:
        cluster = expander.environment.cluster
        listed = cluster.list_platforms()
        if is_served(framework, platform, expander) and platform in ("", *listed):
            continue
        kind = expander.select_kind(framework, platform)
        serving = expander.list_serving(framework)
        if kind and cluster.has_other_operator(kind):
            serving = [each.platform for each in expander.kinds if each.operator == kind.requirements.conflicts_with]
        wanted = [platform] if platform in serving else serving
        unserved = [kind for kind in expander.kinds if kind.platform in wanted and framework in kind.frameworks]
        here = next((kind for kind in unserved if kind.platform in listed), None)
        if here is not None and expander.select_kind(framework, here.platform):
            advice.append(f"use `--platform {here.platform}`")
        elif here is not None:
            # Its operator is too old or too new.
            reason = expander.explain_missing_kind(framework, here.platform)
            at = _find_operator(here.operator, expander.environment.name, project)
            advice.append(f"change `operators.{here.operator}`{f' in {at.file}:{at.line}' if at else ''}: {reason}")
        elif wanted:
            advice.append(expander.suggest_platforms(wanted))
    return ", and ".join(dict.fromkeys(advice))


def _find_operator(operator: str, environment: str, project: ProjectConfig) -> Location | None:
    """Return where the version of an operator is declared: in the last overlay that does, or in the settings."""
    specs = [spec for name in list_ancestors(environment, project.overlays) for spec in project.overlays[name].specs]
    operators = (block.get("cluster", {}).get("operators", {}) for block in (project.settings, *specs))
    found = [location_of(each[operator]) for each in operators if operator in each]
    return found[-1] if found else None


def look_around(jobs: Sequence[Job], path: PurePosixPath, expanders: Sequence[Expander]) -> Surroundings:
    """Return what jobs of the same folder have, and then those of other folders: policies may require the labels.

    The labels of a team are those of its file, and the queues are those that every environment has.
    """
    near = [job for job in jobs if PurePosixPath(job.file.path).parent == path.parent]
    ordered = [*near, *(job for job in jobs if job not in near)]
    data: list[Any] = [untraced(job.document.data) for job in ordered]
    teams = [team for each in expanders if (team := each.environment.teams.find(str(path)))]
    labels = dict(data[0]["metadata"].get("labels") or {}) if data else {} if teams else None
    for name in ("team", *(str(each) for team in teams for each in team.spec.get("labels", ()))) if teams else ():
        (labels or {}).pop(name, None)
    declared = [each.environment.cluster.queues for each in expanders if each.environment.cluster.queues]
    queues = [str(each["spec"].get("queue", "")) for each in data]
    queues += [name for name in (declared[0] if declared else ()) if all(name in names for names in declared)]
    namespaces = [str(each["metadata"].get("namespace", "")) for each in data]
    allowed = [_list_allowed(team, "queues", queues) for team in teams]
    return Surroundings(
        labels,
        queue=next(filter(None, allowed[0] if allowed else queues), ""),
        namespace=next(filter(None, namespaces), ""),
    )


def _list_allowed(team: Team, field: str, names: Iterable[str]) -> list[str]:
    """Return the names that a team can use, and then those that only its file has."""
    patterns = [str(value_of(each)) for each in team.spec.get(field, ())]
    matching = [name for name in names if not patterns or any(fnmatchcase(name, each) for each in patterns)]
    return [*matching, *(each for each in patterns if not _PATTERN.search(each))]


def choose_draft(project: Project, path: PurePosixPath, texts: Iterable[str], around: Surroundings) -> Draft:
    """Return the first draft without errors and warnings, or else that with the fewest."""
    best: Draft | None = None
    for text in texts:
        draft = _repair(project, path, _lint(project, path, text), around)
        best = draft if best is None or draft.rank < best.rank else best
        if not any(best.rank):
            break
    assert best is not None, "the caller has at least one text"
    return best


def _lint(project: Project, path: PurePosixPath, text: str) -> Draft:
    """Lint the repository with a draft, which is not on disk."""
    with edited({os.path.realpath(project.root / path): text.encode()}):
        found = lint(project.root).findings
    if all(finding.location.file == str(path) for finding in found):
        return Draft(text, found)
    known = {_key_of(finding) for finding in lint(project.root).findings} if _has_files(project) else set()
    new = (each for each in found if each.location.file == str(path) or _key_of(each) not in known)
    return Draft(text, tuple(new))


def _has_files(project: Project) -> bool:
    return next(layout.find_jobs(project.root), None) is not None


def _key_of(finding: Finding) -> tuple[str, ...]:
    return *finding.fault, finding.location.file, finding.env


def _repair(project: Project, path: PurePosixPath, draft: Draft, around: Surroundings) -> Draft:
    """Return the draft with what its findings say that this repository needs, as far as that helps."""
    for _ in range(_MAX_REPAIRS):
        # What a queue counts is reported at the line that sets the queue.
        own = [each for each in draft.findings if each.location.file == str(path) or each.rule == "missing-requests"]
        changes = [change for change in (_find_change(each, around) for each in own) if change]
        if not changes:
            return draft

        def apply(job: Any, changes: Sequence[Callable[[Any], None]] = changes) -> None:
            # From the end, because what is removed moves no line above it.
            for change in reversed(changes):
                change(job)

        better = _lint(project, path, edit_text(draft.text, apply))
        if better.rank >= draft.rank:
            return draft
        draft = better
    return draft


def _find_change(finding: Finding, around: Surroundings) -> Callable[[Any], None] | None:
    """Return how to change a job so that it does not have a finding; None if only its author knows."""
    match finding.rule:
        case "locked-field":
            return lambda job: _remove_line(job, finding.location.line - 1)
        case "missing-queue" | "unqueued-accelerators" if around.queue and finding.cause == "unmanaged kind":
            return lambda job: job["spec"].setdefault("labels", {}).update({QUEUE_LABEL: to_scalar(around.queue)})
        case "missing-queue" | "unqueued-accelerators" if around.queue:
            return lambda job: job["spec"].update({"queue": to_scalar(around.queue)})
        case "missing-namespace" if around.namespace:
            return lambda job: job["metadata"].update({"namespace": to_scalar(around.namespace)})
        case "missing-requests" if finding.values[0] == "head":
            return lambda job: _size_head(job["spec"])
        case "workers-outlive-job":
            return lambda job: job["spec"].setdefault("runPolicy", {}).update({"cleanPodPolicy": "Running"})
    return None


def _size_head(spec: Any) -> None:
    """Give the head of a Ray cluster requests; with roles, the number of pods is that of the workers."""
    roles = spec.setdefault("roles", {})
    roles["head"] = {"resources": dict(_HEAD)}
    if "replicas" in spec and "worker" not in roles:
        roles["worker"] = {"replicas": spec.pop("replicas")}


def _remove_line(job: Any, line: int) -> None:
    """Remove the entry that is written in a line, and mappings that are empty without it."""
    for block, key in list(_list_entries(job)):
        # A block that another change added has no lines.
        lines = block.lc.data if hasattr(block, "lc") else None
        if key in block and lines and key in lines and lines[key][0] == line:
            del block[key]
            return


def _list_entries(block: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the entries of mappings, the outermost first."""
    for key in list(block) if isinstance(block, dict) else ():
        yield block, key
        yield from _list_entries(block[key])
