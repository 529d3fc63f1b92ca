"""Check the schedules and time zones of the cron kinds of operators."""

from __future__ import annotations

from jobgen.check.operators.checks import Violations
from jobgen.check.rules import Violation
from jobgen.check.validation.cron_schedule import find_schedule_error
from jobgen.check.validation.time_zones import is_time_zone
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of


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
