"""The formats of a report: one module each, named after its format and found by listing this folder.

A module has `FORMAT`, which describes it for the documentation, and `render`, which writes a report.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from jobgen.model.features import list_modules
from jobgen.model.named_tuple import NamedTuple

AUTO = "auto"


class FormatInfo(NamedTuple):
    """What the documentation says about a format."""

    audience: str
    grouping: str
    """How it shows a finding that several environments share."""
    suppressed: str
    needs_rule_texts: bool = False
    """True if it contains the documentation of the rules."""
    names_files_from_top: bool = False
    """True if paths are those from the top of the Git repository, because a forge reads them."""


class Formats:
    """The formats of a package: one module each, named after its format, whose function `render` writes it."""

    def __init__(self, package: str) -> None:
        """Take `__name__` of the package."""
        self._package = package

    def names(self) -> list[str]:
        """Return the names of all formats."""
        return list_modules(self._package.removeprefix("jobgen."))

    def load(self, name: str) -> Any:
        """Return the module of a format; no other one is imported."""
        return import_module(f"{self._package}.{name}")

    def render(self, name: str, *values: Any) -> str:
        """Write values in a format."""
        return str(self.load(name).render(*values))


FORMATS = Formats(__name__)


def describe(name: str) -> FormatInfo:
    """Return the description of a format."""
    return cast(FormatInfo, FORMATS.load(name).FORMAT)


def resolve(name: str, environ: Mapping[str, str]) -> str:
    """Return the format that `auto` stands for; GitLab reads a file and not the log, so its log is text."""
    if name != AUTO:
        return name
    return "github" if environ.get("GITHUB_ACTIONS") == "true" else "text"
