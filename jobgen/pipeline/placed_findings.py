"""Findings of problems that checks placed in an object: the node at a path is found in the text, or in a traced job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from jobgen.model.data import Node, TracedScalar, with_layer
from jobgen.model.finding import Finding, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.mutated import Mutated
from jobgen.model.path import Step, find_path, format_pointer
from jobgen.model.place import PathTo
from jobgen.model.placed import finish, follow, place_problems
from jobgen.rendering.build import identity_of
from jobgen.rendering.locate import locate
from jobgen.rendering.trace import WHOLE, Job, Tracer, format_place, name_removals
from jobgen.yamlio.read.find_node import Search
from jobgen.yamlio.read.locations import UnexpectedTextError

_ITEMS = lazy_pattern(r"^[\"']?items\b", re.MULTILINE)
_LAYER = "manifest"


class PlacedObject:
    """An object of a job, in which nodes are looked up by their paths."""

    def __init__(self, job: Job, trace: Callable[[], Mutated], *, is_written: bool) -> None:
        """Start with what builds the object with locations; one that `is_written` is looked up in its file first."""
        self._trace = trace
        self._search = _search(job) if is_written else None
        self.mutated: Mutated | None = None
        """The object with locations and the changes of policies, if a node was not found in the text."""

    def find(self, path: PathTo) -> Any:
        """Return the node at a path, with its location."""
        if self._search is not None and self.mutated is None:
            try:
                return with_layer(self._search.find(path.steps, is_key=path.is_key), _LAYER)
            except UnexpectedTextError:
                # The rest of the text is as unusual.
                pass
        if self.mutated is None:
            self.mutated = self._trace()
        return path.follow(self.mutated.object)


def _search(job: Job) -> Search | None:
    """Return what finds nodes of a manifest in its text; None if it may not be written as it was read."""
    if job.built is not None or job.mended is not None or job.item < WHOLE:
        return None
    with suppress(UnexpectedTextError, UnicodeDecodeError):
        text = job.file.content.decode("utf-8").replace("\r\n", "\n")
        # The object may be one of a list, which begins elsewhere.
        return None if _ITEMS.search(text) else Search(job.document.data, text, job.file.path, job.location.line)
    return None


def locate_problems(
    problems: Sequence[Problem],
    obj: Mapping[str, Node],
    tracer: Tracer,
    job: Job,
    env: str,
    companion: int = 0,
    mutate: Callable[[Any], Mutated] = Mutated,
) -> list[Finding]:
    """Return the findings of problems of an object of a job, which `mutate` has changed, with places or paths."""
    return locate_placed(place_problems(problems, obj), obj, tracer, job, env, companion, mutate) if problems else []


def locate_placed(
    problems: Iterable[Problem],
    obj: Mapping[str, Node],
    tracer: Tracer,
    job: Job,
    env: str,
    companion: int = 0,
    mutate: Callable[[Any], Mutated] = Mutated,
) -> list[Finding]:
    """Return the findings of problems with paths into an object, which `mutate` has changed."""
    placed = PlacedObject(
        job, lambda: mutate(tracer.trace(job, env).select(companion)), is_written=obj is job.document.data
    )
    identity = identity_of(obj)
    found: list[Finding] = []
    for each in problems:
        path: tuple[Step, ...] = each.node.steps if isinstance(each.node, PathTo) else ()
        problem = follow(each, placed.find)
        if placed.mutated is not None:
            # A node that stands at two places, as that of a request and a limit in a spec, has the first one.
            path = find_path(problem.node, placed.mutated.object) or path
        if problem.finish is not None:
            kind = placed.find(PathTo(("kind",)))
            finished = finish(problem, is_spec=type(kind) is TracedScalar and kind.layer.startswith("kind "))
            if finished is None:
                continue
            if finished.node is not problem.node:
                is_traced = placed.mutated is not None
                inside = () if is_traced else find_path(finished.node, problem.node)
                path = find_path(finished.node, placed.mutated.object) or path if placed.mutated else (*path, *inside)
            problem = finished
        if problem.inside is not None:
            problem = tracer.look_inside(problem, job.file)
        finding = locate(problem, job.file.path, None if problem.location else job.start())
        removals = name_removals(finding, path, placed.mutated) if placed.mutated else ()
        location = job.find_written(finding.location, path)
        finding = finding._replace(related=(*finding.related, *removals), location=location, object=identity, env=env)
        found.append(finding._replace(pointer=format_pointer(path), place=format_place(job, path, obj)))
    return found
