"""What argocd-cmp-server says to a plugin: parameters, the folder it works in, and the kinds that a cluster has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from jobgen.model.suggest import did_you_mean

DEADLINE = 50.0
"""Seconds; Argo CD gives up after 60, and says less about it than we can."""
_WORK = "_cmp_server"
_TYPES = {"env": "string", "jobs": "array"}


class ParametersError(ValueError):
    """Parameters that cannot be understood; the text is for people, and holds no values."""


class PluginParameters(NamedTuple):
    """The parameters of an Application."""

    env: str = ""
    jobs: tuple[str, ...] = ()


def parse_parameters(environ: Mapping[str, str]) -> PluginParameters:
    """The parameters, which may be missing or null; names that we do not know are mistakes."""
    given = _listed(environ.get("ARGOCD_APP_PARAMETERS") or "null")
    found: dict[str, Any] = {}
    for parameter in given:
        named = parameter.get("name")
        name = named if isinstance(named, str) else ""
        if name not in _TYPES:
            known = list(_TYPES)
            raise ParametersError(
                f"there is no parameter `{name}`{did_you_mean(name, known)} (known: {', '.join(known)})"
            )
        value = parameter.get(_TYPES[name])
        others = {"string", "array", "map"} & {key for key, given in parameter.items() if given} - {_TYPES[name]}
        if others or not _fits(value, _TYPES[name]):
            raise ParametersError(f"the parameter `{name}` has to be given as `{_TYPES[name]}`")
        found[name] = value
    return PluginParameters(found.get("env") or "", tuple(found.get("jobs") or ()))


def _listed(text: str) -> list[dict[str, Any]]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise ParametersError("ARGOCD_APP_PARAMETERS is not JSON") from None
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(parameter, dict) for parameter in given):
        raise ParametersError("ARGOCD_APP_PARAMETERS is not a list of parameters")
    return given


def _fits(value: object, type_: str) -> bool:
    if type_ == "string":
        return value is None or isinstance(value, str)
    return value is None or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def describe_parameters(environments: Sequence[str]) -> list[dict[str, Any]]:
    """The parameters as Argo CD's user interface asks for them."""
    choice = f"One of: {', '.join(environments)}" if environments else "This repository has no overlays"
    return [
        {
            "name": "env",
            "title": "Environment",
            "tooltip": choice,
            "required": len(environments) > 1,
            "itemType": "string",
            "collectionType": "string",
            "string": environments[0] if len(environments) == 1 else "",
        },
        {
            "name": "jobs",
            "title": "Jobs",
            "tooltip": "Names or shell patterns; all jobs where there is none",
            "required": False,
            "itemType": "string",
            "collectionType": "array",
            "array": [],
        },
    ]


def root_candidates(folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """The folders in which the root of the repository may be: the Application's own, and those above it in Git."""
    source = environ.get("ARGOCD_APP_SOURCE_PATH")
    above = [folder, *folder.parents]
    if source is None:
        return above
    inside = above[: len([part for part in PurePosixPath(source).parts if part not in (".", "/")]) + 1]
    work = environ.get("ARGOCD_CMP_WORKDIR")
    ends = (place for place, one in enumerate(inside) if one.name == _WORK or (work and one == Path(work)))
    # Where only a part of the repository was sent, the way up is shorter than its path says.
    return inside[: next(ends, len(inside))]


def lacks_kind(served: str, api_version: str, kind: str) -> bool:
    """Whether a cluster that serves these `group/version/Kind`s lacks one; a list without kinds proves nothing."""
    known = {entry.strip() for entry in served.split(",")} - {""}
    named = {entry for entry in known if entry.rpartition("/")[2][:1].isupper()}
    return bool(named) and f"{api_version}/{kind}" not in named


def read_deadline(environ: Mapping[str, str]) -> float:
    """The seconds after which we give up; the sidecar may say otherwise."""
    try:
        seconds = float(environ.get("JOBGEN_CMP_TIMEOUT", ""))
    except ValueError:
        return DEADLINE
    return seconds if 0 < seconds < float("inf") else DEADLINE
