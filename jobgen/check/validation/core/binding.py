"""Validate Bindings of pods to nodes."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, report_missing
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate that the target is a node."""
    target = as_mapping(obj.get("target"))
    kind = as_text(target.get("kind"))
    if kind not in ("", "Node"):
        run.report("invalid-value", f"`kind` of the target is `{kind}`, but must be `Node`", target["kind"])
    if not as_text(target.get("name")):
        report_missing("`target`", target, "name", find_key(obj, "target", obj), run)
