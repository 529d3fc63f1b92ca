"""Check what the API server validates later: the objects that operators create, and their schedules."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.metadata import validate_object_metadata
from jobgen.check.operators.checks import Violations
from jobgen.check.rules import Violation
from jobgen.check.validation import validate_object
from jobgen.check.validation.cron_schedule import find_schedule_error, is_time_zone
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.releases import parse_release
from jobgen.model.data import Node, location_of, value_of
from jobgen.model.finding import quoted_values

# The names of children are checked by kind, with their suffixes.
_NAME = "job"
# What operators copy from the metadata of a template.
_COPIED = ("labels", "annotations")


def check_job(
    manifest: Manifest, metadata: Mapping[str, Node], spec: Mapping[str, Node], parent: Node, what: str = "its Job"
) -> Violations:
    """Yield why the API server rejects a Job that an operator creates; `parent` is the node of the whole Job."""
    job: dict[str, Node] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**{key: metadata[key] for key in metadata if key in _COPIED}, "name": _NAME},
        "spec": {**spec},
    }
    problems = [
        *validate_object_metadata(job["metadata"]),
        *validate_object(job, parse_release(manifest.cluster.kubernetes)),
    ]
    for problem in problems:
        # What the operator adds has no location.
        node = problem.node if location_of(problem.node) else parent
        values = quoted_values(problem.message) if problem.evidence is None else problem.evidence
        message = f"the API server rejects {what}: {problem.message}"
        yield Violation(node, message, fix_steps=problem.fix_steps, safe=problem.safe, evidence=values)


def check_schedule(manifest: Manifest) -> Violations:
    """Yield what is wrong with `spec.schedule`; the schema requires it."""
    node = manifest.spec.get("schedule")
    schedule = as_text(node)
    if "TZ" in schedule:
        yield Violation(node, f"`schedule` is `{schedule}`, but cannot contain a time zone; set `timeZone`")
    elif isinstance(value_of(node), str) and (error := find_schedule_error(schedule)):
        yield Violation(node, f"`schedule` is `{schedule}`: {error}")


def check_time_zone(manifest: Manifest) -> Violations:
    """Yield what is wrong with `spec.timeZone`."""
    node = manifest.spec.get("timeZone")
    found = value_of(node)
    if isinstance(found, str) and not is_time_zone(found):
        yield Violation(node, f"`{found}` is not a time zone; write one of the IANA database, such as `Europe/Berlin`")
