"""What drift says: sections of lines for people, and data for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.live.drift import Difference, Drift
from jobgen.model.finding import pluralize
from jobgen.reports.sections import EnvironmentSections, Section, SectionReport

VERSION = 1
"""The version of the data."""
_TITLES = {
    "missing": "Missing in the cluster",
    "changed": "Changed in the cluster",
    "stale": "Stale runs, which nothing renders any more",
    "extra": "Only in the cluster",
}
_MOST_SHOWN = 80


def describe(drifts: Sequence[Drift]) -> SectionReport:
    """Return what differs, as sections and as data; docs/live.md describes the data."""
    environments = [
        {
            "environment": drift.environment,
            "compared": drift.compared,
            "differences": list(map(_to_plain, drift.differences)),
            "unread": dict(drift.unread),
            "leftOut": [each.describe() for each in drift.left_out],
        }
        for drift in drifts
    ]
    parts = [EnvironmentSections(drift.environment, list(_list_sections(drift))) for drift in drifts]
    left_out = list(dict.fromkeys(each.describe() for drift in drifts for each in drift.left_out))
    data = {"version": VERSION, "environments": environments}
    return SectionReport("Drift", _summarize(drifts), parts, left_out, data)


def _summarize(drifts: Sequence[Drift]) -> str:
    """Return what differs, in one line."""
    found = [each for drift in drifts for each in drift.differences]
    counts = [f"{count} {state}" for state in _TITLES if (count := sum(each.state == state for each in found))]
    unread = sum(len(drift.unread) for drift in drifts)
    counts += [f"{pluralize(unread, 'kind')} not read"] if unread else []
    held = sum(each.gpus for each in found if each.state == "stale")
    counts += [f"stale runs hold {pluralize(held, 'GPU')}"] if held else []
    compared = pluralize(sum(drift.compared for drift in drifts), "object")
    days = [f"; state captured on {drift.day}" for drift in drifts if drift.day][:1]
    return f"{compared} compared: {', '.join(counts) or 'no drift'}{''.join(days)}"


def _list_sections(drift: Drift) -> Iterator[Section]:
    """Yield the sections of an environment that have something to say, each with a title and lines."""
    for state, title in _TITLES.items():
        lines = [line for each in drift.differences if each.state == state for line in _list_lines(each)]
        if lines:
            yield Section(title, lines)
    if drift.unread:
        yield Section("Not read", list_reasons(drift.unread))


def list_reasons(unread: Mapping[str, str]) -> list[str]:
    """Return a line for each reason for which something could not be read."""
    names: dict[str, list[str]] = {}
    for name, reason in sorted(unread.items()):
        names.setdefault(reason, []).append(name)
    return [f"{', '.join(several)}: {reason}" for reason, several in names.items()]


def _list_lines(each: Difference) -> Iterator[str]:
    place = f"{each.location}: " if each.location else ""
    held = f", holds {pluralize(each.gpus, 'GPU')}" if each.gpus else ""
    name = f"{each.namespace}/{each.name}" if each.namespace else each.name
    yield f"{place}{each.kind} {name}{held}: {each.effect}"
    for field in each.fields:
        yield f"  {field.field}: {_show(field.live)} → {_show(field.wanted)} ({field.location})"


def _show(value: object) -> str:
    text = "(none)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def _to_plain(each: Difference) -> dict[str, Any]:
    found: dict[str, Any] = {
        "state": each.state,
        "apiVersion": each.api_version,
        "kind": each.kind,
        "namespace": each.namespace,
        "name": each.name,
        "effect": each.effect,
        "gpus": each.gpus,
    }
    if each.location:
        found |= {"file": each.location.file, "line": each.location.line}
    found["fields"] = [
        {
            "field": field.field,
            "live": field.live,
            "wanted": field.wanted,
            "file": field.location.file,
            "line": field.location.line,
        }
        for field in each.fields
    ]
    return found
