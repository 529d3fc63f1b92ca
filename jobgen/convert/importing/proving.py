"""Specs rendered where they belong, and held against the manifests they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobgen.model.data import Data
from jobgen.model.finding import Problem
from jobgen.pipeline import config
from jobgen.render.build import build_object
from jobgen.render.expand import Expander, JobDocument
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import Cluster, Environment


class Bench(NamedTuple):
    """What specs are rendered with: the kinds of a repository and one environment."""

    expander: Expander

    @property
    def gpu_resource(self) -> str:
        """How the cluster spells `gpu`."""
        return self.expander.environment.cluster.gpu_resource


def bench_for(platform: str, kinds: Sequence[Kind]) -> Bench:
    """An environment of that platform of which nothing else is known."""
    return Bench(Expander(Environment("", Cluster(platform=platform)), list(kinds)))


def rendered(document: dict[str, Data], bench: Bench, *, alone: bool = True) -> tuple[Data, list[str]]:
    """The object that a spec makes, and what is wrong; unless it is `alone`, nulls may be meant for overlays."""
    faults = config.faults(document, "trainingjob")
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
