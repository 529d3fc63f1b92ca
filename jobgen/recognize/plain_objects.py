"""Texts and names of files that are plainly objects: nothing in them is a sign of anything else.

Most files of most folders are. What is said here is a shortcut: a file that is not plain may still be an object.
"""

from __future__ import annotations

import re

from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize.kustomize_files import DIRECTIVES
from jobgen.recognize.not_applied import MATCHER_SIGNS, has_marker, is_pod

# After comments, the first key is that of an object.
_START = lazy_pattern(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]*\r?\n)*(?:apiVersion|kind):[ \t]")
# A pattern that begins with letters is found much faster than one that begins with `^`.
_UNUSUAL_VERSION = lazy_pattern(rb"apiVersion(?!:[ \t]+(?:[a-z][a-z0-9.-]*/)?v\d+(?:(?:alpha|beta)\d+)?[ \t]*\r?\n)")
_SIGNS = (*(each.encode() for each in DIRECTIVES), *MATCHER_SIGNS)
# Words in the names of patches, templates, expected outputs, assertions and bundles.
_UNUSUAL_NAME = lazy_pattern(
    r"assert|clusterserviceversion|error|expected|golden|patch|snap|\{\{|\.(?:j2|tmpl|tpl|gotmpl|template)\.",
    re.IGNORECASE,
)


def is_plain_name(name: str) -> bool:
    """Return True if the name of a file says nothing about it."""
    return _UNUSUAL_NAME.search(name) is None


def is_plain_text(content: bytes) -> bool:
    """Return True if a text begins as an object does, and has no sign of a template, a patch, a test or a program."""
    if b"metadata" not in content or _START.match(content) is None or _UNUSUAL_VERSION.search(content):
        return False
    # OpenShift has a kind for templates; controllers complete some assets, and Spark some pods.
    if b"Template" in content or b"filled" in content.lower() or is_pod(content) or has_marker(content):
        return False
    if b"$" in content:
        for sign in _SIGNS:
            if sign in content:
                return False
    return True
