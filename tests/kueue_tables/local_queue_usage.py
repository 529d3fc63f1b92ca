"""Admission fair sharing: the LocalQueue of a ClusterQueue that has used the least comes first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from jobgen.features.kueue.objects import as_mapping
from jobgen.features.kueue.quota import CPU
from jobgen.features.kueue.workloads import Workload
from jobgen.model.quantity import parse_quantity

Key = tuple[str, str]
"""Namespace and name of a LocalQueue."""


class SharingConfig(NamedTuple):
    """The part `admissionFairSharing` of Kueue's configuration."""

    half_life: float = 0.0
    """In how many seconds past usage counts half."""
    interval: float = 0.0
    """How often usage is measured, in seconds."""
    weights: Mapping[str, float] = {}
    """Weights of resources; 1 if not listed."""

    @property
    def penalty(self) -> float:
        """The part of its requests that an admitted workload adds to the usage at once."""
        return 1.0 - 0.5 ** (self.interval / self.half_life) if self.half_life else 0.0


_UNITS: Mapping[str, float] = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"([0-9.]+)(ms|h|m|s)")


def parse_sharing_config(raw: Mapping[str, Any]) -> SharingConfig:
    """Parse the configuration of admission fair sharing."""
    return SharingConfig(
        _parse_duration(raw.get("usageHalfLifeTime")),
        _parse_duration(raw.get("usageSamplingInterval")),
        {str(name): _to_float(weight) for name, weight in as_mapping(raw.get("resourceWeights")).items()},
    )


def _parse_duration(text: Any) -> float:
    return sum(_to_float(number) * _UNITS[unit] for number, unit in _PART.findall(str(text or "")))


def _to_float(quantity: Any) -> float:
    found = parse_quantity(str(quantity))
    return 0.0 if found is None else float(found.amount) * 10.0**found.power


class LocalQueueUsage:
    """What LocalQueues have used, by resource, and what was admitted since that was measured."""

    def __init__(
        self,
        config: SharingConfig,
        consumed: Mapping[Key, Mapping[str, Any]],
        weights: Mapping[Key, float],
    ) -> None:
        """`consumed` are quantities by LocalQueue; `weights` are those of LocalQueues, 1 if not listed."""
        self._config = config
        self._weights = weights
        self._used = {
            key: {str(name): _to_float(quantity) for name, quantity in quantities.items()}
            for key, quantities in consumed.items()
        }

    def measure(self, workload: Workload) -> float:
        """Return the usage of the LocalQueue of a workload, by weight; infinite if it has no weight."""
        key = (workload.namespace, workload.queue)
        weight = self._weights.get(key, 1.0)
        if weight <= 0:
            return inf
        used = sorted(self._used.get(key, {}).items())
        return sum(self._config.weights.get(name, 1.0) * amount for name, amount in used) / weight

    def add_penalty(self, workload: Workload) -> None:
        """Count a workload that is admitted."""
        used = self._used.setdefault((workload.namespace, workload.queue), {})
        for pod_set in workload.pod_sets:
            for name, amount in pod_set.total().items():
                whole = amount / 1000 if name == CPU else float(amount)
                used[name] = used.get(name, 0.0) + self._config.penalty * whole


def parse_weight(spec: Mapping[str, Any]) -> float:
    """Parse the weight of a LocalQueue."""
    weight = as_mapping(spec.get("fairSharing")).get("weight")
    return 1.0 if weight is None else _to_float(weight)
