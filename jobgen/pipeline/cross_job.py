"""Rules about all the objects of an environment: facts kept of each object, judged together, placed on their lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobgen.check.rules import Fact, FactViolation, Rule, all_rules
from jobgen.model.data import Data, location_of
from jobgen.model.finding import Finding, Problem, Related
from jobgen.model.path import format_pointer
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.locate import locate
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.trace import Job, JobRef, Traced, Tracer
from jobgen.render.build import identity_of
from jobgen.repo import layout


def cross_job_findings(
    rows: Iterable[tuple[str, Fact]],
    runners: Sequence[EnvironmentRunner],
    entries: Sequence[layout.FileEntry],
    tracer: Tracer,
) -> Iterator[Finding]:
    """What is wrong with the objects of each environment, taken together."""
    kept: dict[tuple[str, str], list[Fact]] = {}
    for name, row in rows:
        kept.setdefault((row.job.env, name), []).append(row)
    rules = {rule.name: rule for rule in all_rules()}
    clusters = {runner.name: runner.expander.environment.cluster for runner in runners}
    finder = _Finder({entry.path: entry for entry in entries}, tracer)
    for (env, name), found in kept.items():
        for fault in rules[name].check(found, clusters[env]):
            yield finder.locate(rules[name], fault)


class _Finder:
    """Walks jobs again for the lines that a fault speaks of; each job once."""

    def __init__(self, entries: dict[str, layout.FileEntry], tracer: Tracer) -> None:
        self._entries = entries
        self._tracer = tracer
        self._traced: dict[JobRef, tuple[Job, Traced]] = {}

    def locate(self, rule: Rule, fault: FactViolation) -> Finding:
        job, traced = self._walk(fault.node.job)
        related = []
        for row, text in fault.related:
            other, object_ = self._walk(row.job)
            related.append(Related(location_of(_node(object_.object, row.path)) or other.location, text))
        node = _node(traced.object, fault.node.path)
        problem = Problem(
            rule.name,
            fault.message,
            node,
            category=rule.category,
            severity=fault.severity or rule.severity,
            evidence=fault.evidence,
        )
        return locate(problem, job.file.path, job.location)._replace(
            object=identity_of(traced.object),
            env=fault.node.job.env,
            pointer=format_pointer(fault.node.path),
            related=tuple(related),
        )

    def _walk(self, where: JobRef) -> tuple[Job, Traced]:
        if where not in self._traced:
            jobs = read_jobs([self._entries[where.path]], [])
            job = next(job for job in jobs if (job.position, job.item) == (where.position, where.item))
            self._traced[where] = job, self._tracer.trace(job, where.env)
        return self._traced[where]


def _node(tree: Data, path: tuple[str | int, ...]) -> Data:
    """The node at a path; the key that leads to it if it is no leaf; the last there is if the path ends early."""
    key: Data = None
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
