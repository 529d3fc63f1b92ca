"""One row of the table: what was measured, against what, what is wanted, and whether that was kept."""

from __future__ import annotations

from typing import Any, NamedTuple

LINEAR = 1.5
"""How much more a job may cost among ten times as many: caches of a processor, and noise."""


class Row(NamedTuple):
    """A measurement in seconds or bytes; a row of a series says how many files or jobs it was."""

    what: str
    value: float
    wanted: str = ""
    kept: bool = True
    peer: str = ""
    other: float = 0
    unit: str = "seconds"
    series: str = ""
    count: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        """As people read it."""
        against = f"{self.peer} {amount(self.other, self.unit)}" if self.peer else ""
        each = f"{self.value / self.count * 1e6:,.0f} µs each" if self.count and not against else ""
        ratio = self.other / self.value
        times = f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"
        verdict = ("kept" if self.kept else "MISSED") if self.wanted else ""
        return (
            self.what,
            amount(self.value, self.unit),
            against or each,
            times if self.peer else "",
            self.wanted,
            verdict,
        )

    @property
    def record(self) -> dict[str, Any]:
        """As programs read it."""
        found: dict[str, Any] = {"what": self.what, self.unit: self.value}
        if self.peer:
            found |= {"peer": self.peer, f"peer_{self.unit}": self.other, "ratio": self.other / self.value}
        if self.series:
            found |= {"series": self.series, "count": self.count}
        return found | ({"wanted": self.wanted, "kept": self.kept} if self.wanted else {}) | {"cells": self.cells}


def growing(before: Row | None, row: Row) -> Row:
    """A row of a series that must not cost more for each job than the one before."""
    if before is None:
        return row
    kept = row.value / row.count <= LINEAR * before.value / before.count
    return row._replace(wanted=f"{row.wanted}, linear" if row.wanted else "linear", kept=row.kept and kept)


def amount(value: float, unit: str) -> str:
    """A number with the unit that makes it short."""
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"
