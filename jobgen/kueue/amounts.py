"""Amounts of resources as Kueue counts them: CPU in thousandths, everything else in whole units, both rounded up."""

from __future__ import annotations

from jobgen.model.quantity import parse_quantity

UNLIMITED = 2**63 - 1
"""The greatest amount. Greater quantities count as unlimited, and sums stop there."""

CPU = "cpu"


def to_amount(resource: str, quantity: str | float | None) -> int:
    """Convert a quantity to an amount; what is missing or no quantity is 0."""
    found = parse_quantity(str(quantity)) if quantity is not None else None
    if found is None:
        return 0
    power = found.power + (3 if resource == CPU else 0)
    whole = int(found.amount * 10**power) if power >= 0 else -(-found.amount // 10**-power)
    return min(whole, UNLIMITED)


def to_quantity(resource: str, amount: int) -> str:
    """Convert an amount to a quantity."""
    if amount >= UNLIMITED:
        return "unlimited"
    if resource == CPU and amount % 1000:
        return f"{amount}m"
    return str(amount // 1000 if resource == CPU else amount)


def add(one: int, other: int) -> int:
    """Add amounts; the sum is at most unlimited."""
    if one >= UNLIMITED or other >= UNLIMITED:
        return UNLIMITED
    return min(one + other, UNLIMITED)


def subtract(one: int, other: int) -> int:
    """Subtract amounts; unlimited less anything that is limited stays unlimited."""
    return one if one >= UNLIMITED and other < UNLIMITED else one - other


_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def show_amount(resource: str, amount: int) -> str:
    """Return an amount as Kubernetes prints it."""
    if resource not in ("memory", "ephemeral-storage") or not 0 < amount < UNLIMITED:
        return to_quantity(resource, amount)
    power = 0
    while amount % 1024 == 0 and power < len(_UNITS) - 1:
        amount, power = amount // 1024, power + 1
    return f"{amount}{_UNITS[power]}"
