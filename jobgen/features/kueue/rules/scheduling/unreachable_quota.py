"""Quota that no workload can use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", WARNING, kinds=("ClusterQueue", "Cohort"))
def unreachable_quota(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """Quota of a ClusterQueue or Cohort that no workload can ever use.

    A ClusterQueue that no LocalQueue refers to gets no workloads. Its quota can only be used if it is in a cohort and
    lends it to a queue that lists the same flavor and resource. The quota of a Cohort can only be used if a
    ClusterQueue of its tree lists the flavor and resource. A flavor that does not exist makes a queue inactive. If no
    LocalQueue, or no ResourceFlavor, is among the files, jobgen does not know them and reports nothing. Negative quota
    in the exported state is reported as well, as no cluster has it.

    Add a LocalQueue, lend the quota, or give it to a queue that is used.
    """
    from jobgen.features.kueue.queue_state import find_unreachable

    for node, message in find_unreachable(manifest.object, queues):
        yield Violation(node, message)
