"""Templates: text that a program turns into YAML, and that is no YAML, or no object, before."""

from __future__ import annotations

import re

from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import TEMPLATE, Taken
from jobgen.yamlio.read import read_shared

# What templates have, and shell scripts inside of objects too: it decides nothing alone.
_VARIABLE = lazy_pattern(rb"\$\{[A-Za-z_]")
_LINE = lazy_pattern(rb"\n[ \t]*+(?:\$[A-Za-z_]|<?%)")
# Statements of Go, Helm and Jinja templates on a line of their own.
_STATEMENT = lazy_pattern(
    rb"^[ \t]*(?:\{\{-?[ \t]*(?:/\*|if|else|end|range|with|define|include|template|block|toYaml|tpl)\b|\{%-?[ \t]*\w)",
    re.MULTILINE,
)
_PATHS = (
    (lazy_pattern(r"(?:\A|/)roles/[^/]+/templates/"), "it is a Jinja template of an Ansible role"),
    (lazy_pattern(r"[^{]*\{\{[^/{}]*\}\}"), "its path is that of a project template"),
    (lazy_pattern(r"\.(?:j2|tmpl|tpl|gotmpl|template)\.(?:ya?ml|json)\Z"), "its name is that of a template"),
)
_OPENSHIFT = lazy_pattern(rb"^[\"' ]*kind[\"']?:[ \t]*[\"']?Template[\"']?[ \t,]*\r?$", re.MULTILINE)
_OBJECTS = lazy_pattern(rb"^[\"' ]*objects[\"']?:", re.MULTILINE)
_NEAR = 1
"""How many lines a YAML error may be away from the text that causes it."""


def recognize_template(path: str, content: bytes) -> Taken | None:
    """Return why a file is a template; None if it can be read as it is."""
    for pattern, why in _PATHS:
        if pattern.search(path):
            return Taken(TEMPLATE, why)
    if b"Template" in content and _OPENSHIFT.search(content) and _OBJECTS.search(content):
        return Taken(TEMPLATE, "it is a Template of OpenShift, which `oc process` fills in")
    # Job specs have expressions of their own.
    if not _has_marker(content) or b"jobgen.dev/" in content:
        return None
    for finding in read_shared(content, path).findings:
        cause = _find_cause(finding, content)
        if cause:
            return Taken(TEMPLATE, f"line {finding.location.line} is template text (`{cause}`)")
    return None


def _has_marker(text: bytes) -> bool:
    """Return True if a text may be part of a template. Most texts are searched for four words, and for no pattern."""
    if b"{{" in text or b"{%" in text:
        return True
    has_line = (b"$" in text or b"%" in text) and _LINE.search(b"\n" + text) is not None
    return has_line or (b"${" in text and _VARIABLE.search(text) is not None)


def _find_cause(finding: Finding, content: bytes) -> str:
    """Return the template text that makes a file invalid; empty if something else does."""
    if finding.rule not in ("template-text", "yaml-syntax", "not-a-mapping"):
        return ""
    lines = content.split(b"\n")
    line = finding.location.line - 1
    near = lines[max(line - _NEAR, 0) : line + _NEAR + 1]
    for text in (lines[line : line + 1], near):
        for each in text:
            if _has_marker(each):
                return each.strip().decode("utf-8", "replace")[:60]
    if finding.rule == "template-text":
        return finding.message
    statement = _STATEMENT.search(content)
    return statement[0].strip().decode("utf-8", "replace") if statement else ""
