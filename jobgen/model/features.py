"""The features of this installation: each is a folder of `jobgen/features/` that says in one value what it adds.

The core imports no feature. It asks here for commands, rules and parts: functions that a feature adds at a slot of the
core, such as the section about queues in a diff. A feature is found by its folder; what it names is imported when it is
used.
"""

from __future__ import annotations

import os

from jobgen.model.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NO_FEATURE = "this installation of jobgen does not have the feature `{}`"
_PACKAGE = "jobgen.features"
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "features")
SHIPPED = os.path.join(os.path.dirname(_FOLDER), "data", "features.txt")
"""A line for each feature that jobgen ships, with its commands; `tools/build_completion.py` writes it."""
_found: dict[str, Feature] = {}
"""What `all_features` has found; `functools` takes long to import."""


class Feature(NamedTuple):
    """What a feature adds. Modules are named from its folder."""

    commands: Sequence[str] = ()
    """The modules of its folder `commands`; an underscore is a hyphen in the name of a command."""
    rules: Sequence[str] = ()
    """The modules of its folder `rules`, with their categories: `scheduling.cohort_cycle`."""
    parts: Mapping[str, str] = {}
    """What it adds at the slots of the core, each as `module:name`, or as a module."""
    needs: Sequence[str] = ()
    """Features that it imports; without one of them, it is not there either."""


def list_folders() -> list[str]:
    """Return the names of the folders of features, without importing them."""
    return sorted(name for name in os.listdir(_FOLDER) if os.path.isfile(os.path.join(_FOLDER, name, "__init__.py")))


def all_features() -> Mapping[str, Feature]:
    """Return the features of this installation by name, without those that need one that is not there."""
    if not _found:
        found: dict[str, Feature] = {name: _import(name).FEATURE for name in list_folders()}
        while lacking := [name for name, feature in found.items() if not found.keys() >= set(feature.needs)]:
            for name in lacking:
                del found[name]
        _found.update(found)
    return _found


def _import(name: str) -> Any:
    # Imported late: help and completion list features without importing them.
    from importlib import import_module

    return import_module(f"{_PACKAGE}.{name}")


def find_parts(slot: str) -> list[Any]:
    """Return what features add at a slot, in the order of their names."""
    places = ((name, feature.parts[slot]) for name, feature in all_features().items() if slot in feature.parts)
    return [_import_part(name, place) for name, place in places]


def has_part(slot: str) -> bool:
    """Return True if a feature adds something at a slot, without importing it."""
    return any(slot in feature.parts for feature in all_features().values())


def find_part(slot: str) -> Any:
    """Return what a feature adds at a slot that takes one part; None if no feature does."""
    return next(iter(find_parts(slot)), None)


def _import_part(feature: str, place: str) -> Any:
    module, _, name = place.partition(":")
    imported = _import(f"{feature}.{module}")
    return getattr(imported, name) if name else imported


def list_command_modules() -> dict[str, str]:
    """Return the modules of the commands of features, by the names of the commands."""
    return {
        to_command(module): f"{_PACKAGE}.{name}.commands.{module}"
        for name, feature in all_features().items()
        for module in feature.commands
    }


def to_command(module: str) -> str:
    """Return the name of a command: an underscore is a hyphen, a trailing one allows names such as `import_`."""
    return module.rstrip("_").replace("_", "-")


def list_rule_modules() -> list[str]:
    """Return the modules of the rules of features."""
    return [f"{_PACKAGE}.{name}.rules.{module}" for name, feature in all_features().items() for module in feature.rules]


def read_shipped() -> dict[str, list[str]]:
    """Return the features that jobgen ships, with their commands."""
    with open(SHIPPED, encoding="utf-8") as file:
        return {name: commands for name, *commands in map(str.split, file)}


def is_as_shipped() -> bool:
    """Return True if this installation has the features that jobgen ships, and no others."""
    return list(read_shipped()) == list_folders()


def find_missing_feature(command: str) -> str:
    """Return the feature that a command of jobgen needs and this installation lacks; empty if there is none."""
    for name, commands in read_shipped().items():
        if command in commands and name not in all_features():
            # It may be there, and need another one that is not.
            needs = _import(name).FEATURE.needs if name in list_folders() else ()
            return next((each for each in needs if each not in list_folders()), name)
    return ""
