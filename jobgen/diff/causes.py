"""Who wrote the values that changed: the line on each side that has the last word."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.compare import FieldPath
from jobgen.model.data import Data, Location, TracedKey, TracedList, TracedScalar, location_of, value_of
from jobgen.model.path import Named, Step
from jobgen.pipeline.environment import Rendered


class Cause(NamedTuple):
    """A line, and the layer that it belongs to."""

    location: Location
    layer: str


def causes(side: Snapshot, made: Rendered, paths: Iterable[FieldPath]) -> dict[FieldPath, Cause]:
    """Who wrote what stands at these paths of an object; what is not there has no cause."""
    traced = side.trace(made).object
    found = {path: _cause(traced, path, Cause(made.location, "")) for path in paths}
    return {path: cause for path, cause in found.items() if cause}


def _cause(node: Data, path: FieldPath, above: Cause) -> Cause | None:
    """The cause of the node itself, or of the nearest thing around it that somebody wrote."""
    key: Data = None
    for step in path:
        if isinstance(node, (TracedList, TracedScalar)):
            above = Cause(node.location, node.layer)
        key, node = _follow(node, step)
        if node is None:
            return None
        if type(key) is TracedKey:
            above = Cause(key.location, key.layer)
    if isinstance(node, (TracedScalar, TracedList)):
        return Cause(node.location, node.layer)
    # What the renderer put together has no line of its own; what is in it has.
    inside = None if type(key) is TracedKey else location_of(node)
    return Cause(inside, above.layer) if inside else above


def _follow(node: Data, step: Step) -> tuple[Data, Data]:
    if isinstance(node, dict):
        return next(((key, child) for key, child in node.items() if key == step), (None, None))
    for place, item in enumerate(node if isinstance(node, list) else ()):
        if place == step or (isinstance(step, Named) and _has(item, step)):
            # An item begins where its key stands.
            return _key_of(item), item
    return None, None


def _has(item: Data, step: Named) -> bool:
    return isinstance(item, dict) and str(value_of(item.get(step.field))) == step.value


def _key_of(item: Data) -> Data:
    return next((key for key in item if type(key) is TracedKey), None) if isinstance(item, dict) else None
