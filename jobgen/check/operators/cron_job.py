"""What the API server rejects of the Jobs that a CronJob of Kubernetes creates, although it accepts the CronJob."""

from __future__ import annotations

from jobgen.check.admission.metadata import validate_object_metadata
from jobgen.check.operators.checks import CHILD_REJECTED, NEVER_STARTS, Check, Checks, Violations, full_name, name_place
from jobgen.check.rules import Violation
from jobgen.check.validation import validate_object
from jobgen.k8s.kinds import parse_release
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.place import At, Derived, identify
from jobgen.model.sentence import Sentence

OPERATOR = "kubernetes"

# The name of a Job ends in the minutes since 1970.
_TIME = "-" + "0" * 8


def _check_jobs(manifest: Manifest) -> Violations:
    """Check the names and labels of the Jobs; the rest of them is validated with the CronJob."""
    release = parse_release(manifest.cluster.kubernetes)
    name, template = full_name(manifest), as_mapping(manifest.spec.get("jobTemplate"))
    if not name or validate_object(manifest.object, release):
        return
    own = as_mapping(template.get("metadata"))
    copied = {key: own[key] for key in own if key in ("annotations", "labels")}
    metadata = Derived({**copied, "name": f"{name}{_TIME}"}, own)
    job: dict[str, Plain] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": template.get("spec"),
    }
    for problem in (*validate_object_metadata(metadata), *validate_object(job, release)):
        message = Sentence("the API server rejects its Jobs: {}", problem.sentence)
        is_name = identify(problem.node) == identify(At(metadata, "name"))
        place = name_place(manifest) if is_name else problem.node
        yield Violation(place, message, evidence=problem.evidence)


_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _check_date(manifest: Manifest) -> Violations:
    """Check that the days of a schedule exist in one of its months."""
    node = manifest.spec.get("schedule")
    fields = as_text(node).split()
    if len(fields) != 5 or fields[4] not in ("*", "?"):
        return
    days, months = ([int(item) if item.isdecimal() else 0 for item in field.split(",")] for field in fields[2:4])
    if all(days) and all(0 < month <= 12 for month in months) and min(days) > max(_DAYS[month - 1] for month in months):
        yield Violation(
            At(manifest.spec, "schedule"),
            Sentence("no month of the schedule has a day {}, so the CronJob never runs; use another day", min(days)),
        )


CHECKS: Checks = {"CronJob": (Check(CHILD_REJECTED, _check_jobs), Check(NEVER_STARTS, _check_date))}
