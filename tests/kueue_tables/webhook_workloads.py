"""What the webhooks refuse of new Workloads, which jobgen does not lint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.quota import to_amount
from jobgen.features.kueue.requests import to_nanos
from jobgen.model.lazy_re import lazy_pattern
from kueue_tables.webhook_errors import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    FieldError,
    list_path_errors,
    list_supported,
    validate_annotations,
    validate_key,
    validate_labels,
    validate_tolerations,
)

NEGATIVE = "must be greater than or equal to 0"
_DOMAIN = "kueue.x-k8s.io/"
_GATED_BY, _BOOST, _ELASTIC = (_DOMAIN + name for name in ("admission-gated-by", "priority-boost", "elastic-job"))
_INT32 = lazy_pattern(r"[+-]?0*[0-9]{1,10}\Z")
_MAX_INT32 = 2**31
_MAX_GATE = 63
_PODS = "pods"


class WorkloadGates(NamedTuple):
    """The feature gates that change what is refused."""

    checks_metadata: bool = True
    checks_negative: bool = True
    checks_slices: bool = True
    has_admission_gates: bool = True
    has_boost: bool = False
    has_elastic_jobs: bool = True


def parse_workload_gates(gates: Mapping[str, bool]) -> WorkloadGates:
    """Read feature gates; those that are missing have the defaults of 0.19."""
    return WorkloadGates(
        gates.get("WorkloadValidationForPodSetMetadata", True),
        gates.get("WorkloadValidateResourcesAreNonNegative", True),
        gates.get("TASValidateWorkloadSliceSize", True),
        gates.get("AdmissionGatedBy", True),
        gates.get("PriorityBoost", False),
        gates.get("ElasticJobsViaWorkloadSlices", True),
    )


def validate_workload(obj: Mapping[str, Any], gates: WorkloadGates = WorkloadGates()) -> Iterator[FieldError]:  # noqa: B008 - a constant
    """List what Kueue refuses of a new Workload."""
    metadata, spec, status = (as_mapping(obj.get(name)) for name in ("metadata", "spec", "status"))
    annotations = as_mapping(metadata.get("annotations"))
    pod_sets = list(map(as_mapping, as_list(spec.get("podSets"))))
    for index, pod_set in enumerate(pod_sets):
        yield from _validate_pod_set(f"spec.podSets[{index}]", pod_set, gates)
    variable = sum(each.get("minCount") is not None for each in pod_sets)
    if variable > 1:
        yield FieldError("spec.podSets", INVALID, "at most one podSet can use minCount", variable)
    if variable and gates.has_elastic_jobs and annotations.get(_ELASTIC) == "true":
        text = "partial admission and elastic job cannot be used together"
        yield FieldError("spec.podSets", INVALID, text, variable)
    yield from _validate_admission(pod_sets, status)
    yield from validate_conditions("status.conditions", status.get("conditions"))
    yield from _validate_reclaimable(pod_sets, status)
    yield from _validate_checks(pod_sets, status)
    if gates.has_admission_gates:
        yield from _validate_gates(str(annotations.get(_GATED_BY) or ""))
    if gates.has_boost and _BOOST in annotations:
        yield from _validate_boost(str(annotations[_BOOST]))


def list_warnings(obj: Mapping[str, Any]) -> Iterator[str]:
    """List what Kueue accepts of a Workload with a warning."""
    for index, each in enumerate(map(as_mapping, as_list(as_mapping(obj.get("spec")).get("podSets")))):
        count = _read_count(as_mapping(each.get("topologyRequest")).get("subGroupCount"))
        if count < 0:
            path = f"spec.podSets[{index}].topologyRequest.subGroupCount"
            yield f"{path}: negative value {count} is deprecated and will be rejected in a future release"


def _validate_pod_set(field: str, pod_set: Mapping[str, Any], gates: WorkloadGates) -> Iterator[FieldError]:
    template = as_mapping(pod_set.get("template"))
    metadata, spec = as_mapping(template.get("metadata")), as_mapping(template.get("spec"))
    if gates.checks_metadata:
        yield from validate_labels(f"{field}.template.metadata.labels", metadata.get("labels"))
        yield from validate_annotations(f"{field}.template.metadata.annotations", metadata.get("annotations"))
    for each in ("initContainers", "containers"):
        for index, container in enumerate(map(as_mapping, as_list(spec.get(each)))):
            yield from _validate_resources(f"{field}.template.spec.{each}[{index}]", container, gates)
    yield from _validate_resources(f"{field}.template.spec", spec, gates)
    if gates.checks_slices:
        yield from _validate_slices(f"{field}.topologyRequest", as_mapping(pod_set.get("topologyRequest")))


def _validate_resources(field: str, holder: Mapping[str, Any], gates: WorkloadGates) -> Iterator[FieldError]:
    for kind in ("requests", "limits"):
        for name, quantity in as_mapping(as_mapping(holder.get("resources")).get(kind)).items():
            path = f"{field}.resources.{kind}[{name}]"
            if name == _PODS:
                yield FieldError(path, INVALID, "the key is reserved for internal kueue use", name)
            if gates.checks_negative and to_nanos(quantity) < 0:
                yield FieldError(path, INVALID, NEGATIVE, quantity)


def _validate_slices(field: str, request: Mapping[str, Any]) -> Iterator[FieldError]:
    level, size = request.get("podSetSliceRequiredTopology"), request.get("podSetSliceSize")
    path = f"{field}.podSetSliceSize"
    if level is not None and size is None:
        yield FieldError(path, REQUIRED, "must be set when podSetSliceRequiredTopology is specified")
    elif level is not None and _read_count(size) <= 0:
        yield FieldError(path, INVALID, "must be greater than 0", size)
    elif level is None and size is not None:
        yield FieldError(path, FORBIDDEN, "may not be set when podSetSliceRequiredTopology is not specified")
    for index, each in enumerate(map(as_mapping, as_list(request.get("podsetSliceRequiredTopologyConstraints")))):
        if _read_count(each.get("size")) <= 0:
            path = f"{field}.podsetSliceRequiredTopologyConstraints[{index}].size"
            yield FieldError(path, INVALID, "must be greater than 0", each.get("size"))


def _read_count(value: Any) -> int:
    return value if type(value) is int else 0


def _validate_admission(pod_sets: Sequence[Mapping[str, Any]], status: Mapping[str, Any]) -> Iterator[FieldError]:
    conditions = map(as_mapping, as_list(status.get("conditions")))
    if not any(each.get("type") == "QuotaReserved" and each.get("status") == "True" for each in conditions):
        return
    if status.get("admission") is None:
        yield FieldError("status.admission", REQUIRED, "must be set while the QuotaReserved condition is true")
        return
    names = {each.get("name") for each in pod_sets}
    for index, each in enumerate(map(as_mapping, as_list(as_mapping(status["admission"]).get("podSetAssignments")))):
        field = f"status.admission.podSetAssignments[{index}]"
        if each.get("name") not in names:
            yield FieldError(f"{field}.name", NOT_FOUND, "", each.get("name"))
        count = _read_count(each.get("count"))
        for name, quantity in as_mapping(each.get("resourceUsage")).items() if count > 0 else ():
            if to_amount(str(name), quantity) % count:
                yield FieldError(f"{field}.resourceUsage[{name}]", INVALID, "is not a multiple of the count", quantity)


def _validate_reclaimable(pod_sets: Sequence[Mapping[str, Any]], status: Mapping[str, Any]) -> Iterator[FieldError]:
    sizes = {str(each.get("name", "")): _read_count(each.get("count", 1)) for each in pod_sets}
    for each in map(as_mapping, as_list(status.get("reclaimablePods"))):
        name, count = str(each.get("name", "")), _read_count(each.get("count"))
        field = f"status.reclaimablePods[{name}]"
        if name not in sizes:
            yield FieldError(f"{field}.name", NOT_SUPPORTED, list_supported(list(sizes)), name)
        elif count > sizes[name]:
            yield FieldError(f"{field}.count", INVALID, f"should be less or equal to {sizes[name]}", count)


def _validate_checks(pod_sets: Sequence[Mapping[str, Any]], status: Mapping[str, Any]) -> Iterator[FieldError]:
    names = sorted({str(each.get("name", "")) for each in pod_sets})
    for number, check in enumerate(map(as_mapping, as_list(status.get("admissionChecks")))):
        for index, update in enumerate(map(as_mapping, as_list(check.get("podSetUpdates")))):
            field = f"status.admissionChecks[{number}].podSetUpdates[{index}]"
            name = str(update.get("name", ""))
            if name not in names:
                yield FieldError(f"{field}.name", NOT_SUPPORTED, list_supported(names), name)
            yield from validate_tolerations(f"{field}.tolerations", update.get("tolerations"))
            yield from validate_annotations(f"{field}.annotations", update.get("annotations"))
            for each in ("nodeSelector", "labels"):
                yield from validate_labels(f"{field}.{each}", update.get(each))


def _validate_gates(value: str) -> Iterator[FieldError]:
    """Validate the gates that keep a workload out of its queue."""
    field = f"metadata.annotations[{_GATED_BY}]"
    seen: set[str] = set()
    for gate in map(str.strip, value.split(",")) if value.strip() else ():
        if not gate:
            yield FieldError(field, INVALID, "cannot contain empty gate names", value)
            continue
        if gate in seen:
            yield FieldError(field, INVALID, f"duplicate gate name: {gate}", value)
            continue
        seen.add(gate)
        yield from list_path_errors(field, gate)
        if len(gate.encode()) > _MAX_GATE:
            yield FieldError(field, TOO_LONG, f"may not be more than {_MAX_GATE} bytes")


def _validate_boost(value: str) -> Iterator[FieldError]:
    field, text = f"metadata.annotations[{_BOOST}]", "must be a valid signed integer"
    if not value:
        yield FieldError(field, INVALID, f'{text}; use "0" explicitly, empty string is not allowed', value)
    elif not _INT32.match(value) or not -_MAX_INT32 <= int(value) < _MAX_INT32:
        yield FieldError(field, INVALID, text, value)


_REASON_FORMAT = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON = lazy_pattern(_REASON_FORMAT + r"\Z")
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON_FORMAT}')"
)
_MAX_REASON, _MAX_MESSAGE = 1024, 32768


def validate_conditions(field: str, conditions: Any) -> Iterator[FieldError]:
    """Validate conditions."""
    seen: set[str] = set()
    for index, condition in enumerate(map(as_mapping, as_list(conditions))):
        name = str(condition.get("type", ""))
        if name in seen:
            yield FieldError(f"{field}[{index}].type", DUPLICATE, "", name)
        seen.add(name)
        yield from _validate_condition(f"{field}[{index}]", condition)


def _validate_condition(field: str, condition: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from validate_key(f"{field}.type", str(condition.get("type", "")))
    status, reason = condition.get("status"), str(condition.get("reason") or "")
    if status not in ("True", "False", "Unknown"):
        text = 'supported values: "False", "True", "Unknown"'
        yield FieldError(f"{field}.status", NOT_SUPPORTED, text, status)
    generation = condition.get("observedGeneration")
    if type(generation) is int and generation < 0:
        yield FieldError(f"{field}.observedGeneration", INVALID, "must be greater than or equal to zero", generation)
    if not condition.get("lastTransitionTime"):
        yield FieldError(f"{field}.lastTransitionTime", REQUIRED, "must be set")
    if not reason:
        yield FieldError(f"{field}.reason", REQUIRED, "must be set")
    elif not _REASON.match(reason):
        yield FieldError(f"{field}.reason", INVALID, _REASON_TEXT, reason)
    for name, most in (("reason", _MAX_REASON), ("message", _MAX_MESSAGE)):
        if len(str(condition.get(name) or "").encode()) > most:
            yield FieldError(f"{field}.{name}", TOO_LONG, f"may not be more than {most} bytes")
