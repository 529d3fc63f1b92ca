"""The lock of a rendered environment: which files are ours, what each was made from, and by which jobgen."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.model.lazy_re import lazy_pattern

LOCK = "jobgen.lock.json"
"""Names the files of an environment that are ours; everything else in its folder is somebody else's."""

KUSTOMIZATION = "kustomization.yaml"
ATTRIBUTES = ".gitattributes"

# What we write is a file in the folder of a namespace, or one of two by name; a lock that lists anything else was not
# written by us.
_OURS = lazy_pattern(
    rf"[^./\\\0][^/\\\0]*/[^./\\\0][^/\\\0]*\.(?:yaml|json)\Z|{KUSTOMIZATION}\Z|{re.escape(ATTRIBUTES)}\Z"
)
_ENTRY = lazy_pattern(r'^ *("[^"\n]*"): "([0-9a-f]{64})",?$', re.MULTILINE)
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Origin(NamedTuple):
    """What an environment was made from: digests of its layers and, by file, of jobs; and the version of jobgen."""

    tool: str = ""
    layers: str = ""
    jobs: Mapping[str, str] = _NOTHING


class LockFile(NamedTuple):
    """The files of an environment with their digests, and what they were made from."""

    files: Mapping[str, str] = _NOTHING
    origin: Origin = Origin()

    def text(self) -> str | None:
        """The lock as it stands on disk; where nothing is left, there is none."""
        if not self.files:
            return None
        tool, layers, jobs = self.origin
        made = {"tool": tool, "layers": layers, "jobs": dict(sorted(jobs.items()))}
        known = {name: value for name, value in made.items() if value}
        return json.dumps({"version": 1, **known, "files": dict(sorted(self.files.items()))}, indent=2) + "\n"


def parse_lock(text: str) -> LockFile | None:
    """The lock that a text is, even one that Git could not merge; None if it does not say which files are ours."""
    if "\n<<<<<<< " in f"\n{text}":
        # What either side lists is ours.
        return LockFile(_ours({str(json.loads(path)): digest for path, digest in _ENTRY.findall(text)}))
    try:
        read = json.loads(text)
        files, jobs = read["files"], read.get("jobs", {})
        known = read["version"] == 1 and all(isinstance(value, str) for value in (*files.values(), *jobs.values()))
        origin = Origin(str(read.get("tool", "")), str(read.get("layers", "")), _ours(jobs))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return LockFile(_ours(files), origin) if known else None


def _ours(files: Mapping[str, str]) -> dict[str, str]:
    return {path: digest for path, digest in files.items() if _OURS.match(path)}


def is_object_path(path: str) -> bool:
    """Whether a file of the tree holds an object, rather than something about objects."""
    return "/" in path


def compute_digest(text: str) -> str:
    """What tells a text from all others."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
