"""The HTML format: one page that loads nothing and runs nothing."""

from __future__ import annotations

from jobgen.features.upgrade.rehearse import Rehearsal
from jobgen.features.upgrade.sections import list_sections, summarize
from jobgen.reports.static_page import write_page


def render(rehearsal: Rehearsal) -> str:
    """Write a list for each section of an environment."""
    sections = [
        (f"{title} ({upgrade.environment})" if upgrade.environment else title, lines)
        for upgrade in rehearsal.environments
        for title, lines in list_sections(upgrade)
    ]
    left_out = [each.describe() for each in rehearsal.left_out]
    sections += [("Left out, because of errors", tuple(left_out))] if left_out else []
    return write_page("Upgrade", summarize(rehearsal), sections)
