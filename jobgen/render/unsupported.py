"""Advice about a value of the defaults that the kind of a job does not support."""

from __future__ import annotations

from jobgen.model.data import Node, TracedKey, TracedScalar
from jobgen.model.finding import quoted_values
from jobgen.render.expand import JobSpec

_DEFAULTS = "defaults of "


def suggest_block(node: Node, job: JobSpec) -> str:
    """Return how to set a value of the defaults of an overlay or a team for other jobs only; empty for other layers."""
    layer = _layer_of(node)
    if not layer.startswith(_DEFAULTS):
        return ""
    match = f"`match: {{exclude: {{kinds: [{job.kind.name}]}}}}`"
    return f"; it is among the {layer}: set it in {_name_block(layer)} with {match} instead"


def evidence_of_block(start: str, node: Node) -> tuple[str, ...]:
    """Return the values of a message with advice as the first release had them."""
    return quoted_values(f"{start} {_name_block(_layer_of(node))} `match: {{platforms: […]}}`")


def _name_block(layer: str) -> str:
    # Defaults of a team have no `match`.
    is_team = layer.startswith(f"{_DEFAULTS}team ")
    return "a block of the `defaults` of an overlay" if is_team else "a block of `defaults`"


def _layer_of(node: Node) -> str:
    return node.layer if isinstance(node, (TracedKey, TracedScalar)) else ""
