"""What the webhook of KEDA rejects."""

from __future__ import annotations

from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer
from jobgen.k8s.objects import Manifest

OPERATOR = "keda"
_MOST = 100
"""The most replicas without `maxReplicaCount`."""


def _check_replicas(manifest: Manifest) -> Violations:
    spec = manifest.spec
    low, high = as_integer(spec.get("minReplicaCount")), as_integer(spec.get("maxReplicaCount"))
    idle = as_integer(spec.get("idleReplicaCount"))
    # A written 0 counts as 1, because the HorizontalPodAutoscaler behind it knows no 0.
    least = 0 if low is None else max(low, 1)
    most = _MOST if high is None else high
    if least > most:
        node = spec.get("maxReplicaCount") if high is not None else spec.get("minReplicaCount")
        message = f"`maxReplicaCount` is {most}, less than the {least} of `minReplicaCount`"
        yield Violation(node, f"{message}; raise it, or lower `minReplicaCount`")
    if idle is not None and idle >= least:
        message = f"`idleReplicaCount` is {idle}, and must be less than `minReplicaCount`, which is {least}"
        advice = "remove it" if idle else "set `minReplicaCount`"
        yield Violation(spec["idleReplicaCount"], f"{message}; {advice}")


CHECKS: Checks = {"ScaledObject": (Check(REJECTED, _check_replicas, since="2.11"),)}
