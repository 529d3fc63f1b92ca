"""The text format, for terminals."""

from __future__ import annotations

from jobgen.features.upgrade.rehearse import Rehearsal
from jobgen.features.upgrade.sections import list_sections
from jobgen.reports.escape import visible


def render(rehearsal: Rehearsal) -> str:
    """Write the sections of each environment."""
    lines: list[str] = []
    for upgrade in rehearsal.environments:
        lines += [f"environment {upgrade.environment}", ""] if upgrade.environment else []
        for title, several in list_sections(upgrade):
            lines += [title, *(f"  {line}" for line in several), ""]
    lines += (f"left out, because of errors: {each.describe()}" for each in rehearsal.left_out)
    return "".join(f"{visible(line)}\n" for line in lines)
