"""Errors of fields, and what is wrong with names, labels and annotations, in the words of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.model.lazy_re import lazy_pattern

INVALID: Final = "FieldValueInvalid"
REQUIRED: Final = "FieldValueRequired"
DUPLICATE: Final = "FieldValueDuplicate"
FORBIDDEN: Final = "FieldValueForbidden"
NOT_FOUND: Final = "FieldValueNotFound"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
TOO_LONG: Final = "FieldValueTooLong"


class FieldError(NamedTuple):
    """An error of a field."""

    field: str
    type: str
    detail: str = ""
    value: Any = None


_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_NAME_PATTERN, _VALUE_PATTERN, _DOMAIN_PATTERN, _PATH_PATTERN = (
    lazy_pattern(pattern + r"\Z") for pattern in (_NAME, _VALUE, _DOMAIN, _PATH)
)
_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_MAX_NAME, _MAX_DOMAIN, _MAX_ANNOTATIONS = 63, 253, 256 * 1024


def _describe(text: str, pattern: str, *examples: str) -> str:
    shown = "".join(f"{' or ' if index else ''}'{example}', " for index, example in enumerate(examples))
    return f"{text} ({'e.g. ' if examples else ''}{shown}regex used for validation is '{pattern}')"


_NAME_TEXT = _describe(f"must {_CHARACTERS}", _NAME, "MyName", "my.name", "123-abc")


def list_key_errors(key: str) -> Iterator[str]:
    """List what is wrong with the key of a label."""
    parts = key.split("/")
    if len(parts) > 2:
        prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a valid label key {_NAME_TEXT} {prefix}"
        return
    if len(parts) > 1:
        errors = list_domain_errors(parts[0]) if parts[0] else ("must be non-empty",)
        yield from (f"prefix part {error}" for error in errors)
    name = parts[-1]
    if not name:
        yield "name part must be non-empty"
    elif len(name.encode()) > _MAX_NAME:
        yield f"name part must be no more than {_MAX_NAME} bytes"
    if not _NAME_PATTERN.match(name):
        yield f"name part {_NAME_TEXT}"


def list_value_errors(value: str) -> Iterator[str]:
    """List what is wrong with the value of a label."""
    if len(value.encode()) > _MAX_NAME:
        yield f"must be no more than {_MAX_NAME} bytes"
    if not _VALUE_PATTERN.match(value):
        text = f"a valid label must be an empty string or {_CHARACTERS}"
        yield _describe(text, _VALUE, "MyValue", "my_value", "12345")


def list_domain_errors(domain: str) -> Iterator[str]:
    """List what is wrong with a DNS subdomain."""
    if len(domain.encode()) > _MAX_DOMAIN:
        yield f"must be no more than {_MAX_DOMAIN} bytes"
    if not _DOMAIN_PATTERN.match(domain):
        text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
        yield _describe(f"{text} start and end with an alphanumeric character", _DOMAIN, "example.com")


def list_path_errors(field: str, text: str) -> Iterator[FieldError]:
    """List what is wrong with a path after a domain, such as `example.com/name`."""
    domain, _, path = text.partition("/")
    if not domain or not path:
        yield FieldError(field, INVALID, 'must be a domain-prefixed path (such as "acme.io/foo")', text)
        return
    yield from (FieldError(field, INVALID, error, domain) for error in list_domain_errors(domain))
    if not _PATH_PATTERN.match(path):
        yield FieldError(field, INVALID, _describe("Invalid path", _PATH), path)


def validate_key(field: str, key: str) -> Iterator[FieldError]:
    """Validate the key of a label."""
    yield from (FieldError(field, INVALID, error, key) for error in list_key_errors(key))


def validate_labels(field: str, labels: Any) -> Iterator[FieldError]:
    """Validate labels. Errors are at the whole map."""
    for key, value in as_mapping(labels).items():
        yield from validate_key(field, str(key))
        yield from (FieldError(field, INVALID, error, value) for error in list_value_errors(str(value)))


def validate_annotations(field: str, annotations: Any) -> Iterator[FieldError]:
    """Validate annotations: their keys, and the size of all together."""
    found = as_mapping(annotations)
    for key in map(str, found):
        yield from (FieldError(field, INVALID, error, key) for error in list_key_errors(key.lower()))
    if sum(len(f"{key}{value}".encode()) for key, value in found.items()) > _MAX_ANNOTATIONS:
        yield FieldError(field, TOO_LONG, f"may not be more than {_MAX_ANNOTATIONS} bytes")


def validate_selector(field: str, selector: Any) -> Iterator[FieldError]:
    """Validate a label selector."""
    found = as_mapping(selector)
    yield from validate_labels(f"{field}.matchLabels", found.get("matchLabels"))
    for index, each in enumerate(map(as_mapping, as_list(found.get("matchExpressions")))):
        yield from _validate_expression(f"{field}.matchExpressions[{index}]", each)


def _validate_expression(field: str, expression: Mapping[str, Any]) -> Iterator[FieldError]:
    operator, values = expression.get("operator"), as_list(expression.get("values"))
    if operator in ("In", "NotIn"):
        if not values:
            yield FieldError(f"{field}.values", REQUIRED, "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield FieldError(f"{field}.values", FORBIDDEN, text)
    else:
        yield FieldError(f"{field}.operator", INVALID, "not a valid selector operator", operator)
    yield from validate_key(f"{field}.key", str(expression.get("key", "")))
    for index, value in enumerate(values):
        for error in list_value_errors(str(value)):
            yield FieldError(f"{field}.values[{index}]", INVALID, error, value)


def validate_tolerations(field: str, tolerations: Any) -> Iterator[FieldError]:
    """Validate the keys of tolerations; the schema has the rest."""
    for index, toleration in enumerate(map(as_mapping, as_list(tolerations))):
        if key := str(toleration.get("key") or ""):
            yield from validate_key(f"{field}[{index}].key", key)


def list_supported(values: Sequence[str]) -> str:
    """Describe the supported values of a field."""
    return f"supported values: {', '.join(f'{chr(34)}{each}{chr(34)}' for each in values)}" if values else ""
