"""AppProjects for Argo CD: what the Applications of a team may deploy, and which folders of the tree are whose.

An Application deploys a namespace. A namespace of one team is in the team's project. Namespaces that teams share are in
a project of their own, because Argo CD cannot tell the objects of two teams in one namespace apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from jobgen.check.team_limits import GRANTING_KINDS, is_of_cluster
from jobgen.features.gitops.engine_kinds import GitSource, resource_name
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.spec.teams import Team, Teams

_ALL = "*"
_WILDCARD = lazy_pattern(r"[*?\[]")

Namespaces = Mapping[str, Sequence[str]]
"""Patterns of namespaces, by environment or by team; one that begins with `!` leaves namespaces out."""


class TeamProject(NamedTuple):
    """The project of a team, or of what teams share."""

    name: str
    teams: tuple[Team, ...]
    """Whose kinds are allowed."""
    allowed: Namespaces
    """Where its Applications may deploy to, by environment."""
    deployed: Namespaces
    """What the ApplicationSet deploys with it, by environment."""


def list_projects(teams: Teams, envs: Sequence[str]) -> list[TeamProject]:
    """Return the project of each team, and last that of shared namespaces if there are any."""
    claims = {env: {team.name: _list_namespaces(teams, team, env) for team in teams.all} for env in envs}
    own = {env: {name: _select_own(name, found) for name in found} for env, found in claims.items()}
    projects = [
        TeamProject(
            f"{resource_name('')}-{team.name}",
            (team,),
            {env: _leave_out(found[team.name], found, team.name) for env, found in claims.items()},
            {env: found[team.name] for env, found in own.items()},
        )
        for team in teams.all
    ]
    sharing = tuple(team for team in teams.all if any(own[env][team.name] != claims[env][team.name] for env in envs))
    shared: dict[str, Sequence[str]] = {}
    for env, found in claims.items():
        left = {each for name, listed in found.items() for each in listed if each not in own[env][name]}
        shared[env] = _leave_out([_ALL] if _ALL in left else sorted(left), own[env])
    return [*projects, TeamProject(resource_name(""), sharing, shared, shared)] if sharing else projects


def _list_namespaces(teams: Teams, team: Team, env: str) -> Sequence[str]:
    """Return the patterns of a team's namespaces; `*` if it has no list, or may use all."""
    allowed = teams.find_scope(team, env).allowed
    listed = allowed.get("namespaces", (_ALL,))
    if not all(each.strip(_ALL) for each in listed):
        return (_ALL,)
    # The tree has objects without a namespace in the folder `default`.
    return (*listed, "default") if any(map(_may_be_of_cluster, allowed.get("kinds", ()))) else listed


def _may_be_of_cluster(kind: str) -> bool:
    return is_of_cluster(kind.partition(".")[0]) or _WILDCARD.search(kind) is not None


def _select_own(name: str, claims: Namespaces) -> Sequence[str]:
    """Return the patterns of a team that match no namespace of another team."""
    others = [each for other, listed in claims.items() if other != name for each in listed if each != _ALL]
    own = (each for each in claims[name] if each != _ALL)
    return tuple(each for each in own if not any(_may_overlap(each, other) for other in others))


def _may_overlap(first: str, second: str) -> bool:
    stems = [_WILDCARD.split(each)[0] for each in (first, second)]
    if stems[0] == first or stems[1] == second:
        return fnmatchcase(first, second) or fnmatchcase(second, first)
    return stems[0].startswith(stems[1]) or stems[1].startswith(stems[0])


def _leave_out(patterns: Sequence[str], claims: Namespaces, name: str = "") -> Sequence[str]:
    """Return the patterns; if they are for all namespaces, without what other teams have."""
    if _ALL not in patterns:
        return patterns
    others = {each for other, listed in claims.items() if other != name for each in listed if each != _ALL}
    return (*patterns, *(f"!{each}" for each in sorted(others)))


def name_cluster(env: str) -> dict[str, Plain]:
    """Return the cluster of an environment, as a part of a destination."""
    return {"name": env} if env else {"server": "https://kubernetes.default.svc"}


def build_project(project: TeamProject, teams: Teams, source: GitSource) -> dict[str, Plain]:
    """Return the AppProject: one source, the namespaces, and the kinds that its teams may have in any environment."""
    scopes = [teams.find_scope(team, env).allowed for team in project.teams for env in project.allowed]
    listed = sorted({each for scope in scopes for each in scope.get("kinds", ())})
    kinds = [(kind, group or _ALL) for kind, _, group in (each.partition(".") for each in listed)]
    namespaced = "Whitelist", [each for each in kinds if not is_of_cluster(each[0])]
    if not all("kinds" in scope for scope in scopes):
        refused = GRANTING_KINDS - {kind for kind, _ in kinds}
        namespaced = "Blacklist", [(kind, _ALL) for kind in sorted(refused)]
    elif not namespaced[1]:
        # An empty list would allow everything.
        namespaced = "Blacklist", [(_ALL, _ALL)]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": project.name, "namespace": "argocd"},
        "spec": {
            "sourceRepos": [source.url],
            "destinations": [
                {**name_cluster(env), "namespace": each} for env, found in project.allowed.items() for each in found
            ],
            "clusterResourceWhitelist": _write_kinds(each for each in kinds if _may_be_of_cluster(each[0])),
            f"namespaceResource{namespaced[0]}": _write_kinds(namespaced[1]),
        },
    }


def _write_kinds(kinds: Iterable[tuple[str, str]]) -> Plain:
    return [{"group": group, "kind": kind} for kind, group in kinds]


def build_generators(projects: Iterable[TeamProject], source: GitSource) -> list[Plain]:
    """Return the generators of the ApplicationSet: which folders of the tree are deployed with which project."""
    generators: list[Plain] = []
    for project in projects:
        folders: list[Plain] = []
        for env, found in project.deployed.items():
            for each in found:
                # Folders are matched as in Go, where `^` negates a set of letters.
                path = f"{source.environment_path(env)}/{each.removeprefix('!').replace('[!', '[^')}"
                folders.append({"path": path, "exclude": True} if each.startswith("!") else {"path": path})
        if folders:
            place = {"repoURL": source.url, "revision": source.revision, "directories": folders}
            generators.append({"git": {**place, "values": {"project": project.name}}})
    return generators
