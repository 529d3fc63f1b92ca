"""A tree with places is, however it is read, the tree with all its locations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from jobgen.model.data import TracedKey, TracedScalar, untraced
from jobgen.yamlio.read import read, search_text

TEXT = """\
kind: Job
metadata:
  name: train
  labels: {app: x, 'tier': "y"}
  annotations: {}
spec:
  # a comment
  containers:
  - name: main
    args: [a, 1]
    command:
    - |
      kind: no
      metadata: no
  - name: other
    ports:
    - 80
    empty: []
    nothing:
"""

READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda tree: tree["metadata"]["labels"]["tier"],
    "get": lambda tree: tree.get("metadata").get("name"),
    "keys": list,
    "views": lambda tree: [*tree.keys(), *tree.values(), *tree.items()],
    "reversed": lambda tree: list(reversed(tree)),
    "unpacked": lambda tree: {**tree, "more": 1},
    "arguments": lambda tree: dict(**tree),
    "copied": dict,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "own copy": lambda tree: tree.copy(),
    "united": lambda tree: [tree | {}, {} | tree],
    "changed": lambda tree: [tree.setdefault("kind", 1), tree.pop("metadata"), tree],
    "set": lambda tree: [tree.update(kind=2), tree],
    "sorted": sorted,
    "updated": lambda tree: [found := {}, found.update(tree)],
    "whole": lambda tree: tree,
}


def read_placed() -> Any:
    [document] = read(TEXT.encode(), "case.yaml").documents
    text = search_text("case.yaml", document)
    assert text is not None
    return text.add_places((), "")


def read_located() -> Any:
    [document] = read(TEXT.encode(), "case.yaml", traced=True).documents
    return document.data


def show(value: Any) -> Any:
    """What is known about each node of a value."""
    if isinstance(value, dict):
        return {"mapping": [(show(key), show(child)) for key, child in value.items()]}
    if isinstance(value, (list, tuple)):
        return [getattr(value, "location", None), getattr(value, "item_locations", None), *map(show, value)]
    if isinstance(value, TracedScalar):
        return value.value, value.location, value.written
    return (str(value), value.location, value.written) if isinstance(value, TracedKey) else value


@pytest.mark.parametrize("read_part", READS.values(), ids=READS)
def test_what_is_read_has_locations(read_part: Callable[[Any], Any]) -> None:
    assert show(read_part(read_placed())) == show(read_part(read_located()))


def test_nothing_is_read_to_tell_what_a_mapping_contains() -> None:
    tree = read_placed()

    assert len(tree) == 3
    assert tree
    assert "spec" in tree
    assert "status" not in tree


def test_data_without_places_is_the_data() -> None:
    assert untraced(read_placed()) == untraced(read_located())


def test_nodes_are_the_same_each_time() -> None:
    tree = read_placed()

    assert tree["metadata"]["name"] is tree["metadata"]["name"]
    assert tree["spec"]["containers"][0] is tree["spec"]["containers"][0]
