"""The features of this installation: each is a folder of `jobgen/features/`.

The core imports no feature. It asks here for commands, for rules, and for parts: functions that a feature adds at a
slot of the core, such as the section about queues in a diff. Commands and rules are found by their folders, parts by
the value `FEATURE`. All of them are imported when they are used.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

from jobgen.model.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NO_FEATURE = "this jobgen installation does not have the feature `{}`"
_PACKAGE = "jobgen.features"
HOME = os.path.dirname(os.path.dirname(__file__))
"""The folder of this package."""
_FOLDER = os.path.join(HOME, "features")


class Feature(NamedTuple):
    """What a feature adds, besides the commands and rules in its folders of these names."""

    parts: Mapping[str, str] = {}
    """What it adds at the slots of the core, each as `module:name`, or as a module."""
    needs: Sequence[str] = ()
    """Features that it imports; without one of them, it is not there either."""


def list_folders() -> list[str]:
    """Return the names of the folders of features, without importing them."""
    return sorted(name for name in os.listdir(_FOLDER) if os.path.isfile(os.path.join(_FOLDER, name, "__init__.py")))


@cache
def all_features() -> Mapping[str, Feature]:
    """Return the features of this installation by name, without those that need one that is not there."""
    found: dict[str, Feature] = {name: _import(name).FEATURE for name in list_folders()}
    while lacking := [name for name, feature in found.items() if not found.keys() >= set(feature.needs)]:
        for name in lacking:
            del found[name]
    return found


def _import(name: str) -> Any:
    return import_module(f"{_PACKAGE}.{name}")


def find_parts(slot: str) -> list[Any]:
    """Return what features add at a slot, in the order of their names."""
    found: list[Any] = []
    for name, feature in all_features().items():
        if slot in feature.parts:
            module, _, part = feature.parts[slot].partition(":")
            imported = _import(f"{name}.{module}")
            found.append(getattr(imported, part) if part else imported)
    return found


def has_part(slot: str) -> bool:
    """Return True if a feature adds something at a slot, without importing it."""
    return any(slot in feature.parts for feature in all_features().values())


def find_part(slot: str) -> Any:
    """Return what a feature adds at a slot that takes one part; None if no feature does."""
    return next(iter(find_parts(slot)), None)


def list_modules(package: str) -> list[str]:
    """Return the names of the modules and folders of a package of jobgen, such as `check.rules`; none without it."""
    # `pkgutil` would import half of the standard library.
    try:
        files = os.listdir(os.path.join(HOME, *package.split(".")))
    except FileNotFoundError:
        return []
    names = (name.removesuffix(".py") for name in files if name[0] != "_")
    return sorted(name for name in names if "." not in name)


def list_command_modules() -> dict[str, str]:
    """Return the modules of all commands, by the names of the commands."""
    # An underscore is a hyphen in the name of a command, and a last one allows names such as `import_`.
    packages = ("cli.commands", *(f"features.{name}.commands" for name in all_features()))
    return {
        module.rstrip("_").replace("_", "-"): f"jobgen.{package}.{module}"
        for package in packages
        for module in list_modules(package)
    }


def list_rule_modules() -> list[str]:
    """Return the modules of all rules, each in the folder of its category."""
    packages = ("check.rules", *(f"features.{name}.rules" for name in all_features()))
    categories = [f"{package}.{category}" for package in packages for category in list_modules(package)]
    return [f"jobgen.{category}.{name}" for category in categories for name in list_modules(category)]


def find_missing_feature(feature: str) -> str:
    """Return the feature that is missing if `feature` cannot be used: itself, or one that it needs."""
    if feature in all_features():
        return ""
    needs = _import(feature).FEATURE.needs if feature in list_folders() else ()
    return next((each for each in needs if each not in list_folders()), feature)
