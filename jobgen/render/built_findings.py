"""Findings of builds: several builds use one file, and a fault in it is reported once."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Related
from jobgen.repo.files import KUSTOMIZATION_NAMES

_MAX_NAMED = 3


def join_builds(builds: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """Return each finding once, with the builds that have it if they are in other folders than its file.

    A build is named by the file that says how to build it.
    """
    first: dict[tuple[object, ...], Finding] = {}
    files: dict[tuple[object, ...], dict[str, None]] = {}
    for file, findings in builds:
        for finding in findings:
            key = (finding.location, finding.rule, finding.message, finding.env)
            first.setdefault(key, finding)
            files.setdefault(key, {})[file] = None
    return [_name_builds(finding, list(files[key])) for key, finding in first.items()]


def _name_builds(finding: Finding, files: Sequence[str]) -> Finding:
    folders = [posixpath.dirname(file) for file in files]
    if any(not folder or finding.location.file.startswith(f"{folder}/") for folder in folders):
        return finding
    more = f" and {len(folders) - _MAX_NAMED} more" if len(folders) > _MAX_NAMED else ""
    named = ", ".join(f"`{_name_build(file)}`" for file in files[:_MAX_NAMED])
    related = Related(Location(files[0]), f"in the build of {named}{more}")
    return finding._replace(related=(*finding.related, related))


def _name_build(file: str) -> str:
    """Return the folder of a kustomization; another file may have several builds of other folders."""
    folder, name = posixpath.split(file)
    return folder if name in KUSTOMIZATION_NAMES else file
