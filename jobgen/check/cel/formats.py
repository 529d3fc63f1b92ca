"""Named formats in CEL: `format.<name>().validate(string)`, with the messages of Kubernetes."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date, datetime

from jobgen.check.cel import urls
from jobgen.check.cel.values import strings, tagged, untagged

TAG = "format"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_VALUE = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_DATETIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:?[0-9]{2})"
)


def named(name: object) -> list[bytes]:
    """`format.named(string)`: the format if there is one, in a list."""
    (found,) = strings(name)
    return [tagged(TAG, found)] if found in _FAULTS else []


def validate(form: object, text: object) -> list[list[str]]:
    """`format.validate(string)`: the errors, in a list."""
    faults = _FAULTS[untagged(form, TAG)](*strings(text))
    return [faults] if faults else []


def _name(pattern: str, longest: int, words: str, *, prefix: bool = False) -> Callable[[str], list[str]]:
    compiled = re.compile(pattern)

    def faults(text: str) -> list[str]:
        # A prefix may end in a dash, because something follows it.
        judged = f"{text[:-1]}a" if prefix and len(text) > 1 and text.endswith("-") else text
        found = [f"must be no more than {longest} bytes"] if len(judged.encode()) > longest else []
        return found if compiled.fullmatch(judged) else [*found, f"{words} (regex used for validation is '{pattern}')"]

    return faults


def _qualified(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return ["a qualified name must consist of a name with an optional DNS subdomain prefix and '/'"]
    wrong = [f"prefix part {fault}" for fault in _FAULTS["dns1123Subdomain"](prefix)] if slash else []
    return wrong + [f"name part {fault}" for fault in _NAME_PART(name)]


def _one_of(holds: Callable[[str], bool], words: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [words]


def _is_base64(text: str) -> bool:
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


_SMALL = "must consist of lower case alphanumeric characters"
_NAME_PART = _name(_VALUE, 63, "must consist of alphanumeric characters, '-', '_' or '.'")
_FAULTS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": _name(_LABEL, 63, f"a lowercase RFC 1123 label {_SMALL} or '-'"),
    "dns1123LabelPrefix": _name(_LABEL, 63, f"a lowercase RFC 1123 label {_SMALL} or '-'", prefix=True),
    "dns1123Subdomain": _name(_SUBDOMAIN, 253, f"a lowercase RFC 1123 subdomain {_SMALL}, '-' or '.'"),
    "dns1123SubdomainPrefix": _name(
        _SUBDOMAIN, 253, f"a lowercase RFC 1123 subdomain {_SMALL}, '-' or '.'", prefix=True
    ),
    "dns1035Label": _name("[a-z]([-a-z0-9]*[a-z0-9])?", 63, f"a DNS-1035 label {_SMALL} or '-'"),
    "dns1035LabelPrefix": _name("[a-z]([-a-z0-9]*[a-z0-9])?", 63, f"a DNS-1035 label {_SMALL} or '-'", prefix=True),
    "qualifiedName": _qualified,
    "labelValue": _name(f"({_VALUE})?", 63, "a valid label must be an empty string or consist of alphanumerics"),
    "uri": lambda text: [fault] if (fault := urls.fault(text)) else [],
    "uuid": _one_of(lambda text: _UUID.fullmatch(text) is not None, "does not match the UUID format"),
    "byte": _one_of(_is_base64, "invalid base64"),
    "date": _one_of(_is_date, "invalid date"),
    "datetime": _one_of(_is_datetime, "invalid datetime"),
}
