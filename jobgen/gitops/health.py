"""How a job is doing, by what its operator writes into its status: the words of each group, and their order."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

HEALTHY, DEGRADED, SUSPENDED, PROGRESSING = "Healthy", "Degraded", "Suspended", "Progressing"


class Words(NamedTuple):
    """The conditions that an operator sets, and the phases that decide where it has them."""

    failed: str
    finished: str
    suspended: str
    moving: tuple[str, ...] = ()
    phases: Mapping[str, str] = MappingProxyType({})

    @property
    def order(self) -> tuple[str, ...]:
        """All conditions; of two that turned in the same second, the later one here tells."""
        return (*self.moving, self.suspended, self.finished, self.failed)

    @property
    def verdicts(self) -> dict[str, str]:
        """What each condition means where it tells."""
        moving = dict.fromkeys(self.moving, PROGRESSING)
        return moving | {self.suspended: SUSPENDED, self.finished: HEALTHY, self.failed: DEGRADED}


_KUBEFLOW = Words("Failed", "Succeeded", "Suspended", ("Created", "Running", "Restarting"))
_WORDS = {
    "kubeflow.org": _KUBEFLOW,
    "trainer.kubeflow.org": Words("Failed", "Complete", "Suspended"),
    "batch.tensorstack.dev": Words(
        "Failed",
        "Completed",
        "Paused",
        # A replica that fails may be started again, so that alone is no failure of the job.
        ("Initialized", "ReplicaFailure", "Running"),
        MappingProxyType({"Failed": DEGRADED, "Paused": SUSPENDED, "Succeeded": HEALTHY}),
    ),
}


def words_of(group: str) -> Words:
    """The words of a group; a group that nobody has told us about speaks as Kubeflow does, as most do."""
    return _WORDS.get(group, _KUBEFLOW)
