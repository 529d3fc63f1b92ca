"""The formats of a report: one module each, named after its format and found by listing this folder.

A module has `FORMAT`, which describes it for the documentation, and `render`, which writes a report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

from jobgen.model.named_tuple import NamedTuple
from jobgen.report import Report

AUTO = "auto"


class FormatInfo(NamedTuple):
    """What the documentation says about a format."""

    audience: str
    """Who or what reads it."""
    grouping: str
    """How it shows a finding that several environments share."""
    suppressed: str
    """How it shows suppressed findings."""
    needs_rule_texts: bool = False
    """Whether it contains the documentation of the rules."""
    names_files_from_top: bool = False
    """Whether paths are those from the top of the Git repository, because a forge reads them."""


def format_names() -> list[str]:
    """Return the names of all formats."""
    names = (name.removesuffix(".py") for name in os.listdir(__path__[0]))
    return sorted(name for name in names if not name.startswith(("_", ".")))


def describe(name: str) -> FormatInfo:
    """Return the description of a format."""
    return cast(FormatInfo, _import(name).FORMAT)


def render(name: str, report: Report) -> str:
    """Write the report in a format. Only the module of that format is imported."""
    write: Callable[[Report], str] = _import(name).render
    return write(report)


def _import(name: str) -> Any:
    return import_module(f"{__name__}.{name}")


def resolve(name: str, environ: Mapping[str, str]) -> str:
    """Return the format that `auto` stands for; GitLab reads a file and not the log, so its log is text."""
    if name != AUTO:
        return name
    return "github" if environ.get("GITHUB_ACTIONS") == "true" else "text"
