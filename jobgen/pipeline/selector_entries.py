"""Find single entries of selector lists that match no job: one misspelled name among others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from jobgen.model.data import Node, value_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_key
from jobgen.render.config import ProjectConfig
from jobgen.render.environment import EnvironmentRunner, Rendered
from jobgen.render.locate import locate
from jobgen.render.selectors import ListJobs, explain_no_match, suggest_pattern
from jobgen.render.trace import Tracer
from jobgen.spec.overlay import SELECTOR_ATTRIBUTES, JobAttributes, list_ancestors, parse_selector

_RULE = "selector-matches-nothing"


class _Entry(NamedTuple):
    overlay: str
    attribute: str
    node: Node
    siblings: tuple[str, ...]

    @property
    def pattern(self) -> str:
        return str(value_of(self.node))


def find_idle_entries(
    project: ProjectConfig,
    runners: Sequence[EnvironmentRunner],
    made: Iterable[Rendered],
    tracer: Tracer,
    list_jobs: ListJobs,
) -> Iterator[Finding]:
    """Report entries of `jobs` and `match` that no job has, if others of the same list match.

    A list of which no entry matches is reported as a whole. Jobs are listed only for entries that match none of
    the rendered objects.
    """
    overlays = {name for runner in runners for name in list_ancestors(runner.name, project.overlays)}
    yield from _find_idle_excludes(project, runners, overlays, tracer, list_jobs)
    entries = list(_list_entries(project, overlays))
    if not entries:
        return
    rendered = {
        value
        for each in made
        for value in (
            ("name", each.identity.name),
            ("kind", each.identity.kind),
            ("namespace", each.identity.namespace),
            ("path", each.location.file),
        )
    }
    kinds = {pair for kind in project.kinds for pair in (("kind", kind.name), ("platform", kind.platform))}
    if all(_matches(entry, rendered | kinds) for entry in entries):
        return
    jobs = [job for _, jobs in _list_attributes(project, runners, list_jobs) for job in jobs]
    known = {(attribute, str(getattr(job, attribute))) for job in jobs for attribute in SELECTOR_ATTRIBUTES.values()}
    for entry in _list_entries(tracer.traced_project(), overlays):
        others = (entry._replace(node=pattern) for pattern in entry.siblings)
        # The name of a kind that a cluster has is not misspelled; the schema checks frameworks in the same way.
        if _matches(entry, known | kinds) or not any(_matches(other, known) for other in others):
            continue
        hint = suggest_pattern(entry.attribute, entry.pattern, jobs) or "; change or remove it"
        message = f"no job has the {entry.attribute} `{entry.pattern}`{hint}"
        yield locate(Problem(_RULE, message, entry.node, severity=Severity.WARNING), f"overlays/{entry.overlay}")


def _list_entries(project: ProjectConfig, overlays: Iterable[str]) -> Iterator[_Entry]:
    """The entries of lists with several, except for those of optional patches, and of frameworks."""
    for name, whole, _ in _list_selectors(project, overlays):
        for block in (whole, whole.get("exclude", {})):
            for key, attribute in SELECTOR_ATTRIBUTES.items():
                patterns = block.get(key) or ()
                if len(patterns) > 1 and attribute != "framework":
                    siblings = tuple(str(value_of(pattern)) for pattern in patterns)
                    yield from (_Entry(name, attribute, pattern, siblings) for pattern in patterns)


def _list_selectors(project: ProjectConfig, overlays: Iterable[str]) -> Iterator[tuple[str, Any, bool]]:
    """The blocks that select jobs: overlay, block, whether it is of a patch. Those of optional patches are left out."""
    for name in sorted(overlays):
        for spec in project.overlays[name].specs if name in project.overlays else ():
            yield name, spec.get("jobs", {}), False
            for patch in spec.get("patches", ()):
                if not value_of(patch.get("optional", False)):
                    yield name, patch.get("match", {}), True


def _find_idle_excludes(
    project: ProjectConfig,
    runners: Sequence[EnvironmentRunner],
    overlays: Iterable[str],
    tracer: Tracer,
    list_jobs: ListJobs,
) -> Iterator[Finding]:
    """Report each `exclude` that excludes no job in any environment that has it."""
    if not any("exclude" in block for _, block, _ in _list_selectors(project, overlays)):
        return
    listed = _list_attributes(project, runners, list_jobs)
    for overlay, block, is_patch in _list_selectors(tracer.traced_project(), overlays):
        if "exclude" not in block:
            continue
        selector = parse_selector(block)
        included = [
            job
            for runner, jobs in listed
            if overlay in list_ancestors(runner.name, project.overlays)
            for job in jobs
            if selector.includes(job) and (not is_patch or runner.expander.environment.matches(job))
        ]
        # A selector that matches nothing is reported itself.
        if included and all(map(selector.matches, included)):
            reason = explain_no_match(parse_selector(block["exclude"]), included)
            advice = "" if reason.endswith("?") or "; write `" in reason else "; change or remove it"
            message = f"`exclude` excludes none of the jobs that match{reason}{advice}"
            problem = Problem(_RULE, message, find_key(block, "exclude"), severity=Severity.WARNING)
            yield locate(problem, f"overlays/{overlay}")


def _matches(entry: _Entry, values: set[tuple[str, str]]) -> bool:
    if (entry.attribute, entry.pattern) in values:
        return True
    return any(attribute == entry.attribute and fnmatchcase(value, entry.pattern) for attribute, value in values)


def _list_attributes(
    project: ProjectConfig, runners: Sequence[EnvironmentRunner], list_jobs: ListJobs
) -> list[tuple[EnvironmentRunner, list[JobAttributes]]]:
    """The attributes of all jobs in all environments, also in those that are not run."""
    ran = {runner.name for runner in runners}
    every = [*runners, *(EnvironmentRunner(project, name) for name in project.overlays if name not in ran)]
    jobs = list(list_jobs())
    return [(runner, [runner.attributes(job) for job in jobs]) for runner in every]
