"""Check the objects of a run with other tools, and point at the fields that they reject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from jobgen.features.second_opinion.disagreements import CheckedObject, Disagreement, find_disagreements
from jobgen.model.data import Node
from jobgen.model.finding import Finding, Problem
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.render.environment import EnvironmentRunner
from jobgen.render.read_jobs import read_jobs
from jobgen.render.run import Run
from jobgen.render.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import FileEntry
from jobgen.report.opinion import Opinion

_MAX_DIGITS = 10


def check_run(run: Run, tools: Sequence[str]) -> tuple[int, list[Opinion]]:
    """Check all objects of a run, also with other tools, and return their number and how much these tools checked.

    Raises:
        ToolError: A tool failed.

    """
    runners = {name: EnvironmentRunner(run.project, name) for name in run.environments}
    checkers = {name: EnvironmentChecker(runner, entries=run.entries).checker for name, runner in runners.items()}
    objects = []
    for made in run:
        checker = checkers[made.env]
        schema = checker.read_json_schema(checker.manifest(made.object))
        objects.append(CheckedObject(made, schema, partial(checker.find_schema_problems, made.object)))
    found, opinions = find_disagreements(objects, run.findings, tools)
    run.findings += filter(None, map(run.project.apply_severity, _locate_all(run, found)))
    return len(objects), opinions


def _locate_all(run: Run, found: Iterable[Disagreement]) -> Iterator[Finding]:
    """Yield the findings, each at the field that it is about, if its path leads to one."""
    tracer = Tracer(run.project)
    entries: dict[str, FileEntry] = {}
    for each in found:
        if not each.path:
            yield each.finding
            continue
        entries = entries or _list_entries(run)
        job = _find_job(run, entries.get(each.made.location.file), each)
        yield _locate(tracer, job, each) if job else each.finding


def _list_entries(run: Run) -> dict[str, FileEntry]:
    entries = layout.find_jobs(run.project.root) if run.entries is None else run.entries
    return {entry.path: entry for entry in entries}


def _find_job(run: Run, entry: FileEntry | None, each: Disagreement) -> Job | None:
    place = (each.made.position, each.made.item)
    jobs = read_jobs([entry], run.project.frameworks, []) if entry else ()
    return next((job for job in jobs if (job.position, job.item) == place), None)


def _locate(tracer: Tracer, job: Job, each: Disagreement) -> Finding:
    finding = each.finding

    def check(obj: Any) -> list[Problem]:
        node = _find_node(obj, each.path)
        return [Problem(finding.rule, finding.message, node, category=finding.category, severity=finding.severity)]

    found = tracer.findings(job, each.made.env, check, each.made.companion)
    return found[0] if found[0].pointer else finding


def _find_node(tree: Node, path: Sequence[str | int]) -> Node:
    """The node at a path, or the last one on the way to it: a field may be missing, or no field at all."""
    steps = list(map(str, path))
    while steps:
        # kubeconform does not escape slashes, so a name with slashes is several steps.
        found = ((length, _select(tree, "/".join(steps[:length]))) for length in range(1, len(steps) + 1))
        length, child = next((each for each in found if each[1] is not None), (len(steps), tree))
        tree, steps = child, steps[length:]
    return tree


def _select(tree: Any, step: str) -> Node:
    if isinstance(tree, list):
        return tree[int(step)] if step.isdecimal() and len(step) < _MAX_DIGITS and int(step) < len(tree) else None
    return tree.get(step) if isinstance(tree, dict) else None
