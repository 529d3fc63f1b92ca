"""Validate what Events of both API groups have in common."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, report_missing
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple

_ZERO_TIME = "0001-01-01T00:00:00"
_MAX_LENGTH = 128
_MAX_NOTE_LENGTH = 1024


class EventFields(NamedTuple):
    """The names of an Event's fields in its API group."""

    involved: str
    controller: str
    note: str


def has_time(value: Node) -> bool:
    """Return whether a time is set, and not Go's zero."""
    text = as_text(value)
    return bool(text) and not text.startswith(_ZERO_TIME)


def validate_event(obj: Mapping[str, Node], fields: EventFields, run: Validation) -> None:
    """Validate the namespace of the object that the Event is about, and for new Events who reports it."""
    namespace = as_text(run.metadata.get("namespace"))
    involved = as_mapping(obj.get(fields.involved))
    is_new = has_time(obj.get("eventTime"))
    expected = as_text(involved.get("namespace"))
    node = involved.get("namespace") or find_key(obj, fields.involved, obj)
    # Without a namespace in the manifest, the client decides.
    if expected and namespace and expected != namespace and not is_new:
        message = f"the Event is in the namespace `{namespace}`, but its object in `{expected}`; write the same"
        run.report("invalid-value", message, node)
    elif namespace and not expected and namespace not in ("default", *(("kube-system",) if is_new else ())):
        message = f"the Event of an object without a namespace is in `{namespace}`; write it to `default`"
        run.report("invalid-value", message, node)
    if is_new:
        _validate_report(obj, fields, run)


def _validate_report(obj: Mapping[str, Node], fields: EventFields, run: Validation) -> None:
    controller = as_text(obj.get(fields.controller))
    if controller and not is_label_key(controller):
        message = f"`{controller}` is not a valid name of a controller; {LABEL_KEY}"
        run.report("invalid-value", message, obj[fields.controller])
    for field in (fields.controller, "reportingInstance", "action", "reason"):
        if not as_text(obj.get(field)):
            report_missing("an Event with `eventTime`", obj, field, obj, run)
    for field in ("reportingInstance", "action", "reason", fields.note):
        limit = _MAX_NOTE_LENGTH if field == fields.note else _MAX_LENGTH
        length = len(as_text(obj.get(field)).encode(errors="replace"))
        if length > limit:
            run.report("out-of-range", f"`{field}` has `{length}` bytes; the limit is {limit}", obj[field])
