"""Validate Events of `events.k8s.io`."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set, report_missing, report_unsupported
from jobgen.check.validation.core._events import EventFields, has_time, validate_event
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node, locatable

_FIELDS = EventFields("regarding", "reportingController", "note")
_TYPES = ("Normal", "Warning")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate an Event, which has a time and none of the deprecated fields."""
    validate_event(obj, _FIELDS, run)
    if not has_time(obj.get("eventTime")):
        report_missing("an Event", obj, "eventTime", obj, run)
    if not as_text(obj.get("type")):
        report_missing("an Event", obj, "type", obj, run)
    elif as_text(obj["type"]) not in _TYPES:
        report_unsupported("type", obj["type"], _TYPES, run)
    _validate_series(obj, run)
    source = as_mapping(obj.get("deprecatedSource"))
    deprecated = {
        "deprecatedFirstTimestamp": has_time(obj.get("deprecatedFirstTimestamp")),
        "deprecatedLastTimestamp": has_time(obj.get("deprecatedLastTimestamp")),
        "deprecatedCount": bool(as_integer(obj.get("deprecatedCount"))),
        "deprecatedSource": any(as_text(source.get(name)) for name in ("component", "host")),
    }
    for field, is_given in deprecated.items():
        if is_given:
            run.report(
                "invalid-value", f"`{field}` cannot be set for a new Event; delete it", find_key(obj, field, obj)
            )


def _validate_series(obj: Mapping[str, Node], run: Validation) -> None:
    series = obj.get("series")
    if not is_set(series) or not isinstance(series, dict):
        return
    key = find_key(obj, "series", obj)
    if (as_integer(series.get("count")) or 0) < 2:
        message = "`count` of `series` must be at least 2; set it"
        run.report("out-of-range", message, locatable(series.get("count"), series, key))
    if not has_time(series.get("lastObservedTime")):
        report_missing("`series`", series, "lastObservedTime", key, run)
