"""Named formats in CEL: `format.<name>().validate(string)`, with the messages of Kubernetes."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from jobgen.check.cel import networks
from jobgen.check.cel.values import strings, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern

TAG = "format"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_VALUE = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_DATETIME = lazy_pattern(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:?[0-9]{2})"
)


def _named(name: object) -> list[bytes]:
    """`format.named(string)`: the format if there is one, in a list."""
    (found,) = strings(name)
    return [tagged(TAG, found)] if found in _FAULTS else []


def _validate(form: object, text: object) -> list[list[str]]:
    """`format.validate(string)`: the errors, in a list."""
    faults = _FAULTS[untagged(form, TAG)](*strings(text))
    return [faults] if faults else []


def _name(
    pattern: str, longest: int, words: str, examples: tuple[str, ...], *, prefix: bool = False
) -> Callable[[str], list[str]]:
    compiled = lazy_pattern(pattern)
    error = _describe(words, pattern, examples)

    def faults(text: str) -> list[str]:
        # A prefix may end in a dash, because something follows it; Go replaces the character before it, too.
        checked = f"{text[:-2]}a" if prefix and len(text) > 1 and text.endswith("-") else text
        found = [f"must be no more than {longest} bytes"] if len(checked.encode()) > longest else []
        return found if compiled.fullmatch(checked) else [*found, error]

    return faults


def _describe(words: str, pattern: str, examples: tuple[str, ...]) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def _qualified(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        error = _describe(_NAME_PART_WORDS, _VALUE, _NAME_PART_EXAMPLES)
        return [f"a qualified name {error} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if (slash and not prefix) or not name:
        empty = ["prefix part must be non-empty"] if slash and not prefix else []
        return [*empty, *(["name part must be non-empty"] if not name else [])]
    wrong = [f"prefix part {fault}" for fault in _FAULTS["dns1123Subdomain"](prefix)] if slash else []
    return wrong + [f"name part {fault}" for fault in _NAME_PART(name)]


def _one_of(holds: Callable[[str], bool], words: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [words]


def _is_base64(text: str) -> bool:
    import base64

    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_datetime(text: str) -> bool:
    match = _DATETIME.fullmatch(text)
    try:
        return match is not None and bool(datetime.fromisoformat(f"{match[1]}T{match[2]}"))
    except ValueError:
        return False


_ENDS = "and must start and end with an alphanumeric character"
_LABEL_WORDS = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
_SUBDOMAIN_WORDS = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
)
_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_VALUE_WORDS = f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_NAME_PART_WORDS = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_NAME_PART_EXAMPLES = ("MyName", "my.name", "123-abc")
_NAME_PART = _name(_VALUE, 63, _NAME_PART_WORDS, _NAME_PART_EXAMPLES)
_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_FAULTS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": _name(_LABEL, 63, _LABEL_WORDS, ("my-name", "123-abc")),
    "dns1123LabelPrefix": _name(_LABEL, 63, _LABEL_WORDS, ("my-name", "123-abc"), prefix=True),
    "dns1123Subdomain": _name(_SUBDOMAIN, 253, _SUBDOMAIN_WORDS, ("example.com",)),
    "dns1123SubdomainPrefix": _name(_SUBDOMAIN, 253, _SUBDOMAIN_WORDS, ("example.com",), prefix=True),
    "dns1035Label": _name(_1035, 63, _1035_WORDS, ("my-name", "abc-123")),
    "dns1035LabelPrefix": _name(_1035, 63, _1035_WORDS, ("my-name", "abc-123"), prefix=True),
    "qualifiedName": _qualified,
    "labelValue": _name(f"({_VALUE})?", 63, _VALUE_WORDS, ("MyValue", "my_value", "12345")),
    "uri": lambda text: [fault] if (fault := networks.fault(text)) else [],
    "uuid": _one_of(lambda text: _UUID.fullmatch(text) is not None, "does not match the UUID format"),
    "byte": _one_of(_is_base64, "invalid base64"),
    "date": _one_of(_is_date, "invalid date"),
    "datetime": _one_of(_is_datetime, "invalid datetime"),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {"format.named": _named, "validate": _validate}
