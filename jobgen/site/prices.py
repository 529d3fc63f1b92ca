"""The file of `--prices`: what an hour of a GPU costs."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.model.data import Plain
from jobgen.model.suggest import did_you_mean
from jobgen.site.capacity import Prices

_FIELDS = ("currency", "gpuHour", "environments", "queues")


class InvalidPricesError(ValueError):
    """The file is not a list of prices; the message says what to write."""


def parse_prices(data: Plain) -> Prices:
    """Parse the content of a price file, or raise an InvalidPricesError."""
    if not isinstance(data, Mapping):
        raise InvalidPricesError("prices must be a mapping; write `gpuHour: 2.5`")
    for name in data:
        if name not in _FIELDS:
            hint = did_you_mean(str(name), list(_FIELDS)) or f"; the fields are {', '.join(_FIELDS)}"
            raise InvalidPricesError(f"`{name}` is not a field of prices{hint}")
    currency = data.get("currency", "USD")
    if not isinstance(currency, str):
        raise InvalidPricesError(f"`currency` must be a text such as `EUR`, got `{currency}`")
    default = None if data.get("gpuHour") is None else _to_price("gpuHour", data["gpuHour"])
    return Prices(currency, default, _read_map("environments", data), _read_map("queues", data))


def _read_map(field: str, data: Mapping[str, Plain]) -> dict[str, int]:
    found = data.get(field)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise InvalidPricesError(f"`{field}` must be a mapping of names to prices")
    return {str(name): _to_price(f"{field}.{name}", value) for name, value in found.items()}


def _to_price(field: str, value: Plain) -> int:
    """Return a price in thousandths."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1_000_000:
        raise InvalidPricesError(f"`{field}` must be the price of an hour, a number such as 2.5, got `{value}`")
    return round(value * 1000)
