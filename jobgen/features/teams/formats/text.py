"""The text format, for people: a paragraph for each team."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.teams.teams import BudgetLine, TeamOverview
from jobgen.reports.escape import visible
from jobgen.spec.teams import count_units


def render(teams: Sequence[TeamOverview]) -> str:
    """Write the teams, and what is used of each budget."""
    return "\n".join("\n".join(_list_lines(team)) + "\n" for team in teams)


def _list_lines(team: TeamOverview) -> Iterator[str]:
    if not team.name:
        yield "files that no team owns"
    else:
        contacts = (f"{name} {text}" for name, text in team.contacts.items())
        yield visible("  ".join((team.name, ", ".join(team.folders), " ".join(team.owners), *contacts)).rstrip())
    for each in team.environments:
        allowed = (f"{name} {' '.join(patterns) or 'none'}" for name, patterns in each.allowed.items())
        parts = "; ".join((", ".join(map(describe_line, each.budget)), *allowed))
        yield "  " + visible(f"{each.environment or 'all'}: {parts}")


def describe_line(line: BudgetLine) -> str:
    """Return what is used of one limit."""
    count = line.used if line.limit is None else line.limit
    counted = count_units(count, line.name)
    if line.limit is None:
        return counted
    return f"{line.used} of {counted}" + (" (exceeded)" if line.is_exceeded else "")
