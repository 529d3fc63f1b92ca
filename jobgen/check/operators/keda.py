"""What the webhook of KEDA rejects."""

from __future__ import annotations

from jobgen.check.operators.checks import CHILD_REJECTED, REJECTED, Check, Checks, Violations
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

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
        place = At(spec, "maxReplicaCount" if high is not None else "minReplicaCount")
        message = Sentence("`maxReplicaCount` is {}, less than the {} of `minReplicaCount`", most, least)
        yield Violation(place, Sentence("{}; raise it, or lower `minReplicaCount`", message))
    if idle is not None and idle >= least:
        message = Sentence(
            "`idleReplicaCount` is {}, and must be less than `minReplicaCount`, which is {}", idle, least
        )
        advice = "remove it" if idle else "set `minReplicaCount`"
        yield Violation(At(spec, "idleReplicaCount"), Sentence("{}; {}", message, advice))


def _check_jobs(manifest: Manifest) -> Violations:
    """Check what the API server rejects of the Jobs, whose pods restart on failure if the template does not say."""
    pod = as_mapping(get_path(manifest.spec, "jobTargetRef", "template", "spec"))
    policy = as_text(pod.get("restartPolicy"))
    if policy == "Always":
        message = Sentence(
            "the API server rejects its Jobs: `restartPolicy` is `{}`, but must be `OnFailure` or `Never`", policy
        )
        yield Violation(At(pod, "restartPolicy"), message)


CHECKS: Checks = {
    "ScaledJob": (Check(CHILD_REJECTED, _check_jobs),),
    "ScaledObject": (Check(REJECTED, _check_replicas, since="2.11"),),
}
