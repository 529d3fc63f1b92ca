"""Captures of a cluster: the file in the folder of its state that says of which day they are."""

from __future__ import annotations

from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.commit import Folder
from jobgen.repo.named_paths import read_first

CAPTURE = "capture.yaml"
INDEX = "jobgen-capture"
"""The name of the ConfigMap in this file."""
_UNREAD = lazy_pattern(r"(?m)^  unread: \|-?\n((?:    \S+\n?)+)")
_DAY = lazy_pattern(r"""(?m)^  day: ["']?(\d{4}-\d\d-\d\d)["']?$""")


def read_capture_day(root: Folder, folder: str) -> str:
    """Return the day of the capture in a folder; empty if nothing was captured there."""
    found = read_first((root,), f"{folder}/{CAPTURE}") if folder else None
    day = _DAY.search(found.content.decode("utf-8", "replace")) if found else None
    return str(day[1]) if day else ""


def list_unread(root: Folder, folder: str) -> list[str]:
    """Return the resources that the capture in a folder could not read, such as `pytorchjobs.kubeflow.org`."""
    found = read_first((root,), f"{folder}/{CAPTURE}") if folder else None
    listed = _UNREAD.search(found.content.decode("utf-8", "replace")) if found else None
    return listed[1].split() if listed else []
