"""The HTML format: one page that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.live.drift import Drift
from jobgen.features.live.lines import list_sections, summarize
from jobgen.reports.static_page import write_page


def render(drifts: Sequence[Drift]) -> str:
    """Write a list for each section of an environment."""
    sections = [
        (f"{title} ({drift.environment})" if drift.environment else title, lines)
        for drift in drifts
        for title, lines in list_sections(drift)
    ]
    return write_page("Drift", summarize(drifts), sections)
