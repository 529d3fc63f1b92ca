"""The Markdown format, for tickets and pull requests."""

from __future__ import annotations

from jobgen.features.upgrade.rehearse import Rehearsal
from jobgen.features.upgrade.sections import list_sections, summarize
from jobgen.reports.escape import markdown_text


def render(rehearsal: Rehearsal) -> str:
    """Write a list for each section of an environment."""
    lines = ["### Upgrade", "", markdown_text(summarize(rehearsal)), ""]
    for upgrade in rehearsal.environments:
        lines += [f"#### {markdown_text(upgrade.environment or 'all jobs')}", ""]
        for title, several in list_sections(upgrade):
            lines += [f"**{title}**", ""]
            for line in several:
                lines.append(f"{'  ' if line.startswith('  ') else ''}- {markdown_text(line.strip())}")
            lines.append("")
    lines += (f"- left out, because of errors: {markdown_text(each.describe())}" for each in rehearsal.left_out)
    return "\n".join(lines).rstrip() + "\n"
