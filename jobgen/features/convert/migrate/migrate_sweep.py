"""Migrate a sweep: its document as it is written, verified with each of its members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jobgen.features.convert.migrate.draft import iter_leaves
from jobgen.features.convert.migrate.migrate_job import MigratedJob
from jobgen.model.data import Plain
from jobgen.spec.sweeps import expand_member

_EXPRESSION = "${{"
# Fields that a migration adds up or distributes to other roles.
_COUNTED = frozenset(("replicas", "nprocPerNode", "slotsPerWorker"))


def migrate_sweep(
    document: dict[str, Plain],
    count: int,
    migrate: Callable[[dict[str, Plain]], MigratedJob],
    *,
    keeps_counts: bool = False,
) -> MigratedJob | str:
    """Migrate the document of a sweep with this number of members; a text says why that is impossible.

    Every member of the new sweep must be the job that the old member is migrated to. With `keeps_counts`, numbers of
    replicas stay where they are, so that they may be variables.
    """
    data: Any = document
    counted = "" if keeps_counts else next(_find_counted(_without_matrix(data)["spec"]), "")
    if counted:
        return f"`{counted}` is a variable of the matrix, which the other kind distributes; write a number"
    members = [migrate(_without_matrix(expand_member(data, index))) for index in range(count)]
    template = migrate(_without_matrix(data))
    sweep = _add_matrix(template.document, data)
    for index, member in enumerate(members):
        if _without_matrix(expand_member(sweep, index)) != member.document:
            return "its members would be migrated in different ways; write them as jobs of their own"
    problems = tuple(dict.fromkeys(problem for member in members for problem in member.problems))
    differences = tuple(dict.fromkeys(line for member in members for line in member.differences))
    notes = tuple(dict.fromkeys(note for member in members for note in member.notes))
    return MigratedJob(sweep, notes, differences, problems, None)


def _find_counted(spec: Any) -> Iterator[str]:
    for path, value in iter_leaves(spec):
        if path and path[-1] in _COUNTED and _EXPRESSION in str(value):
            yield ".".join(path)


def _without_matrix(document: Any) -> dict[str, Any]:
    return {**document, "spec": {key: value for key, value in document["spec"].items() if key != "matrix"}}


def _add_matrix(document: Any, old: Any) -> dict[str, Any]:
    """The new document with the matrix of the old one, where it was written."""
    spec = {**document["spec"], "matrix": old["spec"]["matrix"]}
    order = [*(key for key in old["spec"] if key in spec), *spec]
    return {**document, "spec": {key: spec[key] for key in dict.fromkeys(order)}}
