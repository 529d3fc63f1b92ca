"""Setting values in a tree of our own making."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Node
from jobgen.model.path import NamedItem, Step


def set_path(tree: dict[str, Node], path: tuple[Step, ...], value: Node) -> None:
    """Set a value in a tree of our own making, opening maps and named list items on the way."""
    node: Any = tree
    for step, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(step, NamedItem):
            item = next((item for item in node if isinstance(item, dict) and item.get(step.field) == step.value), None)
            if item is None:
                item = {step.field: step.value}
                node.append(item)
            node = item
        elif following is None:
            # Two of our fields may share a map: what is already there stays.
            node[step] = (
                {**node[step], **value} if isinstance(node.get(step), dict) and isinstance(value, dict) else value
            )
        else:
            wanted = list if isinstance(following, NamedItem) else dict
            # A kind may map two fields to a value and to a part of it; the part wins.
            node[step] = node[step].copy() if isinstance(node.get(step), wanted) else wanted()
            node = node[step]
