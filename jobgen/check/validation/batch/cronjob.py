"""Validate CronJobs."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    find_key,
    get_key,
    is_empty,
    is_set,
    report_missing,
    validate_enum,
    validate_fields,
    validate_number,
)
from jobgen.check.validation.cron_schedule import find_schedule_error
from jobgen.check.validation.job_spec import validate_job_spec
from jobgen.check.validation.time_zones import is_time_zone
from jobgen.check.validation.workloads import report_missing_spec
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import did_you_mean

_MAX_NAME = 52
# The API server appends five characters to a prefix of at most this length.
_MAX_PREFIX = 58
_SUFFIX = 5


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the schedule, the limits, the template of the Jobs, and the name."""
    if not run.spec:
        report_missing_spec(obj, run)
        return
    validate_fields(run.spec, _SPEC, run)
    if is_empty(run.spec.get("schedule")):
        report_missing("a CronJob", run.spec, "schedule", run.spec, run)
    template = run.spec.get("jobTemplate")
    if not is_set(template):
        report_missing("a CronJob", run.spec, "jobTemplate", run.spec, run)
    elif isinstance(template, dict):
        _validate_job_template(template, run)
    _validate_name(run)


def _validate_name(run: Validation) -> None:
    """Validate that a name has room for the time that the names of the Jobs contain."""
    name, prefix = (as_text(run.metadata.get(field)) for field in ("name", "generateName"))
    length = len(name) or (min(len(prefix), _MAX_PREFIX) + _SUFFIX if prefix else 0)
    if length > _MAX_NAME:
        message = f"the name has `{length}` characters; its Jobs append a time, so the maximum is {_MAX_NAME}"
        run.report("invalid-name", message, run.metadata["name" if name else "generateName"])


def _validate_schedule(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    schedule = as_text(value)
    if "TZ" in schedule:
        message = f"`{key}` is `{schedule}`, but cannot contain a time zone; set `timeZone`"
        run.report("invalid-value", message, value)
    elif schedule and (error := find_schedule_error(schedule)):
        run.report("invalid-value", f"`{key}` is `{schedule}`: {error}", value)


def _validate_time_zone(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    found = value_of(value)
    if type(found) is str and not is_time_zone(found):
        hint = did_you_mean(found, ["UTC"]) or "; write one of the IANA database, such as `Europe/Berlin`"
        run.report("invalid-value", f"`{found}` is not a time zone{hint}", value)


def _validate_job_template(template: Mapping[str, Node], run: Validation) -> None:
    spec = template.get("spec")
    if not isinstance(spec, dict) or not spec:
        if isinstance(spec, dict) or not is_set(spec):
            node = find_key(template, "spec", get_key(run.spec, "jobTemplate"))
            run.report("missing-field", "`jobTemplate` requires `spec`; set it", node)
        return
    # Only Jobs have default completions, not their templates.
    validate_job_spec(spec, as_integer(spec.get("completions")), run)
    for key, value in as_mapping(spec).items():
        if (key == "selector" and is_set(value)) or (key == "manualSelector" and value_of(value) is True):
            message = f"`{key}` cannot be set in `jobTemplate`: the API server generates the selector; delete it"
            run.report("invalid-value", message, key)


_validate_count = validate_number(0)
_SPEC: ValidatorTable = {
    "concurrencyPolicy": validate_enum("", "Allow", "Forbid", "Replace"),
    "failedJobsHistoryLimit": _validate_count,
    "schedule": _validate_schedule,
    "startingDeadlineSeconds": _validate_count,
    "successfulJobsHistoryLimit": _validate_count,
    "timeZone": _validate_time_zone,
}
