"""The JSON format, for programs: one versioned document."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.teams.teams import TeamOverview
from jobgen.model.data import Plain
from jobgen.reports.escape import dump_json


def render(teams: Sequence[TeamOverview]) -> str:
    """Write all teams."""
    document: dict[str, Plain] = {"version": 1, "teams": [_describe(team) for team in teams]}
    return dump_json(document) + "\n"


def _describe(team: TeamOverview) -> dict[str, Plain]:
    return {
        "name": team.name,
        "file": team.file,
        "folders": list(team.folders),
        "owners": list(team.owners),
        "contacts": dict(team.contacts),
        "environments": [
            {
                "environment": each.environment,
                "allowed": {name: list(patterns) for name, patterns in each.allowed.items()},
                "budget": [{"name": line.name, "used": line.used, "limit": line.limit} for line in each.budget],
            }
            for each in team.environments
        ],
    }
