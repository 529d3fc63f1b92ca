"""Validate Events of the core group."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.names import PATH_SEGMENT_NAME
from jobgen.check.validation.core._events import EventFields, validate_event
from jobgen.model.data import Node

NAME_FORMAT = PATH_SEGMENT_NAME
_FIELDS = EventFields("involvedObject", "reportingComponent", "message")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate what the Event is about, and who reports it."""
    validate_event(obj, _FIELDS, run)
