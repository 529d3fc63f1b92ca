"""When two objects mean the same: quantities by their amount, volumes and mounts in any order, all else exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobgen.model.data import Data
from jobgen.model.finding import Problem
from jobgen.model.path import NamedItem, Step
from jobgen.model.quantity import canonicalize_quantity
from jobgen.pipeline import config
from jobgen.render.build import build_object
from jobgen.render.expand import Expander, JobDocument
from jobgen.spec.frameworks import collect_frameworks
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import Cluster, Environment

_AMOUNTS = frozenset(("limits", "requests"))
# Kubernetes tells their items apart by these keys, and their order says nothing to it.
_UNORDERED = {"volumes": "name", "volumeMounts": "mountPath"}
_KEYED = {**_UNORDERED, "containers": "name", "initContainers": "name", "env": "name", "replicaSpecs": "type"}


def is_equivalent(one: Data, other: Data, name: str = "", holder: str = "") -> bool:
    """Whether two nodes mean the same; `name` is the key they stand under, `holder` the one above it."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equivalent(one[key], other[key], str(key), name) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        by = _UNORDERED.get(name)
        pairs = zip(_sorted(one, by), _sorted(other, by), strict=True)
        return all(is_equivalent(first, second, "", name) for first, second in pairs)
    if name == "sizeLimit" or holder in _AMOUNTS:
        return bool(_amount(one) == _amount(other))
    return type(one) is type(other) and bool(one == other)


def _sorted(items: list[Data], by: str | None) -> list[Data]:
    if by is None or not all(isinstance(item, dict) and isinstance(item.get(by), str) for item in items):
        return items
    return sorted(items, key=lambda item: str(item[by]))


def _amount(value: Data) -> Data:
    plain_number = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return (canonicalize_quantity(str(value)) or value) if plain_number else (type(value).__name__, value)


def find_differences(
    wanted: Data, made: Data, path: tuple[Step, ...] = (), name: str = ""
) -> Iterator[tuple[tuple[Step, ...], Data, Data]]:
    """Every place where two objects differ: the path, what is wanted there and what was made; None for nothing."""
    if isinstance(wanted, dict) and isinstance(made, dict):
        for key in [*wanted, *(key for key in made if key not in wanted)]:
            if key not in wanted or key not in made:
                yield (*path, key), wanted.get(key), made.get(key)
            elif not is_equivalent(wanted[key], made[key], str(key), name):
                yield from find_differences(wanted[key], made[key], (*path, key), str(key))
    elif isinstance(wanted, list) and isinstance(made, list) and len(wanted) == len(made):
        by = _UNORDERED.get(name)
        for index, (one, other) in enumerate(zip(_sorted(wanted, by), _sorted(made, by), strict=True)):
            if not is_equivalent(one, other, "", name):
                yield from find_differences(one, other, (*path, _step(one, name, index)), name)
    elif not is_equivalent(wanted, made, name):
        yield path, wanted, made


def _step(item: Data, name: str, index: int) -> Step:
    by = _KEYED.get(name)
    return NamedItem(by, item[by]) if by and isinstance(item, dict) and isinstance(item.get(by), str) else index


class SpecRenderer(NamedTuple):
    """What specs are rendered with: the kinds of a repository and one environment."""

    expander: Expander

    @property
    def gpu_resource(self) -> str:
        """How the cluster spells `gpu`."""
        return self.expander.environment.cluster.gpu_resource


def renderer_for(platform: str, kinds: Sequence[Kind]) -> SpecRenderer:
    """An environment of that platform of which nothing else is known."""
    return SpecRenderer(Expander(Environment("", Cluster(platform=platform)), list(kinds)))


def render_spec(document: dict[str, Data], bench: SpecRenderer, *, alone: bool = True) -> tuple[Data, list[str]]:
    """The object that a spec makes, and what is wrong; unless it is `alone`, nulls may be meant for overlays."""
    faults = config.find_errors(document, "trainingjob", collect_frameworks(bench.expander.kinds))
    if faults:
        return None, [fault.message for fault in faults]
    problems: list[Problem] = []
    deletions: list[Deletion] = []
    made = build_object(JobDocument(document, ""), bench.expander, [], problems, deletions)
    hit = {(id(deletion.asked_by), deletion.key) for deletion in deletions if deletion.found}
    missed = [each for each in deletions if not each.found and (id(each.asked_by), each.key) not in hit]
    dead = [each for each in missed if alone or each.fault]
    faulty = [each.fault or f"`{each.key}` is to be deleted, but there is nothing to delete" for each in dead]
    return made, [*(problem.message for problem in problems), *faulty]
