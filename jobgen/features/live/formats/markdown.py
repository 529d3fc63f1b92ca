"""The Markdown format, for tickets."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.live.drift import Drift
from jobgen.features.live.lines import list_sections, summarize
from jobgen.reports.escape import markdown_text


def render(drifts: Sequence[Drift]) -> str:
    """Write a list for each section of an environment."""
    lines = ["### Drift", "", markdown_text(summarize(drifts)), ""]
    for drift in drifts:
        for title, several in list_sections(drift):
            lines += [f"**{markdown_text(title)}** {markdown_text(drift.environment)}".rstrip(), ""]
            lines += (f"{'  ' if each.startswith('  ') else ''}- {markdown_text(each.strip())}" for each in several)
            lines.append("")
        lines += (f"- left out, because of errors: {markdown_text(each.describe())}" for each in drift.left_out)
    return "\n".join(lines).rstrip() + "\n"
