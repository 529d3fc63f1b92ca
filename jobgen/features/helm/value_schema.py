"""The schema of a chart's values: whether helm may read it, and what helm says that violates it."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from jobgen.features.helm.charts import SCHEMA
from jobgen.features.helm.json_schema import Violation
from jobgen.features.helm.json_schema import find_violations as check_schema
from jobgen.features.helm.uses import Use, split_path
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
    """Return the values of a use that violate the schema of the chart; none if the error of helm is another one.

    They have the same words for all versions of helm, unless the schema says what jobgen does not know.
    """
    if _VIOLATIONS not in message:
        return []
    return check_values(use) or _report_all(use, _list_violations(message))


def check_values(use: Use) -> list[Finding]:
    """Return the values of a use that violate a schema of the chart or of one in it, as far as that is certain."""
    schemas = {path: content for path, content in use.chart.files.items() if posixpath.basename(path) == SCHEMA}
    if not any(map(is_local, schemas.values())):
        return []
    # Imported late: most charts have no schema, and most values fit it.
    from jobgen.features.helm.subcharts import list_values, merge_all

    base = merge_all(use.base) if use.base else None
    found: list[Violation] = []
    for each in list_values(use.chart.files, merge_all(use.values), base):
        if each.schema and is_local(each.schema):
            violations = check_schema(json.loads(each.schema), each.values)
            found += (violation._replace(path=(*each.path, *violation.path)) for violation in violations)
    given = [split_path(argument.partition("=")[0]) for argument in use.options[1::2]]
    certain = (each for each in found if not any(_concerns(each, path) for path in given))
    return _report_all(use, certain)


def _concerns(violation: Violation, path: Sequence[str]) -> bool:
    """Return True if a violation may not be one with a value that an option sets."""
    place = (*violation.path, violation.missing) if violation.missing else violation.path
    length = min(len(place), len(path))
    return place[:length] == tuple(path[:length])


def _report_all(use: Use, violations: Iterable[Violation]) -> list[Finding]:
    values = ValueTree(use)
    found = {(each.path, each.reason): each for each in violations}
    return [_report(use, values, each) for each in islice(found.values(), _MAX_VIOLATIONS)]


def _list_violations(message: str) -> Iterator[Violation]:
    for match in _VIOLATION.finditer(message):
        if match[2] is None:
            steps = match[1].split("/")[1:]
            path = tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)
        else:
            path = () if match[2] == "(root)" else tuple(match[2].split("."))
        required = _REQUIRED.match(match[3])
        yield Violation(path, match[3], (required[1] or required[2]) if required else "")


def _report(use: Use, values: ValueTree, violation: Violation) -> Finding:
    path, text, missing = violation
    reason = text.replace("`", "'")
    if missing:
        name = ".".join((*path, missing))
        severity = Severity.ERROR if use.is_definite else Severity.INFO
        message = f"`.Values.{name}` has no value, and the schema of the chart requires it, so nothing was checked"
        # What the chart's own values lack is the same fault with each file that does not set it.
        is_own = use.by is None and not use.is_definite and not values.find_key((*path, missing))
        at = Location(use.chart.metadata_file) if is_own and not path else _place(use, values, path)
        return Finding(MISSING, "meta", severity, message, at)
    severity = Severity.ERROR if use.is_definite else Severity.WARNING
    shown = f"`.Values.{'.'.join(path)}`" if path else "the values"
    verb = "does" if path else "do"
    message = f"{shown} {verb} not fit the schema of the chart, so helm renders nothing: {reason}"
    return Finding(RULE, "gitops", severity, message, _place(use, values, path))


def _place(use: Use, values: ValueTree, path: tuple[str, ...]) -> Location:
    found: Location | None = None
    # An item of a list has no key of its own, and a parameter has no place for its key.
    for length in range(len(path), 0, -1):
        value = next(iter(values.find(path[:length])), None)
        found = found or location_of(values.find_key(path[:length])) or location_of(value)
    nearest = [*(each.file.path for each in use.values), use.chart.metadata_file][0]
    return found or Location(nearest)
