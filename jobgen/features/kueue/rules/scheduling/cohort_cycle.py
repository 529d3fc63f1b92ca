"""Cohorts that are above each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", ERROR, kinds=("Cohort",))
def cohort_cycle(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """Cohorts whose parents form a cycle.

    Kueue accepts each of the Cohorts, because it looks at one object at a time. It then admits nothing in any
    ClusterQueue below the cycle, and no job shows an error. The finding is on one of the Cohorts, and names the others.

    Remove `parentName` of the Cohort that is meant to be the top, or correct it.
    """
    from jobgen.features.kueue.quota import get_parent

    for cycle in queues.cycles:
        # `admits-nothing` reports a Cohort of the repository that is its own parent.
        if cycle[0] != manifest.name or (len(cycle) == 1 and not queues.is_exported(manifest.object)):
            continue
        others = [(name, queues.objects["Cohort", "", name]) for name in cycle[1:]]
        chain = " is below ".join(f"`{name}`" for name in (*cycle, cycle[0]))
        message = f"the parents of the cohorts form a cycle: {chain}; Kueue admits nothing below it"
        related = tuple((get_parent(other), f"parent of cohort `{name}`") for name, other in others)
        yield Violation(get_parent(manifest.object), f"{message}; remove one `parentName`", related)
