"""Objects that a ResourceQuota of their namespace refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState


@rule("cluster", ERROR)
def exceeds_quota(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """Objects that together need more than a ResourceQuota of their namespace allows.

    ResourceQuotas of the repository, or of the folder `cluster.state`, are compared with the sum of what the repository
    creates in an environment: pods times replicas, claims and other objects, with the defaults of LimitRanges. The API
    server refuses the objects that come last. If a quota limits CPU or memory, it also refuses pods that do not declare
    them. Suspended jobs create no pods. If only jobs in queues of Kueue exceed a quota together, it is a warning,
    because Kueue can start some of them later.

    Request less, suspend some of the jobs, or raise the quota.
    """
    from jobgen.check.cluster.quotas import find_missing_amounts
    from jobgen.check.cluster.state import show_name

    for missing in find_missing_amounts(manifest, state):
        name = show_name(missing.quota)
        owner = f" of namespace `{manifest.namespace}`" if manifest.namespace else ""
        message = (
            f"container `{missing.container}` sets no `{missing.resource}`, but quota `{name}`{owner} limits it, so"
        )
        message += " the pod is refused; set it"
        yield Violation(missing.node, message, ((missing.quota, f"quota `{name}`"),))
