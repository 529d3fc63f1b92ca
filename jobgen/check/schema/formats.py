"""The string formats that the API server enforces in schemas of custom resources, as Go's libraries read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address

from jobgen.check.cel import networks
from jobgen.k8s.kinds import Release
from jobgen.model import times
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import is_date

_SPECIALS = frozenset('()<>[]:;@\\,"')


class _InvalidError(Exception):
    """The text is not an address."""


def is_mail_address(text: str) -> bool:
    """Return True if a text is one address; comments and a display name are allowed."""
    parser = _Parser(text)
    try:
        count = parser.parse_address(allow_group=True)
        parser.skip_comments()
    except _InvalidError:
        return False
    return count == 1 and not parser.rest


class _Parser:
    """Reads a text from its start; `rest` is what is left of it."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def parse_address(self, *, allow_group: bool) -> int:
        """Read an address or a group; return the number of addresses."""
        self._skip_space()
        start = self.rest
        try:
            self._read_address_only()
        except _InvalidError:
            self.rest = start
        else:
            self._skip_space()
            if self.rest.startswith("("):
                self.skip_comments()
            return 1
        if not self.rest.startswith("<"):
            self._read_display_name()
        self._skip_space()
        if allow_group and self._take(":"):
            count = 0
            self._skip_space()
            while not self._take(";"):
                if count:
                    self._require(",")
                self._skip_space()
                count += self.parse_address(allow_group=False)
                self.skip_comments()
            self.skip_comments()
            return count
        self._require("<")
        self._read_address_only()
        self._require(">")
        return 1

    def skip_comments(self) -> None:
        """Skip spaces and comments in parentheses, which may be nested."""
        self._skip_space()
        while self._take("("):
            depth = 1
            while depth and self.rest:
                if self.rest[0] == "\\" and len(self.rest) > 1:
                    self.rest = self.rest[1:]
                else:
                    depth += {"(": 1, ")": -1}.get(self.rest[0], 0)
                self.rest = self.rest[1:]
            if depth:
                raise _InvalidError
            self._skip_space()

    def _read_address_only(self) -> None:
        self._skip_space()
        if self.rest.startswith('"'):
            if not self._read_quoted():
                raise _InvalidError
        else:
            self._read_dotted()
        self._require("@")
        self._skip_space()
        if not self._take("["):
            self._read_dotted()
            return
        # An IP address in brackets; one of version 6 has a prefix.
        address, bracket, self.rest = self.rest.partition("]")
        try:
            found = ip_address(address.removeprefix("IPv6:"))
        except ValueError:
            raise _InvalidError from None
        if not bracket or "%" in address or (found.version == 6 and not address.startswith("IPv6:")):
            raise _InvalidError

    def _read_display_name(self) -> None:
        words = 0
        while True:
            if words:
                self.skip_comments()
            self._skip_space()
            try:
                if self.rest.startswith('"'):
                    self._read_quoted()
                else:
                    self._read_word()
            except _InvalidError:
                break
            words += 1
        if not words:
            raise _InvalidError

    def _read_quoted(self) -> str:
        found = ""
        is_escaped = False
        for index, char in enumerate(self.rest[1:], 1):
            if not (_is_visible(char) or char in " \t"):
                break
            if not is_escaped and char == '"':
                self.rest = self.rest[index + 1 :]
                return found
            is_escaped = not is_escaped and char == "\\"
            found += "" if is_escaped else char
        raise _InvalidError

    def _read_word(self) -> str:
        ends = (at for at, char in enumerate(self.rest) if char in _SPECIALS or not _is_visible(char))
        end = next(ends, len(self.rest))
        if not end:
            raise _InvalidError
        found, self.rest = self.rest[:end], self.rest[end:]
        return found

    def _read_dotted(self) -> None:
        """Read words with single dots between them."""
        if not all(self._read_word().split(".")):
            raise _InvalidError

    def _skip_space(self) -> None:
        self.rest = self.rest.lstrip(" \t")

    def _take(self, char: str) -> bool:
        if not self.rest.startswith(char):
            return False
        self.rest = self.rest[1:]
        return True

    def _require(self, char: str) -> None:
        if not self._take(char):
            raise _InvalidError


def _is_visible(char: str) -> bool:
    return "!" <= char <= "~" or char >= "\x80"


class StringFormat(NamedTuple):
    """A format of strings: whether a text has it, what it is, and a text that has it."""

    is_valid: Callable[[str], bool]
    noun: str
    example: str
    since: Release = (1, 0)


def find_format(name: str, release: Release) -> StringFormat | None:
    """Return the format of a name if a release of Kubernetes enforces it; dashes in names do not count."""
    found = _FORMATS.get(name.replace("-", ""))
    return found if found is not None and release >= found.since else None


def parse_duration(text: str) -> int | None:
    """Return the nanoseconds of a duration: of Go's, such as `1h30m`, or in words, such as `3 days`."""
    exact = times.parse_duration(text)
    if exact is not None:
        return exact
    total, is_known = 0, False
    for number, unit in _WORDED_DURATION.findall(text):
        count, lower = times.read_number(number), unit.lower()
        if count > (2**63 - 1):
            return None
        for length, names in _DURATION_WORDS:
            if lower in names or lower.startswith(names[-1]):
                total, is_known = total + count * length, True
    return total if is_known else None


def is_date_time(text: str) -> bool:
    """Return True if a text is a time such as `2026-01-31T12:00:00Z`."""
    date, *rest = text.lower().split("t")
    match = _TIME.fullmatch(rest[0]) if rest else None
    return match is not None and is_date(date) and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


_TIME = lazy_pattern(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_WORDED_DURATION = lazy_pattern(r"(?<![0-9])([0-9]++)\s*+([A-Za-zµ]++)", re.ASCII)
_SECOND = 10**9
# The last name of a unit may have more letters, as `days` has.
_DURATION_WORDS = (
    (1, ("ns", "nano")),
    (1000, ("us", "µs", "micro")),
    (10**6, ("ms", "milli")),
    (_SECOND, ("s", "sec")),
    (60 * _SECOND, ("m", "min")),
    (3600 * _SECOND, ("h", "hr", "hour")),
    (86400 * _SECOND, ("d", "day")),
    (7 * 86400 * _SECOND, ("w", "wk", "week")),
)


def _is_ip(version: type[IPv4Address | IPv6Address], text: str) -> bool:
    try:
        version(text)
    except ValueError:
        return False
    return "%" not in text


def _drop_zeros(address: str) -> str:
    """An address without leading zeros in its numbers, which Kubernetes accepts for compatibility."""
    return re.sub(r"\b0+(?=[0-9A-Fa-f])", "", address)


def _is_ipv4(text: str) -> bool:
    address = _drop_zeros(text)
    return "." in text and (_is_ip(IPv4Address, address) or _is_ip(IPv6Address, address))


def _is_cidr(text: str) -> bool:
    address, _, bits = text.partition("/")
    if not re.fullmatch("[0-9]{1,7}", bits):
        return False
    address = _drop_zeros(address)
    return (_is_ip(IPv4Address, address) and int(bits) <= 32) or (_is_ip(IPv6Address, address) and int(bits) <= 128)


_HOST_NAME = lazy_pattern(
    "[a-zA-Z0-9λ§](?:-?[a-zA-Z0-9λ§]{0,62})?"
    r"|(?:[a-zA-Z0-9λ§](?:[a-zA-Z0-9λ§-]{0,61}[a-zA-Z0-9λ§])?\.)+[a-zA-Zλ]{2,63}"
)


def _is_host_name(text: str) -> bool:
    """Return True if a text is a host name; letters and symbols of all scripts are allowed."""
    if len(text.encode(errors="replace")) > 255 or any(len(part.encode()) > 63 for part in text.split(".")):
        return False
    classes = {"L": "λ", "S": "§"}
    classified = (
        char if char.isascii() and char not in "$+<=>^`|~" else classes.get(unicodedata.category(char)[0], " ")
        for char in text
    )
    return _HOST_NAME.fullmatch("".join(classified)) is not None


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = lazy_pattern(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _is_mac_address(text: str) -> bool:
    match = re.fullmatch("[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\\1[0-9A-Fa-f]{2})*", text)
    if match is not None:
        return (len(text) + 1) // 3 in (6, 8, 20)
    group = r"[0-9A-Fa-f]{4}"
    return re.fullmatch(rf"(?:{group}\.){{2}}(?:{group}\.|(?:{group}\.){{7}})?{group}", text) is not None


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text, flags=re.ASCII)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    numbers = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(place * number for place, number in enumerate(numbers, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text, flags=re.ASCII)
    return bool(re.fullmatch("[0-9]{13}", digits)) and sum(map(int, digits[::2] + digits[1::2] * 3)) % 10 == 0


_CARD = lazy_pattern(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    doubled = "".join(str(int(digit) * 2) for digit in digits[-2::-2])
    return _CARD.fullmatch(digits) is not None and sum(map(int, digits[::-2] + doubled)) % 10 == 0


def _is_long_name(text: str) -> bool:
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    return len(text) <= 253 and re.fullmatch(rf"{label}(\.{label})*", text) is not None


_UUID = "[0-9a-fA-F]{{8}}-?[0-9a-fA-F]{{4}}-?{}-?{}-?[0-9a-fA-F]{{12}}"
_ANY, _VARIANT = "[0-9a-fA-F]{4}", "[89abAB][0-9a-fA-F]{3}"


def _uuid(version: str, variant: str, example: str) -> StringFormat:
    pattern = _UUID.format(f"{version}[0-9a-fA-F]{{3}}", variant)
    return StringFormat(_matches(pattern), f"a UUID of version {version}", example)


_COLOR = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_FORMATS: dict[str, StringFormat] = {
    "bsonobjectid": StringFormat(_matches("[0-9a-fA-F]{24}"), "a BSON object id", "507f1f77bcf86cd799439011"),
    "uri": StringFormat(lambda text: not networks.request_fault(text), "an absolute URI", "https://example.com/a"),
    "email": StringFormat(is_mail_address, "a mail address", "ml@example.com"),
    "hostname": StringFormat(_is_host_name, "a host name", "train.example.com"),
    "ipv4": StringFormat(_is_ipv4, "an IPv4 address", "10.0.0.1"),
    "ipv6": StringFormat(partial(_is_ip, IPv6Address), "an IPv6 address", "2001:db8::1"),
    "cidr": StringFormat(_is_cidr, "a network", "10.0.0.0/8"),
    "mac": StringFormat(_is_mac_address, "a MAC address", "00:00:5e:00:53:01"),
    "uuid": StringFormat(_matches(_UUID.format(_ANY, _ANY)), "a UUID", "123e4567-e89b-12d3-a456-426614174000"),
    "uuid3": _uuid("3", _ANY, "6fa459ea-ee8a-3ca4-894e-db77e160355e"),
    "uuid4": _uuid("4", _VARIANT, "16fd2706-8baf-433b-82eb-8c7fada847da"),
    "uuid5": _uuid("5", _VARIANT, "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
    "isbn": StringFormat(lambda text: _is_isbn10(text) or _is_isbn13(text), "an ISBN", "978-0321751041"),
    "isbn10": StringFormat(_is_isbn10, "an ISBN with 10 digits", "0321751043"),
    "isbn13": StringFormat(_is_isbn13, "an ISBN with 13 digits", "978-0321751041"),
    "creditcard": StringFormat(_is_credit_card, "a credit card number", "4111 1111 1111 1111"),
    "ssn": StringFormat(_matches(r"\d{3}[- ]\d{2}[- ]\d{4}"), "a social security number", "111-22-3333"),
    "hexcolor": StringFormat(_matches("#?(?:[0-9a-fA-F]{3}){1,2}"), "a color", "#ff8800"),
    "rgbcolor": StringFormat(_matches(rf"rgb\({_COLOR},{_COLOR},{_COLOR}\)"), "a color", "rgb(255,136,0)"),
    "byte": StringFormat(
        _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
        "text in base64",
        "aGVsbG8=",
    ),
    "date": StringFormat(is_date, "a date", "2026-01-31"),
    "duration": StringFormat(lambda text: parse_duration(text) is not None, "a duration", "1h30m"),
    "datetime": StringFormat(is_date_time, "a date and time", "2026-01-31T12:00:00Z"),
    "k8sshortname": StringFormat(
        lambda text: len(text) <= 63 and "." not in text and _is_long_name(text), "a short name", "train-1", (1, 34)
    ),
    "k8slongname": StringFormat(_is_long_name, "a long name", "train-1.example.com", (1, 34)),
}
