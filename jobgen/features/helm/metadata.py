"""What is wrong with the metadata of a chart, so that helm does not read the chart: found without helm."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from jobgen.features.helm.charts import Chart
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import Location, location_of, text_of, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.read import read

RULE = "chart-metadata-invalid"
_TYPES = ("", "application", "library")
_NUMBERS = r"v?\d+(?:\.\d+){0,2}"
_VERSION = lazy_pattern(rf"{_NUMBERS}(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z")
_ALIAS = lazy_pattern(r"[a-zA-Z0-9_-]+\Z")


def find_metadata_faults(chart: Chart) -> list[Finding]:
    """Return what helm refuses in the metadata of a chart; none if it cannot be read as YAML, which is reported."""
    file = chart.tree.read(chart.metadata_file)
    documents = read(file.content, file.path, traced=True).documents if file.finding is None else ()
    # helm reads the first document.
    return [_report(chart, *found) for found in _list_faults(documents[0].data)] if documents else []


def _list_faults(fields: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong, with the node that is."""
    name, version, kind = (_write(fields.get(key)) for key in ("name", "version", "type"))
    if not name:
        yield "has no `name`, which helm requires; write it", fields.get("name")
    elif name in (".", "..") or posixpath.basename(name) != name:
        yield f"has the name `{name}`, and helm accepts none with `/`; write a plain name", fields.get("name")
    if not version:
        yield "has no `version`, which helm requires; write one, such as `0.1.0`", fields.get("version")
    elif not _VERSION.match(version):
        yield f"has the version `{version}`, which is not one of SemVer; write one, such as `0.1.0`", fields["version"]
    if kind not in _TYPES:
        yield f"has the type `{kind}`; write `application` or `library`", fields.get("type")
    seen: set[str] = set()
    for each in map(as_mapping, as_list(fields.get("dependencies"))):
        alias = text_of(each.get("alias"))
        key, node = alias or text_of(each.get("name")), each.get("alias") or each.get("name")
        if alias and not _ALIAS.match(alias):
            yield f"has a dependency with the alias `{alias}`; write letters, digits, `-` and `_` only", node
        elif key in seen:
            yield f"has two dependencies with the name or alias `{key}`; write another `alias`", node
        seen.add(key)


def _write(node: Any) -> str:
    """Return the text of a field; helm reads a number as one."""
    value = value_of(node)
    return "" if value is None or isinstance(value, (dict, list)) else str(value)


def _report(chart: Chart, problem: str, node: Any) -> Finding:
    message = f"the chart {problem}; helm reads no chart like this, so nothing of it was checked"
    place = location_of(node) or Location(chart.metadata_file)
    return Finding(RULE, "gitops", Severity.ERROR, message, place)
