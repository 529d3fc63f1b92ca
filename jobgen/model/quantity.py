"""Kubernetes quantities: parser, canonical text (`1000m` is `1`, `1024Mi` is `1Gi`) and value in thousandths."""

from __future__ import annotations

from functools import lru_cache

from jobgen.model.data import Node, TracedScalar, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

# More than a thousand digits are rejected: no real amount has them, and they take long to convert.
_QUANTITY = lazy_pattern(
    r"([+-]?)([0-9]{0,1000})(?:\.([0-9]{0,1000}))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?\Z"
)
_WITHOUT_DIGITS = lazy_pattern(r"[+-]?\.?(?:Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]{1,9})?\Z")
_BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_POWERS = {suffix: power for power, suffix in _DECIMAL.items()}
MAX_INT64 = 2**63 - 1
"""The largest integer of Go."""
_NANO = -9
# The digits that Go's fast path takes.
_FAST_DIGITS = 18
# The powers of ten by which Go multiplies at once.
_FACTORS = (0, 1, 2, 3, 6, 9)
_FAST_BINARY_DIGITS = 15

SPACES = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What Kubernetes removes around a quantity. Tabs and line breaks are escapes in JSON, which it does not read."""
MAX_POWER = 1000
"""Exponents beyond this are not evaluated: the number would take longer to compute than it is worth."""


class Quantity(NamedTuple):
    """A parsed quantity: its value is `amount * 10**power`, rounded up to nanos as Kubernetes does."""

    amount: int
    power: int
    is_binary: bool = False
    has_exponent: bool = False
    scale: int | None = None
    """The power of ten of its last digit if Go keeps it as a 64-bit integer; None if Go needs arbitrary precision."""

    def __str__(self) -> str:
        """The canonical text, as Kubernetes prints it."""
        size = abs(self.amount)
        if not size:
            return "0"
        if self.is_binary:
            text = _format_binary(size, self.power)
        else:
            text = _format_decimal(size, self.power, exponent=self.has_exponent)
        return f"-{text}" if self.amount < 0 else text


def parse_quantity(text: str) -> Quantity | None:
    """Parse a quantity; None if the text is not one."""
    match = _QUANTITY.match(text)
    if match is None:
        return None
    sign, whole, fraction, suffix = match.groups("")
    power = _power_of_ten(suffix) if whole or fraction else None
    if power is None:
        return None
    is_binary = suffix.endswith("i")
    doublings = _BINARY.index(suffix) * 10 if is_binary else 0
    scale = _go_scale(whole, fraction, power, doublings)
    amount, power = int(whole + fraction) << doublings, power - len(fraction)
    if power < _NANO:
        # Kubernetes keeps no smaller unit, and rounds up. Dividing by more than the number's length leaves only that.
        step = 10 ** min(_NANO - power, len(str(amount)) + 1)
        amount, power = -(-amount // step), _NANO
    if is_binary and amount > MAX_INT64 * 10**-power:
        # Kubernetes caps binary quantities at 64 bits.
        amount, power = MAX_INT64, 0
    return Quantity(-amount if sign == "-" else amount, power, is_binary, suffix[-1:].isdigit(), scale)


def canonicalize_quantity(text: str) -> str | None:
    """The quantity as Kubernetes prints it; None if the text is not a quantity."""
    parsed = parse_quantity(text)
    return None if parsed is None else str(parsed)


def to_milli(node: Node) -> int | None:
    """The thousandths in a quantity, to which Kubernetes rounds up before it compares; None if it is not one."""
    found = node.value if type(node) is TracedScalar else node
    return _parse_milli(found) if type(found) in (str, int, float) else None


def decode_milli(node: Node) -> int | None:
    """The thousandths of a quantity in one of Kubernetes' own kinds, where null is 0."""
    return 0 if value_of(node) is None else to_milli(node)


@lru_cache(maxsize=8192)
def _parse_milli(found: str | float) -> int | None:
    text = str(found).strip(SPACES)
    parsed = parse_quantity(text)
    if parsed is None:
        # Go reads a sign, a dot or a unit without digits as 0; the pattern in CRDs does not allow it.
        return 0 if text and _WITHOUT_DIGITS.match(text) else None
    power = min(parsed.power, MAX_POWER) + 3
    if power >= 0:
        return int(parsed.amount * 10**power)
    # Kubernetes rounds away from zero.
    rounded = -(-abs(parsed.amount) // int(10**-power))
    return rounded if parsed.amount > 0 else -rounded


def to_int64(node: Node, power: int = 0) -> int | None:
    """The multiples of `10**power` in a quantity of Kubernetes' own kinds, as Go computes them; None if it is not one.

    Kubernetes keeps thousandths. What exceeds 64 bits wraps; but if Go keeps the quantity as an integer and multiplies
    it digit by digit, it is 0.
    """
    milli = decode_milli(node)
    if milli is None:
        return None
    rounded = -(-abs(milli) // int(10 ** (power + 3)))
    value = rounded if milli > 0 else -rounded
    if abs(value) <= MAX_INT64:
        return value
    parsed = parse_quantity(str(value_of(node)).strip(SPACES))
    is_multiplied_at_once = parsed is None or parsed.scale is None or parsed.scale - power in _FACTORS
    return (value + 2**63) % 2**64 - 2**63 if is_multiplied_at_once else 0


def _power_of_ten(suffix: str) -> int | None:
    """The power of ten of a suffix. Go keeps 32 bits of an exponent, and rejects one of more than 64."""
    if not suffix[-1:].isdigit():
        return _POWERS.get(suffix, 0)
    power = int(suffix[1:]) if len(suffix) < 24 else 2**63
    return (power + 2**31) % 2**32 - 2**31 if -(2**63) <= power < 2**63 else None


def _go_scale(whole: str, fraction: str, power: int, doublings: int) -> int | None:
    """The scale that Go's fast path gives a quantity; None if Go takes the slow path."""
    whole = whole.lstrip("0")
    if doublings:
        return 0 if not fraction and len(whole) + doublings * 3 // 10 < _FAST_BINARY_DIGITS else None
    scale = power - len(fraction)
    return scale if len(whole) + len(fraction) <= _FAST_DIGITS and scale >= _NANO else None


def _format_binary(amount: int, power: int) -> str:
    """Powers of 1024 for whole numbers from 1024 on; a decimal suffix for all others."""
    whole, rest = (amount, 0) if power == 0 else divmod(amount, 10**-power)
    if whole < 1024 or rest:
        return _format_decimal(amount, power, exponent=False)
    step = 0
    while whole % 1024 == 0 and step < len(_BINARY) - 1:
        whole, step = whole // 1024, step + 1
    return f"{whole}{_BINARY[step]}"


def _format_decimal(amount: int, power: int, *, exponent: bool) -> str:
    """Powers of a thousand. Kubernetes drops the suffix of amounts beyond `E`, which changes them; this does not."""
    while amount % 10 == 0:
        amount, power = amount // 10, power + 1
    least = power - power % 3 if exponent else min(power - power % 3, 18)
    number = f"{amount}{'0' * (power - least)}"
    if exponent:
        return f"{number}e{least}" if least else number
    return f"{number}{_DECIMAL[least]}"


_MAX_DIGITS = 18
"""More digits are no number of anything here, and Python refuses to read very many of them."""


def parse_digits(text: str) -> int | None:
    """Return the value of digits; None for other text. `str.isdigit` also accepts digits such as `²`."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None
