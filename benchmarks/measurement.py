"""One row of the table: what was measured, compared with what, the target, and whether it was met."""

from __future__ import annotations

from typing import Any, NamedTuple

LINEAR = 1.5
"""How much more a file may cost among ten times as many; allows for processor caches and noise."""


class Measurement(NamedTuple):
    """A result in seconds or bytes. A row of a series also has the number of files or jobs."""

    name: str
    value: float
    target: str = ""
    met: bool = True
    peer: str = ""
    peer_value: float = 0
    unit: str = "seconds"
    series: str = ""
    count: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        compared = f"{self.peer} {format_amount(self.peer_value, self.unit)}" if self.peer else ""
        each = f"{self.value / self.count * 1e6:,.0f} µs each" if self.count and not compared else ""
        ratio = self.peer_value / self.value
        times = f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"
        verdict = ("met" if self.met else "MISSED") if self.target else ""
        return (
            self.name,
            format_amount(self.value, self.unit),
            compared or each,
            times if self.peer else "",
            self.target,
            verdict,
        )

    @property
    def record(self) -> dict[str, Any]:
        """Return the row for the JSON file."""
        record: dict[str, Any] = {"name": self.name, self.unit: self.value}
        if self.peer:
            ratio = self.peer_value / self.value
            record |= {"peer": self.peer, f"peer_{self.unit}": self.peer_value, "ratio": ratio}
        if self.series:
            record |= {"series": self.series, "count": self.count}
        if self.target:
            record |= {"target": self.target, "met": self.met}
        return record | {"cells": self.cells}


def require_linear(before: Measurement | None, row: Measurement) -> Measurement:
    """Add the target of linear growth to a row: one file must not cost more than in the row before."""
    if before is None:
        return row
    is_linear = row.value / row.count <= LINEAR * before.value / before.count
    target = f"{row.target}, linear" if row.target else "linear"
    return row._replace(target=target, met=row.met and is_linear)


def format_amount(value: float, unit: str) -> str:
    """Format a number with the unit that makes it short."""
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"
