"""What an operator demands of the objects of a kind beyond its CRD: the `demands` of a kind description."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

_NONE: Mapping[str, Any] = MappingProxyType({})


class Choice(NamedTuple):
    """A field that is any text to its CRD: the words the operator knows; `otherwise`, what it does with others."""

    values: tuple[str, ...]
    otherwise: str = ""
    since: str = ""
    warning: bool = False


class Bounds(NamedTuple):
    """The numbers that make sense in a field."""

    least: int | None = None
    most: int | None = None


class Runtime(NamedTuple):
    """A runtime that travels with the operator: its policy, the longest end of a name, whether it fetches data."""

    policy: str
    name_suffix: str = ""
    initializes: bool = False


Fields = Mapping[tuple[str, ...], Mapping[str, Any]]
"""Demands by field, the fields by the mapping they stand in."""


class OperatorRequirements(NamedTuple):
    """What one operator demands; all that is empty here is not demanded, or nobody knows."""

    known: bool = False
    webhook: str = ""
    unseen: bool = False
    rival: str = ""
    names: str = ""
    container: bool = False
    ports: bool = False
    unknown_roles: str = ""
    written: Mapping[str, str] = _NONE
    bounds_since: Mapping[str, str] = _NONE
    unchecked: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    backoff_counts: tuple[str, ...] = ()
    overwrites_restart_policy: bool = False
    choices: Fields = MappingProxyType({})
    bounds: Fields = MappingProxyType({})
    reserved: Mapping[str, tuple[str, ...]] = _NONE
    runtimes: Mapping[str, Runtime] = _NONE


def parse_requirements(raw: Mapping[str, Any]) -> OperatorRequirements:
    """The demands that a description names; its format has been checked."""
    return OperatorRequirements(
        known=bool(raw),
        webhook=raw.get("webhook", ""),
        unseen=raw.get("unseen", False),
        rival=raw.get("rival", ""),
        names=raw.get("names", ""),
        container=raw.get("container", False),
        ports=raw.get("ports", False),
        unknown_roles=raw.get("unknownRoles", ""),
        written=raw.get("written", _NONE),
        bounds_since=raw.get("boundsSince", _NONE),
        unchecked=tuple(raw.get("unchecked", ())),
        scaled=tuple(raw.get("scaled", ())),
        backoff_counts=tuple(raw.get("backoffCounts", ())),
        overwrites_restart_policy=raw.get("overwritesRestartPolicy", False),
        choices=_by_place({at: _choice(said) for at, said in raw.get("choices", _NONE).items()}),
        bounds=_by_place(
            {at: Bounds(said.get("min"), said.get("max")) for at, said in raw.get("bounds", _NONE).items()}
        ),
        reserved={policy: tuple(names) for policy, names in raw.get("reserved", _NONE).items()},
        runtimes={name: _runtime(said) for name, said in raw.get("runtimes", _NONE).items()},
    )


def _choice(said: Mapping[str, Any]) -> Choice:
    return Choice(
        tuple(said["values"]), said.get("otherwise", ""), said.get("since", ""), warning=said.get("warning", False)
    )


def _runtime(said: Mapping[str, Any]) -> Runtime:
    return Runtime(said["policy"], said.get("nameSuffix", ""), initializes=said.get("initializes", False))


def _by_place(fields: Mapping[str, Any]) -> Fields:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for at, said in fields.items():
        *place, name = at.split(".")
        found.setdefault(tuple(place), {})[name] = said
    return found
