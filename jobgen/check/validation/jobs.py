"""Validate Jobs and CronJobs, with the policies by which a Job handles failed pods and succeeds early."""

from __future__ import annotations

import re
from itertools import pairwise

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    choice,
    count,
    fields,
    find_entry,
    is_empty,
    is_set,
    items,
    iter_items,
    iter_mappings,
    join_names,
    mapping,
    one_of,
    qualified_name,
    require_set,
    required_spec,
    since,
)
from jobgen.check.admission.names import (
    DNS_LABEL,
    generate_name,
    is_dns_label,
    is_dns_subdomain,
    is_domain_prefixed_path,
)
from jobgen.check.validation.workloads import find_unmatched, validate_match, validate_selector
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest
from jobgen.model.time_zones import is_time_zone, list_meant_zones, suggest_time_zone

# Parse the schedule of a CronJob as Kubernetes does: five fields, or a descriptor such as `@daily`; and time zones.


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """The names of its values, from the lowest."""


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = lazy_pattern(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
# What Go's strings.Fields splits at; Python's split takes four separators more.
_SPACE = lazy_pattern(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_MAX_NUMBER = 2**63 - 1


def find_schedule_error(schedule: str) -> str:
    """Return what is wrong with a schedule, to follow it in a message, and what to write; empty if it is valid."""
    if "TZ" in schedule:
        return ", but cannot contain a time zone; set `timeZone`"
    if schedule in _DESCRIPTORS:
        return ""
    if schedule.startswith("@every "):
        return "" if _is_duration(schedule[7:]) else ": write a duration after `@every`, such as `1h30m`"
    if schedule.startswith("@"):
        return f": write {join_names([*_DESCRIPTORS, '@every 1h30m'], 'or')}"
    parts = [part for part in _SPACE.split(schedule) if part]
    if len(parts) != len(_FIELDS):
        return f": it has {len(parts)} fields instead of 5; write minute, hour, day of month, month and day of week"
    errors = (
        _find_range_error(expression, field)
        for part, field in zip(parts, _FIELDS, strict=True)
        for expression in part.split(",")
        if expression
    )
    return next((f": {error}" for error in errors if error), "")


def _is_duration(text: str) -> bool:
    """Return True if a text is a duration of Go: numbers with units, such as `1h30m`, or 0."""
    text = text[1:] if text[:1] in ("+", "-") else text
    total, end = 0, 0
    for match in _DURATION.finditer(text):
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if match.start() != end or not whole + fraction or len(whole) > 30:
            return False
        end = match.end()
        total += int(whole or "0") * _UNITS[unit]
    return text == "0" or (bool(text) and end == len(text) and total <= _MAX_NUMBER)


def _find_range_error(expression: str, field: _Field) -> str:
    """Return what is wrong with `5`, `1-5`, `*/15` or `1-5/2`; what follows `*-` is ignored."""
    span, *steps = expression.split("/")
    first, *rest = span.split("-")
    hint = f"`{expression}` is not a valid {field.name}"
    if len(steps) > 1:
        return f"{hint}; write one `/`"
    step = _parse_number(steps[0]) if steps else 1
    if not step:
        return f"{hint}; write a positive number after `/`"
    if first in ("*", "?"):
        return ""
    if len(rest) > 1:
        return f"{hint}; write one `-`"
    low = _parse_value(first, field)
    high = _parse_value(rest[0], field) if rest else field.high if steps else low
    if low is None or high is None or low < field.low or high > field.high or low > high:
        example = f", or names such as `{field.names[0]}`" if field.names else ""
        return f"{hint}; write numbers from {field.low} to {field.high}{example}"
    return ""


def _parse_value(text: str, field: _Field) -> int | None:
    name = text.lower()
    return field.names.index(name) + field.low if name in field.names else _parse_number(text)


def _parse_number(text: str) -> int | None:
    """Return a number that Go can parse, without `-`."""
    return int(text) if re.fullmatch(r"\+?[0-9]{1,30}", text) and int(text) <= _MAX_NUMBER else None


_REPLACEMENT_POLICIES = ("TerminatingOrFailed", "Failed")
_MAX_INDEXES, _MAX_INDEXES_OF_LARGE_JOB = 100_000, 10_000
_MAX_RULES, _MAX_VALUES, _MAX_CONDITIONS = 20, 255, 20
_MAX_TEXT = 64 * 1024
_SUCCESS_POLICY_SINCE = (1, 31)
_check_action = choice("a rule", "action", "Count", "FailIndex", "FailJob", "Ignore")
_conditions = items(
    "a condition",
    {"status": one_of("", "True", "False", "Unknown"), "type": qualified_name("invalid-value", "type of a condition")},
    "type",
)
_check_codes = fields("`onExitCodes`", {}, "values", choice("`onExitCodes`", "operator", "In", "NotIn"))
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_MAX_JOB_NAME, _MAX_CRON_JOB_NAME = 63, 52
# The value of the labels that contain the UID: no string equals it.
_UID: Plain = object()  # type: ignore[assignment]


def _validate_job_spec(job: Fields, completions: int | None, run: Validation) -> None:
    """Validate the spec of a Job with this number of completions, by default or as written."""
    _check_job_fields(job, (run.spec, None), run)
    mode, failed = job.get("completionMode"), job.get("maxFailedIndexes")
    if mode == "Indexed":
        _validate_indexed(job, completions, run)
    elif mode in (None, "NonIndexed"):
        for key, value in job.items():
            needs_index = key in ("backoffLimitPerIndex", "maxFailedIndexes") or (
                key == "successPolicy" and run.release >= _SUCCESS_POLICY_SINCE
            )
            if needs_index and is_set(value):
                run.invalid(
                    Sentence("`{}` requires `completionMode: Indexed`; set it, or delete `{}`", key, key), (job, key)
                )
    if is_set(failed) and not is_set(job.get("backoffLimitPerIndex")):
        run.report(
            "missing-field", "`maxFailedIndexes` requires `backoffLimitPerIndex`; set it", At(job, "maxFailedIndexes")
        )
    _validate_restart_policy(job, run)


def _validate_indexed(job: Fields, completions: int | None, run: Validation) -> None:
    if not is_set(job.get("completions")) and completions is None:
        parallelism = as_integer(job.get("parallelism"))
        advice = (
            Sentence("write `completions: {}`", parallelism) if parallelism and parallelism > 0 else Sentence("set it")
        )
        message = Sentence("`completionMode: Indexed` requires `completions`; {}", advice)
        run.report("missing-field", message, At(job, "completionMode"), values=("Indexed", "completions"))
        return
    if completions is None or completions < 0:
        return
    is_large = completions > _MAX_INDEXES and is_set(job.get("backoffLimitPerIndex"))
    limit = _MAX_INDEXES_OF_LARGE_JOB if is_large else _MAX_INDEXES
    if is_large and not is_set(job.get("maxFailedIndexes")):
        message = Sentence(
            "more than {} completions with `backoffLimitPerIndex` require `maxFailedIndexes`; set it", _MAX_INDEXES
        )
        run.report("missing-field", message, At(job, "completions"))
    for field in ("parallelism", "maxFailedIndexes"):
        found = as_integer(job.get(field)) or 0
        if field == "maxFailedIndexes" and found > completions:
            message = Sentence(
                "`{}` is `{}`, more than `completions`, which is `{}`; lower it", field, found, completions
            )
            run.report("out-of-range", message, At(job, field))
        elif found > limit:
            run.report(
                "out-of-range",
                Sentence("`{}` of this Job must be at most {}, got `{}`", field, limit, found),
                At(job, field),
            )
    policy = job.get("successPolicy")
    if isinstance(policy, dict) and run.release >= _SUCCESS_POLICY_SINCE:
        _validate_success_policy(policy, (job, "successPolicy"), completions, run)


def _validate_manager(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    found = as_text(value)
    if type(value) is str and not is_domain_prefixed_path(found):
        run.invalid(
            Sentence("`{}` is `{}`; write a domain and a path, such as `example.com/controller`", key, found),
            At(owner, key),
        )
    elif len(found) > 63:
        run.report(
            "out-of-range", Sentence("`{}` must have at most 63 characters, got `{}`", key, len(found)), At(owner, key)
        )


def _validate_replacement_policy(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    supported = ("Failed",) if is_set(owner.get("podFailurePolicy")) else _REPLACEMENT_POLICIES
    if type(value) is not str or value in supported:
        return
    if value in _REPLACEMENT_POLICIES:
        run.invalid(Sentence("`{}` is `{}`, but must be `Failed` with `podFailurePolicy`", key, value), At(owner, key))
    else:
        run.report_unsupported(key, At(owner, key), supported)


def _validate_restart_policy(job: Fields, run: Validation) -> None:
    """Validate that the pods end; the validation of pods reports unknown policies."""
    template = job.get("template")
    pod_spec = as_mapping(get_path(template, "spec"))
    found = pod_spec.get("restartPolicy")
    if not is_set(template):
        run.report_missing("a Job", job, "template", (run.spec, None))
    elif found is None or found == "":
        if pod_spec:
            message = "the pods of a Job require `restartPolicy`, `Never` or `OnFailure`; set it"
            run.report("missing-field", message, find_entry(pod_spec, "restartPolicy", (template, None)))
    elif found == "Always":
        message = "`restartPolicy` of a Job's pods must be `Never` or `OnFailure`, got `Always`"
        run.invalid(message, At(pod_spec, "restartPolicy"))
    elif found == "OnFailure" and is_set(job.get("podFailurePolicy")):
        message = "`restartPolicy` is `OnFailure`, but must be `Never` with `podFailurePolicy`"
        run.invalid(message, At(pod_spec, "restartPolicy"))


def _validate_length(owner: Fields, key: str, limit: int, run: Validation) -> None:
    value = owner.get(key)
    if isinstance(value, list) and len(value) > limit:
        run.report(
            "out-of-range", Sentence("`{}` has `{}` items; the maximum is {}", key, len(value), limit), (owner, key)
        )


def _validate_failure_policy(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    """Validate the rules for failed pods; `owner` is the spec of the Job."""
    policy = as_mapping(value)
    _validate_length(policy, "rules", _MAX_RULES, run)
    for rule, place in iter_items(policy.get("rules")):
        action, codes = rule.get("action"), rule.get("onExitCodes")
        if as_text(action) == "FailIndex":
            if not is_set(owner.get("backoffLimitPerIndex")):
                run.invalid("`FailIndex` requires `backoffLimitPerIndex` of the Job; set it", At(rule, "action"))
        else:
            _check_action(rule, place, run)
        if isinstance(codes, dict):
            _validate_exit_codes((rule, "onExitCodes"), codes, owner, run)
        conditions = "onPodConditions"
        _validate_length(rule, conditions, _MAX_CONDITIONS, run)
        _conditions(conditions, rule.get(conditions), rule, run)
        if is_set(codes) is not is_empty(rule.get(conditions)):
            message = "a rule requires exactly one of `onExitCodes` and `onPodConditions`"
            run.report("invalid-form", message, find_entry(rule, conditions, place))


def _validate_exit_codes(entry: Entry, codes: Fields, job: Fields, run: Validation) -> None:
    _check_codes(codes, entry, run)
    container = codes.get("containerName")
    pod_spec = as_mapping(get_path(job.get("template"), "spec"))
    lists = (pod_spec.get(field) for field in ("containers", "initContainers"))
    names = [as_text(one.get("name")) for containers in lists for one in iter_mappings(containers)]
    if type(container) is str and container not in names:
        meant = find_closest(container, names)
        hint = ask_for(meant) or "; name one of its containers"
        run.invalid(Sentence("the pod has no container `{}`{}", container, hint), At(codes, "containerName"), meant)
    values = as_list(codes.get("values"))
    _validate_length(codes, "values", _MAX_VALUES, run)
    # Kubernetes reads null as 0.
    numbers = [as_integer(node) if is_set(node) else 0 for node in values]
    for index, number in enumerate(numbers):
        if as_text(codes.get("operator")) == "In" and number == 0:
            run.invalid("`values` cannot contain 0 with `In`; exit code 0 means success", (values, index))
        if number is not None and number in numbers[:index]:
            run.report(
                "duplicate-item", Sentence("`values` contains `{}` twice; delete one of them", number), (values, index)
            )
    known = [number for number in numbers if number is not None]
    if any(one > other for one, other in pairwise(known)):
        run.invalid(Sentence("`values` must be in ascending order: {}", sorted(set(known))), (codes, "values"))


def _validate_success_policy(policy: Fields, entry: Entry, completions: int, run: Validation) -> None:
    rules = policy.get("rules")
    if is_empty(rules):
        run.report_missing(f"`{entry[1]}`", policy, "rules", entry)
    _validate_length(policy, "rules", _MAX_RULES, run)
    for rule, place in iter_items(rules):
        value, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if not is_set(value) and not is_set(indexes):
            message = Sentence("a rule requires `succeededCount` or `succeededIndexes`; set one of them")
            run.report("missing-field", message, place)
        total, found = _count_indexes(rule, completions, run), as_integer(value)
        count("succeededCount", value, rule, run)
        if found is not None and found > completions:
            message = Sentence(
                "`succeededCount` is `{}`, more than `completions`, which is `{}`; lower it", found, completions
            )
            run.report("out-of-range", message, At(rule, "succeededCount"))
        elif found is not None and total is not None and found > total:
            message = Sentence("`succeededCount` is `{}`, but `succeededIndexes` has only `{}`; lower it", found, total)
            run.report("out-of-range", message, At(rule, "succeededCount"))


def _count_indexes(rule: Fields, completions: int, run: Validation) -> int | None:
    """Validate a list of indexes such as `0,2-4` and return how many it has; None if that is unknown."""
    found = rule.get("succeededIndexes")
    if type(found) is not str:
        return None
    if len(found) > _MAX_TEXT:
        message = Sentence("`succeededIndexes` has `{}` characters; the maximum is {}", len(found), _MAX_TEXT)
        run.report("out-of-range", message, At(rule, "succeededIndexes"))
        return None
    total, last = 0, -1
    for part in found.split(",") if found else ():
        # Go accepts a sign; `-` separates the parts.
        ends = [int(end) for end in part.split("-") if re.fullmatch(r"\+?[0-9]{1,100}", end)]
        if not ends or len(ends) > 2 or len(ends) != part.count("-") + 1:
            message = Sentence("`{}` in `succeededIndexes` is not an index; write indexes like `0,2-4`", part)
        elif ends[-1] >= completions:
            message = Sentence(
                "index `{}` in `succeededIndexes` must be less than `completions`: `{}`", ends[-1], completions
            )
        elif last >= ends[0] or (len(ends) == 2 and ends[0] >= ends[1]):
            message = Sentence("`{}` in `succeededIndexes` is not in ascending order; sort the indexes", part)
        else:
            total += ends[-1] - ends[0] + 1
            last = ends[-1]
            continue
        run.invalid(message, At(rule, "succeededIndexes"))
        return None
    return total


def _check_job(job: Fields, entry: Entry, run: Validation) -> None:
    """Check the spec, the labels and the selector that the API server generates, and the name."""
    # The default applies only without `parallelism`.
    has_counts = is_set(job.get("completions")) or is_set(job.get("parallelism"))
    completions = as_integer(job.get("completions")) if has_counts else 1
    _validate_job_spec(job, completions, run)
    selector = job.get("selector")
    if job.get("manualSelector") is not True:
        _validate_generated_labels(run)
    elif not is_set(selector):
        run.report_missing("a Job with `manualSelector`", job, "selector", (job, None))
    elif validate_selector("selector", selector, job, run):
        validate_match(as_mapping(selector), run)
    _validate_job_name(completions, run)


def _validate_generated_labels(run: Validation) -> None:
    """Validate that the template and the selector do not contradict the labels that the API server adds."""
    name = as_text(run.metadata.get("name"))
    labels = as_mapping(get_path(run.spec.get("template"), "metadata", "labels"))
    generated = {**dict.fromkeys(_NAME_LABELS, name), **dict.fromkeys(_UID_LABELS, _UID)}
    own = [key for key, value in labels.items() if key in _UID_LABELS or (key in _NAME_LABELS and value != name)]
    for key in own:
        run.invalid(Sentence("the API server sets the label `{}`, to another value; delete it", key), (labels, key))
    selector = run.spec.get("selector")
    if own or not is_set(selector) or not validate_selector("selector", selector, run.spec, run):
        return
    # It has to match the labels of the pods, and also those that the API server generates, without the others.
    unmatched = find_unmatched(as_mapping(selector), {**labels, **generated})
    unmatched = unmatched or find_unmatched(as_mapping(selector), generated)
    if unmatched:
        message = Sentence("`selector` has `{}`, but the API server generates the selector; delete it", unmatched.node)
        run.report("invalid-selector", message, unmatched)


def _validate_job_name(completions: int | None, run: Validation) -> None:
    field = "name" if as_text(run.metadata.get("name")) else "generateName"
    written = as_text(run.metadata.get(field))
    name = written if field == "name" else generate_name(written)
    if not written or not is_dns_subdomain(name):
        return
    hostname = f"{name}-{max(completions or 0, 1) - 1}"
    is_indexed = run.spec.get("completionMode") == "Indexed" and (completions or 0) > 0
    if is_indexed and not is_dns_label(hostname):
        message = Sentence("`{}`, the host name of a pod, is not valid; {}", hostname, DNS_LABEL)
        run.report("invalid-name", message, At(run.metadata, field))
    elif len(name) > _MAX_JOB_NAME and run.spec.get("manualSelector") is not True:
        message = Sentence(
            "the name has `{}` characters; a label of the pods contains it, so the maximum is", len(name)
        )
        run.report("invalid-name", Sentence("{} {}", message, _MAX_JOB_NAME), At(run.metadata, field))


def _check_cron_job_name(cron_job: Fields, entry: Entry, run: Validation) -> None:
    """Check that a name has room for the time that the names of the Jobs contain."""
    name, prefix = (as_text(run.metadata.get(field)) for field in ("name", "generateName"))
    length = len(name or (prefix and generate_name(prefix)))
    if length > _MAX_CRON_JOB_NAME:
        message = Sentence(
            "the name has `{}` characters; its Jobs append a time, so the maximum is {}", length, _MAX_CRON_JOB_NAME
        )
        run.report("invalid-name", message, At(run.metadata, "name" if name else "generateName"))


def _validate_schedule(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    schedule = as_text(value)
    if schedule and (error := find_schedule_error(schedule)):
        run.invalid(Sentence("`{}` is `{}`{}", key, schedule, error), At(owner, key))


def _validate_time_zone(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    if type(value) is str and not is_time_zone(value):
        meant = "" if list_meant_zones(value) not in ((), ("UTC",)) else find_closest(value, ["UTC"])
        hint = ask_for(meant) or suggest_time_zone(value)
        run.invalid(Sentence("`{}` is not a time zone{}", value, hint), At(owner, key), meant)


def _check_job_template(template: Fields, entry: Entry, run: Validation) -> None:
    job = template.get("spec")
    if not isinstance(job, dict) or not job:
        if isinstance(job, dict) or not is_set(job):
            run.report("missing-field", "`jobTemplate` requires `spec`; set it", find_entry(template, "spec", entry))
        return
    # Only Jobs have default completions, not their templates.
    _validate_job_spec(job, as_integer(job.get("completions")), run)
    for key, value in job.items():
        if (key == "selector" and is_set(value)) or (key == "manualSelector" and value is True):
            message = Sentence(
                "`{}` cannot be set in `jobTemplate`: the API server generates the selector; delete it", key
            )
            run.invalid(message, (job, key))


_JOB: Table = {
    **dict.fromkeys(("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completions"), count),
    **dict.fromkeys(("maxFailedIndexes", "parallelism", "ttlSecondsAfterFinished"), count),
    "completionMode": one_of("Indexed", "NonIndexed"),
    "managedBy": since((1, 32), _validate_manager),
    "podFailurePolicy": _validate_failure_policy,
    "podReplacementPolicy": _validate_replacement_policy,
}
_check_job_fields = fields("a Job", _JOB)

_CRON_JOB: Table = {
    **dict.fromkeys(("failedJobsHistoryLimit", "startingDeadlineSeconds", "successfulJobsHistoryLimit"), count),
    "concurrencyPolicy": one_of("", "Allow", "Forbid", "Replace"),
    "jobTemplate": mapping({}, _check_job_template),
    "schedule": _validate_schedule,
    "timeZone": _validate_time_zone,
}

KINDS = {
    "CronJob": Kind(
        required_spec("a CronJob", _CRON_JOB, "schedule", require_set("a CronJob", "jobTemplate"), _check_cron_job_name)
    ),
    "Job": Kind(required_spec("a Job", {}, _check_job)),
}
