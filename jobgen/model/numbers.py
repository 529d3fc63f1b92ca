"""Whole numbers in text that users write."""

from __future__ import annotations

_MAX_DIGITS = 18
"""More digits are no number of anything here, and Python refuses to read very many of them."""


def parse_digits(text: str) -> int | None:
    """Return the value of digits; None for other text. `str.isdigit` also accepts digits such as `²`."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None
