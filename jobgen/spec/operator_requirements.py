"""The requirements of an operator beyond its CRD: `requirements` of a kind description."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

_NONE: Mapping[str, Any] = MappingProxyType({})


class Choice(NamedTuple):
    """A field that takes any string in the CRD: the values that the operator knows, and what it does with others."""

    values: tuple[str, ...]
    otherwise: str = ""
    since: str = ""
    warning: bool = False


class Bounds(NamedTuple):
    """The range of a numeric field."""

    minimum: int | None = None
    maximum: int | None = None


class Runtime(NamedTuple):
    """A runtime that is shipped with the operator: its policy, its longest name suffix, whether it initializes data."""

    policy: str
    name_suffix: str = ""
    initializes: bool = False


Fields = Mapping[tuple[str, ...], Mapping[str, Any]]
"""Requirements by the path of the mapping, then by the name of the field in it."""


class OperatorRequirements(NamedTuple):
    """The requirements of one operator; an empty field means no requirement, or an unknown one."""

    known: bool = False
    webhook: str = ""
    from_documentation: bool = False
    conflicts_with: str = ""
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
    """Parse `requirements` of a valid kind description; `unseen` and `rival` are former names."""
    return OperatorRequirements(
        # That a kind is known from documentation requires nothing.
        known=bool(raw.keys() - {"fromDocumentation"}),
        webhook=raw.get("webhook", ""),
        from_documentation=raw.get("fromDocumentation", raw.get("unseen", False)),
        conflicts_with=raw.get("conflictsWith", raw.get("rival", "")),
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
        choices=_group_by_mapping({at: _parse_choice(field) for at, field in raw.get("choices", _NONE).items()}),
        bounds=_group_by_mapping(
            {at: Bounds(field.get("min"), field.get("max")) for at, field in raw.get("bounds", _NONE).items()}
        ),
        reserved={policy: tuple(names) for policy, names in raw.get("reserved", _NONE).items()},
        runtimes={name: _parse_runtime(field) for name, field in raw.get("runtimes", _NONE).items()},
    )


def _parse_choice(field: Mapping[str, Any]) -> Choice:
    return Choice(
        tuple(field["values"]),
        field.get("otherwise", ""),
        field.get("since", ""),
        warning=field.get("warning", False),
    )


def _parse_runtime(field: Mapping[str, Any]) -> Runtime:
    return Runtime(field["policy"], field.get("nameSuffix", ""), initializes=field.get("initializes", False))


def _group_by_mapping(fields: Mapping[str, Any]) -> Fields:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for at, field in fields.items():
        *mapping, name = at.split(".")
        found.setdefault(tuple(mapping), {})[name] = field
    return found
