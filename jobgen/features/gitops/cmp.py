"""The config management plugin protocol of Argo CD: parameters, the folder to work in, and the kinds of the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean

DEADLINE = 50.0
_MAX_DEADLINE = 24 * 60 * 60.0
"""Seconds; Argo CD gives up after 60, with a less helpful message."""
_WORK_FOLDER = "_cmp_server"
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
        value = parameter.get(_TYPES[name])
        others = {"string", "array", "map"} & {key for key, given in parameter.items() if given} - {_TYPES[name]}
        if others or not _has_type(value, _TYPES[name]):
            raise ParametersError(f"the parameter `{name}` must be given as `{_TYPES[name]}`")
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


def _has_type(value: object, type_: str) -> bool:
    if type_ == "string":
        return value is None or isinstance(value, str)
    return value is None or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def describe_parameters(environments: Sequence[str], teams: Sequence[str], selected: str) -> list[dict[str, Any]]:
    """Describe the parameters for Argo CD's user interface; `selected` is the environment without a parameter."""
    choice = f"One of: {', '.join(environments)}" if environments else "This repository has no overlays"
    team = {
        "name": "team",
        "title": "Team",
        "tooltip": f"One of: {', '.join(teams)}; if empty, all teams",
        "required": False,
        "itemType": "string",
        "collectionType": "string",
        "string": "",
    }
    return [
        {
            "name": "env",
            "title": "Environment",
            "tooltip": choice,
            "required": bool(environments) and not selected,
            "itemType": "string",
            "collectionType": "string",
            "string": selected,
        },
        *([team] if teams else []),
        {
            "name": "jobs",
            "title": "Jobs",
            "tooltip": "Names or shell patterns; if empty, all jobs",
            "required": False,
            "itemType": "string",
            "collectionType": "array",
            "array": [],
        },
    ]


def root_candidates(folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """The folders that may be the root of the repository: the Application's folder and its parents in Git."""
    source = environ.get("ARGOCD_APP_SOURCE_PATH")
    parents = [folder, *folder.parents]
    if source is None:
        return parents
    inside = parents[: len([part for part in PurePosixPath(source).parts if part not in (".", "/")]) + 1]
    work = environ.get("ARGOCD_CMP_WORKDIR")
    ends = (index for index, one in enumerate(inside) if one.name == _WORK_FOLDER or (work and one == Path(work)))
    # If only a part of the repository was sent, there are fewer parents than the source path has parts.
    return inside[: next(ends, len(inside))]


def lacks_kind(served: str, api_version: str, kind: str) -> bool:
    """Whether a kind is missing in the `group/version/Kind` list of a cluster; a list without kinds proves nothing."""
    known = {entry.strip() for entry in served.split(",")} - {""}
    named = {entry for entry in known if entry.rpartition("/")[2][:1].isupper()}
    return bool(named) and f"{api_version}/{kind}" not in named


def read_deadline(environ: Mapping[str, str]) -> float:
    """The seconds after which the plugin gives up; the sidecar can override them."""
    try:
        seconds = float(environ.get("JOBGEN_CMP_TIMEOUT", ""))
    except ValueError:
        return DEADLINE
    # The timers of the system have a limit; a day is as good as none.
    return min(seconds, _MAX_DEADLINE) if seconds > 0 else DEADLINE
