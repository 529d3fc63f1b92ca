"""The config management plugin protocol of Argo CD: parameters, the folder to work in, and the kinds of the cluster."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from jobgen.features.gitops.documents import GENERATE_PATHS
from jobgen.model.data import value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.repo.root import SETTINGS
from jobgen.spec.overlay import list_ancestors
from jobgen.spec.teams import Team

DEADLINE = 50.0
"""Seconds; Argo CD gives up after 60, with a less helpful message."""
_MAX_LISTED = 20
"""Names that fit into the message of an Application."""
_TYPES = {"env": "string", "team": "string", "jobs": "array"}


class ParametersError(ValueError):
    """Invalid parameters; the message is shown to users and contains no values."""


class UnknownJobError(ParametersError):
    """The parameters name a job that does not exist."""


class PluginParameters(NamedTuple):
    """The parameters of an Application."""

    env: str = ""
    team: str = ""
    jobs: tuple[str, ...] = ()


def parse_parameters(environ: Mapping[str, str]) -> PluginParameters:
    """Parse the parameters, which may be missing or null; an unknown name is an error."""
    given = _parse_list(environ.get("ARGOCD_APP_PARAMETERS") or "null")
    found: dict[str, Any] = {}
    for parameter in given:
        name = parameter.get("name")
        name = name if isinstance(name, str) else ""
        if name not in _TYPES:
            known = list(_TYPES)
            raise ParametersError(
                f"there is no parameter `{name}`{did_you_mean(name, known)} (known: {', '.join(known)})"
            )
        if name in found:
            raise ParametersError(f"the parameter `{name}` is given twice; remove one of them")
        kind = _TYPES[name]
        value = parameter.get(kind)
        others = {"string", "array", "map"} & {key for key, given in parameter.items() if given} - {kind}
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        has_type = value is None or (is_list if kind == "array" else isinstance(value, str))
        if others or not has_type:
            raise ParametersError(f"the parameter `{name}` must be given as `{kind}`")
        found[name] = value
    return PluginParameters(found.get("env") or "", found.get("team") or "", tuple(found.get("jobs") or ()))


def _parse_list(text: str) -> list[dict[str, Any]]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise ParametersError("ARGOCD_APP_PARAMETERS is not JSON") from None
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(parameter, dict) for parameter in given):
        raise ParametersError("ARGOCD_APP_PARAMETERS is not a list of parameters")
    return given


def describe_parameters(environments: Sequence[str], teams: Sequence[str], selected: str) -> list[dict[str, Any]]:
    """Describe the parameters for Argo CD's user interface; `selected` is the environment without a parameter."""

    def describe(name: str, title: str, tooltip: str, value: object, *, required: bool = False) -> dict[str, Any]:
        kind = _TYPES[name]
        about = {"name": name, "title": title, "tooltip": tooltip, "required": required}
        return {**about, "itemType": "string", "collectionType": kind, kind: value}

    choice = f"One of: {', '.join(environments)}" if environments else "This repository has no overlays"
    team = describe("team", "Team", f"One of: {', '.join(teams)}; if empty, all teams", "")
    return [
        describe("env", "Environment", choice, selected, required=bool(environments) and not selected),
        *([team] if teams else []),
        describe("jobs", "Jobs", "Names or shell patterns; if empty, all jobs", []),
    ]


def root_candidates(folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """The folders that may be the root of the repository: the Application's folder and its parents in Git."""
    source = environ.get("ARGOCD_APP_SOURCE_PATH")
    parents = [folder, *folder.parents]
    if source is None:
        return parents
    inside = parents[: len([part for part in PurePosixPath(source).parts if part not in (".", "/")]) + 1]
    work = environ.get("ARGOCD_CMP_WORKDIR")
    ends = (index for index, one in enumerate(inside) if one.name == "_cmp_server" or (work and one == Path(work)))
    # If only a part of the repository was sent, there are fewer parents than the source path has parts.
    return inside[: next(ends, len(inside))]


def read_deadline(environ: Mapping[str, str]) -> float:
    """The seconds after which the plugin gives up; the sidecar can override them."""
    try:
        seconds = float(environ.get("JOBGEN_CMP_TIMEOUT", ""))
    except ValueError:
        return DEADLINE
    # The timers of the system have a limit; a day is as good as none.
    return min(seconds, 24 * 60 * 60.0) if seconds > 0 else DEADLINE


class ApplicationScope(NamedTuple):
    """The source of an Application: a repository, one environment, and the files of its jobs."""

    project: ProjectConfig
    env: str
    folder: str = "jobs/"
    """`jobs/` or a folder in it, with a slash at the end."""
    team: str = ""
    """The team whose jobs are deployed; empty for all teams."""
    jobs: tuple[str, ...] = ()
    """Names or shell patterns; empty for all jobs."""

    def includes(self, file: str) -> bool:
        """Return True if the jobs of a file can be a part of the Application."""
        return file.startswith(self.folder) and self.team in ("", self.project.teams.find_name(file))

    def describe(self) -> str:
        """Return which jobs are meant, for a message."""
        matching = f" that matches {len(self.jobs)} patterns" if self.jobs else ""
        team = f" of team {self.team}" if self.team else ""
        return f"{matching} below {self.folder}{team}{f' in {self.env}' if self.env else ''}"

    def list_wanted(self) -> frozenset[str] | None:
        """Return the names of the jobs and sweeps to render; None for all. A pattern that matches none is an error."""
        if self.folder == "jobs/" and not self.team and not self.jobs:
            return None
        entries = (entry for entry in layout.find_jobs(self.project.root) if self.includes(entry.path))
        found = [job.document for job in read_jobs(entries, self.project.kinds, [])]
        names = {name for each in found for name in (each.name, each.sweep) if name}
        for pattern in self.jobs:
            if not any(fnmatchcase(name, pattern) for name in names):
                where = self._replace(jobs=()).describe()
                raise UnknownJobError(f"there is no job `{pattern}`{where}{_show_known(pattern, sorted(names))}")
        return frozenset(
            name for name in names if not self.jobs or any(fnmatchcase(name, pattern) for pattern in self.jobs)
        )


def find_scope(project: ProjectConfig, inside: Sequence[str], parameters: PluginParameters) -> ApplicationScope:
    """Return the scope of an Application, whose path from the root of the repository is `inside`."""
    if inside and inside[0] != "jobs" and not (inside[0] == "overlays" and len(inside) == 2):
        path = "/".join(inside)
        raise ParametersError(f"`{path}` must be the root of the repository, a folder in jobs/, or overlays/<env>")
    overlay = inside[1] if inside[:1] == ("overlays",) else ""
    if overlay and parameters.env not in ("", overlay):
        raise ParametersError(f"the parameter `env` is `{parameters.env}`, but the path is overlays/{overlay}")
    env = _select_environment(project, parameters.env or overlay)
    folder = "/".join(inside) if inside[:1] == ("jobs",) else "jobs"
    scope = ApplicationScope(project, env, f"{folder}/", parameters.team, parameters.jobs)
    teams = {team.name: team for team in project.teams.all}
    if scope.team and scope.team not in teams:
        hint = "" if teams else f"; does {GENERATE_PATHS} include /teams?"
        raise ParametersError(f"there is no team `{scope.team}`{hint}{_show_known(scope.team, sorted(teams))}")
    if scope.team:
        own = teams[scope.team].folders
        if not any(f"{each}/".startswith(scope.folder) or scope.folder.startswith(f"{each}/") for each in own):
            folders = ", ".join(own[:_MAX_LISTED])
            raise ParametersError(f"team `{scope.team}` owns nothing below {scope.folder} (its folders: {folders})")
    return scope


def list_environments(project: ProjectConfig) -> list[str]:
    """Return the environments that an Application can deploy."""
    listed = "environments" in project.settings
    return [env for env in project.environments() if env in project.overlays] if listed else sorted(project.overlays)


def _select_environment(project: ProjectConfig, named: str) -> str:
    known = list_environments(project)
    if named in known:
        return named
    if named in project.overlays:
        message = f"the overlay `{named}` is not an environment: `environments` of {SETTINGS} does not list it"
        raise ParametersError(f"{message}{_show_known(named, known)}")
    if named:
        hint = "" if known else f"; does {GENERATE_PATHS} include /overlays?"
        raise ParametersError(f"there is no environment `{named}`{hint}{_show_known(named, known)}")
    default = project.environments()
    if len(default) != 1:
        raise ParametersError(f"set the parameter `env` to one environment{_show_known('', known)}")
    return default[0]


def check_destination(scope: ApplicationScope, namespace: str, used: Collection[str]) -> None:
    """Check the namespace of the Application's destination; `used` are the namespaces of its objects."""
    # The team of all jobs of the Application, by its parameter or by its folder.
    name = scope.team or scope.project.teams.find_name(scope.folder)
    team = next((each for each in scope.project.teams.all if each.name == name), None)
    if namespace and team:
        _check_team_namespace(scope, team, namespace)
    elif namespace and namespace not in used:
        own = _find_namespace(scope.project, scope.env)
        others = [env for env in list_environments(scope.project) if _find_namespace(scope.project, env) == namespace]
        if own not in ("", namespace) and others:
            message = f"the namespace `{namespace}` of the destination belongs to {', '.join(others)}"
            raise ParametersError(f"{message}; `{scope.env}` uses `{own}`; change `env`, or the destination")


def _check_team_namespace(scope: ApplicationScope, team: Team, namespace: str) -> None:
    teams, environments = scope.project.teams, list_environments(scope.project)
    limits = teams.find_scope(team, scope.env)
    if limits.allows("namespaces", namespace):
        return
    owner = limits.find_owner("namespaces", namespace)
    others = [env for env in environments if teams.find_scope(team, env).allows("namespaces", namespace)]
    within = f" in `{scope.env}`" if scope.env else ""
    message = f"team `{team.name}` cannot use the namespace `{namespace}` of the destination{within}"
    reason = f"; team `{owner}` has it" if owner else f"; it can in {', '.join(others)}" if others else ""
    allowed = limits.allowed.get("namespaces")
    raise ParametersError(f"{message}{reason}" + (f" (allowed: {', '.join(allowed)})" if allowed else ""))


def _find_namespace(project: ProjectConfig, env: str) -> str:
    """Return the namespace that the overlays of an environment set; empty if they set none, or one for each job."""
    specs = [spec for name in list_ancestors(env, project.overlays) for spec in project.overlays[name].specs]
    found = (str(value_of(spec["namespace"])) for spec in reversed(specs) if "namespace" in spec)
    namespace = next(found, "")
    return "" if "{" in namespace else namespace


def _show_known(named: str, known: Sequence[str]) -> str:
    more = f" and {len(known) - _MAX_LISTED} more" if len(known) > _MAX_LISTED else ""
    hint = did_you_mean(named, list(known)) if named else ""
    return f"{hint} (known: {', '.join(known[:_MAX_LISTED]) or 'none'}{more})"
