"""Hover: what a team owns and may use, and which policies a pack has."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from jobgen.features.editor.completion.names import TEAM
from jobgen.features.editor.context import Context
from jobgen.features.editor.cursor import Part
from jobgen.features.editor.markdown import code, escape, link, table
from jobgen.features.editor.named import find_name, locate_team
from jobgen.render.config import ProjectConfig
from jobgen.repo import layout
from jobgen.repo.policy_packs import PACKS, SETTING
from jobgen.repo.root import SETTINGS
from jobgen.report.summary import pluralize
from jobgen.spec.teams import Team

_MAX_TEAMS = 8


def describe_team(context: Context) -> Iterator[str]:
    """Describe the team that a value names, or list those that a pattern matches."""
    name = find_name(context)
    if name is None or name.kind != TEAM or context.ready is None:
        return
    project = context.ready.prepared.tracer.traced_project()
    found = [team for team in project.teams.all if fnmatchcase(team.name, name.text)]
    if [team.name for team in found] != [name.text]:
        shown = ", ".join(code(team.name) for team in found[:_MAX_TEAMS])
        more = f" and {len(found) - _MAX_TEAMS} more" if len(found) > _MAX_TEAMS else ""
        yield f"Matches {pluralize(len(found), 'team')}" + (f": {shown}{more}" if found else "")
        return
    [team] = found
    owners = f"; reviewed by {', '.join(map(code, team.owners))}" if team.owners else ""
    where = link(context.workspace.root, locate_team(team, project))
    yield f"**team {code(team.name)}**: owns {', '.join(map(code, team.folders))}{owners}; defined in {where}"
    rows = _list_limits(team, project, [runner.name for runner in context.ready.prepared.runners])
    if rows:
        yield table(("environment", "may use"), rows)


def _list_limits(team: Team, project: ProjectConfig, environments: list[str]) -> list[tuple[str, str]]:
    """Return what a team may use, with the environments where that is the same."""
    rows: dict[str, list[str]] = {}
    for env in environments:
        allowed = project.teams.find_scope(team, env).allowed
        cell = "; ".join(f"{name} {', '.join(map(code, patterns))}" for name, patterns in allowed.items() if patterns)
        rows.setdefault(cell, []).append(env)
    return [(", ".join(map(escape, names)) or "all", cell) for cell, names in rows.items() if cell]


def describe_pack(context: Context) -> Iterator[str]:
    """Describe the pack of policies that the settings turn on."""
    cursor = context.cursor
    if context.file != SETTINGS or cursor.path[:1] != (SETTING,) or cursor.part is not Part.VALUE:
        return
    for pack in PACKS:
        if pack.name == cursor.text:
            yield f"**pack {code(pack.name)}**: {escape(pack.description)}"
            yield f"Policies: {', '.join(map(code, layout.list_pack_policies(pack.name)))}"
