"""Findings about several objects of files that are checked by themselves: in one file, and in files of one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from jobgen.check.idle_services import find_idle_services
from jobgen.k8s.builtin_groups import BUILTIN_GROUPS
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.pod_templates import list_template_paths
from jobgen.model.data import Location, Node
from jobgen.model.finding import Finding, Problem, Related, Severity, pluralize
from jobgen.render.build import is_spec
from jobgen.render.environment import Rendered
from jobgen.render.read_jobs import read_jobs
from jobgen.render.trace import Job, Tracer
from jobgen.repo.files import FileEntry

_Place: TypeAlias = tuple[str, int, int]
"""The file, the position and the item of an object."""
_ObjectKey: TypeAlias = tuple[str, str, str, str]
"""What the API server identifies an object by: group, kind, namespace and name."""

# Fields that say nothing about what an object does.
_IGNORED_FIELDS = frozenset(("apiVersion", "kind", "metadata", "status"))
_MAX_SHOWN = 3


def find_file_problems(jobs: Sequence[tuple[Job, Rendered]], tracer: Tracer, env: str) -> Iterator[tuple[int, Finding]]:
    """Report what is wrong with the objects of one file together; each finding with the number of its object."""
    objects = [made.object for _, made in jobs]
    for number, _ in find_idle_services(objects):
        job, made = jobs[number]

        def check(traced: Any, number: int = number) -> list[Problem]:
            others = [*objects[:number], traced, *objects[number + 1 :]]
            return [problem for place, problem in find_idle_services(others) if place == number]

        for finding in tracer.findings(job, env, check, made.companion):
            yield number, finding


def list_alone(entries: Sequence[FileEntry]) -> Callable[[str], bool]:
    """Return the test of a path for a file that is applied as it is, and not as a part of a build."""
    return {entry.path for entry in entries if entry.build is None and not entry.is_source}.__contains__


def report_broken_definitions(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings; a definition that cannot be used is reported once, whatever objects it was to check."""
    found: dict[Any, Finding] = {}
    for number, finding in enumerate(findings):
        is_broken = finding.rule == "broken-schema"
        key = (finding.location, finding.message, finding.env) if is_broken else number
        found.setdefault(key, finding._replace(object=None, pointer="", place="") if is_broken else finding)
    return list(found.values())


def find_conflicting_copies(
    made: Sequence[Rendered], entries: Sequence[FileEntry], tracer: Tracer, is_alone: Callable[[str], bool]
) -> Iterator[Finding]:
    """Report objects that files of one folder define with different content, so that the last one applied counts."""
    copies = _group_copies(made, is_alone)
    if not copies:
        return
    names: dict[str, set[_ObjectKey]] = {}
    for each in made:
        names.setdefault(each.location.file, set()).add(_name_object(each))
    files = {each.location.file for several in copies for each in several}
    read = read_jobs([entry for entry in entries if entry.path in files], tracer.project.frameworks, [])
    jobs = {_place_of(job.file.path, job): job for job in read if not is_spec(job.document.data)}
    for several in copies:
        known = [(each, jobs[place]) for each in several if (place := _place_of(each.location.file, each)) in jobs]
        for each, job in known:
            others = {
                other.location.file: (other_job, lost)
                for other, other_job in known
                if other is not each and _are_together(each, other, names)
                if (lost := list(_list_lost(job.document.data, other_job.document.data)))
            }
            if others:
                yield from _report_copies(each, job, others, tracer)


def _group_copies(made: Sequence[Rendered], is_alone: Callable[[str], bool]) -> list[list[Rendered]]:
    """The objects with the same name in one folder."""
    found: dict[tuple[str, _ObjectKey], list[Rendered]] = {}
    for each in made:
        if each.env == made[0].env and each.identity.name and is_alone(each.location.file):
            found.setdefault((each.location.file.rpartition("/")[0], _name_object(each)), []).append(each)
    return [several for several in found.values() if len(several) > 1]


def _name_object(made: Rendered) -> _ObjectKey:
    api_version, kind, namespace, name = made.identity
    return api_version.rpartition("/")[0], kind, namespace, name


def _place_of(path: str, job: Job | Rendered) -> _Place:
    return path, job.position, job.item


def _are_together(one: Rendered, other: Rendered, names: Mapping[str, set[_ObjectKey]]) -> bool:
    """Return True if a user applies both copies: one file holds them, or each file has workloads of its own.

    Files with the same workloads are alternatives, of which a user applies one.
    """
    if one.location.file == other.location.file:
        return True
    first, second = (_list_workloads(names[made.location.file]) for made in (one, other))
    return bool(first and second) and first.isdisjoint(second)


def _list_workloads(keys: set[_ObjectKey]) -> set[tuple[str, str]]:
    """The kinds and names of objects that run pods, or may do so because they are custom resources."""
    return {
        (kind, name) for group, kind, _, name in keys if group not in BUILTIN_GROUPS or list_template_paths(group, kind)
    }


def _list_lost(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The fields in which the second of two objects lacks something of the first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one if path else one.keys() - _IGNORED_FIELDS:
            yield from _list_lost(one[name], other.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(one, list) and isinstance(other, list):
        kept = {json.dumps(item, sort_keys=True, default=str) for item in other}
        if any(json.dumps(item, sort_keys=True, default=str) not in kept for item in one):
            yield path
    elif one != other:
        yield path


def _report_copies(
    made: Rendered, job: Job, others: Mapping[str, tuple[Job, list[str]]], tracer: Tracer
) -> Iterator[Finding]:
    first, *rest = sorted(others)
    fields = sorted({field for _, lost in others.values() for field in lost})
    shown = ", ".join(f"`{field}`" for field in fields[:_MAX_SHOWN])
    shown += f" and {pluralize(len(fields) - _MAX_SHOWN, 'other field')}" if len(fields) > _MAX_SHOWN else ""
    where = "twice in this file" if first == made.location.file else f"also in `{first}`"
    where += f" and {pluralize(len(rest), 'other file')}" if rest else ""
    message = (
        f"`{made.identity}` is {where}, with different {shown}, and the copy that is applied last replaces the others;"
        " keep one copy, or give them different names"
    )

    def check(traced: Any) -> list[Problem]:
        node: Node = as_mapping(traced.get("metadata")).get("name")
        return [Problem("conflicting-copies", message, node, category="fleet", severity=Severity.WARNING)]

    places: list[Location] = [other.name() for other, _ in (others[path] for path in sorted(others))]
    related = tuple(Related(place, "another copy") for place in places)
    yield from (found._replace(related=related) for found in tracer.findings(job, made.env, check, made.companion))
