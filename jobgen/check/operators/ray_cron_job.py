"""What KubeRay does not start: RayCronJobs."""

from __future__ import annotations

from jobgen.check.operators.checks import (
    GATE_OFF,
    NEVER_STARTS,
    Check,
    Checks,
    Violations,
    full_name,
    name_node,
    require_gate,
)
from jobgen.check.operators.ray_job import list_job_checks
from jobgen.check.operators.schedules import check_schedule, check_time_zone
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest

OPERATOR = "kuberay"

_MAX_NAME = 36


def _check_name(manifest: Manifest) -> Violations:
    name, node = full_name(manifest), name_node(manifest)
    if len(name) > _MAX_NAME:
        message = f"`{as_text(node)}` has {len(name)} characters, but KubeRay appends more to it for its RayJobs"
        yield Violation(node, f"{message}; use at most {_MAX_NAME}")


def _check_gate(manifest: Manifest) -> Violations:
    yield from require_gate(manifest, "RayCronJob", "`RayCronJob`", manifest.object.get("kind"))


CHECKS: Checks = {
    "RayCronJob": (
        Check(NEVER_STARTS, _check_name, since="1.7"),
        Check(NEVER_STARTS, check_schedule),
        Check(NEVER_STARTS, check_time_zone, since="1.7"),
        Check(GATE_OFF, _check_gate),
        *list_job_checks("spec", "jobTemplate"),
    ),
}
