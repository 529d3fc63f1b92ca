"""The file of `--prices`: what an hour of each resource costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from jobgen.model.data import Location, Node, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean
from jobgen.render.locate import locate
from jobgen.repo.files import File
from jobgen.repo.shipped import find_shipped
from jobgen.schema.own_formats import Check, compile_schema
from jobgen.yamlio.read import read

_FORMAT = "prices_v1.json"
_DIGITS = 6
"""How many digits a price may have after the point; prices are kept as integers."""
_DEFAULT_CURRENCY = "USD"


class PriceTarget(NamedTuple):
    """What a price can depend on: the fields of `match`."""

    environment: str
    namespace: str
    queue: str
    flavor: str
    labels: Mapping[str, str]
    """The labels of the nodes that the pods run on, as far as they are known."""


class Price(NamedTuple):
    """An entry of the file."""

    resource: str
    hourly: int
    """In millionths of the currency."""
    fields: Mapping[str, str]
    """What the fields of PriceTarget must be."""
    labels: Mapping[str, str]

    def matches(self, target: PriceTarget) -> bool:
        """Whether the price is for these pods."""
        return self.labels.items() <= target.labels.items() and all(
            getattr(target, field) == value for field, value in self.fields.items()
        )


class Prices(NamedTuple):
    """All prices, in the order of the file."""

    currency: str
    entries: tuple[Price, ...]

    @property
    def resources(self) -> frozenset[str]:
        """The resources that have a price for some pods."""
        return frozenset(entry.resource for entry in self.entries)

    def find(self, resource: str, target: PriceTarget) -> int | None:
        """Return the price of the first entry that matches, in millionths; None if there is none."""
        found = (entry.hourly for entry in self.entries if entry.resource == resource and entry.matches(target))
        return next(found, None)


NO_PRICES = Prices("", ())


def read_prices(file: File, environments: Sequence[str], findings: list[Finding]) -> Prices:
    """Read a price file; what is wrong with it goes to `findings`."""
    if file.finding:
        findings.append(file.finding)
        return NO_PRICES
    source = read(file.content, file.path, traced=True)
    findings += source.findings
    if source.findings:
        return NO_PRICES
    if len(source.documents) != 1:
        message = "a price file is one document with a list `prices`; write `prices: [{resource: cpu, hourly: 0.05}]`"
        place = source.documents[1].location if source.documents else Location(file.path, 1)
        findings.append(locate(Problem("missing-field", message, None), file.path, place))
        return NO_PRICES
    data = source.documents[0].data
    problems: list[Problem] = []
    _compile()(data, "prices", data, problems)
    problems += () if problems else _find_wrong_entries(data["prices"], environments)
    findings += (locate(problem, file.path, source.documents[0].location) for problem in problems)
    if problems:
        return NO_PRICES
    currency = str(value_of(data.get("currency")) or _DEFAULT_CURRENCY)
    return Prices(currency, tuple(map(_to_price, data["prices"])))


@cache
def _compile() -> Check:
    schema = json.loads((find_shipped("schemas") / "jobgen.dev" / _FORMAT).read_text("utf-8"))
    return compile_schema(_FORMAT, {_FORMAT: schema})


def _find_wrong_entries(entries: Sequence[Mapping[str, Any]], environments: Sequence[str]) -> Iterator[Problem]:
    """Find what the schema cannot express: too many digits, unknown environments, and entries that never apply."""
    known: dict[str, list[tuple[int, Price]]] = {}
    for index, entry in enumerate(entries):
        if not _is_exact(entry["hourly"]):
            message = (
                f"`hourly` is `{value_of(entry['hourly'])}`, and must have at most {_DIGITS} digits after the point"
            )
            yield Problem("invalid-value", f"{message}, such as `2.5`", entry["hourly"])
            continue
        price = _to_price(entry)
        wanted = price.fields.get("environment")
        if wanted is not None and wanted not in environments:
            hint = did_you_mean(wanted, list(environments)) or "; remove the entry, or name an overlay"
            yield Problem("invalid-value", f"there is no environment `{wanted}`{hint}", entry["match"]["environment"])
        earlier = known.setdefault(price.resource, [])
        first = next((place for place, other in earlier if _includes(other, price)), None)
        if first is not None:
            message = f"`prices[{index}]` is never used, because `prices[{first}]` matches first"
            yield Problem(
                "invalid-value", f"{message}; write the special price before the general one", entry["resource"]
            )
        earlier.append((index, price))


def _is_exact(node: Node) -> bool:
    number = Decimal(str(value_of(node)))
    return number.is_finite() and number == round(number, _DIGITS)


def _includes(one: Price, other: Price) -> bool:
    """Whether a price is for all pods that another one is for."""
    return one.fields.items() <= other.fields.items() and one.labels.items() <= other.labels.items()


def _to_price(entry: Mapping[str, Any]) -> Price:
    plain: Any = untraced(dict(entry))
    fields = dict(plain.get("match") or {})
    labels = fields.pop("nodeSelector", {})
    # `str` of a number is the shortest text that means it, so 2.3 is exactly 2.3.
    hourly = int(Decimal(str(plain["hourly"])).scaleb(_DIGITS))
    return Price(str(plain["resource"]), hourly, fields, labels)
