"""Validate Jobs."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_set, report_missing
from jobgen.check.admission.names import DNS_LABEL, is_dns_label, is_dns_subdomain
from jobgen.check.validation.job_spec import validate_job_spec
from jobgen.check.validation.selectors import find_unmatched, validate_selector
from jobgen.check.validation.workloads import report_missing_spec, validate_match
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.model.data import Node, value_of

_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_MAX_NAME = 63
# The API server appends five characters to a prefix of at most this length.
_MAX_PREFIX = 58
# The value of the labels that contain the UID: no string equals it.
_UID: Node = object()  # type: ignore[assignment]


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the spec, the labels and the selector that the API server generates, and the name."""
    if not run.spec:
        report_missing_spec(obj, run)
        return
    completions = _count_completions(run.spec)
    validate_job_spec(run.spec, completions, run)
    if value_of(run.spec.get("manualSelector")) is True:
        _validate_manual_selector(run)
    else:
        _validate_generated_labels(run)
    _validate_name(completions, run)


def _count_completions(spec: Mapping[str, Node]) -> int | None:
    """Return the number of completions; the default applies only without `parallelism`."""
    if is_set(spec.get("completions")) or is_set(spec.get("parallelism")):
        return as_integer(spec.get("completions"))
    return 1


def _validate_manual_selector(run: Validation) -> None:
    selector = run.spec.get("selector")
    if not is_set(selector):
        report_missing("a Job with `manualSelector`", run.spec, "selector", run.spec, run)
    elif validate_selector(get_key(run.spec, "selector"), selector, run.spec, run):
        validate_match(as_mapping(selector), run)


def _validate_generated_labels(run: Validation) -> None:
    """Validate that the template and the selector do not contradict the labels that the API server adds."""
    name = as_text(run.metadata.get("name"))
    labels = as_mapping(get_path(run.spec.get("template"), "metadata", "labels"))
    generated = {**dict.fromkeys(_NAME_LABELS, name), **dict.fromkeys(_UID_LABELS, _UID)}
    is_valid = True
    for key, value in labels.items():
        if key in _UID_LABELS or (key in _NAME_LABELS and value_of(value) != name):
            message = f"the API server sets the label `{key}`, to another value; delete it"
            run.report("invalid-value", message, key)
            is_valid = False
    selector = run.spec.get("selector")
    if not is_valid or not is_set(selector):
        return
    if validate_selector(get_key(run.spec, "selector"), selector, run.spec, run):
        # It has to match the labels of the pods, and also those that the API server generates, without the others.
        unmatched = find_unmatched(as_mapping(selector), {**labels, **generated})
        unmatched = unmatched or find_unmatched(as_mapping(selector), generated)
        if unmatched:
            message = f"`selector` has `{value_of(unmatched)}`, but the API server generates the selector; delete it"
            run.report("invalid-selector", message, unmatched)


def _validate_name(completions: int | None, run: Validation) -> None:
    """Validate that the pods can have the job's name in their labels and host names."""
    field = "name" if as_text(run.metadata.get("name")) else "generateName"
    written = as_text(run.metadata.get(field))
    name = written if field == "name" else f"{written[:_MAX_PREFIX]}aaaaa"
    if not written or not is_dns_subdomain(name):
        return
    hostname = f"{name}-{max(completions or 0, 1) - 1}"
    is_indexed = value_of(run.spec.get("completionMode")) == "Indexed" and (completions or 0) > 0
    if is_indexed and not is_dns_label(hostname):
        message = f"`{hostname}`, the host name of a pod, is not valid; {DNS_LABEL}"
        run.report("invalid-name", message, run.metadata[field])
    elif len(name) > _MAX_NAME and value_of(run.spec.get("manualSelector")) is not True:
        message = (
            f"the name has `{len(name)}` characters; a label of the pods contains it, so the maximum is {_MAX_NAME}"
        )
        run.report("invalid-name", message, run.metadata[field])
