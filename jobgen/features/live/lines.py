"""What drift says, in lines: the formats for people differ only in how they write them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.live.drift import Difference, Drift
from jobgen.model.finding import pluralize

_TITLES = {
    "missing": "Missing in the cluster",
    "changed": "Changed in the cluster",
    "stale": "Stale runs, which nothing renders any more",
    "extra": "Only in the cluster",
}
_MOST_SHOWN = 80


def summarize(drifts: Sequence[Drift]) -> str:
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


def list_sections(drift: Drift) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of an environment that have something to say, each with a title and lines."""
    for state, title in _TITLES.items():
        lines = [line for each in drift.differences if each.state == state for line in _list_lines(each)]
        if lines:
            yield title, lines
    if drift.unread:
        yield "Not read", list_reasons(drift.unread)


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
