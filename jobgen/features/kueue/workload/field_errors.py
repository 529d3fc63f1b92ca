"""Errors of fields, as the validation of Kubernetes reports them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from jobgen.model.named_tuple import NamedTuple

INVALID: Final = "FieldValueInvalid"
REQUIRED: Final = "FieldValueRequired"
DUPLICATE: Final = "FieldValueDuplicate"
FORBIDDEN: Final = "FieldValueForbidden"
NOT_FOUND: Final = "FieldValueNotFound"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
TOO_LONG: Final = "FieldValueTooLong"

_NAMES = {
    INVALID: "Invalid value",
    REQUIRED: "Required value",
    DUPLICATE: "Duplicate value",
    FORBIDDEN: "Forbidden",
    NOT_FOUND: "Not found",
    NOT_SUPPORTED: "Unsupported value",
    TOO_LONG: "Too long",
}
# Errors whose text does not show the value.
_WITHOUT_VALUE = frozenset((REQUIRED, FORBIDDEN, TOO_LONG))


class FieldError(NamedTuple):
    """An error of a field."""

    field: str
    type: str
    detail: str = ""
    value: Any = None

    def __str__(self) -> str:
        """The text that Kubernetes shows."""
        shown = _NAMES[self.type]
        if self.type not in _WITHOUT_VALUE:
            shown = f"{shown}: {json.dumps(self.value, default=str, separators=(',', ':'))}"
        return f"{self.field}: {shown}: {self.detail}" if self.detail else f"{self.field}: {shown}"


def join_errors(errors: Sequence[FieldError]) -> str:
    """Join errors as Kubernetes does: several are in brackets, equal ones are shown once."""
    texts = list(dict.fromkeys(map(str, errors)))
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)
