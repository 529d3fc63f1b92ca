"""The schema of a chart's values: whether helm may read it, and what helm says that violates it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jobgen.features.helm.uses import Use
from jobgen.features.helm.value_tree import ValueTree
from jobgen.model.data import Location, location_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern

RULE, MISSING = "chart-values-invalid", "chart-value-missing"
_REFERENCES = ("$ref", "$id", "id", "$dynamicRef", "$recursiveRef")
_DRAFT = lazy_pattern(r"https?://json-schema\.org/(?:draft-0[467]/|draft/20(?:19-09|20-12)/)?schema#?\Z")
_VIOLATIONS = "values don't meet the specifications of the schema(s)"
# Up to Helm 3.17, the path of a value has points; since then, it is a JSON pointer, and details are indented.
_VIOLATION = lazy_pattern(r"(?m)^- (?:at '([^'\n]*)'|([^:\n]+)): ([^\n]+)$")
_REQUIRED = lazy_pattern(r"(?:(\S+) is required|missing propert(?:y|ies) '([^']+)'(?:, .*)?)\Z")
_MAX_VIOLATIONS = 50


def is_local(content: bytes) -> bool:
    """Return True if a schema refers to nothing but itself, so that helm reads and fetches nothing for it."""
    try:
        schema = json.loads(content)
    except (ValueError, RecursionError):
        return False
    pending: list[Any] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pending += node.values()
            named = (node.get(name) for name in _REFERENCES)
            if any(isinstance(each, str) and not each.startswith("#") for each in named):
                return False
            draft = node.get("$schema")
            if isinstance(draft, str) and not _DRAFT.match(draft):
                return False
        elif isinstance(node, list):
            pending += node
    return True


def find_violations(use: Use, message: str) -> list[Finding]:
    """Return the values of a use that violate the schema of the chart; none if the error of helm is another one."""
    if _VIOLATIONS not in message:
        return []
    values = ValueTree(use)
    return [_report(use, values, *found) for found in _list_violations(message)]


def _list_violations(message: str) -> Iterator[tuple[tuple[str, ...], str]]:
    for match in list(_VIOLATION.finditer(message))[:_MAX_VIOLATIONS]:
        if match[2] is None:
            steps = match[1].split("/")[1:]
            yield tuple(step.replace("~1", "/").replace("~0", "~") for step in steps), match[3]
        else:
            yield () if match[2] == "(root)" else tuple(match[2].split(".")), match[3]


def _report(use: Use, values: ValueTree, path: tuple[str, ...], text: str) -> Finding:
    reason = text.replace("`", "'")
    required = _REQUIRED.match(text)
    if required:
        name = ".".join((*path, required[1] or required[2]))
        severity = Severity.ERROR if use.is_definite else Severity.INFO
        message = f"`.Values.{name}` has no value, and the schema of the chart requires it, so nothing was checked"
        # What the chart's own values lack is the same fault with each file that does not set it.
        is_own = use.by is None and not use.is_definite and not values.find_key((*path, required[1]))
        at = Location(use.chart.metadata_file) if is_own and not path else _place(use, values, path)
        return Finding(MISSING, "meta", severity, message, at)
    severity = Severity.ERROR if use.is_definite else Severity.WARNING
    shown = f"`.Values.{'.'.join(path)}`" if path else "the values"
    message = f"{shown} does not fit the schema of the chart, so helm renders nothing: {reason}"
    return Finding(RULE, "gitops", severity, message, _place(use, values, path))


def _place(use: Use, values: ValueTree, path: tuple[str, ...]) -> Location:
    found = values.find_key(path) if path else None
    nearest = [*(each.file.path for each in use.values), use.chart.metadata_file][0]
    return location_of(found) or Location(nearest)
