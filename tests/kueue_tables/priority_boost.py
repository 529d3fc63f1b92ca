"""The boost that an annotation adds to the priority of a workload."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobgen.features.kueue.workloads import Workload

_BOOST = "kueue.x-k8s.io/priority-boost"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT32 = range(-(2**31), 2**31)


def read_boost(annotations: Mapping[str, str]) -> int:
    """Return what the annotation adds to the priority; 0 if it is not an integer of 32 bits."""
    text = str(annotations.get(_BOOST, ""))
    boost = int(text) if len(text) < 20 and _INTEGER.fullmatch(text) else 0
    return boost if boost in _INT32 else 0


def add_boost(workload: Workload) -> Workload:
    """Return a workload with the priority that counts if the gate PriorityBoost is on."""
    boost = read_boost(workload.annotations)
    return workload._replace(priority=workload.priority + boost) if boost else workload
