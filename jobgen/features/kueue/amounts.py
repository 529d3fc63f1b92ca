"""Amounts of resources as Kueue counts them: CPU in thousandths, everything else in whole units, both rounded up."""

from __future__ import annotations

from jobgen.model.quantity import MAX_POWER, Quantity, parse_quantity

UNLIMITED = 2**63 - 1
"""The greatest amount. Greater quantities count as unlimited, and sums stop there."""

_LEAST = -(2**63)

CPU = "cpu"


def to_amount(resource: str, quantity: str | float | None) -> int:
    """Convert a quantity to an amount; what is missing or no quantity is 0."""
    found = parse_quantity(str(quantity)) if quantity is not None else None
    if found is None:
        return 0
    return max(_LEAST, min(to_multiples(found, -3 if resource == CPU else 0), UNLIMITED))


def to_multiples(quantity: Quantity, power: int) -> int:
    """Return how many multiples of `10**power` a quantity has, rounded up. No exponent takes long to evaluate."""
    shift = min(quantity.power, MAX_POWER) - power
    return int(quantity.amount * 10**shift) if shift >= 0 else int(-(-quantity.amount // 10**-shift))


def to_quantity(resource: str, amount: int) -> str:
    """Convert an amount to a quantity."""
    if amount >= UNLIMITED:
        return "unlimited"
    if resource == CPU and amount % 1000:
        return f"{amount}m"
    return str(amount // 1000 if resource == CPU else amount)


_BINARY = ("memory", "ephemeral-storage")


def show_amount(resource: str, amount: int) -> str:
    """Return an amount as Kueue prints it."""
    return "<unlimited>" if amount >= UNLIMITED else show_number(resource, amount)


def show_number(resource: str, amount: int) -> str:
    """Return an amount as Kubernetes prints it: memory in the greatest binary unit without a rest."""
    is_binary = resource in _BINARY or resource.startswith("hugepages-")
    return str(Quantity(amount, -3 if resource == CPU else 0, is_binary))


def add(one: int, other: int) -> int:
    """Add amounts; the sum is at most unlimited."""
    total = one + other
    if one >= UNLIMITED or other >= UNLIMITED or total >= UNLIMITED:
        return UNLIMITED
    # Not `max`: a call costs more than all the rest here.
    if total < _LEAST:
        return _LEAST
    return total


def subtract(one: int, other: int) -> int:
    """Subtract amounts: unlimited less a limited amount is unlimited, a limited one less unlimited is the least."""
    if one >= UNLIMITED:
        return 0 if other >= UNLIMITED else UNLIMITED
    if other >= UNLIMITED:
        return _LEAST
    rest = one - other
    if rest >= UNLIMITED:
        return UNLIMITED
    if rest < _LEAST:
        return _LEAST
    return rest
