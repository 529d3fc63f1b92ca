"""Where a container asks for its accelerators."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.k8s.accelerators import is_device
from jobgen.model.amounts import amount
from jobgen.model.data import Data


def device_node(limits: Mapping[str, Data], requests: Mapping[str, Data]) -> Data:
    """The number of the first devices in a container's resources; None where it asks for none."""
    named = (*limits.items(), *requests.items())
    return next((value for name, value in named if is_device(str(name)) and amount(value)), None)
