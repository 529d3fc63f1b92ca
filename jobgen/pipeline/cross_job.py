"""Findings about several jobs of one environment: rules over facts of all objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobgen.check.rules import Fact, FactViolation, Rule, all_rules
from jobgen.model.data import Node, location_of
from jobgen.model.finding import Finding, Problem, Related
from jobgen.model.path import format_pointer
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.render.build import identity_of
from jobgen.render.locate import locate
from jobgen.render.read_jobs import read_jobs
from jobgen.render.trace import Job, JobRef, Tracer, format_place
from jobgen.repo.files import FileEntry


def cross_job_findings(
    rows: Iterable[tuple[str, Fact]],
    checkers: Sequence[EnvironmentChecker],
    entries: Sequence[FileEntry],
    tracer: Tracer,
) -> Iterator[Finding]:
    """Run the rules over the facts of all objects of each environment."""
    kept: dict[tuple[str, str], list[Fact]] = {}
    for name, row in rows:
        kept.setdefault((row.job.env, name), []).append(row)
    rules = {rule.name: rule for rule in all_rules()}
    named = {checker.runner.name: checker for checker in checkers}
    locator = _Locator({entry.path: entry for entry in entries}, tracer, named)
    for (env, name), found in kept.items():
        for fault in rules[name].check(found, named[env].runner.expander.environment.cluster):
            yield locator.locate(rules[name], fault)


class _Locator:
    """Finds the locations of violations. Each job is processed once with locations."""

    def __init__(
        self, entries: dict[str, FileEntry], tracer: Tracer, checkers: Mapping[str, EnvironmentChecker]
    ) -> None:
        self._entries = entries
        self._tracer = tracer
        self._checkers = checkers
        self._traced: dict[JobRef, tuple[Job, Mapping[str, Node] | None]] = {}

    def locate(self, rule: Rule, fault: FactViolation) -> Finding:
        job, traced = self._walk(fault.node.job)
        related = []
        for row, text in fault.related:
            other, object_ = self._walk(row.job)
            related.append(Related(location_of(_node_at(object_, row.path)) or other.location, text))
        node = _node_at(traced, fault.node.path)
        problem = Problem(
            rule.name,
            fault.message,
            node,
            category=rule.category,
            severity=fault.severity or rule.severity,
            evidence=fault.evidence,
        )
        return locate(problem, job.file.path, job.location)._replace(
            object=identity_of(traced) if traced else None,
            env=fault.node.job.env,
            pointer=format_pointer(fault.node.path),
            place=format_place(job, fault.node.path, traced),
            related=tuple(related),
        )

    def _walk(self, where: JobRef) -> tuple[Job, Mapping[str, Node] | None]:
        if where not in self._traced:
            jobs = read_jobs([self._entries[where.path]], self._tracer.project.frameworks, [])
            job = next(job for job in jobs if (job.position, job.item) == (where.position, where.item))
            made = self._tracer.trace(job, where.env).select(where.companion)
            self._traced[where] = job, None if made is None else self._checkers[where.env].mutate(made).object
        return self._traced[where]


def _node_at(tree: Node, path: tuple[str | int, ...]) -> Node:
    """The leaf at a path; the key of a mapping or list; the last existing node if the path does not exist."""
    key: Node = None
    for step in path:
        if isinstance(tree, dict):
            found = next((name for name in tree if name == step), None)
            if found is None:
                break
            key, tree = found, tree[found]
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
            key = tree
        else:
            break
    return key if isinstance(tree, (dict, list)) and key is not None else tree
