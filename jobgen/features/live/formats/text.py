"""The text format, for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.live.drift import Drift
from jobgen.features.live.lines import list_sections
from jobgen.reports.escape import visible


def render(drifts: Sequence[Drift]) -> str:
    """Write the sections of each environment."""
    lines: list[str] = []
    for drift in drifts:
        for title, several in list_sections(drift):
            heading = f"{title} ({drift.environment})" if drift.environment else title
            lines += [heading, *(f"  {line}" for line in several), ""]
        lines += (f"left out, because of errors: {each.describe()}" for each in drift.left_out)
    return "".join(f"{visible(line)}\n" for line in lines)
