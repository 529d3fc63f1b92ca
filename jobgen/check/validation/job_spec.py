"""Validate the spec of a Job, which a CronJob contains as a template."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    find_key,
    get_key,
    is_set,
    report_missing,
    report_unsupported,
    validate_enum,
    validate_fields,
    validate_number,
)
from jobgen.check.admission.names import is_dns_subdomain
from jobgen.check.validation.pod_failure_policy import validate_pod_failure_policy
from jobgen.check.validation.success_policy import validate_success_policy
from jobgen.k8s.nodes import as_integer, as_mapping, get_path
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern

_MODES = ("Indexed", "NonIndexed")
_REPLACEMENT_POLICIES = ("TerminatingOrFailed", "Failed")
_MAX_INDEXES = 100_000
_MAX_INDEXES_OF_LARGE_JOB = 10_000
_MAX_MANAGER_LENGTH = 63
_MANAGED_BY_SINCE = (1, 32)
_SUCCESS_POLICY_SINCE = (1, 31)
_http_path = lazy_pattern(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def validate_job_spec(spec: Mapping[str, Node], completions: int | None, run: Validation) -> None:
    """Validate the spec of a Job with this number of completions, by default or as written."""
    validate_fields(spec, _SPEC, run)
    mode = value_of(spec.get("completionMode"))
    if mode == "Indexed":
        _validate_indexed(spec, completions, run)
    elif mode in (None, "NonIndexed"):
        _validate_not_indexed(spec, run)
    failed = spec.get("maxFailedIndexes")
    if is_set(failed) and not is_set(spec.get("backoffLimitPerIndex")):
        run.report("missing-field", "`maxFailedIndexes` requires `backoffLimitPerIndex`; set it", failed)
    if isinstance(spec.get("podFailurePolicy"), dict):
        validate_pod_failure_policy(spec, run)
    _validate_restart_policy(spec, run)


def _validate_indexed(spec: Mapping[str, Node], completions: int | None, run: Validation) -> None:
    if not is_set(spec.get("completions")) and completions is None:
        message = "`completionMode: Indexed` requires `completions`; set it"
        run.report("missing-field", message, spec["completionMode"])
        return
    if completions is None or completions < 0:
        return
    is_large = completions > _MAX_INDEXES and is_set(spec.get("backoffLimitPerIndex"))
    limit = _MAX_INDEXES_OF_LARGE_JOB if is_large else _MAX_INDEXES
    _validate_limit("parallelism", spec, limit, run)
    if is_large and not is_set(spec.get("maxFailedIndexes")):
        message = f"more than {_MAX_INDEXES} completions with `backoffLimitPerIndex` require `maxFailedIndexes`; set it"
        run.report("missing-field", message, spec.get("completions"))
    failed = as_integer(spec.get("maxFailedIndexes"))
    if failed is not None and failed > completions:
        message = f"`maxFailedIndexes` is `{failed}`, more than `completions`, which is `{completions}`; lower it"
        run.report("out-of-range", message, spec["maxFailedIndexes"])
    else:
        _validate_limit("maxFailedIndexes", spec, limit, run)
    policy = spec.get("successPolicy")
    if isinstance(policy, dict) and run.release >= _SUCCESS_POLICY_SINCE:
        validate_success_policy(get_key(spec, "successPolicy"), policy, completions, run)


def _validate_limit(field: str, spec: Mapping[str, Node], limit: int, run: Validation) -> None:
    found = as_integer(spec.get(field))
    if found is not None and found > limit:
        message = f"`{field}` of this Job must be at most {limit}, got `{found}`"
        run.report("out-of-range", message, spec[field])


def _validate_not_indexed(spec: Mapping[str, Node], run: Validation) -> None:
    for key, value in spec.items():
        if key not in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy") or not is_set(value):
            continue
        if key != "successPolicy" or run.release >= _SUCCESS_POLICY_SINCE:
            message = f"`{key}` requires `completionMode: Indexed`; set it, or delete `{key}`"
            run.report("invalid-value", message, key)


def _validate_manager(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    found = value_of(value)
    if type(found) is not str or run.release < _MANAGED_BY_SINCE:
        return
    domain, _, path = found.partition("/")
    if not (is_dns_subdomain(domain) and _http_path.fullmatch(path)):
        message = f"`{key}` is `{found}`; write a domain and a path, such as `example.com/controller`"
        run.report("invalid-value", message, value)
    elif len(found.encode()) > _MAX_MANAGER_LENGTH:
        message = f"`{key}` must have at most {_MAX_MANAGER_LENGTH} characters, got `{len(found)}`"
        run.report("out-of-range", message, value)


def _validate_replacement_policy(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    found = value_of(value)
    if type(found) is not str:
        return
    supported = ("Failed",) if is_set(owner.get("podFailurePolicy")) else _REPLACEMENT_POLICIES
    if found not in _REPLACEMENT_POLICIES:
        report_unsupported(key, value, supported, run)
    elif found not in supported:
        message = f"`{key}` is `{found}`, but must be `Failed` with `podFailurePolicy`"
        run.report("invalid-value", message, value)


def _validate_restart_policy(spec: Mapping[str, Node], run: Validation) -> None:
    """Validate that the pods end; the validation of pods reports unknown policies."""
    template = spec.get("template")
    pod_spec = as_mapping(get_path(template, "spec"))
    found = value_of(pod_spec.get("restartPolicy"))
    if not is_set(template):
        report_missing("a Job", spec, "template", run.spec, run)
    elif found is None or found == "":
        if pod_spec:
            message = "the pods of a Job require `restartPolicy`, `Never` or `OnFailure`; set it"
            run.report("missing-field", message, find_key(pod_spec, "restartPolicy", template))
    elif found == "Always":
        message = "`restartPolicy` of a Job's pods must be `Never` or `OnFailure`, got `Always`"
        run.report("invalid-value", message, pod_spec["restartPolicy"])
    elif found == "OnFailure" and is_set(spec.get("podFailurePolicy")):
        message = "`restartPolicy` is `OnFailure`, but must be `Never` with `podFailurePolicy`"
        run.report("invalid-value", message, pod_spec["restartPolicy"])


_validate_count = validate_number(0)
_SPEC: ValidatorTable = {
    "activeDeadlineSeconds": _validate_count,
    "backoffLimit": _validate_count,
    "backoffLimitPerIndex": _validate_count,
    "completionMode": validate_enum(*_MODES),
    "completions": _validate_count,
    "managedBy": _validate_manager,
    "maxFailedIndexes": _validate_count,
    "parallelism": _validate_count,
    "podReplacementPolicy": _validate_replacement_policy,
    "ttlSecondsAfterFinished": _validate_count,
}
