"""The values of a release, each with the line that sets it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from jobgen.features.helm.charts import VALUES
from jobgen.features.helm.subcharts import list_subcharts
from jobgen.features.helm.template_text import ANY_ITEM, ANY_KEY, Path
from jobgen.features.helm.uses import Use, Values
from jobgen.features.helm.value_reads import Read
from jobgen.model.data import Node
from jobgen.repo.files import File

_GLOBAL = "global"
Layers = list[Any]
"""The values at one place: those that go first, before those that they are merged with."""


class ValueTree:
    """The values of a use, each with the line that sets it."""

    def __init__(self, use: Use) -> None:
        self._use = use
        chart = use.chart
        own = Values(File(chart.origins.get(VALUES, VALUES), chart.files.get(VALUES, b"")))
        layers = (*(use.base or (own,)), *use.values, *use.given)
        self.trees: Layers = [tree for each in reversed(layers) for tree in _list_read(each)]
        self._inner: dict[Path, Layers] = {(): self.trees}

    def find(self, path: Sequence[str | int], chart: Path = ()) -> list[Node]:
        """Return the values at a path of a chart, by the keys of its values: several for the items of a list."""
        layers = self._find_layers(chart)
        if path[:1] == (_GLOBAL,):
            # What the charts around a chart say goes first.
            layers = [{_GLOBAL: each} for depth in range(len(chart) + 1) for each in self._list_globals(chart[:depth])]
        return [each[0] for each in _walk(layers, path)]

    def find_read(self, wanted: Read) -> list[Node]:
        """Return the values that a template reads."""
        return self.find(wanted.path, wanted.chart)

    def _list_globals(self, chart: Path) -> Layers:
        return next(_walk(self._find_layers(chart), (_GLOBAL,)), [])

    def _find_layers(self, chart: Path) -> Layers:
        """Return the values of a chart in others: those that these give to it, and its own."""
        if chart not in self._inner:
            above = self._find_layers(chart[:-1])
            given = next(_walk(above, chart[-1:]), [])
            files, folder = self._use.chart.files, ""
            for key in chart:
                folder = next((each.folder for each in list_subcharts(files, folder) if each.key == key), "?/")
            path = posixpath.join(folder, VALUES)
            own = Values(File(self._use.chart.origins.get(path, path), files.get(path, b"")))
            self._inner[chart] = [*given, *_list_read(own)]
        return self._inner[chart]

    def find_key(self, path: Path) -> str | None:
        """Return the key at a path in the layer that decides about it; None if no layer has it."""
        for tree in self.trees:
            above = next(_walk([tree], path[:-1]), [None])[0]
            if isinstance(above, dict) and path[-1] in above:
                keys: list[str] = [key for key in above if key == path[-1]]
                return keys[0]
        return None


def _list_read(values: Values) -> Layers:
    found = values.read()
    return [] if found is None else [found]


def _walk(layers: Layers, path: Sequence[str | int]) -> Iterator[Layers]:
    """Yield the layers at a path; a list, and a value that is no mapping, replaces those below it."""
    if not path:
        if layers:
            yield layers
        return
    step, rest = path[0], path[1:]
    first = layers[0] if layers else None
    if isinstance(first, list):
        if step == ANY_ITEM:
            for item in first:
                yield from _walk([item], rest)
        elif str(step).isdecimal() and int(step) < len(first):
            yield from _walk([first[int(step)]], rest)
    if not isinstance(first, dict):
        return
    end = next((at for at, each in enumerate(layers) if not isinstance(each, dict)), len(layers))
    merged = layers[:end]
    if step not in (ANY_ITEM, ANY_KEY):
        yield from _walk([each[step] for each in merged if step in each], rest)
        return
    # Templates see the keys of a mapping in their order.
    keys = {str(key): key for each in reversed(merged) for key in each}
    for name in sorted(keys):
        yield from _walk([keys[name]] if step == ANY_KEY else [each[name] for each in merged if name in each], rest)
