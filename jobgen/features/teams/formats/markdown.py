"""The Markdown format, for pages and comments: a table of teams and environments."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.teams.formats.text import describe_line
from jobgen.features.teams.teams import TeamOverview
from jobgen.reports.escape import markdown_text

_HEAD = "| team | folders | owners | environment | used | namespaces | queues |\n|---|---|---|---|---|---|---|\n"


def render(teams: Sequence[TeamOverview]) -> str:
    """Write a row for each team and environment."""
    rows = (
        (
            team.name or "none",
            ", ".join(team.folders),
            " ".join(team.owners),
            each.environment,
            ", ".join(map(describe_line, each.budget)),
            *(" ".join(each.allowed.get(name, ())) for name in ("namespaces", "queues")),
        )
        for team in teams
        for each in team.environments
    )
    return _HEAD + "".join(f"| {' | '.join(map(markdown_text, row))} |\n" for row in rows)
