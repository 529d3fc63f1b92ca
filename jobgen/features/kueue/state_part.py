"""The queues of a cluster as a part of its state, for the rules with the scope `queue`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jobgen.check.cluster.state import StatePart
from jobgen.k8s.kueue import QUEUE_LABEL

if TYPE_CHECKING:
    from jobgen.check.cluster.state import Others
    from jobgen.features.kueue.queue_state import QueueState
    from jobgen.model.data import Plain
    from jobgen.rendering.config import ProjectConfig
    from jobgen.spec.overlay import Cluster

_QUEUE_NAME = re.compile(re.escape(QUEUE_LABEL) + r"[\"']?\s*:\s*[\"']?([\w.-]+)")

# The modules of Kueue are imported in functions: most clusters have no queues.


def _list_kinds() -> frozenset[str]:
    from jobgen.features.kueue.cluster_objects import DECIDING_KINDS

    return DECIDING_KINDS


def _build(
    cluster: Cluster, exported: Sequence[Mapping[str, Plain]], own: Sequence[Mapping[str, Plain]], others: Others
) -> QueueState:
    from jobgen.features.kueue.queue_state import QueueState

    return QueueState(cluster, exported, own, others)


def _find_workers(project: ProjectConfig, cluster: Cluster) -> Mapping[str, Cluster]:
    if not cluster.workers:
        return {}
    from jobgen.features.kueue.queues.report import find_workers

    return find_workers(project, cluster)


PART = StatePart(
    "queue",
    # The file of one describes all queues that it uses.
    kinds=frozenset(("ClusterQueue", "Cohort", "Node")),
    list_kinds=_list_kinds,
    build=_build,
    find_others=_find_workers,
    # How Kueue is configured, and which other queues there are, is not known of any file.
    uncertain=frozenset(("inadmissible-job",)),
    joined=frozenset("AdmissionCheck ClusterQueue Cohort LocalQueue ResourceFlavor Topology".split()),
    find_used=_QUEUE_NAME.findall,
)
