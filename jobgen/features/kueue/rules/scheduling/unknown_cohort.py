"""Cohorts that only one object names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import did_you_mean

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", WARNING, kinds=("ClusterQueue", "Cohort"))
def unknown_cohort(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A cohort that only one ClusterQueue or Cohort names, and that has no object.

    For Kueue a cohort exists as soon as something names it, so a misspelled name is not an error: the queue is alone in
    a new cohort, and nothing lends to it. The rule applies if other cohorts have objects, or names that are similar.

    Correct the name, add the Cohort, or leave the field out.
    """
    from jobgen.features.kueue.quota import get_parent

    node = get_parent(manifest.object)
    name = as_text(node)
    if not name:
        return
    declared = {key[2] for key in queues.objects if key[0] == "Cohort"}
    others = sorted((declared | queues.cohorts.keys()) - {name})
    hint = did_you_mean(name, others)
    if name in declared or queues.cohorts[name] > 1 or not (hint or declared - {manifest.name}):
        return
    message = f"there is no Cohort `{name}`, and nothing else is in it"
    yield Violation(node, f"{message}{hint or '; add the Cohort, or use another'}")
