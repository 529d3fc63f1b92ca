"""What Kubernetes refuses of conditions in a status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.validation.formats import validate_key
from jobgen.features.kueue.workload.field_errors import (
    DUPLICATE,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    FieldError,
)
from jobgen.model.lazy_re import lazy_pattern

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
