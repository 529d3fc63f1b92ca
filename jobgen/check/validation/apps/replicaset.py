"""Validate ReplicaSets."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.validation.workloads import REPLICAS, validate_workload
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the number of pods, the selector and the template."""
    validate_workload(obj, REPLICAS, run)
