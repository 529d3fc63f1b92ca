"""Inputs and expected outputs of tests: they are compared, not applied, and may be wrong on purpose."""

from __future__ import annotations

import re

from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import TEST_DATA, Taken

# Folders that test runners read and build tools leave out.
_FOLDERS = frozenset(("__fixtures__", "__snapshots__", "golden", "goldens", "test-data", "test_data", "testdata"))
_GOLDEN_NAME = lazy_pattern(
    r"\.(?:golden|snap|snapshot)\.(?:ya?ml|json)\Z|\A(?:golden|expected)[-_.]|[-_.](?:golden|expected)\."
)
# The steps of kuttl, and the files of Chainsaw that are compared with the cluster.
_ASSERTION_NAME = lazy_pattern(
    r"\A\d+-(?:assert|errors)\b|\A(?:chainsaw-)?assert(?:[-_.]|\Z)|\Aerrors?\.ya?ml\Z|[-_](?:assert|errors)\.ya?ml\Z"
)
# Part of every matcher: most files have none of them, and need no pattern.
_SIGNS = (b"$glob:", b"$pattern:", b"$regex:", b"$var:", b"$ignore", b"$strict")
# Values that stand for any text, as comparers of golden files write them.
_MATCHER = lazy_pattern(
    rb"[:-][ \t]{1,8}[\"']?(?:\$(?:glob|pattern|regex|var):|\$(?:ignore|strict)[\"']?[ \t]{0,8}\r?$)"
    rb"|^[ \t]{0,80}[\"']?\$(?:ignore|strict)[\"']?:",
    re.MULTILINE,
)


def recognize_by_path(path: str) -> Taken | None:
    """Return what a path says about a file of a test."""
    *folders, name = path.split("/")
    found = _FOLDERS.intersection(folders)
    if found:
        return Taken(TEST_DATA, f"it is in a folder `{min(found)}`")
    if _GOLDEN_NAME.search(name):
        return Taken(TEST_DATA, "its name is that of an expected output")
    if _ASSERTION_NAME.search(name):
        return Taken(TEST_DATA, "its name is that of an assertion of kuttl or Chainsaw")
    return None


def recognize_by_content(content: bytes) -> Taken | None:
    """Return what matchers in a file say about it."""
    match = _MATCHER.search(content) if any(sign in content for sign in _SIGNS) else None
    if match is None:
        return None
    matcher = match[0].strip(b" \t:\"'-").decode("ascii")
    return Taken(TEST_DATA, f"its values have matchers of a test (`{matcher}`)")
