"""The charts in a chart, and the values that helm gives to them: conditions and tags turn some of them off."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.helm.charts import METADATA, SCHEMA, VALUES, Chart, read_fields, read_name
from jobgen.features.helm.uses import Use, Values, merge_values, split_path
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import text_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import File

Fields = dict[str, Any]
Place = tuple[str, tuple[str, ...]]
"""The folder of a chart in another one, and the keys that lead to its values."""
_MAX_CHARTS = 200
_MAX_DEPTH = 6


class Subchart(NamedTuple):
    """A chart in another one."""

    folder: str
    """Where it is in the outermost chart, with a slash at the end; empty for the outermost one itself."""
    key: str
    """The key of its values: its alias or name."""
    entry: Mapping[str, Any]
    """What the chart around it says of it; empty if that does not name it."""

    def is_on(self, values: Mapping[str, Any]) -> bool:
        """Return True if the values of the chart around it turn it on: by its condition, else by its tags."""
        for path in text_of(self.entry.get("condition")).split(","):
            found = _find(values, path.strip().split("."))
            if isinstance(found, bool):
                return found
        tags = as_mapping(values.get("tags"))
        given = [
            tags[each] for each in map(text_of, as_list(self.entry.get("tags"))) if isinstance(tags.get(each), bool)
        ]
        return not given or any(given)


def _find(values: Any, steps: list[str]) -> Any:
    for step in steps:
        values = values.get(step) if isinstance(values, dict) else None
    return values


def list_subcharts(files: Mapping[str, bytes], folder: str = "") -> list[Subchart]:
    """Return the charts that are directly in a chart, each once for each of its aliases."""
    inside = f"{folder}charts/"
    metadata = read_metadata(files, folder)
    entries = list(map(as_mapping, as_list(metadata.get("dependencies"))))
    if not entries and f"{folder}requirements.yaml" in files:
        entries = list(map(as_mapping, as_list(_read(files, f"{folder}requirements.yaml").get("dependencies"))))
    found: list[Subchart] = []
    for path in sorted(files):
        if not path.startswith(inside) or path[len(inside) :].count("/") != 1 or posixpath.basename(path) != METADATA:
            continue
        place = path[: -len(METADATA)]
        name = read_name(read_metadata(files, place))
        named = [each for each in entries if read_name(each) == name]
        found += [Subchart(place, read_name(each, "alias") or name, each) for each in named or [{}]]
    return found[:_MAX_CHARTS]


def list_charts(files: Mapping[str, bytes], folder: str = "", keys: tuple[str, ...] = ()) -> Iterator[Place]:
    """Yield the folders of a chart and of those in it, with the keys that lead to their values."""
    yield folder, keys
    if len(keys) < _MAX_DEPTH and any(path.startswith(f"{folder}charts/") for path in files):
        for each in list_subcharts(files, folder):
            yield from list_charts(files, each.folder, (*keys, each.key))


def read_metadata(files: Mapping[str, bytes], folder: str = "") -> Mapping[str, Any]:
    """Return the metadata of a chart in others."""
    return _read(files, f"{folder}{METADATA}")


def _read(files: Mapping[str, bytes], path: str) -> Fields:
    found: Any = read_fields(File(path, files[path])) if path in files else {}
    return found if isinstance(found, dict) else {}


class ChartValues(NamedTuple):
    """A chart that is on, with its values."""

    chart: Subchart
    path: tuple[str, ...]
    """Where its values are in those of the outermost chart."""
    values: Fields
    schema: bytes
    """Empty if it has none."""


def list_values(files: Mapping[str, bytes], given: Fields, own: Fields | None = None) -> list[ChartValues]:
    """Return a chart and all charts in it that are on, with the values that helm checks and renders them with.

    `given` are those of a release, over `own`, which replace those of the chart. No charts are returned if one of them
    gives values to the chart around it.
    """
    found: list[ChartValues] = []
    top = Subchart("", "", {})
    if _coalesce(files, top, (), given, found, own) is None:
        return []
    return found


def _coalesce(
    files: Mapping[str, bytes],
    chart: Subchart,
    path: tuple[str, ...],
    given: Fields,
    found: list[ChartValues],
    own: Fields | None = None,
) -> Fields | None:
    """Return the values of a chart with those of the charts in it; None if they are not certain."""
    if len(found) > _MAX_CHARTS or chart.entry.get("import-values"):
        return None
    merged = _merge(_read(files, f"{chart.folder}{VALUES}") if own is None else own, given)
    at = len(found)
    found.append(ChartValues(chart, path, merged, files.get(f"{chart.folder}{SCHEMA}", b"")))
    for each in list_subcharts(files, chart.folder):
        below = merged.get(each.key)
        if not each.is_on(merged) or not isinstance(below, (dict, type(None))):
            continue
        shared = {"global": _merge(as_mapping((below or {}).get("global")), as_mapping(merged.get("global")))}
        inner = _coalesce(files, each, (*path, each.key), {**(below or {}), **shared}, found)
        if inner is None:
            return None
        merged = {**merged, each.key: inner}
    found[at] = found[at]._replace(values=merged)
    return merged


def _merge(fields: Mapping[str, Any], over: Mapping[str, Any]) -> Fields:
    """Return values with others over them; null over a value removes it."""
    merged = dict(fields)
    for key, value in over.items():
        known = merged.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[key] = _merge(known, value)
        elif value is None and known is not None:
            del merged[key]
        else:
            merged[key] = value
    return merged


class Optional(NamedTuple):
    """A chart in another one that no values turn on."""

    name: str
    switch: str
    """What turns it on: its condition or tags."""


def list_optional(chart: Chart, uses: Sequence[Use]) -> list[Optional]:
    """Return the charts in a chart that all of its uses turn off."""
    if not any(path.startswith("charts/") and path.endswith(f"/{METADATA}") for path in chart.files):
        return []
    off: dict[str, Optional] | None = None
    for use in uses:
        given = {split_path(argument.partition("=")[0]) for argument in use.options[1::2]}
        own = merge_all(use.base) if use.base else _read(chart.files, VALUES)
        own = _merge(own, merge_all(use.values))
        now = {each.folder + each.key: each for each in _list_off(chart.files, own, "", given)}
        off = {
            place: Optional(each.key, _name_switch(each)) for place, each in now.items() if off is None or place in off
        }
    return list((off or {}).values())


def _list_off(
    files: Mapping[str, bytes], values: Fields, folder: str, given: Collection[tuple[str, ...]]
) -> Iterator[Subchart]:
    """Yield the outermost charts that values turn off, unless an option may turn them on."""
    for each in list_subcharts(files, folder):
        below = values.get(each.key)
        if each.is_on(values):
            inner = _merge(_read(files, f"{each.folder}{VALUES}"), below if isinstance(below, dict) else {})
            yield from _list_off(files, inner, each.folder, ())
        elif not any(path[:1] in ((each.key,), ("tags",)) for path in given):
            yield each


def _name_switch(chart: Subchart) -> str:
    condition = text_of(chart.entry.get("condition"))
    tags = ", ".join(f"tags.{each}" for each in map(text_of, as_list(chart.entry.get("tags"))))
    return condition or tags


def merge_all(values: Sequence[Values]) -> Fields:
    """Return files of values as one, the later over the earlier."""
    merged: Fields = {}
    for each in values:
        merged = merge_values(merged, read_fields(each.file))
    return merged
