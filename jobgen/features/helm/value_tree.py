"""The values of a release, each with the line that sets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobgen.features.helm.charts import VALUES
from jobgen.features.helm.template_text import ANY_ITEM, Path
from jobgen.features.helm.uses import Use, Values
from jobgen.model.data import Node
from jobgen.repo.files import File
from jobgen.yamlio.read import read


class ValueTree:
    """The values of a use, each with the line that sets it."""

    def __init__(self, use: Use) -> None:
        chart = use.chart
        own = Values(File(chart.origins.get(VALUES, VALUES), chart.files.get(VALUES, b"")))
        trees: list[Any] = []
        for each in (*(use.base or (own,)), *use.values):
            if each.data is not None:
                trees.append(each.data)
            else:
                documents = read(each.file.content, each.file.path, traced=True).documents
                trees += [documents[0].data] if documents else []
        self.trees: Sequence[Any] = list(reversed(trees))

    def find(self, path: Path) -> list[Node]:
        """Return the values at a path in the layer that decides about it: several for the items of a list."""
        return next(filter(None, (_find_below([tree], path) for tree in self.trees)), [])

    def find_key(self, path: Path) -> str | None:
        """Return the key at a path in the layer that decides about it; None if no layer has it."""
        for tree in self.trees:
            above = next(iter(_find_below([tree], path[:-1])), None)
            if isinstance(above, dict) and path[-1] in above:
                keys: list[str] = [key for key in above if key == path[-1]]
                return keys[0]
        return None


def _find_below(nodes: Sequence[Node], path: Path) -> list[Node]:
    found = list(nodes)
    for step in path:
        if step == ANY_ITEM:
            found = [item for node in found for item in _list_items(node)]
        else:
            found = [node[step] for node in found if isinstance(node, dict) and step in node]
    return found


def _list_items(node: Node) -> list[Node]:
    return list(node) if isinstance(node, list) else list(node.values()) if isinstance(node, dict) else []
