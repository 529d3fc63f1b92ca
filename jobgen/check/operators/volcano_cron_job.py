"""What the webhook of Volcano rejects: CronJobs, and Jobs that it would reject once they are created."""

from __future__ import annotations

from jobgen.check.operators import volcano_job
from jobgen.check.operators.checks import (
    CHILD_REJECTED,
    REJECTED,
    Check,
    Checks,
    Violations,
    full_name,
    name_node,
)
from jobgen.check.operators.schedules import check_schedule, check_time_zone
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, location_of, with_value
from jobgen.model.finding import quoted_values
from jobgen.model.suggest import find_key

OPERATOR = "volcano"

_MAX_NAME = 52
# The name of a Job ends in a time of this length.
_TIME = "-" + "0" * 10


def _check_name(manifest: Manifest) -> Violations:
    name, node = full_name(manifest), name_node(manifest)
    if len(name) > _MAX_NAME:
        message = f"`{as_text(node)}` has {len(name)} characters; its Jobs append a time, so use at most {_MAX_NAME}"
        yield Violation(node, message)


def _check_jobs(manifest: Manifest) -> Violations:
    """Check the Jobs that will be created: nothing checks their template before."""
    template = as_mapping(manifest.spec.get("jobTemplate"))
    name = full_name(manifest)
    if not template or len(name) > _MAX_NAME:
        return
    job_name: Node = with_value(name_node(manifest), f"{name}{_TIME}") if name else ""
    job: dict[str, Node] = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {**as_mapping(template.get("metadata")), "name": job_name},
    }
    job.update({key: value for key, value in template.items() if key == "spec"})
    version = str(manifest.cluster.operators.get(OPERATOR, ""))
    child = Manifest(job, None, manifest.cluster)
    for check in volcano_job.CHECKS["Job"]:
        for violation in check.find(child) if check.applies_to(version) else ():
            node = violation.node if location_of(violation.node) else find_key(manifest.spec, "jobTemplate")
            message = f"Volcano rejects its Jobs: {violation.message}"
            values = quoted_values(violation.message)
            yield violation._replace(node=node, message=message, evidence=values)


CHECKS: Checks = {
    "CronJob": (
        Check(REJECTED, _check_name),
        Check(REJECTED, check_schedule),
        Check(REJECTED, check_time_zone),
        Check(CHILD_REJECTED, _check_jobs),
    ),
}
