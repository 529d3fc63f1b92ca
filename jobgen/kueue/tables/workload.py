"""Tables: Jobs as workloads, and what they request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobgen.kueue.objects import as_mapping
from jobgen.kueue.pod_sets import list_pod_sets
from jobgen.kueue.pod_sets.topology_request import parse_gates
from jobgen.kueue.tables import Table


def job_pod_sets(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod sets of a job object."""
    gates = parse_gates(as_mapping(given.get("featureGates")))
    return {"podSets": list_pod_sets(as_mapping(given.get("object")), gates) or []}


TABLES: Final[dict[str, Table]] = {"job_pod_sets": job_pod_sets}
