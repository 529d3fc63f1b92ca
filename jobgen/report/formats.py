"""The formats of a report, by the names that users give them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from jobgen.report import Report

AUTO = "auto"
FORMATS: dict[str, str] = {
    "text": "full",
    "concise": "concise",
    "json": "json",
    "sarif": "sarif",
    "junit": "junit",
    "github": "github",
    "gitlab": "gitlab",
    "tap": "tap",
}
"""Each format and its module; only the one that is asked for is imported."""


def chosen(name: str, environ: Mapping[str, str]) -> str:
    """The format that is meant. GitLab reads a file, not the log, so that people get text there."""
    if name != AUTO:
        return name
    return "github" if environ.get("GITHUB_ACTIONS") == "true" else "text"


def render(name: str, report: Report, *, width: int = 80, colour: bool = False) -> str:
    """The report in one of the formats; width and colour are for people."""
    module = import_module(f"jobgen.report.{FORMATS[name]}")
    return cast(str, module.render(report, width=width, colour=colour) if name == "text" else module.render(report))
